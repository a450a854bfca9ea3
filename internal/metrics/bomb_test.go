package metrics

import (
	"bytes"
	"compress/gzip"
	"testing"
)

// gzipBomb is a page that is small, and large once it is decompressed.
func gzipBomb(t testing.TB) page {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	for range 1 << 10 {
		if _, err := zip.Write(bytes.Repeat([]byte("x 1\n"), 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return page{header: map[string]string{"Content-Type": "text/plain", "Content-Encoding": "gzip"}, body: b.String()}
}
