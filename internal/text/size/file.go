package size

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

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
