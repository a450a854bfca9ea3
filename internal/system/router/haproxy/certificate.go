package haproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"
)

// Pair holds a certificate with its key, in PEM as HAProxy takes them: one after the other.
type Pair struct {
	PEM  []byte
	Leaf *x509.Certificate
	key  *ecdsa.PrivateKey // of one of ours
}

const mostDomains = 50 // in a certificate of ours

// MakeCertificate makes a certificate by ECDSA P-256 for hosts, by their domains, as its own authority.
func MakeCertificate(hosts []string, random io.Reader, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	var names []string
	known := make(map[string]bool)
	for _, h := range hosts {
		name := h
		if _, domain, ok := strings.Cut(h, "."); ok && strings.Contains(domain, ".") {
			name = "*." + domain
		}
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	if len(names) > mostDomains {
		return Pair{}, fmt.Errorf("the names of hosts are of %d domains, and a certificate of ours can be of %d", len(names), mostDomains)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "plimsoll router"}, DNSNames: names,
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 30),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, text, err := sign(template, template, key, key, random)
	if err != nil {
		return Pair{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, fmt.Errorf("read a certificate: %w", err)
	}
	return Pair{text, leaf, key}, nil
}

// sign makes a certificate for the owner of a key: as such, and in PEM with the key.
func sign(template, parent *x509.Certificate, owner, signer *ecdsa.PrivateKey, random io.Reader) (der, text []byte, err error) {
	if der, err = x509.CreateCertificate(random, template, parent, &owner.PublicKey, signer); err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(owner)
	if err != nil {
		return nil, nil, fmt.Errorf("write a key: %w", err)
	}
	return der, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), nil
}

// Issue makes the n-th certificate by the pair's authority: for one host, in PEM with its own key.
func (p Pair) Issue(n int64, host string, random io.Reader) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	_, text, err := sign(&x509.Certificate{
		SerialNumber: new(big.Int).Add(p.Leaf.SerialNumber, big.NewInt(n)), Subject: pkix.Name{CommonName: "plimsoll route"}, DNSNames: []string{host},
		NotBefore: p.Leaf.NotBefore, NotAfter: p.Leaf.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: p.Leaf.ExtKeyUsage,
	}, p.Leaf, key, p.key, random)
	return text, err
}

// ReadCertificate checks a given certificate: it must have its key and be good for all hosts now.
func ReadCertificate(text []byte, hosts []string, now time.Time) (Pair, error) {
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return Pair{}, fmt.Errorf("the certificate and its key: %s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return Pair{}, fmt.Errorf("read the certificate: %w", err)
	}
	switch {
	case now.Before(leaf.NotBefore):
		return Pair{}, fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return Pair{}, fmt.Errorf("the certificate was valid until %s", leaf.NotAfter.Format(time.RFC3339))
	}
	for _, h := range hosts {
		if err := leaf.VerifyHostname(h); err != nil {
			var names x509.HostnameError
			if errors.As(err, &names) {
				return Pair{}, fmt.Errorf("the certificate is not for the host %s, but for %s", h, strings.Join(leaf.DNSNames, ", "))
			}
			return Pair{}, fmt.Errorf("the certificate does not match the host %s: %w", h, err)
		}
	}
	return Pair{PEM: text, Leaf: leaf}, nil
}

// Roots returns certificates as what a client trusts.
func Roots(pairs ...Pair) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, p := range pairs {
		pool.AddCert(p.Leaf)
	}
	return pool
}
