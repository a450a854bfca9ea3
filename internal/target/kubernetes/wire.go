package kubernetes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
)

// This file reads just what the observer needs from the protobuf encoding of a
// watch, and skips the rest: a pod's spec and its managed fields are most of
// the message and tell of no milestone. The field numbers are those of
// k8s.io/api/core/v1 and k8s.io/apimachinery/pkg/apis/meta/v1 (generated.proto),
// which the API's compatibility promise fixes. The slow twin in wire_test.go
// decodes whole objects and must agree.

// podNews is what one message tells of a pod, and what else is needed to see
// whose it is.
type podNews struct {
	observe.Pod
	resourceVersion string
	canary          string // value of the canary annotation
	isCanary        bool
}

// maxFrame bounds one message of a watch: objects are at most a few megabytes.
const maxFrame = 64 << 20

// readFrame reads the next length-prefixed message of a watch into buf.
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

// fields calls each for every field of a message. Values of length-delimited
// fields are in b, those of varints in v; other wire types are skipped.
func fields(msg []byte, each func(num protowire.Number, b []byte, v uint64) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return protowire.ParseError(n)
		}
		msg = msg[n:]
		switch typ {
		case protowire.BytesType:
			b, n := protowire.ConsumeBytes(msg)
			if n < 0 {
				return protowire.ParseError(n)
			}
			msg = msg[n:]
			if err := each(num, b, 0); err != nil {
				return err
			}
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(msg)
			if n < 0 {
				return protowire.ParseError(n)
			}
			msg = msg[n:]
			if err := each(num, nil, v); err != nil {
				return err
			}
		default:
			n := protowire.ConsumeFieldValue(num, typ, msg)
			if n < 0 {
				return protowire.ParseError(n)
			}
			msg = msg[n:]
		}
	}
	return nil
}

// watchEvent splits a watch's message into its type and the object's envelope.
func watchEvent(msg []byte) (kind string, object []byte, err error) {
	err = fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case 1: // type
			kind = eventKind(b)
		case 2: // object: RawExtension
			return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				if num == 1 {
					object = b
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("decode watch event: %w", err)
	}
	return kind, object, nil
}

// Kinds of watch events.
const (
	eventAdded    = "ADDED"
	eventModified = "MODIFIED"
	eventDeleted  = "DELETED"
	eventBookmark = "BOOKMARK"
	eventError    = "ERROR"
)

// eventKind gives the constant for a kind, so that no event allocates one.
func eventKind(b []byte) string {
	for _, k := range [...]string{eventModified, eventAdded, eventDeleted, eventBookmark, eventError} {
		if string(b) == k {
			return k
		}
	}
	return string(b)
}

var envelopePrefix = []byte("k8s\x00")

// openEnvelope takes an object out of the API's protobuf envelope.
func openEnvelope(data []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(data, envelopePrefix)
	if !ok {
		return nil, errors.New("object is not in the protobuf encoding")
	}
	var raw []byte
	err := fields(rest, func(num protowire.Number, b []byte, _ uint64) error {
		if num == 2 { // raw
			raw = b
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open envelope: %w", err)
	}
	return raw, nil
}

// decodePod reads a pod's message into p, which it resets first.
func decodePod(raw []byte, p *podNews) error {
	*p = podNews{}
	var namespace, name, slot []byte
	containers, statuses := 0, 0
	started := true
	err := fields(raw, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case 1: // metadata
			return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				switch num {
				case 1:
					name = b
				case 3:
					namespace = b
				case 5:
					p.UID = string(b)
				case 6:
					p.resourceVersion = string(b)
				case 8:
					p.Created = seconds(b)
				case 9:
					p.Deleting = true
				case 11: // labels
					key, value := mapEntry(b)
					switch {
					case string(key) == LabelSlot:
						slot = value
					case string(key) == LabelCanary:
						p.isCanary = true
					}
				case 12: // annotations
					if key, value := mapEntry(b); string(key) == annotationCanary {
						p.canary = string(value)
					}
				}
				return nil
			})
		case 2: // spec
			return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				switch num {
				case 2:
					containers++
					p.Containers++
				case 10:
					p.Node = string(b)
				case 20: // initContainers
					p.Containers++
				}
				return nil
			})
		case 3: // status
			return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				switch num {
				case 1:
					p.Phase = phaseOf(b)
				case 2:
					return decodeCondition(b, &p.Pod)
				case 3:
					p.Trouble.Message = string(b)
				case 4:
					p.Trouble.Reason = string(b)
				case 8, 10: // containerStatuses, initContainerStatuses
					running, err := decodeContainer(b, &p.Pod)
					if num == 8 {
						statuses++
						started = started && running
					}
					return err
				}
				return nil
			})
		}
		return nil
	})
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

// decodeCondition reads one of a pod's conditions.
func decodeCondition(msg []byte, p *observe.Pod) error {
	c := observe.Condition{Known: true}
	index := -1
	err := fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case 1:
			index = conditionIndex(b)
		case 2:
			c.True = string(b) == "True"
		case 4:
			c.Stamp = seconds(b)
		case 5:
			c.Reason = string(b)
		case 6:
			c.Message = string(b)
		}
		return nil
	})
	if err == nil && index >= 0 {
		p.Conditions[index] = c
	}
	return err
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

// decodeContainer reads a container's status: whether it has started, and what
// troubles it.
func decodeContainer(msg []byte, p *observe.Pod) (started bool, err error) {
	err = fields(msg, func(num protowire.Number, b []byte, v uint64) error {
		switch num {
		case 2: // state
			return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				switch num {
				case 1: // waiting
					return decodeTrouble(b, 1, 2, p, nil)
				case 2: // running
					started = true
					return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
						if num == 1 {
							p.StartedStamp = max(p.StartedStamp, seconds(b))
						}
						return nil
					})
				case 3: // terminated
					var at int64
					err := decodeTrouble(b, 3, 4, p, &at)
					started = at != 0
					p.StartedStamp = max(p.StartedStamp, at)
					return err
				}
				return nil
			})
		case 5:
			p.Restarts += int(v)
		}
		return nil
	})
	return started, err
}

// decodeTrouble reads the reason and message of a container that does not run,
// unless the pod has a trouble already, and when it started where it did.
func decodeTrouble(msg []byte, reason, message protowire.Number, p *observe.Pod, startedAt *int64) error {
	var t observe.Trouble
	failed := false
	err := fields(msg, func(num protowire.Number, b []byte, v uint64) error {
		switch {
		case num == reason:
			t.Reason = string(b)
		case num == message:
			t.Message = string(b)
		case startedAt != nil && num == 1: // exitCode
			failed = v != 0
		case startedAt != nil && num == 5:
			*startedAt = seconds(b)
		}
		return nil
	})
	if startedAt != nil && !failed {
		// A container that ended well is no trouble.
		return err
	}
	if p.Trouble.Reason == "" && t.Reason != "" {
		p.Trouble = t
	}
	return err
}

// mapEntry splits one entry of a map field.
func mapEntry(msg []byte) (key, value []byte) {
	// A malformed entry is one that is not ours.
	_ = fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case 1:
			key = b
		case 2:
			value = b
		}
		return nil
	})
	return key, value
}

// seconds reads a Time or a Timestamp: whole seconds since 1970.
func seconds(msg []byte) int64 {
	var s int64
	_ = fields(msg, func(num protowire.Number, _ []byte, v uint64) error {
		if num == 1 {
			s = int64(v)
		}
		return nil
	})
	return s
}

// decodeList hands each item of a list's message to each, and returns its
// resource version and the token of its next page, "" at the last.
func decodeList(raw []byte, each func(item []byte) error) (resourceVersion, next string, err error) {
	err = fields(raw, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case 1: // ListMeta
			return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				switch num {
				case 2:
					resourceVersion = string(b)
				case 3:
					next = string(b)
				}
				return nil
			})
		case 2:
			return each(b)
		}
		return nil
	})
	return resourceVersion, next, err
}

// decodeMeta reads the UID and the resource version of an object of any kind.
func decodeMeta(raw []byte) (uid, resourceVersion string) {
	_ = fields(raw, func(num protowire.Number, b []byte, _ uint64) error {
		if num == 1 {
			return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
				switch num {
				case 5:
					uid = string(b)
				case 6:
					resourceVersion = string(b)
				}
				return nil
			})
		}
		return nil
	})
	return uid, resourceVersion
}

// labelOf is the value of one label of an object of any kind, "" without it.
func labelOf(raw []byte, label string) (value string) {
	_ = fields(raw, func(num protowire.Number, b []byte, _ uint64) error {
		if num != 1 {
			return nil
		}
		return fields(b, func(num protowire.Number, b []byte, _ uint64) error {
			if num == 11 {
				if k, v := mapEntry(b); string(k) == label {
					value = string(v)
				}
			}
			return nil
		})
	})
	return value
}
