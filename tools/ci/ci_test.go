// Package ci holds the jobs of examples/ci against the modules of their systems.
package ci

import (
	"io"
	"os"
	"testing"

	"github.com/rhysd/actionlint"
	tekton "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"
)

func example(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../examples/ci/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGitHubWorkflow(t *testing.T) {
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lint := func(data []byte) []*actionlint.Error {
		found, err := linter.Lint("night.yaml", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, found := range lint(example(t, "github.yaml")) {
		t.Error(found)
	}
	if len(lint([]byte("on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{runs: a}]}}\n"))) == 0 {
		t.Error("a step without run is accepted")
	}
}

func TestTektonTask(t *testing.T) {
	check := func(data []byte) error {
		var task tekton.Task
		if err := yaml.UnmarshalStrict(data, &task); err != nil {
			return err
		}
		task.SetDefaults(t.Context())
		if err := task.Validate(t.Context()); err != nil {
			return err
		}
		return nil
	}
	if err := check(example(t, "tekton.yaml")); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"script: x", "image: $(params.none)"} {
		if check([]byte("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: a}\nspec:\n  steps:\n  - name: a\n    "+wrong+"\n")) == nil {
			t.Errorf("a step with %s alone is accepted", wrong)
		}
	}
}
