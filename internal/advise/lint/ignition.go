package lint

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	ignition30 "github.com/coreos/ignition/v2/config/v3_0/types"
	ignition31 "github.com/coreos/ignition/v2/config/v3_1/types"
	ignition32 "github.com/coreos/ignition/v2/config/v3_2/types"
	ignition33 "github.com/coreos/ignition/v2/config/v3_3/types"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// ignitionConfig looks at an Ignition configuration, and at the files that it
// carries. role is that of its MachineConfig, or "".
func ignitionConfig(out *report, root value, role string) {
	if root.node.Kind != strictyaml.Mapping {
		return
	}
	version := root.get("ignition", "version")
	v := version.text()
	if v == "" {
		// A fragment that the page broke may have it at its top.
		v = root.get("version").text()
	}
	switch {
	case v == "":
		out.find("ignition-version", root.get("ignition").entryOrSelf("version"), "write ignition.version, such as 3.2.0", "an Ignition configuration without a version")
	case strings.HasPrefix(v, "2."):
		// The operator still translates version 2.
		out.note("ignition-version", version.at(), "Ignition %s is translated by the operator; its fields are not checked here", v)
	case ignitionTypes()[v] != nil:
		ignitionFields(out, root, v)
	case strings.HasSuffix(v, "-experimental"):
		out.note("ignition-version", version.at(), "Ignition %s is experimental: its fields are not checked here", v)
	case !hasHole(v):
		out.find("ignition-version", version.at(), "write a version from 3.0.0 to "+newestIgnition, "there is no Ignition "+v)
	}
	checkModes(out, root)
	for _, u := range root.get("systemd", "units").items() {
		if name := u.get("name"); name.text() != "" && !strings.Contains(name.text(), ".") && !hasHole(name.text()) {
			out.find("ignition-name", name.at(), "write "+name.text()+".service, or the suffix of its kind", "the unit "+name.text()+" has no suffix", name.replace(name.text()+".service")...)
		}
	}
	for _, f := range root.get("storage", "files").items() {
		embeddedFile(out, f, role)
	}
}

// checkModes finds modes of files whose octal digits stand there as a decimal
// number.
func checkModes(out *report, v value) {
	octal := strings.Fields("400 440 444 500 550 555 600 640 644 660 664 666 700 750 755 770 775 777 1777") // as people say them
	v.walk(func(e entry) bool {
		if e.key() != "mode" || e.node.Kind != strictyaml.Scalar || !e.node.Plain || !slices.Contains(octal, e.text()) {
			return true
		}
		decimal, _ := strconv.ParseInt(e.text(), 8, 64)
		meant, _ := strconv.ParseInt(e.text(), 10, 64)
		out.find("file-mode", e.at(), fmt.Sprintf("write %d, which is 0%s", decimal, e.text()),
			fmt.Sprintf("mode %s is a decimal number: it means 0%o", e.text(), meant), e.replace(fmt.Sprint(decimal))...)
		return false
	})
}

func ignitionFields(out *report, root value, version string) {
	c := &fit{out: out, doc: root.doc, what: "the Ignition configuration"}
	c.unknown = func(f frame, e entry) bool {
		if f.node == root.node && (e.key() == "version" || e.key() == "osImageURL") {
			return true // of a fragment that stands a level too high
		}
		if since := laterIgnition()[e.key()]; since != "" && strings.Contains(f.path, "luks") && version >= since {
			return true
		}
		fix, known := oldIgnition()[e.key()]
		if !known {
			return false
		}
		var edits []edit
		switch {
		case e.key() == "networkd" && (isNull(e.node) || e.node.Kind == strictyaml.Mapping && len(e.node.Entries) == 0):
			fix = "remove it: it is empty"
			edits = f.remove(e.key())
		case e.key() == "filesystem" && e.text() == "root":
			edits = f.remove(e.key())
		case e.key() == "enable" && f.node.Get("enabled") == nil:
			edits = e.rename("enabled")
		case e.key() == "append" && !strings.HasSuffix(f.path, "config"):
			return false
		}
		out.find("ignition-field", e.keyAt(), fix,
			fmt.Sprintf("%s is a field of Ignition 2, and this is %s", e.key(), version), edits...)
		return true
	}
	first := len(out.findings)
	c.check(root, ignitionTypes()[version])
	if version == newestIgnition {
		return
	}
	// What a later version knows is no slip.
	newest := report{tables: out.tables}
	fits(&newest, root, c.what, ignitionTypes()[newestIgnition])
	for i := range out.findings[first:] {
		f := &out.findings[first+i]
		if f.Rule == "unknown-field" && !slices.ContainsFunc(newest.findings, func(n Finding) bool { return n.Line == f.Line && n.Column == f.Column }) {
			f.Fix = "raise ignition.version: a later one has it"
		}
	}
}

// embeddedFile looks into a file that Ignition writes.
func embeddedFile(out *report, f value, role string) {
	source := f.get("contents", "source")
	name := f.get("path").text()
	if name != "" && !strings.HasPrefix(name, "/") && !hasHole(name) {
		out.find("ignition-name", f.get("path").at(), "write /"+name, "the path "+name+" is not absolute", f.get("path").replace("/"+name)...)
	}
	if name == "" || !strings.HasPrefix(source.text(), "data:") {
		return
	}
	data, encode, err := decodeDataURL(source.text())
	if err != nil {
		out.find("ignition-source", source.at(), "encode it anew: data:text/plain;charset=utf-8;base64,$(base64 -w0 FILE)",
			fmt.Sprintf("the content of %s cannot be decoded: %v", name, err))
		return
	}
	start, end, writable := source.scalarRange()
	if f.get("contents", "compression").text() == "gzip" {
		writable = false
		if data, err = gunzip(data); err != nil {
			out.find("ignition-source", source.at(), "compress it anew with gzip, or leave compression out", fmt.Sprintf("the content of %s cannot be decompressed: %v", name, err))
			return
		}
	}
	switch {
	case !writable:
		start, _ = f.doc.text.offset(source.node.Line, max(1, source.node.Column))
		end = start
	case !source.node.Plain:
		start, end = start+1, end-1
	}
	t := f.doc.text.inner(start, end, name, data)
	t.snippet, t.inside = false, name
	if writable {
		t.encode = encode
	}
	if role != "" {
		t.role = role
	}
	out.look(out, t)
}

func gunzip(data string) (string, error) {
	r, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		return "", err
	}
	const most = 16 << 20
	content, err := io.ReadAll(io.LimitReader(r, most))
	return string(content), err
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

// ignitionTypes are what Ignition's configuration of each version of version 3
// can hold. What came after 3.3.0 is in laterIgnition.
func ignitionTypes() map[string]reflect.Type {
	newest := reflect.TypeFor[ignition33.Config]()
	return map[string]reflect.Type{
		"3.0.0": reflect.TypeFor[ignition30.Config](), "3.1.0": reflect.TypeFor[ignition31.Config](), "3.2.0": reflect.TypeFor[ignition32.Config](),
		"3.3.0": newest, "3.4.0": newest, newestIgnition: newest,
	}
}

const newestIgnition = "3.5.0"

// laterIgnition are the keys of storage.luks that came after 3.3.0, with the
// version that brought each.
func laterIgnition() map[string]string {
	return map[string]string{"discard": "3.4.0", "openOptions": "3.4.0", "cex": "3.5.0"}
}

// oldIgnition says of the keys that version 2 had and version 3 has not what
// took their place.
func oldIgnition() map[string]string {
	return map[string]string{
		"networkd":   "write the unit as a file below /etc/systemd/network in storage.files, or configure the network with NMState",
		"filesystem": "remove it: a file is placed by its path alone, below the path of a filesystem that is mounted",
		"append":     "write ignition.config.merge",
		"mount":      "move what it holds up into the filesystem: device, format, label, uuid, options, wipeFilesystem",
		"create":     "write the fields of the user or filesystem themselves; wipeFilesystem takes the place of create.force",
		"enable":     "write enabled",
		"size":       "write sizeMiB, in MiB instead of sectors",
		"start":      "write startMiB, in MiB instead of sectors",
		"homedir":    "write homeDir",
	}
}
