package redact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// secret stands for what must go, in every line of the table.
const secret = "hUnter2-s3cr3t"

func TestSecretsGo(t *testing.T) {
	for _, tt := range []struct{ why, line, want string }{
		{"a connection string", "connecting to postgres://app:" + secret + "@db.ns.svc:5432/app", "connecting to postgres://(masked)@db.ns.svc:5432/app"},
		{"a token as the user", "git clone https://" + secret + "@github.com/a/b", "git clone https://(masked)@github.com/a/b"},
		{"keys and values", "host=db user=app password=" + secret + " sslmode=disable", "host=db user=app password=(masked) sslmode=disable"},
		{"a variable", "PGPASSWORD=" + secret + " psql", "PGPASSWORD=(masked) psql"},
		{"YAML", "  db_password: " + secret, "  db_password: (masked)"},
		{"JSON", `{"user":"app","password":"` + secret + `","n":1}`, `{"user":"app","password":"(masked)","n":1}`},
		{"JSON with an escaped quote", `{"password":"a\"` + secret + `","n":1}`, `{"password":"(masked)","n":1}`},
		{"JSON within a text", `msg="{\"password\":\"` + secret + `\",\"n\":1}"`, `msg="{\"password\":\"(masked)\",\"n\":1}"`},
		{"a quote that never ends", `password="` + secret + ` and more`, `password="(masked)`},
		{"a value with commas", "password=a," + secret + ",b", "password=(masked)"},
		{"in words", "the password is " + secret + " for now", "the password is (masked) for now"},
		{"Ruby's arrow", ":token => '" + secret + "'", ":token => '(masked)'"},
		{"Go's", "apiKey := \"" + secret + "\"", "apiKey := \"(masked)\""},
		{"an option", "app --db-password " + secret + " --port 80", "app --db-password (masked) --port 80"},
		{"an option with =", "app --token=" + secret + " --port 80", "app --token=(masked) --port 80"},
		{"a header", "> Authorization: Bearer " + secret, "> Authorization: (masked)"},
		{"a header in JSON", `{"headers":{"Authorization":["Basic ` + secret + `"],"Host":["x"]}}`, `{"headers":{"Authorization":["(masked)"],"Host":["x"]}}`},
		{"a cookie", "Set-Cookie: session=" + secret + "; Path=/", "Set-Cookie: (masked)"},
		{"a key in a header", "X-Api-Key: " + secret, "X-Api-Key: (masked)"},
		{"a scheme without its header", "calling with bearer " + secret, "calling with bearer (masked)"},
		{"a query", "GET /x?access_token=" + secret + "&a=b HTTP/1.1", "GET /x?access_token=(masked) HTTP/1.1"},
		{"a signed URL", "GET https://s3/x?X-Amz-Signature=" + secret, "GET https://s3/x?X-Amz-Signature=(masked)"},
		{"a registry's credentials", `{"auths":{"r.example.com":{"auth":"` + secret + `"}}}`, `{"auths":{"r.example.com":{"auth":"(masked)"}}}`},
		{"a private key on one line", `key="-----BEGIN RSA PRIVATE KEY-----\n` + secret + `\n-----END RSA PRIVATE KEY-----" next`, `key="(masked)" next`},
		{"a private key that is cut", `-----BEGIN PRIVATE KEY----- ` + secret, `(masked)`},
	} {
		got, n := Lines([]string{tt.line})
		if got[0] != tt.want || n != 1 {
			t.Errorf("%s: %q (%d)\nwant %q", tt.why, got[0], n, tt.want)
		}
		if strings.Contains(got[0], secret) {
			t.Errorf("%s: the secret is still there", tt.why)
		}
	}
}

func TestKnownTokensGo(t *testing.T) {
	for _, token := range []string{
		"eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl", "AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + strings.Repeat("a1B2", 9),
		"glpat-" + strings.Repeat("x1", 10), "xoxb-" + "123456789012-abcdef", "sha256~" + strings.Repeat("Zz9", 10), "abcdef.0123456789abcdef", "sk-" + strings.Repeat("q9", 12),
	} {
		for _, line := range []string{token, "using " + token + ".", `"` + token + `"`, "(" + token + ")"} {
			if got, _ := Lines([]string{line}); strings.Contains(got[0], token) {
				t.Errorf("%q stays in %q", token, got[0])
			}
			if got := Message(line); strings.Contains(got, token) && token != "abcdef.0123456789abcdef" {
				t.Errorf("%q stays in the message %q", token, got)
			}
		}
	}
}

// What is no secret stays: without it a log says nothing.
func TestOtherTextStays(t *testing.T) {
	for _, line := range []string{
		"", "dial tcp 172.30.225.6:5432: i/o timeout", "GET http://10.244.0.5:8080/healthz 200", "2026-11-21T10:00:00Z INFO ready",
		"pulling docker.io/library/nginx@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31",
		"standard_init_linux.go:211: exec user process caused \"argument list too long\"", "mail to ops@example.com about https://example.com/x",
		"etcdserver: request timed out", "goroutine 1 [running]:", "SELECT * FROM pg_stat_activity WHERE state = 'idle'",
		"E1121 10:00:00.000000 1 leaderelection.go:330] error retrieving resource lock", "keyspace notifications are off",
	} {
		if got, n := Lines([]string{line}); got[0] != line || n != 0 {
			t.Errorf("%q became %q", line, got[0])
		}
	}
	// Messages of the cluster speak of secrets without telling them.
	for _, message := range []string{
		`MountVolume.SetUp failed for volume "kube-api-access-x" : failed to fetch token: pod "a" not found`,
		`MountVolume.SetUp failed for volume "tls" : secret "web-tls" not found`, `0/4 nodes are available: 4 Too many pods.`,
		`Failed to pull image "r.example.com/a:1": rpc error: code = Unknown desc = failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized`,
		`Readiness probe failed: HTTP probe failed with statuscode: 503`, `exceeded quota: few, requested: secrets=1, used: secrets=5, limited: secrets=5`,
		`failed to fetch token: the server could not find the requested resource`, `the secret is (secret:pbkdf2:00)`, `key=value, keys=5, tokens=7, monkey=1`,
	} {
		if got := Message(message); got != message {
			t.Errorf("the message %q became %q", message, got)
		}
	}
}

func TestSecretsInMessagesGo(t *testing.T) {
	for _, tt := range []struct{ why, message, want string }{
		{"a registry with its user", `Failed to pull image "x": Get "https://user:` + secret + `@r.example.com/v2/": dial`, `Failed to pull image "x": Get "https://(masked)@r.example.com/v2/": dial`},
		{"what a probe's command has printed", "Liveness probe failed: PGPASSWORD=" + secret + " psql: error", "Liveness probe failed: PGPASSWORD=(masked) psql: error"},
		{"a header", "webhook: Authorization: Bearer " + secret, "webhook: Authorization: (masked)"},
		{"a value that is not quoted, in a text that is", `{"message":"password=` + secret + `","code":1}`, `{"message":"password=(masked)`},
		{"the same, with a space after it", `{"message": "password=` + secret + `", "code": 1}`, `{"message": "password=(masked)", "code": 1}`},
		{"a query", `Get "https://h/x?token=` + secret + `": EOF`, `Get "https://h/x?token=(masked)": EOF`},
		{"a secret that is given", "bad answer: client.secret=" + secret + " of x", "bad answer: client.secret=(masked) of x"},
		{"a kubeconfig's key", "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURQ==", "client-key-data: (masked)"},
		{"and its token", "user:\n  token: abcdefgh0123456789", "user:\n  token: (masked)"},
		{"a key over several lines", "key:\n-----BEGIN EC PRIVATE KEY-----\n" + secret + "\n-----END EC PRIVATE KEY-----\nnext", "key:\n(masked)\nnext"},
		{"the beginning of a key", "key:\n-----BEGIN EC PRIVATE KEY-----\n" + secret, "key:\n(masked)"},
		{"a certificate or key in Base64", "ca: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t", "ca: (masked)"},
	} {
		got := Message(tt.message)
		if !strings.HasPrefix(got, tt.want) || strings.Contains(got, secret) {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
		if again := Message(got); again != got {
			t.Errorf("%s: masked again it is %q", tt.why, again)
		}
	}
}

// Keys go over several lines, of which the sample may have any part.
func TestPrivateKeys(t *testing.T) {
	body := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj", 2)[:64]
	key := []string{"-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", body, body, body[:20] + "==", "-----END RSA PRIVATE KEY-----"}
	whole := append(append([]string{"before"}, key...), "after")
	for from := range len(whole) {
		for to := from + 1; to <= len(whole); to++ {
			got, n := Lines(whole[from:to])
			for i, line := range got {
				was := whole[from+i]
				switch {
				case was == "before" || was == "after":
					// What comes before a key whose first line is there stays.
					if line != was {
						t.Fatalf("%q of %q became %q", was, whole[from:to], line)
					}
				case line == Masked:
					n--
				case was == "Proc-Type: 4,ENCRYPTED" || was == body[:20]+"==":
					// Of these alone nobody can tell what they are of.
					if from+i > 0 && slices.Contains(whole[from:to], key[0]) || slices.Contains(whole[from:to], key[5]) {
						t.Fatalf("%q stays in %q", was, whole[from:to])
					}
				default:
					t.Fatalf("%q stays in %q", was, whole[from:to])
				}
			}
			if n != 0 {
				t.Fatalf("%q: the number of masked lines is off by %d", whole[from:to], n)
			}
		}
	}
}

// A line without end is cut between words, and no half of a secret stays.
func TestLongLines(t *testing.T) {
	for _, before := range []int{4000, 4080, 4090, 5000} {
		line := strings.Repeat("word ", before/5) + "password=" + secret + strings.Repeat(" more", 100)
		got, _ := Lines([]string{line})
		if len(got[0]) > maxLine+4 || strings.Contains(got[0], secret[:4]) {
			t.Errorf("after %d bytes: %q", before, got[0][max(len(got[0])-100, 0):])
		}
	}
	if got, _ := Lines([]string{strings.Repeat("x", 10_000)}); got[0] != " ..." {
		t.Errorf("one word without end: %d bytes", len(got[0]))
	}
}

// FuzzLines plants a secret in any of the forms into any text: it goes, and
// what was masked once is not masked again.
func FuzzLines(f *testing.F) {
	f.Add("some ", " text", uint64(1))
	f.Add(`{"a":"`, `"}`, uint64(7))
	f.Add("x\n-----END RSA PRIVATE KEY-----", "", uint64(3))
	f.Fuzz(func(t *testing.T, before, after string, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		planted := fmt.Sprintf("s3cr3t%016x", rng.Uint64())
		if strings.Contains(before+after, planted) || strings.ContainsAny(before+after, "\n\r") {
			return
		}
		forms := []string{"password=%s", "password: %s", `"password":"%s"`, "token='%s'", "https://u:%s@h/", "Authorization: Bearer %s", "--password %s", `\"secret\":\"%s\"`, "apiKey := %s"}
		line := before + " " + fmt.Sprintf(forms[rng.IntN(len(forms))], planted) + " " + after
		if len(line) > 100_000 {
			return
		}
		got, _ := Lines([]string{line})
		if strings.Contains(got[0], planted) {
			t.Errorf("%q stays in %q", planted, got[0])
		}
		again, n := Lines(got)
		if again[0] != got[0] {
			t.Errorf("masked again (%d) %q becomes %q", n, got[0], again[0])
		}
		Message(line)
	})
}
