package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// remotely is a fixture that asks a Prometheus at an address, and nothing else.
func remotely(t testing.TB, address string, selectors, queries []string) *fixture {
	t.Helper()
	f := asking(t, queries)
	transport, err := Access{Token: "abcdef0123456789"}.Transport()
	if err != nil {
		t.Fatal(err)
	}
	f.s.Remote, f.s.Start = &Remote{URL: address, Transport: transport, Selectors: selectors}, start()
	return f
}

// fetch asks at so many seconds since the start.
func (f *fixture) fetch(seconds float64) {
	f.now = start().Add(time.Duration(seconds * float64(time.Second)))
	f.s.Fetch(f.t.Context(), f.now)
}

// A wrong answer of a Prometheus, or none, leaves a gap, in which everything that depends
// on it is unknown. Later answers for the same time are on record.
func TestBadAnswersOfAPrometheusAreGaps(t *testing.T) {
	const success = `{"status":"success","data":{"resultType":`
	at := func(seconds float64) string { return fmt.Sprintf("%.3f", float64(start().UnixMilli())/1000+seconds) }
	matrix := success + `"matrix","result":[{"metric":{"__name__":"x","job":"j","instance":"i"},"values":[[` + at(5) + `,"1"],[` + at(10) + `,"2"]]}]}}`
	vector := success + `"vector","result":[{"metric":{"__name__":"x","job":"j","instance":"i"},"value":[` + at(11) + `,"2"]}]}}`
	scalar := success + `"scalar","result":[` + at(11) + `,"0"]}}`
	for _, c := range []struct {
		why  string
		code int
		body string // of every answer, "" for good ones
		says string
	}{
		{"all is well", 200, "", ""},
		{"a page", 200, "<html>log in</html>", "at 03:04:16: "},
		{"an error page", 502, "<html>no server</html>", "server error: 502"},
		{"no token", 401, "denied", "client error: 401"},
		{"no right", 403, "abcdef0123456789 may not", "client error: 403"},
		{"a redirection", 302, "", "redirects"},
		{"a part of it", 200, `{"status":"success","warnings":["store 3 is gone"],"data":{"resultType":"scalar","result":[1,"0"]}}`, "its answer is partial: store 3 is gone"},
		{"an error", 422, `{"status":"error","errorType":"execution","error":"too many samples"}`, "too many samples"},
		{"another kind of answer", 200, `{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`, `unexpected value type "string"`},
		{"cut off", 200, success + `"matr`, "at 03:04:16: "},
		{"too much", 200, strings.Repeat(" ", 3<<20), "it answered more than 1 MiB"},
		{"nobody", 0, "", "connection refused"},
	} {
		t.Run(c.why, func(t *testing.T) {
			bad := false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer abcdef0123456789" {
					t.Errorf("asked as %q", r.Header.Get("Authorization"))
				}
				query := r.FormValue("query")
				switch {
				case bad && c.code == 302:
					http.Redirect(w, r, "http://elsewhere.invalid/", c.code)
				case bad && c.code != 200 || bad && c.body != "":
					w.WriteHeader(c.code)
					fmt.Fprint(w, c.body)
				case query == "time()":
					fmt.Fprint(w, scalar)
				case strings.Contains(query, "["):
					fmt.Fprint(w, matrix)
				default:
					fmt.Fprint(w, vector)
				}
			}))
			defer server.Close()
			f := remotely(t, server.URL, []string{"x"}, []string{"x", "x or vector(0)", "plimsoll_level"})
			f.s.most = 1 << 20
			f.fetch(11)
			f.hold()
			if bad = true; c.code == 0 {
				server.Close()
			}
			f.fetch(12)
			known := foundText(f.below("x or vector(0)", 10, 12))
			if good := strings.Contains(known, "=2"); good != (c.says == "") {
				t.Errorf("then it is %s", known)
			}
			if c.says != "" && !strings.Contains(known, "the metrics of remote-prometheus of ") {
				t.Errorf("it is unknown, since %s", known)
			}
			if level := foundText(f.below("plimsoll_level", 10, 12)); !strings.Contains(level, "=7") {
				t.Errorf("own figures do not depend on it: %s", level)
			}
			f.s.told = map[string]bool{}
			f.fetch(12)
			if says := strings.Join(f.says, "\n"); c.says != "" && !regexp.MustCompile(regexp.QuoteMeta(strings.Replace(c.says, "03:04:16", "03:04:17", 1))).MatchString(says) || strings.Contains(says, "abcdef0123456789") {
				t.Errorf("it says %q, want %q", says, c.says)
			}
			if bad = false; c.code != 0 {
				f.fetch(16)
				if again := foundText(f.below("x", 10, 16)); !strings.Contains(again, "=2") {
					t.Errorf("once it answers again: %s", again)
				}
			}
			if got := dump(t, f.open()); !strings.Contains(strings.Join(got, "\n"), `job="j"`) || strings.Contains(strings.Join(got, "\n"), "abcdef0123456789") {
				t.Errorf("on record is %q", got)
			}
		})
	}
}
