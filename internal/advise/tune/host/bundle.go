package host

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Bounds of a saved host, which takes a few hundred kilobytes.
const (
	bundleBytes = 64 << 20
	bundleFiles = 200_000
)

// OpenBundle reads a saved host from a tar archive, plain or with gzip. A truncated archive is an error.
func OpenBundle(r io.Reader) (fs.FS, error) {
	buffered := bufio.NewReader(r)
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		buffered = bufio.NewReader(unzipped)
	}
	if head, _ := buffered.Peek(263); len(head) < 263 || string(head[257:262]) != "ustar" {
		return nil, errors.New("it is not a tar archive")
	}
	// The standard library has a file system of zip archives, but not of tar archives.
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	end := &tail{r: buffered}
	in := tar.NewReader(end)
	total := int64(0)
	seen := map[string]bool{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			// A truncated archive may end here too, but without the two empty blocks at the end.
			if _, err := io.Copy(io.Discard, end); err != nil || len(end.last) < 1024 || len(bytes.Trim(end.last, "\x00")) > 0 {
				return nil, errors.New("read the archive: it ends in the middle")
			}
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if name == "" || seen[name] || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
			continue
		}
		if seen[name] = true; len(seen) > bundleFiles {
			return nil, fmt.Errorf("it has more than %s files", param.Grouped(int64(bundleFiles)))
		}
		if h.Typeflag == tar.TypeDir {
			name += "/"
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil && h.Typeflag == tar.TypeReg {
			var n int64
			n, err = io.Copy(w, io.LimitReader(in, bundleBytes-total+1))
			if total += n; err == nil && total > bundleBytes {
				return nil, fmt.Errorf("its files have more than %s", param.Bytes(bundleBytes))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read %s of the archive: %w", name, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
}

// tail remembers the last two blocks of a reader.
type tail struct {
	r    io.Reader
	last []byte
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.last = append(t.last, p[:n]...)
	t.last = append(t.last[:0], t.last[max(0, len(t.last)-1024):]...)
	return n, err
}
