package tune

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// ParseTarget reads a plan's target in words, such as "3000 VMs and 21,400 pods on 100 nodes".
func ParseTarget(text string) (t Plan, err error) {
	const allowed = "want numbers of VMs, pods, pods per node, nodes and OSDs, such as \"3000 VMs and 21,400 pods on 100 nodes\""
	from := fmt.Sprintf("the target %q", text)
	words := targetWord.FindAllString(strings.ToLower(text), -1)
	if len(words) == 0 {
		return t, fmt.Errorf("%q is not a target: %s", text, allowed)
	}
	for i := 0; i < len(words); {
		word := words[i]
		if slices.Contains([]string{"and", "on", "with", "over", "across", "in", "of", "a", "cluster", "+", ",", "x"}, word) {
			i++
			continue
		}
		n, err := param.ParseCount(word)
		if err != nil {
			return t, fmt.Errorf("%q: %q is not a number: %s", text, word, allowed)
		}
		i++
		noun := ""
		if i < len(words) {
			noun = words[i]
			i++
		}
		if slices.Contains([]string{"idle", "virtual", "worker"}, noun) && i < len(words) {
			noun = words[i]
			i++
		}
		perNode := false
		if i+1 < len(words) && slices.Contains([]string{"per", "a", "each", "/"}, words[i]) && words[i+1] == "node" {
			perNode = true
			i += 2
		}
		var in *param.In[int64]
		switch strings.TrimSuffix(noun, "s") {
		case "vm", "machine":
			in = &t.VMs
		case "pod":
			if in = &t.Pods; perNode {
				in = &t.PodsPerNode
			}
		case "node", "worker":
			in = &t.Nodes
		case "osd":
			in = &t.OSDs
		default:
			hint := ""
			if near, ok := nearest.Word(noun, []string{"VMs", "pods", "nodes", "OSDs"}); ok {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return t, fmt.Errorf("%q: %s of what? %q%s: %s", text, word, noun, hint, allowed)
		}
		if perNode && in != &t.PodsPerNode {
			return t, fmt.Errorf("%q: only pods are counted per node: %s", text, allowed)
		}
		if in.Ok() {
			return t, fmt.Errorf("%q says twice how many %s", text, noun)
		}
		*in = param.Given(n, from)
	}
	return t, nil
}

// targetWord matches a number, a word, or a separator.
var targetWord = regexp.MustCompile(`[0-9][0-9.,]*[0-9]|[0-9]|[^\s,/+]+|[,/+]`)
