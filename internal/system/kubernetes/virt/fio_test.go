package virt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// Rates of machines add up, and their latencies are one distribution: a quantile
// of it is no mean of theirs.
func TestSumOfIO(t *testing.T) {
	report := func(text string) fio.Report {
		r, err := fio.ParseReport([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	got := make(map[string]float64)
	sumOf(map[string]fio.Report{
		"a/vm-0": report(`{"jobs":[{"jobname":"io","job_runtime":10000,"read":{"lat_ns":{"bins":{"100000":98,"200000":2}}}}]}`),
		"a/vm-1": report(`{"jobs":[{"jobname":"io","job_runtime":20000,"read":{"lat_ns":{"bins":{"100000":60,"9000000":40}}}}]}`),
	}, "", got)
	for name, want := range map[string]float64{"readRate": 15, "read p50": 0.0001, "read p99": 0.009} {
		if got[name] != want {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("nothing was written, and there is %v", got)
	}
}

// The run logs in to a server that shows the host key that it gave its machines. A server
// that shows another learns nothing, and the refusal has both keys.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	made, given, err := newKeys()
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.ParsePrivateKey([]byte(given[described.ParamSSHHostKey]))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ofOtherType, err := ssh.NewSignerFromKey(ecdsaKey)
	if err != nil {
		t.Fatal(err)
	}
	c := callsTo(t, "")
	c.keys = made
	for _, tt := range []struct {
		why  string
		key  ssh.Signer
		says []string // nil for a machine of the run
	}{
		{"a machine of the run", host, nil},
		{"one with another key", other, []string{ssh.FingerprintSHA256(other.PublicKey()), ssh.FingerprintSHA256(made.host), "cloud-init"}},
		{"one with keys of other types", ofOtherType, []string{"ecdsa-sha2-nistp256", ssh.FingerprintSHA256(made.host)}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			address, logins := serveSSH(t, tt.key, given[described.ParamSSHKey])
			did, ok, err := c.readFIO(t.Context(), nil, observe.Probe{Address: address, Probe: described.Probe{FIO: "cat results"}})
			if tt.says == nil {
				if err != nil || !ok || did.Sides[fio.Read].Bins.N() != 100 || logins.Load() != 1 {
					t.Errorf("%+v, %v, %v after %d logins", did, ok, err, logins.Load())
				}
				return
			}
			if err == nil || ok || reasonFor(err) != "HostKeyRefused" || logins.Load() != 0 {
				t.Fatalf("read: %v, %v after %d logins", ok, err, logins.Load())
			}
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
		})
	}
}

// serveSSH serves root who has a key with the results of a fio, and counts how often
// anybody tried to log in.
func serveSSH(t *testing.T, host ssh.Signer, authorized string) (address string, logins *atomic.Int32) {
	t.Helper()
	may, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authorized))
	if err != nil {
		t.Fatal(err)
	}
	logins = new(atomic.Int32)
	config := &ssh.ServerConfig{PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		logins.Add(1)
		if meta.User() != "root" || !bytes.Equal(key.Marshal(), may.Marshal()) {
			return nil, errors.New("who are you?")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, channels, requests, err := ssh.NewServerConn(conn, config)
				if err != nil {
					return
				}
				go ssh.DiscardRequests(requests)
				for asked := range channels {
					channel, of, err := asked.Accept()
					if err != nil {
						return
					}
					for r := range of {
						if _ = r.Reply(true, nil); r.Type == "exec" { // the client may have gone
							fmt.Fprint(channel, `{"jobs":[{"jobname":"io","job_runtime":10000,"read":{"lat_ns":{"bins":{"100000":98,"200000":2}}}}]}`)
							_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{0}))
							channel.Close()
						}
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), logins
}
