package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/tidwall/gjson"
)

// Encoding holds the functions that decode lists and watches: of protobuf for built-in kinds, of JSON for
// all others.
type Encoding struct {
	accept, watch string // media types
	// read reads the next message of a watch into buf.
	read func(r *bufio.Reader, buf []byte) ([]byte, error)
	// event splits a message into its type and the object; open takes that out of its envelope.
	event func(msg []byte) (kind string, object []byte, err error)
	open  func(object []byte) ([]byte, error)
	meta  func(raw []byte) objectMeta // meta reads an object's name and version
	// list hands each item of a list to each, and returns the list's version and the
	// continue token, "" on the last page.
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
