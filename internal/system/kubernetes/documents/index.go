package documents

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"
)

// Server takes documents into an index of OpenSearch or Elasticsearch.
type Server struct {
	URL, Index string // URL may name a user and a password
	Client     *http.Client
}

// Check says what is wrong with the server's URL or the index's name.
func (s Server) Check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("want the URL of a server, such as https://user:password@search:9200") // it may hold a password
	case s.Index == "" || s.Index != strings.ToLower(s.Index) || strings.ContainsAny(s.Index, " ,/\\*?\"<>|#:") || strings.HasPrefix(s.Index, "_"):
		return fmt.Errorf("%q names no index: want lower case without blanks, slashes and wildcards", s.Index)
	}
	return nil
}

func (s Server) host() string {
	if u, err := url.Parse(s.URL); err == nil {
		return u.Host
	}
	return ""
}

const bulk = 5 << 20 // bounds a request: servers accept 100 MB by default, and 5 to 15 MB are advised

// Send sends documents by the bulk API, counts them, and identifies each by its hash: it is stored once.
func (s Server) Send(ctx context.Context, list iter.Seq2[json.RawMessage, error]) (sent int, err error) {
	var lines bytes.Buffer
	n := 0
	flush := func() error {
		if n == 0 {
			return nil
		}
		if err := s.sendBulk(ctx, lines.Bytes()); err != nil {
			return fmt.Errorf("send documents to %s: %w", s.host(), err)
		}
		sent, n = sent+n, 0
		lines.Reset()
		return nil
	}
	for text, err := range list {
		if err != nil {
			return sent, err
		}
		var line bytes.Buffer
		if err := json.Compact(&line, text); err != nil {
			return sent, err
		}
		fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%x\"}}\n%s\n", s.Index, sha256.Sum256(line.Bytes()), line.Bytes())
		if n++; lines.Len() >= bulk {
			if err := flush(); err != nil {
				return sent, err
			}
		}
	}
	return sent, flush()
}

// sendBulk makes one request, and repeats it where the server is busy.
func (s Server) sendBulk(ctx context.Context, body []byte) error {
	for wait := time.Second; ; wait *= 2 {
		again, err := s.post(ctx, body)
		if err == nil || !again || wait > 4*time.Second {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s Server) post(ctx context.Context, body []byte) (again bool, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(s.URL, "/")+"/_bulk", bytes.NewReader(body))
	if err != nil {
		return false, errors.New("its URL cannot be read")
	}
	q.Header.Set("Content-Type", "application/x-ndjson")
	r, err := s.Client.Do(q)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the outer error shows the URL
		}
		return true, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return true, err
	}
	if r.StatusCode != http.StatusOK {
		return r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500, fmt.Errorf("it answers %s: %s", r.Status, text[:min(len(text), 200)])
	}
	var answer struct {
		Items []map[string]struct {
			Status int
			Error  struct{ Type, Reason string }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return false, fmt.Errorf("the server's answer is not a bulk API response: %w", err)
	}
	refused := 0
	for _, item := range answer.Items {
		for _, of := range item {
			if of.Status >= 300 {
				refused++
				again = of.Status == http.StatusTooManyRequests
				err = cmp.Or(err, fmt.Errorf("%s: %s", of.Error.Type, of.Error.Reason))
			}
		}
	}
	if refused == 0 {
		return false, nil
	}
	return again, fmt.Errorf("it refuses %d of %d documents: %w", refused, len(answer.Items), err)
}

// Items yields the items of documents.
func Items(list []Document) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for _, d := range list {
			for _, item := range d.Items {
				text, err := json.Marshal(item)
				if !yield(text, err) || err != nil {
					return
				}
			}
		}
	}
}

// Stored yields the items of stored documents in a directory or a tarball.
func Stored(name string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		info, err := os.Stat(name)
		switch {
		case err != nil:
		case info.IsDir():
			err = storedIn(name, yield)
		default:
			err = packedIn(name, yield)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("read the documents of %s: %w", name, err))
		}
	}
}

var errEnough = errors.New("nothing more is asked for") // ends a walk that the caller has stopped

func storedIn(dir string, yield func(json.RawMessage, error) bool) error {
	root, err := os.OpenRoot(dir) // so that no link leads to other files
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := fs.Glob(root.FS(), "*.json")
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := root.Open(file)
		if err != nil {
			return err
		}
		if err := errors.Join(eachOf(f, file, yield), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func packedIn(name string, yield func(json.RawMessage, error) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("it is not a tarball: %w", err)
	}
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && h.Typeflag == tar.TypeReg && path.Ext(h.Name) == ".json" {
			err = eachOf(archive, h.Name, yield)
		}
		if err != nil {
			return err
		}
	}
}

func eachOf(from io.Reader, name string, yield func(json.RawMessage, error) bool) error {
	d := json.NewDecoder(from)
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return fmt.Errorf("%s is not an array of documents", name)
	}
	for d.More() {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !yield(text, nil) {
			return errEnough
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%s is cut off: %w", name, err)
	}
	return nil
}
