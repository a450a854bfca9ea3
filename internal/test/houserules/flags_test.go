package houserules

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// noImports lets a package be type checked without those that it imports: names of
// them stay unresolved.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

// flagPackage holds the code of one folder, with the variables into which its flags are
// parsed.
type flagPackage struct {
	info types.Info
	// bound holds the position and the name of every flag by its variable.
	bound map[types.Object]string
	// written holds the names by which code gives a variable a value, or binds it.
	written map[*ast.Ident]bool
}

// flagPackageOf reads the files of one folder.
func flagPackageOf(files []file) *flagPackage {
	p := &flagPackage{
		info:  types.Info{Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)},
		bound: make(map[types.Object]string), written: make(map[*ast.Ident]bool),
	}
	var trees []*ast.File
	for _, f := range files {
		trees = append(trees, f.ast)
	}
	config := types.Config{Importer: noImports{}, Error: func(error) {}, FakeImportC: true}
	config.Check(files[0].pkg, files[0].fset, trees, &p.info)
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				p.bind(f, n)
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
						p.written[nameOf(left)] = true
					}
				}
			case *ast.KeyValueExpr:
				p.written[nameOf(n.Key)] = true
			}
			return true
		})
	}
	return p
}

// nameOf returns the identifier at which a variable or a field is named; nil for other
// expressions.
func nameOf(of ast.Expr) *ast.Ident {
	switch of := of.(type) {
	case *ast.Ident:
		return of
	case *ast.SelectorExpr:
		return of.Sel
	}
	return nil
}

// bind notes the variables of a call such as flags.StringVar(&f.at, "at", ...).
func (p *flagPackage) bind(f file, call *ast.CallExpr) {
	name := nameOf(call.Fun)
	if name == nil || len(call.Args) < 3 || !strings.HasSuffix(strings.TrimSuffix(name.Name, "P"), "Var") {
		return
	}
	ast.Inspect(call.Args[0], func(n ast.Node) bool {
		if address, is := n.(*ast.UnaryExpr); is && address.Op == token.AND {
			if to := nameOf(address.X); to != nil && p.info.Uses[to] != nil {
				p.bound[p.info.Uses[to]] = f.at(call)
				p.written[to] = true
			}
		}
		return true
	})
}

// unbound returns a complaint about a call such as flags.Bool("name", false, "what it
// is"), whose value nothing can read, unless the flag's help says that it is ignored.
func unbound(f file, statement *ast.ExprStmt) string {
	call, is := statement.X.(*ast.CallExpr)
	if !is || len(call.Args) < 3 {
		return ""
	}
	name, help := nameOf(call.Fun), constantText(call.Args[len(call.Args)-1])
	if name == nil || !slices.Contains([]string{"Bool", "String", "Int", "Int64", "Float64", "Duration", "StringArray", "StringSlice"}, strings.TrimSuffix(name.Name, "P")) || strings.Contains(help, "ignored") {
		return ""
	}
	return f.at(call) + ": a flag without a variable, whose help does not say that it is ignored"
}

// constantText returns the value of a literal text; empty for other expressions.
func constantText(of ast.Expr) string {
	if literal, is := of.(*ast.BasicLit); is {
		return literal.Value
	}
	return ""
}

// Every flag is used: a variable into which a flag is parsed is also read, and the help
// of a flag without one says that it is ignored.
func TestFlagsAreUsed(t *testing.T) {
	byFolder := make(map[string][]file)
	for _, f := range sources(t) {
		if strings.HasPrefix(f.pkg, "internal/cli") {
			byFolder[f.pkg] = append(byFolder[f.pkg], f)
		}
	}
	read, elsewhere, flags := make(map[types.Object]bool), make(map[string]bool), make(map[types.Object]string)
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		p := flagPackageOf(byFolder[folder])
		for _, f := range byFolder[folder] {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if statement, is := n.(*ast.ExprStmt); is {
					if complaint := unbound(f, statement); complaint != "" {
						t.Error(complaint)
					}
				}
				name, is := n.(*ast.Ident)
				switch {
				case !is || p.written[name]:
				case p.info.Uses[name] != nil:
					read[p.info.Uses[name]] = true
				case p.info.Defs[name] == nil:
					elsewhere[name.Name] = true
				}
				return true
			})
		}
		maps.Copy(flags, p.bound)
	}
	if len(flags) < 100 {
		t.Fatalf("only %d flags with variables found", len(flags))
	}
	for variable, at := range flags {
		if !read[variable] && !(variable.Exported() && elsewhere[variable.Name()]) {
			t.Errorf("%s: a flag is parsed into %s, which nothing reads", at, variable.Name())
		}
	}
}
