// Render prints the manifests of a Helm chart, by Helm's own engine in strict mode: a value that is missing is
// an error. It takes the chart's directory and values as NAME=VALUE.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

func main() {
	if err := render(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func render(dir string, set []string) error {
	c, err := loader.Load(dir)
	if err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	given := map[string]any{}
	for _, s := range set {
		if err := strvals.ParseInto(s, given); err != nil {
			return err
		}
	}
	values, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "test", Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		return err
	}
	out, err := engine.Engine{Strict: true}.Render(c, values)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		fmt.Print(out[name])
	}
	return nil
}
