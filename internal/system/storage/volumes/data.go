package volumes

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
)

// content returns the content of a volume's file, which follows from its name and is not stored.
func content(volume string, size int64) io.Reader {
	h := fnv.New128a()
	h.Write([]byte(volume))
	var seed [32]byte
	copy(seed[:], h.Sum(nil))
	return io.LimitReader(rand.NewChaCha8(seed), size)
}

// write writes a volume's file, and returns when it is on its bricks.
func write(path, volume string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write to volume %s: %w", volume, err)
	}
	_, err = io.Copy(f, content(volume, size))
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		return fmt.Errorf("write to volume %s: %w", volume, err)
	}
	return nil
}

// errWrong says that a file has other content than was written.
var errWrong = errors.New("what was read is not what was written")

// verify reads and compares a volume's file.
func verify(path, volume string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read volume %s: %w", volume, err)
	}
	defer f.Close()
	got, want := fnv.New128a(), fnv.New128a()
	if _, err := io.Copy(got, f); err != nil {
		return fmt.Errorf("read volume %s: %w", volume, err)
	}
	if _, err := io.Copy(want, content(volume, size)); err != nil {
		return fmt.Errorf("read volume %s: %w", volume, err)
	}
	if string(got.Sum(nil)) != string(want.Sum(nil)) {
		return fmt.Errorf("read volume %s: %w", volume, errWrong)
	}
	return nil
}
