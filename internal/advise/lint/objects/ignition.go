package objects

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	ignition30 "github.com/coreos/ignition/v2/config/v3_0/types"
	ignition31 "github.com/coreos/ignition/v2/config/v3_1/types"
	ignition32 "github.com/coreos/ignition/v2/config/v3_2/types"
	ignition33 "github.com/coreos/ignition/v2/config/v3_3/types"
	ignition34 "github.com/coreos/ignition/v2/config/v3_4/types"
	ignition "github.com/coreos/ignition/v2/config/v3_5"
	ignition35 "github.com/coreos/ignition/v2/config/v3_5/types"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// IgnitionConfig looks at an Ignition configuration and the files in it. role is its MachineConfig's, or "".
func IgnitionConfig(out *report.Report, root reading.Value, role string) {
	if root.Node.Kind != strictyaml.Mapping {
		return
	}
	first := len(out.Findings)
	version := root.Get("ignition", "version")
	v := version.Text()
	if v == "" {
		// A fragment that a page broke may have it at the top.
		v = root.Get("version").Text()
	}
	switch {
	case v == "":
		out.Find("ignition-version", root.Get("ignition").EntryOrSelf("version"), "write ignition.version, such as 3.2.0", "an Ignition configuration without a version")
	case strings.HasPrefix(v, "2."):
		// The operator still translates version 2.
		out.Note("ignition-version", version.At(), "Ignition %s is translated by the operator; its fields are not checked here", v)
	case ignitionTypes()[v] != nil:
		ignitionFields(out, root, v)
	case strings.HasSuffix(v, "-experimental"):
		out.Note("ignition-version", version.At(), "Ignition %s is experimental: its fields are not checked here", v)
	case !reading.HasHole(v):
		out.Find("ignition-version", version.At(), "write "+strings.Join(slices.Sorted(maps.Keys(ignitionTypes())), ", "), "Ignition has no version "+v)
	}
	checkModes(out, root)
	for _, u := range root.Get("systemd", "units").Items() {
		if name := u.Get("name"); name.Text() != "" && !strings.Contains(name.Text(), ".") && !reading.HasHole(name.Text()) {
			out.Find("ignition-name", name.At(), "write "+name.Text()+".service, or the suffix of its kind", "the unit "+name.Text()+" has no suffix", name.Replace(name.Text()+".service")...)
		}
	}
	for _, f := range root.Get("storage", "files").Items() {
		embeddedFile(out, f, role)
	}
	if ignitionTypes()[v] != nil && !root.Doc.Templated {
		refusedByIgnition(out, root, first)
	}
}

// refusedByIgnition reports what Ignition's own validation refuses, unless a rule has found a fault in that line:
// the findings from first on are of this configuration.
func refusedByIgnition(out *report.Report, root reading.Value, first int) {
	text, err := json.Marshal(root.Plain())
	if err != nil {
		return
	}
	_, said, _ := ignition.ParseCompatibleVersion(text) // what it cannot decode is reported by ignitionFields
	for _, entry := range said.Entries {
		at := root
		for _, key := range entry.Context.Path {
			if i, isIndex := key.(int); isIndex && i < len(at.Items()) {
				at = at.Items()[i]
			} else if next := at.Get(fmt.Sprint(key)); next.Node != nil {
				at = next
			}
		}
		line := at.At().Line
		known := slices.ContainsFunc(out.Findings[first:], func(f report.Finding) bool {
			_, l, _, _ := at.At().Text.Position(line, 1)
			return f.Line == l
		})
		if entry.Kind.IsFatal() && !known && !reading.HasHole(at.Text()) {
			out.Find("ignition-value", at.At(), "correct it, or remove it", lastOf(at.Path)+": "+entry.Message)
		}
	}
}

// checkModes finds modes of files that have their octal digits as a decimal number.
func checkModes(out *report.Report, v reading.Value) {
	octal := strings.Fields("400 440 444 500 550 555 600 640 644 660 664 666 700 750 755 770 775 777 1777")
	v.Walk(func(e reading.Entry) bool {
		if e.Key() != "mode" || e.Node.Kind != strictyaml.Scalar || !e.Node.Plain || !slices.Contains(octal, e.Text()) {
			return true
		}
		decimal, _ := strconv.ParseInt(e.Text(), 8, 64)
		meant, _ := strconv.ParseInt(e.Text(), 10, 64)
		out.Find("file-mode", e.At(), fmt.Sprintf("write %d, which is 0%s", decimal, e.Text()),
			fmt.Sprintf("mode %s is a decimal number: it means 0%o", e.Text(), meant), e.Replace(fmt.Sprint(decimal))...)
		return false
	})
}

func ignitionFields(out *report.Report, root reading.Value, version string) {
	c := &Fit{Out: out, Doc: root.Doc, What: "the Ignition configuration"}
	c.unknown = func(f frame, e reading.Entry) bool {
		if f.Node == root.Node && (e.Key() == "version" || e.Key() == "osImageURL") {
			return true // a fragment one level too high
		}
		fix, known := schema.Hints("ignition-2")[e.Key()]
		if !known {
			return false
		}
		var edits []reading.Edit
		switch {
		case e.Key() == "networkd" && (reading.IsNull(e.Node) || e.Node.Kind == strictyaml.Mapping && len(e.Node.Entries) == 0):
			fix = "remove it: it is empty"
			edits = f.Remove(e.Key())
		case e.Key() == "filesystem" && e.Text() == "root":
			edits = f.Remove(e.Key())
		case e.Key() == "enable" && f.Node.Get("enabled") == nil:
			edits = e.Rename("enabled")
		case e.Key() == "append" && !strings.HasSuffix(f.Path, "config"):
			return false
		}
		out.Find("ignition-field", e.KeyAt(), fix,
			fmt.Sprintf("%s is a field of Ignition 2, and this is %s", e.Key(), version), edits...)
		return true
	}
	first := len(out.Findings)
	c.Check(root, ignitionTypes()[version])
	if version == newestIgnition {
		return
	}
	// A field of a later version is not a mistake.
	newest := report.Report{Tables: out.Tables}
	Fits(&newest, root, c.What, ignitionTypes()[newestIgnition])
	for i := range out.Findings[first:] {
		f := &out.Findings[first+i]
		if f.Rule == "unknown-field" && !slices.ContainsFunc(newest.Findings, func(n report.Finding) bool { return n.Line == f.Line && n.Column == f.Column }) {
			f.Fix = "raise ignition.version: a later one has it"
		}
	}
}

func embeddedFile(out *report.Report, f reading.Value, role string) {
	source := f.Get("contents", "source")
	name := f.Get("path").Text()
	if name != "" && !strings.HasPrefix(name, "/") && !reading.HasHole(name) {
		out.Find("ignition-name", f.Get("path").At(), "write /"+name, "the path "+name+" is not absolute", f.Get("path").Replace("/"+name)...)
	}
	if name == "" || !strings.HasPrefix(source.Text(), "data:") {
		return
	}
	data, encode, err := decodeDataURL(source.Text())
	if err != nil {
		out.Find("ignition-source", source.At(), "encode it again: data:text/plain;charset=utf-8;base64,$(base64 -w0 FILE)",
			fmt.Sprintf("the content of %s cannot be decoded: %v", name, err))
		return
	}
	start, end, writable := source.ScalarRange()
	if f.Get("contents", "compression").Text() == "gzip" {
		writable = false
		if data, err = gunzip(data); err != nil {
			out.Find("ignition-source", source.At(), "compress it again with gzip, or leave compression out", fmt.Sprintf("the content of %s cannot be decompressed: %v", name, err))
			return
		}
	}
	switch {
	case !writable:
		start, _ = f.Doc.Text.Offset(source.Node.Line, max(1, source.Node.Column))
		end = start
	case !source.Node.Plain:
		start, end = start+1, end-1
	}
	t := f.Doc.Text.Inner(start, end, name, data)
	t.Snippet, t.Inside = false, name
	if writable {
		t.Encode = encode
	}
	if role != "" {
		t.Role = role
	}
	out.Look(out, t)
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

// decodeDataURL reads a URL of the scheme data (RFC 2397). encode writes other data in the same form.
func decodeDataURL(source string) (data string, encode func(string) string, err error) {
	header, body, ok := strings.Cut(source, ",")
	if !ok {
		return "", nil, fmt.Errorf("the URL has no comma")
	}
	unescaped, err := url.PathUnescape(body)
	if err != nil {
		return "", nil, err
	}
	if !strings.HasSuffix(header, ";base64") {
		return unescaped, func(s string) string { return header + "," + url.PathEscape(s) }, nil
	}
	raw, err := base64.StdEncoding.DecodeString(unescaped)
	if err != nil {
		if raw, err = base64.RawStdEncoding.DecodeString(unescaped); err != nil {
			return "", nil, fmt.Errorf("it is not base64")
		}
	}
	return string(raw), func(s string) string { return header + "," + base64.StdEncoding.EncodeToString([]byte(s)) }, nil
}

// ignitionTypes returns the types of each version of version 3.
func ignitionTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"3.0.0": reflect.TypeFor[ignition30.Config](), "3.1.0": reflect.TypeFor[ignition31.Config](), "3.2.0": reflect.TypeFor[ignition32.Config](),
		"3.3.0": reflect.TypeFor[ignition33.Config](), "3.4.0": reflect.TypeFor[ignition34.Config](), newestIgnition: reflect.TypeFor[ignition35.Config](),
	}
}

const newestIgnition = "3.5.0"
