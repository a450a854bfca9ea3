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

	"plimsoll.dev/plimsoll/internal/advise/lint/objects"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func proseText(out *report.Report, t *reading.Text) {
	for _, b := range fenced(t) {
		b.Snippet = true
		if f := reading.FormatOf(b); f != reading.Unknown && f != reading.Prose {
			lookAt(out, b)
		}
	}
	// A page without a known block has nothing to check.
	out.Recognised = out.Recognised || reading.IsPage(path.Ext(t.Name))
}

// fenceLine matches the beginning or end of a block.
var fenceLine = regexp.MustCompile("^( {0,12})(`{3,}|~{3,}|-{4,}|\\.{4,})[ \t]*([A-Za-z0-9_+-]*)[ \t]*$")

func fenced(t *reading.Text) (blocks []*reading.Text) {
	asciidoc := strings.HasPrefix(strings.ToLower(path.Ext(t.Name)), ".a")
	open, indent, language, start := "", "", "", 0
	for n := 1; n <= len(t.Lines); n++ {
		m := fenceLine.FindStringSubmatch(t.Line(n))
		if m != nil && (m[2][0] == '-' || m[2][0] == '.') != asciidoc && m[2][0] != '`' {
			m = nil
		}
		switch {
		case m == nil:
		case open == "":
			open, indent, language, start = m[2], m[1], strings.ToLower(m[3]), n+1
		case m[2][0] == open[0] && len(m[2]) >= len(open) && m[3] == "":
			if start < n && !program(language) {
				blocks = append(blocks, t.Indented(t.Lines[start-1], t.Lines[n-1], indent, nameOf(language)))
			}
			open = ""
		}
	}
	return blocks
}

// program reports whether a block is in a programming language: it may look like settings.
func program(language string) bool {
	switch language {
	case "js", "mjs", "cjs", "javascript", "jsx", "ts", "tsx", "typescript", "python", "py", "go", "golang", "c", "h", "cpp", "c++", "cc", "rust", "rs",
		"java", "kotlin", "scala", "swift", "ruby", "rb", "perl", "php", "lua", "html", "css", "scss", "xml", "svg", "sql", "diff", "patch", "mermaid", "dot", "proto", "promql", "rego", "jq", "tex", "latex", "math":
		return true
	}
	return false
}

// nameOf returns a file name from which the format of a language follows.
func nameOf(language string) string {
	return cmp.Or(map[string]string{
		"yaml": "block.yaml", "yml": "block.yaml", "json": "block.json", "ini": "block.ini", "haproxy": "haproxy.cfg",
	}[language], "block")
}

// lookAtFragment looks at a piece of an object, as documents show additions.
func lookAtFragment(out *report.Report, root reading.Value) {
	// Fields that only a kubelet's configuration has.
	kubelets := strings.Fields(`maxPods kubeAPIQPS kubeAPIBurst nodeStatusMaxImages podPidsLimit systemReserved kubeReserved
		evictionHard evictionSoft cpuManagerPolicy topologyManagerPolicy serializeImagePulls imageGCHighThresholdPercent`)
	if root.Doc.Text.Snippet {
		cloudInits(out, root)
	}
	// taken notes the kind that a piece was taken for.
	taken := func(what string) {
		out.Recognised = true
		if !root.Doc.Text.Snippet {
			out.Note("", root.At(), "no apiVersion and no kind: it was taken for a piece of %s", what)
		}
	}
	spec, hyperConverged := root.Get("spec"), out.Specs("hyperconverged")[0].Type // that of v1beta1
	switch {
	case root.Get("liveMigrationConfig").Node != nil:
		taken("the HyperConverged object's spec")
		objects.Fits(out, root, "the spec of a HyperConverged", hyperConverged)
	case spec.Get("liveMigrationConfig").Node != nil:
		taken("a HyperConverged object")
		objects.Fits(out, spec, "the spec of a HyperConverged", hyperConverged)
	case root.Get("cloneStrategy").Node != nil:
		taken("a StorageProfile's spec")
		strategyOf(out, root)
	case spec.Get("cloneStrategy").Node != nil:
		taken("a StorageProfile")
		strategyOf(out, spec)
	case root.Get("networkd").Node != nil || root.Get("storage", "files").Node != nil:
		taken("an Ignition configuration")
		if root.Get("version").Text() != "" || root.Get("ignition", "version").Node != nil {
			objects.IgnitionConfig(out, root, "")
		}
	case slices.ContainsFunc(root.Node.Entries, func(e strictyaml.Entry) bool { return slices.Contains(kubelets, e.Key) }):
		taken("a kubelet's configuration")
		objects.Fits(out, root, "a KubeletConfiguration", reflect.TypeFor[kubelet.KubeletConfiguration]())
		objects.CheckKubelet(out, root)
	}
}

func cloudInits(out *report.Report, v reading.Value) {
	v.Walk(func(e reading.Entry) bool {
		if e.Key() != "cloudInitNoCloud" && e.Key() != "cloudInitConfigDrive" {
			return true
		}
		out.Recognised = true
		objects.Fits(out, e.Value, "cloud-init's source", reflect.TypeFor[kubevirt.CloudInitNoCloudSource]())
		objects.CheckCloudInit(out, e.Value)
		return false
	})
}

func strategyOf(out *report.Report, spec reading.Value) {
	if s := spec.Get("cloneStrategy"); s.Text() != "" {
		c := &objects.Fit{Out: out, Doc: s.Doc}
		c.OneOf(s, []string{"copy", "snapshot", "csi-clone"})
	}
	objects.CheckCloneStrategy(out, spec)
}
