package lint

import (
	"cmp"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// proseText looks at the blocks of a text for people: what stands between fences,
// or, where there are none, paragraphs that are beyond doubt.
func proseText(out *report, t *text) {
	proseStatements(out, t)
	blocks := fenced(t)
	if len(blocks) == 0 {
		blocks = paragraphs(t)
	}
	for i := 0; i < len(blocks); i++ {
		b := blocks[i]
		b.snippet = true
		if i+1 < len(blocks) {
			if whole := joined(b, blocks[i+1]); whole != nil {
				b = whole
				i++
			}
		}
		if f := formatOf(b); f == unknownFormat || f == proseFormat {
			continue
		}
		lookAt(out, b)
	}
	// A text without a block that is known has nothing to check, and is none
	// the worse for it.
	out.recognised = out.recognised || isPage(path.Ext(t.name))
}

// openKey matches a last line that is a key without a value.
var openKey = regexp.MustCompile(`(?:^|\n)( *)[A-Za-z][\w.-]*:[ \t]*\s*$`)

// joined is an object that a page break cut into two blocks: the first ends with
// a key that waits for its value, and the second begins at the margin. nil is no
// such pair.
func joined(a, b *text) *text {
	end := openKey.FindStringSubmatch(a.data)
	between := strings.Trim(a.parent.data[a.end:b.start], "`~ \t\r\n")
	if end == nil || between != "" || !yamlObject.MatchString(a.data) || yamlObject.MatchString(b.data) || !marginKey.MatchString(b.data) {
		return nil
	}
	head := strings.TrimRight(a.data, " \t\r\n") + "\n"
	lines, indent := strings.Count(head, "\n"), len(end[1])+2
	for line := range strings.Lines(b.data) {
		head += strings.Repeat(" ", indent) + line
	}
	t := a.parent.inner(a.start, b.end, a.name, head)
	t.snippet = true
	t.outer = func(line, column int) (int, int) {
		if line <= lines {
			return a.outer(line, column)
		}
		return b.outer(line-lines, max(0, column-indent))
	}
	if root, _ := single(t); root.node == nil {
		return nil
	}
	return t
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
	return cmp.Or(map[string]string{
		"yaml": "block.yaml", "yml": "block.yaml", "json": "block.json", "ini": "block.ini", "haproxy": "haproxy.cfg",
	}[language], "block")
}

// paragraphs finds lines between empty ones that are a configuration beyond
// doubt.
func paragraphs(t *text) (blocks []*text) {
	start := 0
	for n := 1; n <= len(t.lines)+1; n++ {
		last := n > len(t.lines) // a text that ends in the middle of a line
		if !last && strings.TrimSpace(t.line(n)) != "" {
			if start == 0 {
				start = n
			}
			continue
		}
		if start == 0 {
			continue
		}
		b := t.part(t.lines[start-1], t.lineEnd(n-1), "block")
		start = 0
		if commandLine.MatchString(b.data) ||
			!last && (haproxyWord.MatchString(b.data) && strings.Count(b.data, "\n") <= 2 || sysctlKeyLine.MatchString(b.data)) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// lookAtFragment looks at a piece of an object that stands alone, as documents
// show what is to be added somewhere.
func lookAtFragment(out *report, root value) {
	// What only a kubelet's configuration has.
	kubelets := strings.Fields(`maxPods kubeAPIQPS kubeAPIBurst nodeStatusMaxImages podPidsLimit systemReserved kubeReserved
		evictionHard evictionSoft cpuManagerPolicy topologyManagerPolicy serializeImagePulls imageGCHighThresholdPercent`)
	if root.doc.text.snippet {
		cloudInits(out, root)
		sourcesOf(out, root)
	}
	// taken says what a piece was taken for.
	taken := func(what string) {
		out.recognised = true
		if !root.doc.text.snippet {
			out.note("", root.at(), "no apiVersion and no kind: it was taken for a piece of %s", what)
		}
	}
	spec, hyperConverged := root.get("spec"), out.Specs("hyperconverged")[0].Type // that of v1beta1
	switch {
	case root.get("liveMigrationConfig").node != nil:
		taken("the HyperConverged object's spec")
		fits(out, root, "the spec of a HyperConverged", hyperConverged)
	case spec.get("liveMigrationConfig").node != nil:
		taken("a HyperConverged object")
		fits(out, spec, "the spec of a HyperConverged", hyperConverged)
	case root.get("cloneStrategy").node != nil:
		taken("a StorageProfile's spec")
		strategyOf(out, root)
	case spec.get("cloneStrategy").node != nil:
		taken("a StorageProfile")
		strategyOf(out, spec)
	case root.get("networkd").node != nil || root.get("storage", "files").node != nil:
		taken("an Ignition configuration")
		if root.get("version").text() != "" || root.get("ignition", "version").node != nil {
			ignitionConfig(out, root, "")
		}
	case slices.ContainsFunc(root.node.Entries, func(e strictyaml.Entry) bool { return slices.Contains(kubelets, e.Key) }):
		taken("a kubelet's configuration")
		fits(out, root, "a KubeletConfiguration", reflect.TypeFor[kubelet.KubeletConfiguration]())
		checkKubelet(out, root)
	}
}

// cloudInits finds user data in a piece of a machine.
func cloudInits(out *report, v value) {
	v.walk(func(e entry) bool {
		if e.key() != "cloudInitNoCloud" && e.key() != "cloudInitConfigDrive" {
			return true
		}
		out.recognised = true
		fits(out, e.value, "cloud-init's source", reflect.TypeFor[kubevirt.CloudInitNoCloudSource]())
		checkCloudInit(out, e.value)
		return false
	})
}

// strategyOf looks at the cloning strategy in a piece of a StorageProfile.
func strategyOf(out *report, spec value) {
	if s := spec.get("cloneStrategy"); s.text() != "" {
		c := &fit{out: out, doc: s.doc}
		c.oneOf(s, []string{"copy", "snapshot", "csi-clone"})
	}
	checkCloneStrategy(out, spec)
}
