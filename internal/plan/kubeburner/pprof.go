package kubeburner

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// pprof is the measurement that fetches profiles of programs. It has no documents.
const pprof = "pprof"

// PProf returns the profiles that a job asks for, or nil: its own measurement replaces the configuration's.
func (c *Config) PProf(j *Job) *Measurement {
	for _, list := range [][]Measurement{j.Measurements, c.Global.Measurements} {
		if i := slices.IndexFunc(list, func(m Measurement) bool { return m.Name == pprof }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// Nodes reports whether a target is the kubelet of each node, instead of pods.
func (t *PProfTarget) Nodes() bool { return len(t.LabelSelector) == 0 }

// Address returns the port, path and query of a target, and whether it speaks TLS.
func (t *PProfTarget) Address() (port int, path string, query url.Values, secure bool, err error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return 0, "", nil, false, fmt.Errorf("want http://localhost:PORT/PATH or https://localhost:PORT/PATH, without a user")
	}
	if host := u.Hostname(); host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return 0, "", nil, false, fmt.Errorf("%q is not localhost, the pod or node itself", host)
	}
	secure = u.Scheme == "https"
	_, err = fmt.Sscan(cmp.Or(u.Port(), map[bool]string{true: "443", false: "80"}[secure]), &port)
	return port, cmp.Or(u.Path, "/"), u.Query(), secure, err
}

// Certificate returns the client certificate of a target, or nil; its files are of fsys.
func (t *PProfTarget) Certificate(fsys fs.FS) (*tls.Certificate, error) {
	var parts [2][]byte
	for i, from := range [][2]string{{t.Cert, t.CertFile}, {t.Key, t.KeyFile}} {
		text, err := base64.StdEncoding.DecodeString(from[0])
		if from[0] == "" && from[1] != "" {
			var read string
			read, err = readFile(fsys, from[1])
			text = []byte(read)
		}
		if err != nil {
			return nil, err
		}
		parts[i] = text
	}
	if len(parts[0])+len(parts[1]) == 0 {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(parts[0], parts[1])
	return &pair, err
}

// pprof refuses targets whose profiles cannot be fetched.
func (u *served) pprof(path string, m *Measurement) {
	if !filepath.IsLocal(m.PProfDirectory) {
		u.Add(path+".pprofDirectory", "for example pprof", "%q lies outside of the run's directory", m.PProfDirectory)
	}
	for i := range m.PProfTargets {
		t, path := &m.PProfTargets[i], strictyaml.Index(path+".pprofTargets", i)
		_, at, _, secure, err := t.Address()
		switch {
		case strings.ContainsAny(t.Name, "/\\"):
			u.Add(path+".name", "", "%q cannot be a part of a file's name", t.Name)
		case t.UnixSocketPath != "":
			u.refuses(true, path+".unixSocketPath", "only a pod with the node's files could reach it", "take the target out")
		case err != nil:
			u.Add(path+".url", "", "%v", err)
		case t.Nodes() && (!secure || !strings.HasPrefix(at, "/debug/pprof/")):
			u.Add(path+".url", "for example https://localhost:10250/debug/pprof/heap; a labelSelector chooses pods", "only kubelets are reached on nodes, and their profiles")
		case t.BearerToken != "" && t.Cert+t.CertFile != "":
			u.Add(path+".bearerToken", "keep one of both", "a token and a certificate exclude each other")
		}
	}
}
