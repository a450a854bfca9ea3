package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	kubernetes "k8s.io/apimachinery/pkg/util/yaml"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// lookAtFile looks at a file.
func lookAtFile(out *report, t *text) {
	if i := strings.IndexByte(t.data, 0); i >= 0 || !utf8.ValidString(t.data) {
		if t.file.Asked {
			out.problems = append(out.problems, Problem{File: t.file.Name, Text: "not a text file"})
		}
		return
	}
	if strings.TrimSpace(t.data) == "" {
		if t.file.Asked {
			out.note("", place{text: t}, "not checked: the file is empty")
		}
		return
	}
	if t.file.Checked {
		out.recognised = true
		for _, f := range t.file.Faults {
			out.findings = append(out.findings, Finding{Rule: RuleOwnFile, File: f.File, Line: f.Line, Column: f.Column, Path: f.Path, Found: f.Found, Fix: f.Fix})
		}
		return
	}
	problems := len(out.problems)
	lookAt(out, t)
	if !out.recognised && t.file.Asked && len(out.problems) == problems {
		out.note("", place{text: t}, "not checked: lint does not know this kind of file")
	}
}

// maxDepth bounds texts inside of texts.
const maxDepth = 6

// readers are what looks at a text of each format.
func readers() map[format]func(*report, *text) {
	return map[format]func(*report, *text){
		yamlFormat: yamlText, sysctlFormat: sysctlFile, tunedFormat: tunedProfile,
		haproxyFormat: haproxyFile, shellFormat: shellText, cloudConfigFormat: checkUserData, proseFormat: proseText,
	}
}

// lookAt looks at a text, by what it is.
func lookAt(out *report, t *text) {
	if read := readers()[formatOf(t)]; read != nil && t.depth() <= maxDepth {
		read(out, t)
	}
}

// yamlText reads a text of YAML or JSON documents.
func yamlText(out *report, t *text) {
	if parts := jsonStream(t); len(parts) > 1 {
		for _, part := range parts {
			yamlText(out, part)
		}
		return
	}
	data := t.data
	actions := strings.Contains(data, "{{")
	templated := false
	if actions {
		// As it stands it is YAML when the actions stand in quotes.
		if _, problems := documents(t.name, data); len(problems) > 0 {
			data, templated = withHoles(data), true
		}
	}
	docs, problems := strictyaml.Documents(t.name, []byte(data))
	yamlProblems(out, t, problems, templated)
	for _, parsed := range docs {
		if parsed.Root == nil {
			yamlProblems(out, t, parsed.Problems, templated)
			continue
		}
		d := &doc{text: t, templated: actions}
		if !templated {
			yamlProblems(out, t, asKubernetesReads(parsed), false)
		}
		root := value{doc: d, node: parsed.Root}
		before := out.recognised
		out.recognised = false
		lookAtDocument(out, root)
		if !d.templated && (out.recognised || !t.snippet) {
			checkDuplicates(out, root, make(map[*node]bool))
		}
		out.recognised = out.recognised || before
	}
}

// libraryLine matches how the library says where it stopped.
var libraryLine = regexp.MustCompile(`^yaml: line (\d+): `)

// asKubernetesReads holds a document against the reader that Kubernetes uses,
// which is stricter in places than the one that keeps places.
func asKubernetesReads(d strictyaml.Document) []strictyaml.Problem {
	if json.Valid(d.Text) {
		return nil
	}
	err := kubernetes.Unmarshal(d.Text, new(json.RawMessage))
	if err == nil {
		return nil
	}
	text, line := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), 1
	if m := libraryLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		line, _ = strconv.Atoi(m[1])
	}
	return []strictyaml.Problem{{Line: d.Line + line - 1, Message: "not valid YAML to Kubernetes: " + strings.TrimPrefix(text, "yaml: ")}}
}

// withHoles writes a template's actions as holes, and lines that are nothing
// else as empty ones.
func withHoles(data string) string {
	var b strings.Builder
	for line := range strings.Lines(data) {
		body := strings.TrimRight(line, "\r\n")
		if rest := strings.TrimSpace(templateAction.ReplaceAllString(body, "")); rest == "" && strings.Contains(body, "{{") {
			b.WriteString(line[len(body):])
			continue
		}
		b.WriteString(templateAction.ReplaceAllStringFunc(body, holes))
		b.WriteString(line[len(body):])
	}
	return b.String()
}

// yamlProblems says why a text cannot be read: of a file it is a problem, of a
// block in a text for people a finding, if it looks like YAML at all.
func yamlProblems(out *report, t *text, problems []strictyaml.Problem, templated bool) {
	if len(problems) == 0 {
		return
	}
	switch {
	case templated:
		out.recognised = true
		out.note("", t.place(max(1, problems[0].Line), problems[0].Column), "a template that cannot be read before it is rendered: not checked from here on")
	case t.snippet || t.parent != nil:
		// Of JSON, texts for people show pieces with dots in them.
		inBraces := strings.HasPrefix(strings.TrimSpace(t.data), "{") || strings.HasPrefix(strings.TrimSpace(t.data), "[")
		if t.snippet && !yamlObject.MatchString(t.data) && (inBraces || !looksLikeYAML(t.data)) {
			return
		}
		out.recognised = true
		for _, p := range problems {
			out.find("yaml-syntax", t.place(max(1, p.Line), p.Column), "correct it", strings.TrimPrefix(p.Message, "not valid YAML: "))
		}
		if t.snippet {
			proseFragments(out, t)
		}
	case !t.file.Asked && (!yamlObject.MatchString(t.data) || !yamlName(t.name)):
		// Found in a directory, and of nothing that is known.
		out.note("", t.place(max(1, problems[0].Line), problems[0].Column), "not looked at: %s", problems[0].Message)
	default:
		out.unreadable(t, problems)
	}
}

// yamlName reports whether a file is called one of YAML or JSON.
func yamlName(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name)))
}

// jsonStream are the documents of a JSON text that has several, one behind the
// other, which kubectl reads too; nothing if it is no such text.
func jsonStream(t *text) (parts []*text) {
	if data := strings.TrimSpace(t.data); !strings.HasPrefix(data, "{") || json.Valid([]byte(data)) {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(t.data))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		end := int(decoder.InputOffset())
		switch {
		case err == io.EOF:
			return parts
		case err != nil:
			return nil
		}
		parts = append(parts, t.part(end-len(raw), end, t.name))
	}
}

// checkDuplicates finds keys that stand twice.
func checkDuplicates(out *report, v value, seen map[*node]bool) {
	if seen[v.node] {
		return // an anchor's, seen where it is written
	}
	seen[v.node] = true
	for _, item := range v.items() {
		checkDuplicates(out, item, seen)
	}
	t := v.doc.text
	for _, e := range v.node.Duplicates {
		first, _ := v.node.Entry(e.Key)
		var edits []edit
		if sameScalar(first.Value, e.Value) {
			if b, ok := v.doc.blockOf(e); ok {
				edits = []edit{{t, t.lines[b.first-1], t.lineEnd(b.last), ""}}
			}
		}
		out.find("duplicate-key", v.child(e).keyAt(), "keep one of the two",
			fmt.Sprintf("the key \"%s\" stands here a second time, first on line %d", e.Key, fileLine(t.place(first.Line, 1))), edits...)
	}
	for _, e := range v.entries() {
		if !e.raw.Merged {
			checkDuplicates(out, e.value, seen)
		}
	}
}

// lookAtDocument looks at a document: an object, or a piece that has another
// form.
func lookAtDocument(out *report, root value) {
	if root.node.Kind != strictyaml.Mapping {
		return
	}
	has := func(key string) bool { _, ok := root.node.Entry(key); return ok }
	switch {
	case has("apiVersion") && has("kind"), root.get("kind").text() == "KubeletConfiguration":
		lookAtObject(out, root)
	case root.get("ignition", "version").node != nil:
		out.recognised = true
		ignitionConfig(out, root, "")
	case has("networking") && (has("baseDomain") || has("controlPlane") || has("platform") || has("pullSecret") || root.get("networking", "clusterNetwork").node != nil):
		out.recognised = true
		checkInstallConfig(out, root)
	default:
		lookAtFragment(out, root)
	}
}
