package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll.dev/plimsoll/internal/text/flock"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// ResumeClock goes on with the clock of a cut run. Start is the wall clock at 0, last the time of the
// last event. The wall clock measures the pause, but time goes on after last; the clock's Start then
// returns the wall clock at 0 as seen now, which is before start if the wall clock was set back.
func ResumeClock(start time.Time, last Micros, now func() time.Time) *Clock {
	at := now()
	t := last + 1
	if !start.IsZero() {
		t = max(t, MicrosOf(at.Sub(start)))
	}
	return &Clock{start: at.Add(-t.Duration()), now: now}
}

const historyPart = "." + HistoryFile + ".part"

// ResumeWriter goes on with a cut run's history by a whole copy of it. The directory must be locked.
func ResumeWriter(d Dir, secrets *redact.Secrets, follow func(Event)) (*Writer, error) {
	file, err := d.create(historyPart)
	if err != nil {
		return nil, fmt.Errorf("go on with the history: %w", err)
	}
	w, err := resumeIn(d, file, secrets, follow)
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		return nil, fmt.Errorf("go on with the history: %w", err)
	}
	return w, nil
}

func resumeIn(d Dir, file *os.File, secrets *redact.Secrets, follow func(Event)) (*Writer, error) {
	old, err := os.Open(d.Path(HistoryFile))
	if err != nil {
		return nil, err
	}
	defer old.Close()
	zip, err := newEncoder(file)
	if err != nil {
		return nil, err
	}
	err = cmp.Or(copyFrames(zip, file, old), zip.Close())
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(file.Name(), d.Path(HistoryFile))
	}
	if err != nil {
		return nil, err
	}
	zip.Reset(file) // the rest is a frame of its own: readers see one text
	return newWriter(file, zip, secrets, follow), nil
}

// copyFrames copies the whole and trusted part of a history, in the frames as written.
func copyFrames(zip *zstd.Encoder, file, old *os.File) error {
	info, err := old.Stat()
	if err != nil {
		return err
	}
	frames, err := framesOf(old, info.Size())
	if err != nil {
		return err
	}
	v := verifierOf(frames)
	_, err = readLines(old, func(line []byte) error {
		e, err := parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
		if err == nil {
			err = v.line(e, len(line))
		}
		if err != nil {
			return err
		}
		if _, err := zip.Write(line); err != nil || !endsFrame(e) {
			return err
		}
		err = zip.Close()
		zip.Reset(file)
		return err
	})
	if errors.Is(err, errUnverified) {
		return nil
	}
	return err
}

// BusyError says that another process is writing the run directory.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s is in use by a running experiment", e.Path)
}

// Lock takes the right to write a run's record until closed, by the system's lock on the directory. The
// error is a *BusyError where another process holds it; a file system without locks is none.
func (d Dir) Lock() (io.Closer, error) {
	dir, err := os.Open(string(d))
	if err != nil {
		return nil, fmt.Errorf("lock the run directory: %w", err)
	}
	if err := flock.Exclusive(dir); errors.Is(err, flock.ErrHeld) {
		dir.Close()
		return nil, &BusyError{string(d)}
	}
	return dir, nil
}
