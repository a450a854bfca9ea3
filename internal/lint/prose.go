package lint

import (
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// prose looks at the blocks of a text for people: what stands between fences,
// or, where there are none, paragraphs that are beyond doubt.
func (l *linter) prose(t *text) {
	l.statements(t)
	blocks := fenced(t)
	if len(blocks) == 0 {
		blocks = paragraphs(t)
	}
	for _, b := range blocks {
		b.snippet = true
		if f := formatOf(b); f == unknownFormat || f == proseFormat {
			continue
		}
		l.text(b)
	}
	// A text without a block that is known has nothing to check, and is none
	// the worse for it.
	if e := strings.ToLower(path.Ext(t.name)); e == ".md" || e == ".markdown" || e == ".adoc" || e == ".asciidoc" || e == ".rst" {
		l.recognised = true
	}
}

// fenceLine matches the beginning or end of a block.
var fenceLine = regexp.MustCompile("^( {0,12})(`{3,}|~{3,}|-{4,}|\\.{4,})[ \t]*([A-Za-z0-9_+-]*)[ \t]*$")

// fenced finds the blocks between fences, of Markdown and of AsciiDoc.
func fenced(t *text) (blocks []*text) {
	asciidoc := strings.HasPrefix(strings.ToLower(path.Ext(t.name)), ".a")
	open, indent, language, start := "", "", "", 0
	for n := 1; n <= len(t.lines); n++ {
		m := fenceLine.FindStringSubmatch(t.line(n))
		if m != nil && (m[2][0] == '-' || m[2][0] == '.') != asciidoc && m[2][0] != '`' {
			m = nil
		}
		switch {
		case m == nil:
		case open == "":
			open, indent, language, start = m[2], m[1], strings.ToLower(m[3]), n+1
		case m[2][0] == open[0] && len(m[2]) >= len(open) && m[3] == "":
			if start < n && !program(language) {
				blocks = append(blocks, t.indented(t.lines[start-1], t.lines[n-1], indent, nameOf(language)))
			}
			open = ""
		}
	}
	return blocks
}

// program reports whether a block is in a language of programs: what looks like
// a setting in there is none.
func program(language string) bool {
	switch language {
	case "js", "mjs", "cjs", "javascript", "jsx", "ts", "tsx", "typescript", "python", "py", "go", "golang", "c", "h", "cpp", "c++", "cc", "rust", "rs",
		"java", "kotlin", "scala", "swift", "ruby", "rb", "perl", "php", "lua", "html", "css", "scss", "xml", "svg", "sql", "diff", "patch", "mermaid", "dot", "proto", "promql", "rego", "jq", "tex", "latex", "math":
		return true
	}
	return false
}

// nameOf is a name that tells a language.
func nameOf(language string) string {
	switch language {
	case "yaml", "yml":
		return "block.yaml"
	case "json":
		return "block.json"
	case "ini", "inventory":
		return "block.ini"
	case "haproxy":
		return "haproxy.cfg"
	}
	return "block"
}

// paragraphs finds lines between empty ones that are a configuration beyond
// doubt.
func paragraphs(t *text) (blocks []*text) {
	start := 0
	flush := func(end int) {
		if start == 0 {
			return
		}
		b := t.part(t.lines[start-1], t.lines[end-1], "block")
		if end > len(t.lines) {
			b = t.part(t.lines[start-1], len(t.data), "block")
		}
		start = 0
		if inventoryLine.MatchString(b.data) && sectionLine.MatchString(b.data) || commandLine.MatchString(b.data) ||
			haproxyWord.MatchString(b.data) && strings.Count(b.data, "\n") <= 2 || sysctlKeyLine.MatchString(b.data) ||
			environmentLine.MatchString(b.data) {
			blocks = append(blocks, b)
		}
	}
	for n := 1; n <= len(t.lines); n++ {
		if strings.TrimSpace(t.line(n)) == "" {
			flush(n)
		} else if start == 0 {
			start = n
		}
	}
	if start != 0 {
		b := t.part(t.lines[start-1], len(t.data), "block")
		if inventoryLine.MatchString(b.data) && sectionLine.MatchString(b.data) || commandLine.MatchString(b.data) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// fragment looks at a piece of an object that stands alone, as documents show
// what is to be added somewhere.
func (l *linter) fragment(d *doc) {
	root := d.root
	// What only a kubelet's configuration has.
	kubelets := slices.ContainsFunc(root.Entries(), func(e strictyaml.Entry) bool {
		return slices.Contains([]string{"maxPods", "kubeAPIQPS", "kubeAPIBurst", "nodeStatusMaxImages", "podPidsLimit", "systemReserved", "kubeReserved",
			"evictionHard", "evictionSoft", "cpuManagerPolicy", "topologyManagerPolicy", "serializeImagePulls", "imageGCHighThresholdPercent"}, e.Key)
	})
	if d.text.snippet {
		l.cloudInits(d, root, "")
		l.sourcesOf(d, root, "")
	}
	switch {
	case root.Get("liveMigrationConfig") != nil:
		l.taken(d, "the HyperConverged object's spec")
		(&fit{linter: l, doc: d, what: "the spec of a HyperConverged"}).value(root, reflect.TypeFor[hyperConvergedSpec](), "")
	case dig(root, "spec", "liveMigrationConfig") != nil:
		l.taken(d, "a HyperConverged object")
		(&fit{linter: l, doc: d, what: "the spec of a HyperConverged"}).value(root.Get("spec"), reflect.TypeFor[hyperConvergedSpec](), "spec")
	case root.Get("cloneStrategy") != nil:
		l.taken(d, "a StorageProfile's spec")
		l.strategyValue(d, root, "")
	case dig(root, "spec", "cloneStrategy") != nil:
		l.taken(d, "a StorageProfile")
		l.strategyValue(d, root.Get("spec"), "spec")
	case root.Get("networkd") != nil || dig(root, "storage", "files") != nil:
		l.taken(d, "an Ignition configuration")
		if textOf(root.Get("version")) == "" && dig(root, "ignition", "version") == nil {
			return
		}
		l.ignition(d, root, "")
	case kubelets:
		l.taken(d, "a kubelet's configuration")
		(&fit{linter: l, doc: d, what: "a KubeletConfiguration"}).value(root, reflect.TypeFor[kubelet.KubeletConfiguration](), "")
		l.kubeletRanges(d, root, "")
	}
}

// cloudInits finds user data in a piece of a machine.
func (l *linter) cloudInits(d *doc, n *node, path string) {
	for i, item := range n.Items() {
		l.cloudInits(d, item, strictyaml.Index(path, i))
	}
	for _, e := range n.Entries() {
		inner := strictyaml.Key(path, e.Key)
		if e.Key != "cloudInitNoCloud" && e.Key != "cloudInitConfigDrive" {
			l.cloudInits(d, e.Value, inner)
			continue
		}
		l.recognised = true
		c := &fit{linter: l, doc: d, what: "cloud-init's source"}
		c.unknown = func(f frame, e strictyaml.Entry) bool { return l.cloudInitLevel(d, f, e) }
		c.value(e.Value, reflect.TypeFor[kubevirt.CloudInitNoCloudSource](), inner)
		l.cloudInit(&object{doc: d, root: d.root}, e.Value, inner)
	}
}

// taken says what a piece was taken for.
func (l *linter) taken(d *doc, what string) {
	l.recognised = true
	if !d.text.snippet {
		l.note("", d.at(d.root, ""), "no apiVersion and no kind: it was taken for a piece of %s", what)
	}
}

func (l *linter) strategyValue(d *doc, spec *node, path string) {
	s := spec.Get("cloneStrategy")
	if s != nil && s.Kind() == strictyaml.Scalar && !isNull(s) {
		c := &fit{linter: l, doc: d}
		c.oneOf(s, strictyaml.Key(path, "cloneStrategy"), []string{"copy", "snapshot", "csi-clone"})
	}
	l.cloneStrategy(d, spec, path)
}
