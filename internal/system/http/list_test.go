package http

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

func TestListsOfRequests(t *testing.T) {
	for _, tt := range []struct {
		why, text string
		wants     []string // of the error; none for a list that is right
	}{
		{"all that an entry may have", "requests:\n- {path: '/a?b=c%20d', method: PUT, host: www.example.com, headers: {X-A: b}, body: x, weight: 2.5, status: 204}\n", nil},
		{"the least", "requests:\n- path: /\n", nil},
		{"none", "requests: []\n", []string{"list.yaml:1", "1 to 10000 requests", "has 0"}},
		{"an unknown key, with the nearest", "requests:\n- path: /\n  methd: GET\n", []string{"list.yaml:3:3", "methd", "did you mean \"method\""}},
		{"no method", "requests:\n- path: /\n  method: FETCH\n", []string{"list.yaml:3", "FETCH", "GET, HEAD"}},
		{"a path that is not escaped", "requests:\n- path: /a b\n", []string{"list.yaml:2", "/a b", "escaped"}},
		{"another server's address", "requests:\n- path: http://other.test/\n", []string{"list.yaml:2", "http://other.test/"}},
		{"a second line in a header's value, which is not shown", "requests:\n- path: /\n  headers: {Authorization: \"secret\\r\\nX: y\"}\n", []string{"list.yaml:3", "Authorization"}},
		{"a header of ours", "requests:\n- path: /\n  headers: {content-length: '5'}\n", []string{"list.yaml:3", "content-length", "itself"}},
		{"a host that is none", "requests:\n- path: /\n  host: 'a b'\n", []string{"list.yaml:3", "a b"}},
		{"no weight", "requests:\n- path: /\n  weight: 0\n", []string{"list.yaml:3", "weight 0"}},
		{"a status that ends nothing", "requests:\n- path: /\n  status: 100\n", []string{"list.yaml:3", "100", "200 to 599"}},
	} {
		file := filepath.Join(t.TempDir(), "list.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		hosts, err := readList(file, "server.test")
		if (err == nil) != (len(tt.wants) == 0) {
			t.Errorf("%s: %v %v", tt.why, hosts, err)
			continue
		}
		for _, want := range tt.wants {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v lacks %q", tt.why, err, want)
			}
		}
	}
}

func TestServersThatAreNamed(t *testing.T) {
	for _, tt := range []struct{ text, want, port, wrong string }{
		{"http://192.0.2.1:8080", "http://192.0.2.1:8080", "8080", ""},
		{"http://192.0.2.1:80/", "http://192.0.2.1", "80", ""},
		{"https://www.example.com", "https://www.example.com", "443", ""},
		{"https://[2001:db8::1]:443", "https://[2001:db8::1]", "443", ""},
		{"http://[2001:db8::1]:81", "http://[2001:db8::1]:81", "81", ""},
		{"", "", "", "no server is named"},
		{"www.example.com", "", "", "no scheme"},
		{"127.0.0.1:18777", "", "", "no scheme"},
		{"ftp://www.example.com", "", "", "not http or https"},
		{"http://www.example.com/path", "", "", "not http or https"},
		{"http://me:secret@www.example.com", "", "", "on record"},
		{"http://:80", "", "", "not http or https"},
	} {
		s, err := parseServer(tt.text)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %q", tt.text, err, tt.wrong)
			}
			continue
		}
		if err != nil || s.String() != tt.want || s.port != tt.port {
			t.Errorf("%s: %s port %s, %v", tt.text, s, s.port, err)
		}
	}
}

// A digest tells what is asked for apart, and not what is secret.
func TestADigestOfAList(t *testing.T) {
	list := func(r load.Request) []load.Host { return []load.Host{{Name: "a", Requests: []load.Request{r}}} }
	one := digest(list(load.Request{Method: "GET", Path: "/"}))
	if other := digest(list(load.Request{Method: "GET", Path: "/", Fields: [][2]string{{"Authorization", "secret"}}})); other != one {
		t.Errorf("a header changes the digest")
	}
	if other := digest(list(load.Request{Method: "HEAD", Path: "/"})); other == one {
		t.Errorf("a method does not change the digest")
	}
}

// The hint for a request that failed before the load is about its failure.
func TestRemediesNameTheFailure(t *testing.T) {
	for _, tt := range []struct{ failed, want, why string }{
		{"status 404", "status: 404", "another status than the list wants"},
		{"status 429", "sheds load", "a server that is loaded already"},
		{"status 503", "sheds load", "likewise"},
		{load.FailedRefused, "running", "a dead server"},
		{record.FailedTimeout, "running", "a silent server"},
		{load.FailedTLS, "ca=FILE", "a certificate that is not trusted"},
		{load.FailedClosed, "HTTP server", "an answer that was cut"},
		{load.FailedAnswer, "HTTP server", "another protocol"},
	} {
		if got := remedy(tt.failed); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q (%s)", tt.failed, got, tt.want, tt.why)
		}
	}
}
