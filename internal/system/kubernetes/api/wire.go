package api

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/tidwall/gjson"
	"google.golang.org/protobuf/encoding/protowire"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// This file reads only the fields that the observer needs from a watch's protobuf; a pod's spec and
// managed fields are most of it. The API's compatibility promise fixes the field numbers
// (generated.proto). The slow twin in wire_test.go decodes whole objects and must agree. Code generated
// from a trimmed .proto was tried: over 2,000 lines, and five times as many allocations.

// PodNews holds what one message says of a pod.
type PodNews struct {
	observe.Pod
	resourceVersion string
	Canary          string // value of the canary annotation
	IsCanary        bool
}

const maxFrame = 64 << 20 // bounds a message of a watch: objects have at most a few megabytes

func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return buf, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return buf, fmt.Errorf("message of %d bytes: more than any object has", n)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n, n+n/2)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return buf, err
	}
	return buf, nil
}

// field is one field of a message: b has the bytes of a length-delimited one, v a varint.
type field struct {
	num protowire.Number
	b   []byte
	v   uint64
}

// fields iterates over a message's fields until *err is set, which it also does for a malformed message.
func fields(msg []byte, err *error) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(msg) > 0 && *err == nil {
			num, typ, n := protowire.ConsumeTag(msg)
			f := field{num: num}
			if n >= 0 {
				msg = msg[n:]
				switch typ {
				case protowire.BytesType:
					f.b, n = protowire.ConsumeBytes(msg)
				case protowire.VarintType:
					f.v, n = protowire.ConsumeVarint(msg)
				default:
					n = protowire.ConsumeFieldValue(num, typ, msg)
				}
			}
			if n < 0 {
				*err = protowire.ParseError(n)
				return
			}
			if msg = msg[n:]; !yield(f) {
				return
			}
		}
	}
}

// last returns a message's last field with that number.
func last(msg []byte, num protowire.Number, err *error) (value field) {
	for f := range fields(msg, err) {
		if f.num == num {
			value = f
		}
	}
	return value
}

func watchEvent(msg []byte) (kind string, object []byte, err error) {
	for f := range fields(msg, &err) {
		switch f.num {
		case 1: // type
			kind = eventKind(f.b)
		case 2: // object: RawExtension
			object = last(f.b, 1, &err).b
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("decode watch event: %w", err)
	}
	return kind, object, nil
}

// Kinds of watch events.
const (
	EventAdded    = "ADDED"
	EventModified = "MODIFIED"
	EventDeleted  = "DELETED"
	Listed        = "LISTED" // marks an object that a list shows, and no watch has brought in this state
	eventBookmark = "BOOKMARK"
	eventError    = "ERROR"
)

// eventKind returns the constant of a kind, to avoid an allocation.
func eventKind(b []byte) string {
	for _, k := range [...]string{EventModified, EventAdded, EventDeleted, eventBookmark, eventError} {
		if string(b) == k {
			return k
		}
	}
	return string(b)
}

var envelopePrefix = []byte("k8s\x00")

// OpenEnvelope takes an object out of the API's protobuf envelope.
func OpenEnvelope(data []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(data, envelopePrefix)
	if !ok {
		return nil, errors.New("object is not in the protobuf encoding")
	}
	var err error
	raw := last(rest, 2, &err).b
	if err != nil {
		return nil, fmt.Errorf("open envelope: %w", err)
	}
	return raw, nil
}

// DecodePod reads a pod's message into p, which it resets first.
func DecodePod(raw []byte, p *PodNews) (err error) {
	*p = PodNews{}
	var namespace, name, slot []byte
	containers, statuses := 0, 0
	started := true
	for part := range fields(raw, &err) {
		if part.num > 3 {
			continue
		}
		for f := range fields(part.b, &err) {
			switch part.num {
			case 1: // metadata
				switch f.num {
				case 1:
					name = f.b
				case 3:
					namespace = f.b
				case 5:
					p.UID = string(f.b)
				case 6:
					p.resourceVersion = string(f.b)
				case 8:
					p.Created = seconds(f.b)
				case 9:
					p.Deleting = true
				case 11: // labels
					switch key, value := mapEntry(f.b); string(key) {
					case LabelSlot:
						slot = value
					case LabelCanary:
						p.IsCanary = true
					case labelJob:
						p.OfJob = true
					}
				case 12: // annotations
					if key, value := mapEntry(f.b); string(key) == AnnotationCanary {
						p.Canary = string(value)
					}
				}
			case 2: // spec
				switch f.num {
				case 2:
					containers++
					p.Containers++
				case 10:
					p.Node = string(f.b)
				case 20: // initContainers
					p.Containers++
				}
			case 3:
				if f.num == 8 { // containerStatuses
					statuses++
					started = decodeContainer(f.b, &p.Pod, &err) && started
				} else {
					decodeStatus(f, &p.Pod, &err)
				}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("decode pod %s/%s: %w", namespace, name, err)
	}
	p.Started = started && containers > 0 && statuses >= containers
	if !p.Started {
		p.StartedStamp = 0
	}
	both := make([]byte, 0, len(namespace)+1+len(name))
	both = append(append(append(both, namespace...), '/'), name...)
	p.Name = string(both)
	p.Slot = p.Name
	if slot != nil {
		p.Slot = string(namespace) + "/" + string(slot)
	}
	return nil
}

// decodeStatus reads one field of a pod's status.
func decodeStatus(f field, p *observe.Pod, err *error) {
	switch f.num {
	case 1:
		p.Phase = phaseOf(f.b)
	case 2:
		decodeCondition(f.b, p, err)
	case 3:
		p.Trouble.Message = messageOf(f.b)
	case 4:
		p.Trouble.Reason = string(f.b)
	case 10: // initContainerStatuses
		decodeContainer(f.b, p, err)
	}
}

func decodeCondition(msg []byte, p *observe.Pod, err *error) {
	c := observe.Condition{Known: true}
	index := -1
	for f := range fields(msg, err) {
		switch f.num {
		case 1:
			index = conditionIndex(f.b)
		case 2:
			c.True = string(f.b) == "True"
		case 4:
			c.Stamp = seconds(f.b)
		case 5:
			c.Reason = string(f.b)
		case 6:
			c.Message = messageOf(f.b)
		}
	}
	if index >= 0 {
		p.Conditions[index] = c
	}
}

// messageOf shortens a message to a length that people read.
func messageOf(b []byte) string {
	text := string(b)
	if short := redact.Cut(text); short != text {
		return strings.Clone(short)
	}
	return text
}

func conditionIndex(b []byte) int {
	switch string(b) {
	case "PodScheduled":
		return observe.CondScheduled
	case "PodReadyToStartContainers":
		return observe.CondReadyToStart
	case "Initialized":
		return observe.CondInitialized
	case "ContainersReady":
		return observe.CondContainersReady
	case "Ready":
		return observe.CondReady
	}
	return -1
}

func phaseOf(b []byte) observe.Phase {
	switch string(b) {
	case "Pending":
		return observe.PhasePending
	case "Running":
		return observe.PhaseRunning
	case "Succeeded":
		return observe.PhaseSucceeded
	case "Failed":
		return observe.PhaseFailed
	}
	return observe.PhaseUnknown
}

// decodeContainer reads a container's status: whether it has started, and its trouble.
func decodeContainer(msg []byte, p *observe.Pod, err *error) (started bool) {
	for f := range fields(msg, err) {
		switch f.num {
		case 2: // state
			for state := range fields(f.b, err) {
				switch state.num {
				case 1: // waiting
					decodeTrouble(state.b, 1, 2, p, nil, err)
				case 2: // running
					started = true
					p.StartedStamp = max(p.StartedStamp, seconds(last(state.b, 1, err).b))
				case 3: // terminated
					var at int64
					decodeTrouble(state.b, 3, 4, p, &at, err)
					started = at != 0
					p.StartedStamp = max(p.StartedStamp, at)
				}
			}
		case 5:
			p.Restarts += int(f.v)
		}
	}
	return started
}

// decodeTrouble reads why a container does not run, unless the pod has a trouble, and its start.
func decodeTrouble(msg []byte, reason, message protowire.Number, p *observe.Pod, startedAt *int64, err *error) {
	var t observe.Reason
	failed := false
	for f := range fields(msg, err) {
		switch {
		case f.num == reason:
			t.Reason = string(f.b)
		case f.num == message:
			t.Message = messageOf(f.b)
		case startedAt != nil && f.num == 1: // exitCode
			failed = f.v != 0
		case startedAt != nil && f.num == 5:
			*startedAt = seconds(f.b)
		}
	}
	// A container that ended with 0 has no trouble.
	if (startedAt == nil || failed) && p.Trouble.Reason == "" && t.Reason != "" {
		p.Trouble = t
	}
}

// mapEntry splits one entry of a map field.
func mapEntry(msg []byte) (key, value []byte) {
	var malformed error // a malformed entry is not ours
	for f := range fields(msg, &malformed) {
		switch f.num {
		case 1:
			key = f.b
		case 2:
			value = f.b
		}
	}
	return key, value
}

// seconds reads a Time or a Timestamp: whole seconds since 1970.
func seconds(msg []byte) int64 {
	var malformed error
	return int64(last(msg, 1, &malformed).v)
}

// DecodeList passes a list's items to each, and returns its version and continue token.
func DecodeList(raw []byte, each func(item []byte) error) (resourceVersion, next string, err error) {
	for f := range fields(raw, &err) {
		switch f.num {
		case 1: // ListMeta
			resourceVersion, next = string(last(f.b, 2, &err).b), string(last(f.b, 3, &err).b)
		case 2:
			err = each(f.b)
		}
	}
	return resourceVersion, next, err
}

// objectMeta names an object and its version. It is valid as long as the message that it points into.
type objectMeta struct{ namespace, name, uid, version []byte }

func decodeMeta(raw []byte) (m objectMeta) {
	var malformed error
	for f := range fields(last(raw, 1, &malformed).b, &malformed) {
		switch f.num {
		case 1:
			m.name = f.b
		case 3:
			m.namespace = f.b
		case 5:
			m.uid = f.b
		case 6:
			m.version = f.b
		}
	}
	return m
}

// DecodeMeta reads the UID and the resource version of an object of any kind.
func DecodeMeta(raw []byte) (uid, resourceVersion string) {
	m := decodeMeta(raw)
	return string(m.uid), string(m.version)
}

// Encoding decodes lists and watches: protobuf for built-in kinds, JSON for all others.
type Encoding struct {
	accept, watch string                                            // media types
	read          func(r *bufio.Reader, buf []byte) ([]byte, error) // reads the next message of a watch into buf
	// event splits a message into its type and the object; open takes that out of its envelope.
	event func(msg []byte) (kind string, object []byte, err error)
	open  func(object []byte) ([]byte, error)
	meta  func(raw []byte) objectMeta // reads an object's name and version
	// list hands each item to each, and returns the version and the continue token, "" on the last page.
	list func(raw []byte, each func([]byte) error) (version, next string, err error)
}

// ProtobufEncoding returns the encoding of the API's built-in kinds.
func ProtobufEncoding() *Encoding {
	return &Encoding{
		accept: ProtobufType, watch: ProtobufType + ";stream=watch," + ProtobufType,
		read:  func(r *bufio.Reader, buf []byte) ([]byte, error) { return readFrame(r, buf) },
		event: watchEvent,
		open:  OpenEnvelope,
		meta:  decodeMeta,
		list:  DecodeList,
	}
}

// JSONEncoding returns the encoding of custom resources.
func JSONEncoding() *Encoding {
	return &Encoding{
		accept: "application/json", watch: "application/json",
		read: readLine,
		event: func(msg []byte) (string, []byte, error) {
			// As the API writes it: {"type":"ADDED","object":{...}}
			rest, typed := bytes.CutPrefix(bytes.TrimSpace(msg), []byte(`{"type":"`))
			kind, object, whole := bytes.Cut(rest, []byte(`","object":`))
			if object, _ = bytes.CutSuffix(object, []byte("}")); !typed || !whole || len(object) == 0 {
				return "", nil, errors.New("decode watch event: it has no type or no object")
			}
			return string(kind), object, nil
		},
		open: func(object []byte) ([]byte, error) { return object, nil },
		meta: func(raw []byte) (m objectMeta) {
			gjson.GetBytes(raw, "metadata").ForEach(func(key, value gjson.Result) bool {
				switch key.Str {
				case "namespace":
					m.namespace = []byte(value.Str)
				case "name":
					m.name = []byte(value.Str)
				case "uid":
					m.uid = []byte(value.Str)
				case "resourceVersion":
					m.version = []byte(value.Str)
				}
				return true
			})
			return m
		},
		list: func(raw []byte, each func([]byte) error) (_, next string, err error) {
			gjson.GetBytes(raw, "items").ForEach(func(_, item gjson.Result) bool {
				err = each([]byte(item.Raw))
				return err == nil
			})
			return gjson.GetBytes(raw, "metadata.resourceVersion").String(), gjson.GetBytes(raw, "metadata.continue").String(), err
		},
	}
}

// readLine reads the next line that is not empty into buf: each JSON message of a watch is one.
func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	buf = buf[:0]
	for {
		part, err := r.ReadSlice('\n')
		if len(buf)+len(part) > maxFrame {
			return buf, errors.New("a message that is larger than any object")
		}
		buf = append(buf, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			if errors.Is(err, io.EOF) && len(bytes.TrimSpace(buf)) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return buf, err
		case len(bytes.TrimSpace(buf)) > 0:
			return buf, nil
		}
	}
}
