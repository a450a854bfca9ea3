package lint

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// ignition looks at an Ignition configuration, and at the files that it
// carries.
func (l *linter) ignition(d *doc, root *node, path string) {
	version := dig(root, "ignition", "version")
	if root.Kind() != strictyaml.Mapping {
		return
	}
	v := textOf(version)
	if v == "" {
		// A fragment that the page broke may have it at its top.
		v = textOf(root.Get("version"))
	}
	switch {
	case v == "":
		l.report("ignition-version", d.atEntry(root.Get("ignition"), "version", strictyaml.Key(path, "ignition")),
			"write ignition.version, such as 3.2.0", "an Ignition configuration without a version")
	case strings.HasPrefix(v, "2."):
		// The operator still translates version 2.
		l.note("ignition-version", d.at(version, strictyaml.Key(path, "ignition.version")), "Ignition %s is translated by the operator; its fields are not checked here", v)
	case strings.HasPrefix(v, "3."):
		l.ignition3(d, root, path, v)
	default:
		if !hasHole(v) {
			l.report("ignition-version", d.at(version, strictyaml.Key(path, "ignition.version")),
				"write a version from 3.0.0 to 3.5.0", fmt.Sprintf("there is no Ignition %s", v))
		}
	}
	for i, f := range itemsOf(dig(root, "storage", "files")) {
		inner := strictyaml.Index(strictyaml.Key(path, "storage.files"), i)
		l.embedded(d, f, inner)
	}
}

func (l *linter) ignition3(d *doc, root *node, path, version string) {
	old := oldIgnition()
	fits := &fit{linter: l, doc: d, what: "the Ignition configuration", version: version}
	fits.unknown = func(f frame, e strictyaml.Entry) bool {
		if f.node == root && (e.Key == "version" || e.Key == "osImageURL") {
			return true // of a fragment that stands a level too high
		}
		mend, known := old[e.Key]
		if !known {
			return false
		}
		var edits []edit
		switch {
		case e.Key == "networkd" && (isNull(e.Value) || e.Value.Kind() == strictyaml.Mapping && len(e.Value.Entries()) == 0):
			mend = "remove it: it is empty"
			edits = d.removeEntry(f.node, e.Key)
		case e.Key == "filesystem" && textOf(e.Value) == "root":
			edits = d.removeEntry(f.node, e.Key)
		case e.Key == "enable" && f.node.Get("enabled") == nil:
			edits = d.replaceKey(e, "enabled")
		case e.Key == "append" && !strings.HasSuffix(f.path, "config"):
			return false
		}
		l.report("ignition-field", d.atKey(e, strictyaml.Key(f.path, e.Key)), mend,
			fmt.Sprintf("%s is a field of Ignition 2, and this is %s", e.Key, version), edits...)
		return true
	}
	fits.value(root, reflect.TypeFor[ignition3](), path)
}

// embedded looks into a file that Ignition writes.
func (l *linter) embedded(d *doc, f *node, path string) {
	source := dig(f, "contents", "source")
	name := textOf(f.Get("path"))
	if textOf(source) == "" || name == "" || !strings.HasPrefix(textOf(source), "data:") {
		return
	}
	if compression := textOf(dig(f, "contents", "compression")); compression != "" {
		l.note("", d.at(source, path), "%s is compressed: it was not looked into", name)
		return
	}
	data, encode, err := decodeDataURL(textOf(source))
	if err != nil {
		l.report("ignition-source", d.at(source, strictyaml.Key(path, "contents.source")), "encode it anew: data:text/plain;charset=utf-8;base64,$(base64 -w0 FILE)",
			fmt.Sprintf("the content of %s cannot be decoded: %v", name, err))
		return
	}
	t := &text{file: d.text.file, name: name, data: data, parent: d.text, inside: name}
	if start, end, ok := d.scalarRange(source); ok {
		t.start, t.end = start, end
		if !source.Plain() {
			t.start, t.end = start+1, end-1
		}
		t.encode = encode
	} else {
		t.start, _ = d.text.offset(source.Line(), max(1, source.Column()))
		t.end = t.start
	}
	t.index()
	l.text(t)
}

// decodeDataURL reads a URL of the scheme data (RFC 2397), and says how
// another content is written in the same form.
func decodeDataURL(source string) (data string, encode func(string) string, err error) {
	rest := strings.TrimPrefix(source, "data:")
	header, body, ok := strings.Cut(rest, ",")
	if !ok {
		return "", nil, fmt.Errorf("the URL has no comma")
	}
	if strings.HasSuffix(header, ";base64") {
		unescaped, err := url.PathUnescape(body)
		if err != nil {
			return "", nil, err
		}
		raw, err := base64.StdEncoding.DecodeString(unescaped)
		if err != nil {
			if raw, err = base64.RawStdEncoding.DecodeString(unescaped); err != nil {
				return "", nil, fmt.Errorf("it is no base64")
			}
		}
		return string(raw), func(s string) string {
			return "data:" + header + "," + base64.StdEncoding.EncodeToString([]byte(s))
		}, nil
	}
	unescaped, err := url.PathUnescape(body)
	if err != nil {
		return "", nil, err
	}
	return unescaped, func(s string) string { return "data:" + header + "," + url.PathEscape(s) }, nil
}
