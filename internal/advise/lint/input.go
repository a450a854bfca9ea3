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

	"plimsoll.dev/plimsoll/internal/advise/lint/commands"
	"plimsoll.dev/plimsoll/internal/advise/lint/host"
	"plimsoll.dev/plimsoll/internal/advise/lint/objects"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func lookAtFile(out *report.Report, t *reading.Text) {
	if i := strings.IndexByte(t.Data, 0); i >= 0 || !utf8.ValidString(t.Data) {
		if t.File.Asked {
			out.Problems = append(out.Problems, report.Problem{File: t.File.Name, Text: "not a text file"})
		}
		return
	}
	if strings.TrimSpace(t.Data) == "" {
		if t.File.Asked {
			out.Note("", reading.Place{Text: t}, "not checked: the file is empty")
		}
		return
	}
	if t.File.Checked {
		out.Recognised = true
		for _, f := range t.File.Faults {
			out.Findings = append(out.Findings, report.Finding{Rule: RuleOwnFile, File: f.File, Line: f.Line, Column: f.Column, Path: f.Path, Found: f.Found, Fix: f.Fix})
		}
		return
	}
	said := len(out.Problems) + len(out.Notes)
	lookAt(out, t)
	if !out.Recognised && t.File.Asked && len(out.Problems)+len(out.Notes) == said {
		out.Note("", reading.Place{Text: t}, "not checked: lint does not know this kind of file")
	}
}

// maxDepth bounds texts inside of texts.
const maxDepth = 6

// readers returns the function that looks at a text of each format.
func readers() map[reading.Format]func(*report.Report, *reading.Text) {
	return map[reading.Format]func(*report.Report, *reading.Text){
		reading.YAML: yamlText, reading.Sysctl: host.SysctlFile, reading.Tuned: host.TunedProfile,
		reading.HAProxy: host.HAProxyFile, reading.Shell: commands.ShellText, reading.CloudConfig: objects.CheckUserData, reading.Prose: proseText,
	}
}

func lookAt(out *report.Report, t *reading.Text) {
	if read := readers()[reading.FormatOf(t)]; read != nil && t.Depth() <= maxDepth {
		read(out, t)
	}
}

func yamlText(out *report.Report, t *reading.Text) {
	if parts := jsonStream(t); len(parts) > 1 {
		for _, part := range parts {
			yamlText(out, part)
		}
		return
	}
	data := t.Data
	actions := strings.Contains(data, "{{")
	templated := false
	if actions {
		// With the actions in quotes the text is valid YAML.
		if _, problems := reading.Documents(t.Name, data); len(problems) > 0 {
			data, templated = withHoles(data), true
		}
	}
	docs, problems := strictyaml.Documents(t.Name, []byte(data))
	yamlProblems(out, t, problems, templated)
	for _, parsed := range docs {
		if parsed.Root == nil {
			yamlProblems(out, t, parsed.Problems, templated)
			continue
		}
		d := &reading.Doc{Text: t, Templated: actions}
		if !templated {
			yamlProblems(out, t, asKubernetesReads(parsed), false)
		}
		root := reading.Value{Doc: d, Node: parsed.Root}
		before := out.Recognised
		out.Recognised = false
		lookAtDocument(out, root)
		if !d.Templated && (out.Recognised || !t.Snippet) {
			checkDuplicates(out, root, make(map[*reading.Node]bool))
		}
		out.Recognised = out.Recognised || before
	}
}

// libraryLine matches where the library says that it stopped.
var libraryLine = regexp.MustCompile(`^yaml: line (\d+): `)

// asKubernetesReads parses a document like Kubernetes, which is sometimes stricter than the parser with places.
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

// withHoles replaces a template's actions by holes, and empties lines with nothing else.
func withHoles(data string) string {
	var b strings.Builder
	for line := range strings.Lines(data) {
		body := strings.TrimRight(line, "\r\n")
		if rest := strings.TrimSpace(reading.TemplateAction.ReplaceAllString(body, "")); rest == "" && strings.Contains(body, "{{") {
			b.WriteString(line[len(body):])
			continue
		}
		b.WriteString(reading.TemplateAction.ReplaceAllStringFunc(body, reading.Holes))
		b.WriteString(line[len(body):])
	}
	return b.String()
}

// yamlProblems reports a text that cannot be read: a problem of a file, a finding in a text for people.
func yamlProblems(out *report.Report, t *reading.Text, problems []strictyaml.Problem, templated bool) {
	if len(problems) == 0 {
		return
	}
	switch {
	case templated:
		out.Recognised = true
		out.Note("", t.Place(max(1, problems[0].Line), problems[0].Column), "a template that cannot be read before it is rendered: not checked from here on")
	case t.Snippet || t.Parent != nil:
		// Texts for people show pieces of JSON with dots in them.
		inBraces := strings.HasPrefix(strings.TrimSpace(t.Data), "{") || strings.HasPrefix(strings.TrimSpace(t.Data), "[")
		if t.Snippet && !reading.YAMLObject.MatchString(t.Data) && (inBraces || !reading.LooksLikeYAML(t.Data)) {
			return
		}
		out.Recognised = true
		for _, p := range problems {
			out.Find("yaml-syntax", t.Place(max(1, p.Line), p.Column), "correct it", strings.TrimPrefix(p.Message, "not valid YAML: "))
		}
	case !t.File.Asked && (!reading.YAMLObject.MatchString(t.Data) || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(t.Name)))):
		// Found in a directory, of an unknown kind.
		out.Note("", t.Place(max(1, problems[0].Line), problems[0].Column), "not looked at: %s", problems[0].Message)
	default:
		out.Unreadable(t, problems)
	}
}

// jsonStream returns the documents of a JSON text that has several in a row, as kubectl reads them, or nil.
func jsonStream(t *reading.Text) (parts []*reading.Text) {
	if data := strings.TrimSpace(t.Data); !strings.HasPrefix(data, "{") || json.Valid([]byte(data)) {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(t.Data))
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
		parts = append(parts, t.Part(end-len(raw), end, t.Name))
	}
}

func checkDuplicates(out *report.Report, v reading.Value, seen map[*reading.Node]bool) {
	if seen[v.Node] {
		return // an anchor: its first use was checked
	}
	seen[v.Node] = true
	for _, item := range v.Items() {
		checkDuplicates(out, item, seen)
	}
	t := v.Doc.Text
	for _, e := range v.Node.Duplicates {
		first, _ := v.Node.Entry(e.Key)
		var edits []reading.Edit
		if objects.SameScalar(first.Value, e.Value) {
			if b, ok := v.Doc.BlockOf(e); ok {
				edits = []reading.Edit{{Text: t, Start: t.Lines[b.First-1], End: t.LineEnd(b.Last), With: ""}}
			}
		}
		out.Find("duplicate-key", v.Child(e).KeyAt(), "keep one of the two",
			fmt.Sprintf("the key \"%s\" stands here a second time, first on line %d", e.Key, reading.FileLine(t.Place(first.Line, 1))), edits...)
	}
	for _, e := range v.Entries() {
		if !e.Raw.Merged {
			checkDuplicates(out, e.Value, seen)
		}
	}
}

func lookAtDocument(out *report.Report, root reading.Value) {
	if root.Node.Kind != strictyaml.Mapping {
		return
	}
	has := func(key string) bool { _, ok := root.Node.Entry(key); return ok }
	switch {
	case has("apiVersion") && has("kind"), root.Get("kind").Text() == "KubeletConfiguration":
		objects.LookAtObject(out, root)
	case root.Get("ignition", "version").Node != nil:
		out.Recognised = true
		objects.IgnitionConfig(out, root, "")
	case has("networking") && (has("baseDomain") || has("controlPlane") || has("platform") || has("pullSecret") || root.Get("networking", "clusterNetwork").Node != nil):
		out.Recognised = true
		objects.CheckInstallConfig(out, root)
	default:
		lookAtFragment(out, root)
	}
}
