package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A Prometheus is asked as a record is, with the credentials, and what it cannot answer is an error.
func TestRemoteAnswers(t *testing.T) {
	answers := map[string]string{
		"vector": `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"a","b":"c"},"value":[1.5,"2"]}]}}`,
		"matrix": `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"b":"c"},"values":[[1,"2"],[2,"NaN"]]}]}}`,
		"scalar": `{"status":"success","data":{"resultType":"scalar","result":[3,"4"]}}`,
		"words":  `{"status":"success","data":{"resultType":"string","result":[3,"4"]}}`,
		"bad":    `{"status":"error","errorType":"bad_data","error":"no such function"}`,
		"large":  `{"status":"success","data":{"resultType":"vector","result":[]},"x":"` + strings.Repeat("x", mostAnswer) + `"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Form.Get("query") == "bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
		io.WriteString(w, answers[r.Form.Get("query")])
	}))
	defer server.Close()
	transport, err := Access{User: "me", Password: "secret"}.Transport()
	if err != nil {
		t.Fatal(err)
	}
	of := &Remote{URL: server.URL, Transport: transport}
	for query, want := range map[string]string{
		"vector": `{__name__="a", b="c"} [{1500 2}]`, "matrix": `{b="c"} [{1000 2} {2000 NaN}]`, "scalar": ` [{3000 4}]`,
		"words": "unexpected value type", "bad": "no such function", "large": "64 MiB", "sum(": "unclosed left parenthesis",
	} {
		a, err := of.At(t.Context(), query, time.Now())
		got := fmt.Sprint(err)
		if err == nil {
			got = ""
			for _, s := range a.Series() {
				var points []string
				for _, p := range s.Values {
					points = append(points, fmt.Sprintf("{%d %v}", p.T, p.F))
				}
				got += s.Name + " [" + strings.Join(points, " ") + "]"
			}
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%s: %s", query, got)
		}
	}
	if a, err := of.Range(t.Context(), "matrix", time.Unix(1, 0), time.Unix(9, 0), time.Second); err != nil || len(a.Series()) != 1 {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := (&Remote{URL: server.URL, Transport: http.DefaultTransport}).At(t.Context(), "vector", time.Now()); err == nil {
		t.Error("nobody was asked who asks")
	}
}
