package documents

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// bulkServer is the part of OpenSearch that takes documents, strictly by its format.
type bulkServer struct {
	t  *testing.T
	mu sync.Mutex
	// documents by their IDs, and how often they came.
	documents map[string]string
	came      int
	requests  int
	// busy answers 429 as often, and refuses is what no document may have.
	busy    int
	refuses string
}

func (b *bulkServer) RoundTrip(q *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	b.serve(w, q)
	return w.Result(), nil
}

func (b *bulkServer) serve(w *httptest.ResponseRecorder, q *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	user, password, _ := q.BasicAuth()
	if q.Method != http.MethodPost || q.URL.Path != "/search/_bulk" || q.Header.Get("Content-Type") != "application/x-ndjson" || user != "me" || password != "hidden" {
		b.t.Errorf("%s %s by %s", q.Method, q.URL.Path, user)
	}
	if b.busy > 0 {
		b.busy--
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	lines := bufio.NewReader(q.Body)
	var items []string
	for {
		action, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		var of struct {
			Index struct {
				Index string `json:"_index"`
				ID    string `json:"_id"`
			}
		}
		document, err := lines.ReadString('\n')
		if json.Unmarshal([]byte(action), &of) != nil || of.Index.Index != "runs" || len(of.Index.ID) != 64 || err != nil || !json.Valid([]byte(document)) {
			b.t.Errorf("%q, %q, %v", action, document, err)
		}
		if b.refuses != "" && strings.Contains(document, b.refuses) {
			items = append(items, `{"index":{"status":400,"error":{"type":"mapper_parsing_exception","reason":"no"}}}`)
			continue
		}
		b.documents[of.Index.ID] = document
		b.came++
		items = append(items, `{"index":{"status":201}}`)
	}
	fmt.Fprintf(w, `{"errors":%t,"items":[%s]}`, b.refuses != "", strings.Join(items, ","))
}

func TestDocumentsAreSent(t *testing.T) {
	t.Parallel()
	var several []Document
	for i := range 3 {
		several = append(several, Document{Metric: "m", Items: []any{map[string]any{"n": i}, map[string]any{"m": i}}})
	}
	large := []Document{{Items: slices.Repeat([]any{strings.Repeat("x", bulk/2)}, 5)}}
	for i := range large[0].Items {
		large[0].Items[i] = fmt.Sprint(i, large[0].Items[i])
	}
	for _, tt := range []struct {
		why            string
		list           iter.Seq2[json.RawMessage, error]
		busy           int
		refuses        string
		sent, requests int
		says           string
	}{
		{"one request", Items(several), 0, "", 6, 1, ""},
		{"nothing", Items(nil), 0, "", 0, 0, ""},
		{"no request is large", Items(large), 0, "", 5, 3, ""},
		{"a server that is busy for a while", Items(several), 2, "", 6, 3, ""},
		{"one that stays busy", Items(several), 99, "", 0, 4, "search.example: it answers 429"},
		{"a document that does not fit", Items(several), 0, `"m":1`, 0, 1, "it refuses 1 of 6 documents: mapper_parsing_exception: no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &bulkServer{t: t, documents: make(map[string]string), busy: tt.busy, refuses: tt.refuses}
			s := Server{URL: "https://me:hidden@search.example/search/", Index: "runs", Client: &http.Client{Transport: b}}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			sent, err := s.Send(context.Background(), tt.list)
			if sent != tt.sent || b.requests != tt.requests || (err == nil) != (tt.says == "") {
				t.Errorf("%s: %d sent in %d requests, %v", tt.why, sent, b.requests, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("%s: %v", tt.why, err)
			}
			if tt.says == "" && len(b.documents) != tt.sent {
				t.Errorf("%s: %d of %d documents stand there", tt.why, len(b.documents), tt.sent)
			}
		})
	}
}

func TestServersThatAreNone(t *testing.T) {
	t.Parallel()
	for _, tt := range []Server{{URL: "me:hidden@search", Index: "a"}, {URL: "ftp://search", Index: "a"}, {URL: "http://", Index: "a"}, {URL: "http://search", Index: ""}, {URL: "http://search", Index: "Runs"}, {URL: "http://search", Index: "a/b"}} {
		if err := tt.Check(); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

// What was written is read again, from files and from their tarball.
func TestStoredDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := Place{Directory: "m", Tarball: "m.tgz"}
	if _, err := Write(dir, to, []Document{{"a", "", []any{1, 2}}, {"b", "j", []any{"x"}}}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"object.json": `{"a": 1}`, "cut.json": `[1, 2`, "broken.json": `[1, }`, "text.tgz": "no"} {
		if err := os.MkdirAll(filepath.Join(dir, name+".d"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".d", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "link.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "m", "a.json"), filepath.Join(dir, "link.d", "a.json")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want, says string }{
		{"link.d", "", "escapes"}, // it is sent elsewhere, and may be no document
		{"m", `1 2 "x"`, ""},
		{"m.tgz", `1 2 "x"`, ""},
		{"object.json.d", "", "object.json is not an array"},
		{"cut.json.d", "1 2", "cut.json"},
		{"broken.json.d", "1", "broken.json"},
		{"text.tgz.d/text.tgz", "", "it is not a tarball"},
		{"nothing", "", "no such file"},
	} {
		var got []string
		var failed error
		for text, err := range Stored(filepath.Join(dir, tt.path)) {
			if err != nil {
				failed = err
				break
			}
			got = append(got, string(text))
		}
		if strings.Join(got, " ") != tt.want || (failed == nil) != (tt.says == "") || failed != nil && !strings.Contains(failed.Error(), tt.says) {
			t.Errorf("%s: %v, %v", tt.path, got, failed)
		}
	}
}
