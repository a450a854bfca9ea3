package cli

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/cli/process"
)

// plugin names the program where kubectl runs it, as kubectl-plimsoll.
const plugin = "kubectl plimsoll"

func isPlugin(p *process.Process) bool {
	return strings.TrimSuffix(filepath.Base(p.Name), ".exe") == "kubectl-plimsoll"
}

// renamer finds the program's commands in texts, and its name where a message begins.
func renamer(root *cobra.Command) func(text string) string {
	var verbs []string
	for _, c := range root.Commands() {
		verbs = append(verbs, regexp.QuoteMeta(c.Name()))
	}
	calls := regexp.MustCompile(`(?m)(^|[^\w./-])(?:kubectl )?plimsoll( (?:` + strings.Join(verbs, "|") + `)\b|: )`)
	return func(text string) string { return calls.ReplaceAllString(text, "${1}"+plugin+"${2}") }
}

// asPlugin has help and examples name the program as kubectl does.
func asPlugin(root *cobra.Command, rename func(string) string) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: plugin}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.Short, c.Long, c.Example = rename(c.Short), rename(c.Long), rename(c.Example)
		c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = rename(f.Usage) })
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

// renamed writes text with its commands renamed.
type renamed struct {
	w      io.Writer
	rename func(text string) string
}

// Write implements io.Writer.
func (r renamed) Write(text []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.rename(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
