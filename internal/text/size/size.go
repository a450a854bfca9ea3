// Package size answers: how many bytes does a text such as 512Mi stand for, and how
// many may a file have that a plan brings in?
package size

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
)

var form = regexp.MustCompile(`^([0-9]+\.?[0-9]*)[ ]*(?:([kKMGTPEgtp])(i?)B?|B)?$`)

// Parse reads a number of bytes: 4KiB, 32Gi, 1.5Ti, 512kB, 4G, or a bare number.
// Units with an i are binary, others decimal, as in Kubernetes. More than most is
// an error.
func Parse(text string, most int64) (int64, error) {
	const allowed = "want bytes such as 4096, 512Mi or 1.5GiB (units of 1024), 500M or 4GB (of 1000)"
	m := form.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is not a size: %s", text, allowed)
	}
	value, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size: %w", text, err)
	}
	base := 1000.0
	if m[3] != "" {
		base = 1024
	}
	n := value
	if m[2] != "" {
		n *= math.Pow(base, float64(strings.Index("kmgtpe", strings.ToLower(m[2]))+1))
	}
	switch {
	case m[2] == "" && n != math.Trunc(n):
		return 0, fmt.Errorf("%q is not a size: bytes are whole", text)
	case n > float64(most):
		return 0, fmt.Errorf("%s is more than %s", text, Text(most))
	}
	return int64(math.Round(n)), nil
}

// Text writes a number of bytes, in the largest binary unit that gives a whole
// number.
func Text(n int64) string {
	number, unit := largest(n)
	return fmt.Sprintf("%d %sB", number, unit)
}

// largest returns a number of bytes in the largest binary unit that gives a whole
// number.
func largest(n int64) (number int64, unit string) {
	for _, prefix := range "KMGTPE" {
		if n < 1024 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, string(prefix)+"i"
	}
	return n, unit
}

// Bytes is a size that is a flag or a key of a file: 512Mi, 1.5GiB, 500MB.
type Bytes int64

// UnmarshalText reads what Parse does, up to 1 EiB.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := Parse(string(text), 1<<60)
	if err == nil {
		*b = Bytes(n)
	}
	return err
}

// MarshalText writes it as Kubernetes does, whole: 512Mi.
func (b Bytes) MarshalText() ([]byte, error) {
	number, unit := largest(int64(b))
	return fmt.Appendf(nil, "%d%s", number, unit), nil
}

// MaxFile bounds the bytes of a file of a plan or a workload. It is read whole, and an object
// of Kubernetes has at most 1.5 MiB.
const MaxFile = 4 << 20

// ReadFile reads a file that a plan names. The error says so of one that is larger
// than MaxFile.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = tooLarge(name, "more than")
	}
	return data, err
}

// ReadFS reads a regular file of a directory, bounded likewise.
func ReadFS(dir fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(dir, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file that can be read whole: %s", name, info.Mode())
	case info.Size() > MaxFile:
		return nil, tooLarge(name, fmt.Sprintf("%d bytes and not", info.Size()))
	}
	return fs.ReadFile(dir, name)
}

func tooLarge(name, has string) error {
	return fmt.Errorf("%s has %s %d bytes (4 MiB), which is the most that is read of such a file", name, has, MaxFile)
}
