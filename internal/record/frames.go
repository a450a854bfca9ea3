package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A history is a row of Zstandard frames (RFC 8878), one for the start of each step and one for the rest
// of it. Each ends with a checksum of its text, which shows later changes: a step is judged only where all
// its frames are as they were written.

type frame struct {
	from, to int64
	state    frameState
	text     int64 // the bytes of its text, if it is whole
}

type frameState int

const (
	frameWhole   frameState = iota // its checksum matches its text
	frameCut                       // the last one of a killed run, without its end
	frameDamaged                   // it was changed
)

const frameMagic = "\x28\xb5\x2f\xfd" // begins each frame

const maxResync = 10_000 // bound of the places that are tried as the begin of a frame

// framesOf returns the frames of a history in order, with anything between them as damaged.
func framesOf(file io.ReaderAt, size int64) ([]frame, error) {
	var list []frame
	tries, left := 0, int64(mostText)
	for at := int64(0); at < size; {
		end, err := frameEnd(file, at, size)
		if err == nil {
			var text int64
			if text, err = verified(file, at, end, &left); err == nil {
				list = append(list, frame{at, end, frameWhole, text})
				at = end
				continue
			}
		}
		next, resyncErr := resync(file, at+1, size, &tries, &left)
		if left < 0 {
			resyncErr = &BoundError{"bytes of text", mostText}
		}
		if resyncErr != nil {
			return nil, resyncErr
		}
		state := frameDamaged
		if next == size && errors.Is(err, io.ErrUnexpectedEOF) {
			state = frameCut
		}
		list = append(list, frame{at, next, state, 0})
		at = next
	}
	return list, nil
}

// frameEnd returns the end of a frame by its blocks, or io.ErrUnexpectedEOF beyond the end of the file.
func frameEnd(file io.ReaderAt, at, size int64) (int64, error) {
	var head [zstd.HeaderMaxSize]byte
	n, err := file.ReadAt(head[:min(int64(len(head)), size-at)], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(head[:n]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) && strings.HasPrefix(frameMagic, string(head[:min(n, len(frameMagic))])) {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, err
	}
	if h.Skippable || !h.HasCheckSum {
		return 0, errors.New("the frame has no checksum")
	}
	at += int64(h.HeaderSize)
	for {
		var head [3]byte
		if at+3 > size {
			return 0, io.ErrUnexpectedEOF
		}
		if _, err := file.ReadAt(head[:], at); err != nil {
			return 0, err
		}
		block := uint32(head[0]) | uint32(head[1])<<8 | uint32(head[2])<<16
		length := int64(block >> 3)
		switch block >> 1 & 3 {
		case 1: // one byte, many times
			length = 1
		case 3:
			return 0, errors.New("the frame has a block of an unknown kind")
		}
		if at += 3 + length; at > size {
			return 0, io.ErrUnexpectedEOF
		}
		if block&1 == 1 {
			break
		}
	}
	if at += 4; at > size {
		return 0, io.ErrUnexpectedEOF
	}
	return at, nil
}

// verified decodes a frame and returns the length of its text. It checks the sum and the bound on text.
func verified(file io.ReaderAt, from, to int64, left *int64) (int64, error) {
	zip, err := newDecoder(io.NewSectionReader(file, from, to-from))
	if err != nil {
		return 0, err
	}
	defer zip.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(zip, *left+1))
	if *left -= n; *left < 0 {
		err = errors.New("there is too much text")
	}
	return n, err
}

// resync returns the begin of the next whole frame, or size.
func resync(file io.ReaderAt, from, size int64, tries *int, left *int64) (int64, error) {
	const step = 64 << 10
	buf := make([]byte, step+len(frameMagic)-1)
	for base := from; base < size; base += step {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), size-base)], base)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := 0; ; i++ {
			k := bytes.Index(buf[i:n], []byte(frameMagic))
			if k < 0 || i+k >= step {
				break
			}
			i += k
			if *tries++; *tries > maxResync || *left < 0 {
				return size, nil
			}
			at := base + int64(i)
			if end, err := frameEnd(file, at, size); err == nil {
				if _, err := verified(file, at, end, left); err == nil {
					return at, nil
				}
			}
		}
	}
	return size, nil
}

func endsFrame(e Event) bool {
	step, ok := e.Body.(*StepEvent)
	return ok && (step.Phase == PhaseStart || step.Phase == PhaseEnd)
}

// errUnverified says that a history ends before the end of a step's frame, which holds its checksum.
var errUnverified = errors.New("the end of a step in a frame without an end")

// verifier finds the part of a row of frames that cannot be trusted.
type verifier struct {
	framed   bool    // each step has frames of its own
	verified int64   // bytes of the text that are in whole frames
	text     int64   // bytes that were read
	rest     Damaged // the part of the file outside of whole frames
	within   *bounds // of the whole history, nil for none
}

// verifierOf returns the verifier of a row of frames of which only the last may lack its end.
func verifierOf(frames []frame) verifier {
	v := verifier{within: newBounds()}
	for _, f := range frames {
		v.verified += f.text
		if v.rest.To = f.to; f.state == frameWhole {
			v.rest.From = f.to
		}
	}
	return v
}

// line takes in the next line, of a length. The error is errUnverified.
func (v *verifier) line(e Event, length int) error {
	v.text += int64(length)
	switch b := e.Body.(type) {
	case *RunEvent:
		v.framed = v.framed || b.Framed
	case *StepEvent:
		if v.framed && b.Phase == PhaseEnd && v.text > v.verified {
			return errUnverified
		}
	}
	return nil
}

// readFrames reads a damaged history: each gets the events of whole frames, and a Damaged for others.
func readFrames(file *os.File, frames []frame, each func(Event) error) (History, error) {
	var all History
	within := newBounds()
	for _, f := range frames {
		if f.state == frameDamaged {
			part := &Damaged{f.from, f.to}
			if err := each(Event{Body: part}); err != nil {
				return all, err
			}
			all.Damaged = append(all.Damaged, part.String())
			continue
		}
		h, err := readEvents(io.NewSectionReader(file, f.from, f.to-f.from), verifier{framed: true, verified: f.text, rest: Damaged{f.from, f.to}, within: within}, each)
		all.Events, all.Unknown, all.Cut = all.Events+h.Events, all.Unknown+h.Unknown, h.Cut
		all.Damaged = append(all.Damaged, h.Damaged...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
