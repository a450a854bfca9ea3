package houserules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testPackage holds the test files of one folder.
type testPackage struct {
	dir       string
	fset      *token.FileSet
	functions map[string][]*ast.FuncDecl // by name; methods of several types may share one
	imports   map[string]bool            // names of imported packages
}

// testPackages parses every test file of internal, by folder.
func testPackages(t *testing.T) (list []*testPackage) {
	t.Helper()
	byDir := make(map[string]*testPackage)
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		dir := filepath.Dir(p)
		if byDir[dir] == nil {
			byDir[dir] = &testPackage{dir, token.NewFileSet(), make(map[string][]*ast.FuncDecl), make(map[string]bool)}
			list = append(list, byDir[dir])
		}
		of := byDir[dir]
		parsed, err := parser.ParseFile(of.fset, p, nil, 0)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			of.imports[strings.Trim(spec.Path.Value[strings.LastIndex(spec.Path.Value, "/")+1:], `"`)] = true
		}
		for _, decl := range parsed.Decls {
			if f, is := decl.(*ast.FuncDecl); is && f.Body != nil {
				of.functions[f.Name.Name] = append(of.functions[f.Name.Name], f)
			}
		}
		return nil
	})
	if err != nil || len(list) < 20 {
		t.Fatalf("%d folders with tests, %v", len(list), err)
	}
	return list
}

// callName returns the name of a called function, with its package or receiver.
func callName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, is := fun.X.(*ast.Ident); is {
			return x.Name + "." + fun.Sel.Name
		}
		return "." + fun.Sel.Name
	}
	return ""
}

// onVirtualClock reports whether a function of the folder runs what it is given in a
// bubble of testing/synctest.
func (p *testPackage) onVirtualClock(name string) (is bool) {
	for _, f := range p.functions[name] {
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, called := n.(*ast.CallExpr)
			is = is || called && callName(call) == "synctest.Test"
			return !is
		})
	}
	return is && !strings.HasPrefix(name, "Test")
}

// reached walks what a test runs on the wall clock: its own code and the functions of
// its folder that it names, but nothing that runs on a virtual clock.
func (p *testPackage) reached(from string, each func(call *ast.CallExpr, name string)) {
	seen := make(map[string]bool)
	var walk func(name string, method bool)
	walk = func(name string, method bool) {
		if seen[name] {
			return
		}
		for _, f := range p.functions[name] {
			if method != (f.Recv != nil) {
				continue
			}
			seen[name] = true
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					called := callName(n)
					if called == "synctest.Test" || called == "e2e.OnVirtualClock" || p.onVirtualClock(called) {
						return false
					}
					each(n, called)
				case *ast.SelectorExpr:
					if x, is := n.X.(*ast.Ident); is && p.imports[x.Name] {
						return false
					}
					walk(n.Sel.Name, true)
				case *ast.Ident:
					if n.Obj == nil || n.Obj.Kind == ast.Fun {
						walk(n.Name, false)
					}
				}
				return true
			})
		}
	}
	walk(from, false)
}

// inLongRing reports whether a call leaves a test to make test-long.
func inLongRing(name string) bool {
	return name == "ring.Long" || slices.ContainsFunc([]string{".Long", ".Measures", ".Program", ".Lab", ".Binary"}, func(end string) bool {
		return strings.HasSuffix(name, end) && (strings.HasPrefix(name, "suite.") || strings.HasPrefix(name, "."))
	})
}

// wallClock lists the calls by which a test would wait for the wall clock, or decide
// by it.
func wallClock() []string {
	return []string{"time.Sleep", "time.Since", "time.Until"}
}

// No test of make test waits for the wall clock, or decides by it: such a test fails
// on a busy machine, without a fault of the program.
func TestNoTestOfMakeTestReadsTheWallClock(t *testing.T) {
	for _, p := range testPackages(t) {
		for name := range p.functions {
			if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") || name == "TestMain" {
				continue
			}
			long, bad := false, []string(nil)
			p.reached(name, func(call *ast.CallExpr, called string) {
				if inLongRing(called) {
					long = true
				}
				if slices.Contains(wallClock(), called) {
					at := p.fset.Position(call.Pos())
					bad = append(bad, fmt.Sprintf("%s:%d calls %s", strings.TrimPrefix(at.Filename, "../"), at.Line, called))
				}
			})
			if !long && len(bad) > 0 {
				t.Errorf("%s: %s: use a virtual clock (testing/synctest), wait for an event, or begin with ring.Long", name, strings.Join(bad, ", "))
			}
		}
	}
}
