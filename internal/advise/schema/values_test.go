package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// typeOf parts PACKAGE.TYPE, or PACKAGE.STRUCT.KEY.
func typeOf(key string) (pkg, name string) {
	slash := strings.LastIndexByte(key, '/')
	dot := slash + strings.IndexByte(key[slash:], '.')
	return key[:dot], key[dot+1:]
}

// The values that are listed are those that the packages declare, by their
// sources.
func TestEnumsAreThoseOfTheTypes(t *testing.T) {
	// Values that are declared and that no object may have, or that are listed
	// in other words.
	except := map[string][]string{
		"VirtualMachineRunStrategy": {""},
	}
	listed := New().values
	var packages []string
	for key := range listed {
		if pkg, _ := typeOf(key); !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
	}
	out, err := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, packages...)...).Output()
	if err != nil {
		t.Skipf("needs the sources of the types: %v", err)
	}
	sources := make(map[string]map[string][]string) // package to type to values
	for line := range strings.Lines(string(out)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		sources[name] = declared(t, dir)
	}
	checked := 0
	for key, values := range listed {
		pkg, name := typeOf(key)
		if strings.Contains(name, ".") {
			continue // a key of a struct, whose type is any text
		}
		want := slices.DeleteFunc(slices.Clone(sources[pkg][name]), func(v string) bool { return slices.Contains(except[name], v) })
		got := slices.Clone(values)
		slices.Sort(got)
		slices.Sort(want)
		want = slices.Compact(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: listed %q, declared %q", key, got, want)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("%d types were checked", checked)
	}
}

// declared reads the text constants of a package's directory, by their type.
func declared(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	values := make(map[string][]string)
	plain := make(map[string]string) // constants of no type of their own
	var aliases []*ast.ValueSpec
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				v := spec.(*ast.ValueSpec)
				if len(v.Values) != 1 {
					continue
				}
				typ, _ := v.Type.(*ast.Ident)
				switch value := v.Values[0].(type) {
				case *ast.BasicLit:
					text, err := strconv.Unquote(value.Value)
					if err != nil {
						continue
					}
					if typ == nil {
						plain[v.Names[0].Name] = text
					} else {
						values[typ.Name] = append(values[typ.Name], text)
					}
				case *ast.CallExpr: // T("value")
					name, ok := value.Fun.(*ast.Ident)
					if lit, isLit := value.Args[0].(*ast.BasicLit); ok && isLit {
						if text, err := strconv.Unquote(lit.Value); err == nil {
							values[name.Name] = append(values[name.Name], text)
						}
					}
				case *ast.Ident:
					if typ != nil {
						aliases = append(aliases, v)
					}
				}
			}
		}
	}
	for _, v := range aliases {
		if text, ok := plain[v.Values[0].(*ast.Ident).Name]; ok {
			name := v.Type.(*ast.Ident).Name
			values[name] = append(values[name], text)
		}
	}
	return values
}
