package lint

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	kubernetes "sigs.k8s.io/yaml"

	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// format is what a text is read as.
type format int

const (
	unknownFormat format = iota
	yamlFormat
	sysctlFormat
	inventoryFormat
	tunedFormat
	fioFormat
	vdbenchFormat
	haproxyFormat
	shellFormat
	environmentFormat
	cloudConfigFormat
	proseFormat
	kubeBurnerFormat
	planFormat
	workloadFormat
)

// Patterns that tell what a text is.
var (
	yamlObject      = regexp.MustCompile(`(?m)^\s*(- )?("?apiVersion"?|"?kind"?)\s*:`)
	yamlKey         = regexp.MustCompile(`(?m)^[A-Za-z][\w./-]*:( |$)`)
	sysctlKeyLine   = regexp.MustCompile(`(?m)^-?(net|vm|kernel|fs|user|dev|sunrpc|abi|debug)[./][\w.*/-]+[ \t]*=`)
	inventoryLine   = regexp.MustCompile(`(?m)^\[[\w.-]+:(vars|children)\]\s*$|^\s*(osm_|openshift_|ansible_)\w+=`)
	tunedSection    = regexp.MustCompile(`(?m)^\[(main|sysctl|bootloader|cpu|scheduler|variables)\]\s*$`)
	fioOption       = regexp.MustCompile(`(?m)^(ioengine|rw|readwrite|bs|blocksize|iodepth|numjobs|filesize|nrfiles|time_based|runtime|direct)[ \t]*=`)
	sectionLine     = regexp.MustCompile(`(?m)^\[[^\]\n]+\]\s*$`)
	haproxySection  = regexp.MustCompile(`(?m)^(global|defaults|frontend|backend|listen)\b`)
	haproxyWord     = regexp.MustCompile(`(?m)^\s*(cpu-map|nbthread|nbproc|tune\.bufsize|tune\.maxrewrite)\s+\S`)
	environmentLine = regexp.MustCompile(`(?m)^(export )?ROUTER_[A-Z_]+=`)
	fence           = regexp.MustCompile("(?m)^ {0,3}(```|~~~)")
	commandLine     = regexp.MustCompile(`(?m)^\s*(\[[^\]\n]*\])?[$#] (sudo )?(oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|echo|ping|cat|tee|virtctl|export)\b`)
	bareCommand     = regexp.MustCompile(`(?m)^(sudo )?((oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|ping|virtctl)( +-|\s+\S)|(cat|tee) +[<>])`)
	templateAction  = regexp.MustCompile(`\{\{.*?\}\}`)
	kubeBurnerJobs  = regexp.MustCompile(`(?m)^jobs:`)
	schemaLine      = regexp.MustCompile(`(?m)^schema:\s*"?plimsoll/(experiment|workload)/`)
)

// configuration reports whether files of this ending may be configurations. The
// sources of programs have pieces of them in quotes.
func configuration(ext string) bool {
	switch ext {
	case "", ".yaml", ".yml", ".json", ".ign", ".txt", ".conf", ".cfg", ".ini", ".env", ".in", ".tmpl", ".tpl", ".template", ".j2", ".manifest",
		".bu", ".properties", ".inventory", ".hosts", ".vdbench", ".parm", ".sed", ".base":
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
	case ext == ".fio", ext == ".job":
		return fioFormat
	case ext == ".md", ext == ".markdown", ext == ".adoc", ext == ".asciidoc", ext == ".rst", ext == ".txt" && !t.snippet && isProse(data):
		return proseFormat
	case t.parent == nil && !configuration(ext):
		return unknownFormat
	case t.snippet && beginsWithCommand(data):
		return shellFormat
	case schemaLine.MatchString(data):
		if strings.Contains(schemaLine.FindString(data), "workload") {
			return workloadFormat
		}
		return planFormat
	case kubeBurnerJobs.MatchString(data) && !yamlObject.MatchString(data) && (strings.Contains(data, "objectTemplate") || strings.Contains(data, "jobIterations") || strings.Contains(data, "jobType")):
		return kubeBurnerFormat
	case fence.MatchString(data) && !t.snippet && !strings.HasPrefix(ext, ".y") && ext != ".json":
		return proseFormat
	case fsdLine.MatchString(data) || regexp.MustCompile(`(?m)^\s*fsd=`).MatchString(data):
		return vdbenchFormat
	case yamlObject.MatchString(data), ext == ".yaml", ext == ".yml", ext == ".json", ext == ".ign":
		return yamlFormat
	case inventoryLine.MatchString(data) && sectionLine.MatchString(data):
		return inventoryFormat
	case tunedSection.MatchString(data) && (sysctlKeyLine.MatchString(data) || strings.Contains(data, "include") || strings.Contains(data, "summary")):
		return tunedFormat
	case fioOption.MatchString(data) && sectionLine.MatchString(data):
		return fioFormat
	case haproxySection.MatchString(data) && (strings.Contains(data, "maxconn") || strings.Contains(data, "bind ") || strings.Contains(data, "timeout ") || haproxyWord.MatchString(data)):
		return haproxyFormat
	case environmentLine.MatchString(data):
		return environmentFormat
	case commandLine.MatchString(data):
		return shellFormat
	case sysctlKeyLine.MatchString(data) && !bareCommand.MatchString(data):
		return sysctlFormat
	case t.snippet && haproxyWord.MatchString(data):
		return haproxyFormat
	case bareCommand.MatchString(data) && (t.snippet || ext == "" || ext == ".txt"):
		return shellFormat
	case strings.TrimSpace(data) != "" && (data[0] == '{' || data[0] == '['):
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
func (l *linter) wouldRecognise(t *text) bool {
	switch f := formatOf(t); f {
	case unknownFormat, proseFormat, planFormat, workloadFormat, kubeBurnerFormat:
		return false
	case yamlFormat:
		return yamlObject.MatchString(t.data) || strings.HasSuffix(t.name, "kubelet.conf")
	case shellFormat:
		return strings.HasPrefix(t.data, "#!")
	}
	return true
}

// file looks at a file.
func (l *linter) file(in Input) {
	t := newText(in.Name, in.Data)
	if i := bytes.IndexByte(in.Data, 0); i >= 0 || !utf8.Valid(in.Data) {
		if in.Asked {
			l.result.Problems = append(l.result.Problems, Problem{File: in.Name, Text: "the file is not text"})
		}
		return
	}
	if strings.TrimSpace(t.data) == "" {
		if in.Asked {
			l.note("", place{text: t}, "the file is empty")
		}
		l.recognised = true
		return
	}
	l.input = in
	l.text(t)
	if !l.recognised && in.Asked && !l.failed(in.Name) {
		l.note("", place{text: t}, "not of a kind that lint knows: nothing was checked")
	}
}

// failed reports whether a file has a problem already.
func (l *linter) failed(name string) bool {
	n := len(l.result.Problems)
	return n > 0 && l.result.Problems[n-1].File == name
}

// maxDepth bounds texts inside of texts.
const maxDepth = 6

// text looks at a text, by what it is.
func (l *linter) text(t *text) {
	if t.depth() > maxDepth {
		return
	}
	switch formatOf(t) {
	case yamlFormat:
		l.yaml(t)
	case sysctlFormat:
		l.sysctlFile(t, l.scopeOf(t))
	case inventoryFormat:
		l.inventory(t)
	case tunedFormat:
		l.tunedProfile(t)
	case fioFormat:
		l.fioJob(t)
	case vdbenchFormat:
		l.vdbench(t)
	case haproxyFormat:
		l.haproxy(t)
	case shellFormat:
		l.shell(t)
	case environmentFormat:
		l.environmentFile(t)
	case cloudConfigFormat:
		l.recognised = true
		l.userData(t)
	case proseFormat:
		l.prose(t)
	case kubeBurnerFormat:
		l.kubeBurner(t)
	case planFormat:
		l.plan(t)
	case workloadFormat:
		l.workload(t)
	}
}

// scopeOf names the machine that settings of a text meet on: files of one
// directory do, blocks of a text for people need not.
func (l *linter) scopeOf(t *text) string {
	if t.parent == nil {
		return "directory " + path.Dir(t.file)
	}
	if l.role != "" {
		return "role " + l.role
	}
	if t.snippet {
		line, _ := t.parent.at(t.start)
		for p := t; p.parent != nil; p = p.parent {
			line, _ = p.parent.at(p.start)
		}
		return "block " + t.file + ":" + strconv.Itoa(line)
	}
	return "inside " + t.file + " " + t.name
}

// environmentFile reads NAME=VALUE lines.
func (l *linter) environmentFile(t *text) {
	l.recognised = true
	for n := 1; n <= len(t.lines); n++ {
		line := strings.TrimPrefix(t.line(n), "export ")
		shift := len(t.line(n)) - len(line)
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		start := t.lines[n-1] + shift
		v := variable{name: name, value: strings.Trim(strings.TrimSpace(value), `"'`), hasValue: true,
			atName: place{text: t, line: n, column: shift + 1}, atValue: place{text: t, line: n, column: shift + len(name) + 2}}
		v.rename = func(fresh string) []edit { return []edit{{t, start, start + len(name), fresh}} }
		l.routerVariable(v)
	}
}

// yaml reads a text of YAML or JSON documents.
func (l *linter) yaml(t *text) {
	if parts := jsonStream(t); len(parts) > 1 {
		for _, part := range parts {
			l.yaml(part)
		}
		return
	}
	data := t.data
	actions := strings.Contains(data, "{{")
	templated := false
	if actions && !yamlReads(t.name, data) {
		data, templated = withHoles(data), true
	}
	docs, problems := strictyaml.Documents(t.name, []byte(data))
	l.yamlProblems(t, problems, templated)
	for _, parsed := range docs {
		if parsed.Root == nil {
			l.yamlProblems(t, parsed.Problems, templated)
			continue
		}
		d := &doc{text: t, root: parsed.Root, templated: actions}
		if !templated {
			l.yamlProblems(t, asKubernetesReads(parsed), false)
		}
		before := l.recognised
		l.recognised = false
		l.document(d)
		if !d.templated && (l.recognised || !t.snippet) {
			l.duplicates(d, parsed.Root, "", make(map[*node]bool))
		}
		l.recognised = l.recognised || before
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

// yamlReads reports whether a text with actions of a template is YAML as it
// stands, as it is when they stand in quotes.
func yamlReads(name, data string) bool {
	docs, problems := strictyaml.Documents(name, []byte(data))
	for _, d := range docs {
		problems = append(problems, d.Problems...)
	}
	return len(problems) == 0
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
func (l *linter) yamlProblems(t *text, problems []strictyaml.Problem, templated bool) {
	if len(problems) == 0 {
		return
	}
	switch {
	case templated:
		l.recognised = true
		l.note("", place{text: t, line: max(1, problems[0].Line), column: problems[0].Column}, "a template that cannot be read before it is rendered: not checked from here on")
	case t.snippet || t.parent != nil:
		// Of JSON, texts for people show pieces with dots in them.
		inBraces := strings.HasPrefix(strings.TrimSpace(t.data), "{") || strings.HasPrefix(strings.TrimSpace(t.data), "[")
		if t.snippet && !yamlObject.MatchString(t.data) && (inBraces || !looksLikeYAML(t.data)) {
			return
		}
		l.recognised = true
		for _, p := range problems {
			l.report("yaml-syntax", place{text: t, line: max(1, p.Line), column: p.Column}, "correct it", strings.TrimPrefix(p.Message, "not valid YAML: "))
		}
		if t.snippet {
			l.pieces(t)
		}
	case !l.input.Asked && (!yamlObject.MatchString(t.data) || !yamlName(t.name)):
		// Found in a directory, and of nothing that is known.
		l.note("", place{text: t, line: max(1, problems[0].Line), column: problems[0].Column}, "not looked at: %s", problems[0].Message)
	default:
		l.unreadable(t, problems)
	}
}

// yamlName reports whether a file is called one of YAML or JSON.
func yamlName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
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

// duplicates finds keys that stand twice.
func (l *linter) duplicates(d *doc, n *node, path string, seen map[*node]bool) {
	if seen[n] {
		return // an anchor's, seen where it is written
	}
	seen[n] = true
	for i, item := range n.Items() {
		l.duplicates(d, item, strictyaml.Index(path, i), seen)
	}
	for _, e := range n.Duplicates() {
		first, _ := entryOf(n, e.Key)
		var edits []edit
		if sameScalar(first.Value, e.Value) {
			if b, ok := d.blockOf(e); ok {
				edits = []edit{{d.text, d.text.lines[b.first-1], d.text.lineEnd(b.last), ""}}
			}
		}
		at := d.atKey(e, strictyaml.Key(path, e.Key))
		l.report("duplicate-key", at, "keep one of the two", "the key \""+e.Key+"\" stands here a second time, first on line "+strconv.Itoa(fileLine(place{text: d.text, line: first.Line, column: 1})), edits...)
	}
	for _, e := range n.Entries() {
		if !e.Merged() {
			l.duplicates(d, e.Value, strictyaml.Key(path, e.Key), seen)
		}
	}
}

// document looks at a document: an object, or a piece that has another form.
func (l *linter) document(d *doc) {
	root := d.root
	if root.Kind() != strictyaml.Mapping {
		return
	}
	has := func(key string) bool { _, ok := entryOf(root, key); return ok }
	switch {
	case has("apiVersion") && has("kind"):
		l.object(d, root, "")
	case has("kind") && textOf(root.Get("kind")) == "KubeletConfiguration":
		l.object(d, root, "")
	case has("ignition") && dig(root, "ignition", "version") != nil:
		l.recognised = true
		l.ignition(d, root, "")
	case has("networking") && (has("baseDomain") || has("controlPlane") || has("platform") || has("pullSecret")) || has("networking") && dig(root, "networking", "clusterNetwork") != nil:
		l.recognised = true
		l.installConfig(d, root)
	default:
		l.fragment(d)
	}
}
