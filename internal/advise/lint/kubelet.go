package lint

import (
	"encoding/json"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// refusedByKubelet reports what the kubelet's own validation refuses in the configurations of all files, unless
// a rule has found a fault in that line.
func refusedByKubelet(out *report.Report, refused func(config []byte) []string) {
	for _, o := range out.Objects {
		config := o.Value
		if o.Kind == "KubeletConfig" {
			config = o.Get("spec", "kubeletConfig")
		}
		if refused == nil || o.Kind != "KubeletConfiguration" && o.Kind != "KubeletConfig" || config.Node == nil || config.Doc.Templated {
			continue
		}
		fields, ok := config.Plain().(map[string]any)
		if !ok {
			continue
		}
		fields["apiVersion"], fields["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
		text, err := json.Marshal(fields)
		if err != nil {
			continue
		}
		for _, fault := range refused(text) {
			at := config.At()
			for _, e := range config.Entries() { // the message names the key, or a signal in it
				if strings.Contains(fault, e.Key()) || slices.ContainsFunc(e.Entries(), func(inner reading.Entry) bool { return strings.Contains(fault, inner.Key()) }) {
					at = e.KeyAt()
					break
				}
			}
			file, line, _, _ := at.Text.Position(at.Line, at.Column)
			if !slices.ContainsFunc(out.Findings, func(f report.Finding) bool { return f.File == file && f.Line == line && f.Rule != "kubelet-eviction" }) {
				out.Find("kubelet-range", at, "correct it, or remove it", fault)
			}
		}
	}
}
