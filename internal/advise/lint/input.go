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

	kubernetes "sigs.k8s.io/yaml"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// format is what a text is read as.
type format int

const (
	unknownFormat format = iota
	yamlFormat
	sysctlFormat
	tunedFormat
	haproxyFormat
	shellFormat
	cloudConfigFormat
	proseFormat
)

// Patterns that tell what a text is.
var (
	yamlObject     = regexp.MustCompile(`(?m)^\s*(- )?("?apiVersion"?|"?kind"?)\s*:`)
	yamlKey        = regexp.MustCompile(`(?m)^[A-Za-z][\w./-]*:( |$)`)
	sysctlKeyLine  = regexp.MustCompile(`(?m)^-?(net|vm|kernel|fs|user|dev|sunrpc|abi|debug)[./][\w.*/-]+[ \t]*=`)
	tunedSection   = regexp.MustCompile(`(?m)^\[(main|sysctl|bootloader|cpu|scheduler|variables)\]\s*$`)
	sectionLine    = regexp.MustCompile(`(?m)^\[[^\]\n]+\]\s*$`)
	haproxySection = regexp.MustCompile(`(?m)^(global|defaults|frontend|backend|listen)\b`)
	haproxyWord    = regexp.MustCompile(`(?m)^\s*(cpu-map|nbthread|nbproc|tune\.bufsize|tune\.maxrewrite)\s+\S`)
	fence          = regexp.MustCompile("(?m)^ {0,3}(```|~~~)")
	commandLine    = regexp.MustCompile(`(?m)^\s*(\[[^\]\n]*\])?[$#] (sudo )?(oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|echo|ping|cat|tee|virtctl|export)\b`)
	bareCommand    = regexp.MustCompile(`(?m)^(sudo )?((oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|ping|virtctl)( +-|\s+\S)|(cat|tee) +[<>])`)
	templateAction = regexp.MustCompile(`\{\{.*?\}\}`)
	ownFile        = regexp.MustCompile(`(?m)^schema:\s*"?plimsoll/|^jobs:(?s:.*)\b(objectTemplate|jobIterations|jobType):`)
)

// configuration reports whether files of this ending may be configurations. The
// sources of programs have pieces of them in quotes.
func configuration(ext string) bool {
	switch ext {
	case "", ".yaml", ".yml", ".json", ".ign", ".txt", ".conf", ".cfg", ".ini", ".env", ".in", ".tmpl", ".tpl", ".template", ".j2", ".manifest",
		".bu", ".properties", ".parm", ".sed", ".base":
		return true
	}
	return len(ext) > 1 && ext[1] >= '0' && ext[1] <= '9' // 99.8-arp
}

// formatOf tells what a text is, by its name and by what stands in it.
func formatOf(t *text) format {
	base := strings.ToLower(path.Base(t.name))
	ext := path.Ext(base)
	data := t.data
	if len(data) > 64<<10 {
		data = data[:64<<10] // enough to tell
	}
	directory := path.Base(path.Dir(t.name))
	switch {
	case strings.HasPrefix(data, "#cloud-config") || base == "user-data":
		return cloudConfigFormat
	case shebang.MatchString(data), ext == ".sh", ext == ".bash":
		return shellFormat
	case base == "sysctl.conf", directory == "sysctl.d", ext == ".sysctl":
		return sysctlFormat
	case base == "haproxy.cfg", base == "haproxy.config":
		return haproxyFormat
	case base == "tuned.conf":
		return tunedFormat
	case isPage(ext), ext == ".txt" && !t.snippet && isProse(data):
		return proseFormat
	case t.parent == nil && !configuration(ext):
		return unknownFormat
	case t.snippet && beginsWithCommand(data):
		return shellFormat
	case ownFile.MatchString(data):
		return unknownFormat // plimsoll run --dry-run and kube-burner check it
	case fence.MatchString(data) && !t.snippet && !strings.HasPrefix(ext, ".y") && ext != ".json":
		return proseFormat
	case yamlObject.MatchString(data), ext == ".yaml", ext == ".yml", ext == ".json", ext == ".ign":
		return yamlFormat
	case tunedSection.MatchString(data) && (sysctlKeyLine.MatchString(data) || strings.Contains(data, "include") || strings.Contains(data, "summary")):
		return tunedFormat
	case haproxySection.MatchString(data) && (strings.Contains(data, "maxconn") || strings.Contains(data, "bind ") || strings.Contains(data, "timeout ") || haproxyWord.MatchString(data)):
		return haproxyFormat
	case commandLine.MatchString(data):
		return shellFormat
	case sysctlKeyLine.MatchString(data) && !bareCommand.MatchString(data):
		return sysctlFormat
	case t.snippet && haproxyWord.MatchString(data):
		return haproxyFormat
	case bareCommand.MatchString(data) && (t.snippet || ext == "" || ext == ".txt"):
		return shellFormat
	case strings.TrimSpace(data) != "" && (data[0] == '{' || data[0] == '[' && !sectionLine.MatchString(data)): // [section] is no list
		return yamlFormat
	case t.snippet && (yamlKey.MatchString(data) || looksLikeYAML(data)):
		return yamlFormat
	case ext == ".txt":
		return proseFormat
	}
	return unknownFormat
}

// shebang matches the first line of a script that a shell of POSIX's kind runs.
var shebang = regexp.MustCompile(`^#![^\n]*[/ ](sh|bash|dash|ash|ksh|zsh)\b`)

// beginsWithCommand reports whether the first line that says something is a
// command.
func beginsWithCommand(data string) bool {
	for line := range strings.Lines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		return commandLine.MatchString(line) || bareCommand.MatchString(line)
	}
	return false
}

// isProse reports whether a text is mostly for people: lines of many words that
// set nothing.
func isProse(data string) bool {
	lines, sentences := 0, 0
	for line := range strings.Lines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines++
		if len(strings.Fields(line)) > 8 && !strings.Contains(line, "=") {
			sentences++
		}
	}
	return sentences*5 > lines
}

// wouldRecognise reports whether a text inside of another is of a known kind.
func wouldRecognise(t *text) bool {
	switch f := formatOf(t); f {
	case unknownFormat, proseFormat:
		return false
	case yamlFormat:
		return yamlObject.MatchString(t.data) || strings.HasSuffix(t.name, "kubelet.conf")
	case shellFormat:
		return strings.HasPrefix(t.data, "#!")
	}
	return true
}

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

// scopeOf names the machine that settings of a text meet on: files of one
// directory do, blocks of a text for people need not.
func scopeOf(t *text) string {
	if t.parent == nil {
		return "directory " + path.Dir(t.file.Name)
	}
	if t.role != "" {
		return "role " + t.role
	}
	if t.snippet {
		line, _ := t.parent.at(t.start)
		for p := t; p.parent != nil; p = p.parent {
			line, _ = p.parent.at(p.start)
		}
		return "block " + t.file.Name + ":" + strconv.Itoa(line)
	}
	return "inside " + t.file.Name + " " + t.name
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
	_, err := kubernetes.YAMLToJSON(d.Text)
	if err == nil {
		return nil
	}
	text, line := err.Error(), 1
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

// looksLikeYAML reports whether most lines of a block are keys or items.
func looksLikeYAML(data string) bool {
	lines, keys := 0, 0
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		lines++
		// A colon ends a key before a space or the end of its line only: messages
		// of programs have others (file:line: what).
		first, rest, found := strings.Cut(strings.TrimPrefix(line, "- "), ":")
		if found && (rest == "" || rest[0] == ' ') && !strings.ContainsAny(strings.Trim(first, `"'`), " (){}/\\") || strings.HasPrefix(line, "- ") {
			keys++
		}
	}
	return lines >= 4 && keys*5 >= lines*4
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
