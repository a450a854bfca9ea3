package run

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/system"
)

// calls is a session that notes which of its methods are called, up to its survey.
type calls struct {
	system.Session
	system.Provider
	made []string
}

var errEnough = errors.New("the survey is enough")

func (c *calls) Open(context.Context, system.Request) (system.Session, error) { return c, nil }
func (c *calls) Consent(context.Context) (*system.Consent, error) {
	c.made = append(c.made, "Consent")
	return nil, nil
}
func (c *calls) Prepare(context.Context) error { c.made = append(c.made, "Prepare"); return nil }
func (c *calls) Sweep(context.Context) error   { c.made = append(c.made, "Sweep"); return nil }
func (c *calls) Survey(context.Context, bool) (system.Survey, error) {
	c.made = append(c.made, "Survey")
	return system.Survey{}, errEnough
}
func (c *calls) Close() error { c.made = append(c.made, "Close"); return nil }

// A run calls the methods of a session in the order in which the interface has them.
func TestASessionsMethodsAreCalledInTheirOrder(t *testing.T) {
	c := new(calls)
	quiet := func() (show func(string), end func()) { return func(string) {}, func() {} }
	job := Job{Provider: c, Request: system.Request{Host: system.Host{Progress: quiet}}}
	if _, _, err := job.Run(t.Context(), t.Context()); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), "../system/provider.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Session" {
			return true
		}
		for _, method := range spec.Type.(*ast.InterfaceType).Methods.List {
			if name := method.Names[0].Name; slices.Contains(c.made, name) {
				want = append(want, name)
			}
		}
		return false
	})
	if len(want) != 5 || !slices.Equal(c.made, want) {
		t.Errorf("called %q, the interface has %q", c.made, want)
	}
}
