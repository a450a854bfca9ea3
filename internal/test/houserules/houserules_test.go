package houserules

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "plimsoll.dev/plimsoll"

// file is one Go file that is no test.
type file struct {
	name string // from the repository's root
	pkg  string // directory, "." for the root
	ast  *ast.File
	fset *token.FileSet
}

func sources(t *testing.T) []file {
	t.Helper()
	return parsed(t, func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
}

// parsed returns the parsed Go files whose names are wanted.
func parsed(t *testing.T, wanted func(name string) bool) []file {
	t.Helper()
	root := "../../.."
	var files []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(p, root+"/"))
		if d.IsDir() {
			if p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || !wanted(name) {
			return nil
		}
		tree, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, file{name, path.Dir(name), tree, fset})
		return nil
	})
	if err != nil || len(files) < 20 {
		t.Fatalf("read the sources: %d files, %v", len(files), err)
	}
	return files
}

// at returns a node's position.
func (f file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, f.fset.Position(n.Pos()).Line)
}

func (f file) imports() map[string]*ast.ImportSpec {
	list := make(map[string]*ast.ImportSpec)
	for _, spec := range f.ast.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		list[p] = spec
	}
	return list
}

// reach is, for each package of the module, every package that it imports,
// however far.
func reach(files []file) map[string]map[string]bool {
	direct := make(map[string]map[string]bool)
	for _, f := range files {
		if direct[f.pkg] == nil {
			direct[f.pkg] = make(map[string]bool)
		}
		for p := range f.imports() {
			direct[f.pkg][p] = true
		}
	}
	all := make(map[string]map[string]bool)
	var visit func(pkg string) map[string]bool
	visit = func(pkg string) map[string]bool {
		if all[pkg] != nil {
			return all[pkg]
		}
		all[pkg] = make(map[string]bool)
		for p := range direct[pkg] {
			all[pkg][p] = true
			if inner, ok := strings.CutPrefix(p, module+"/"); ok {
				maps.Copy(all[pkg], visit(inner))
			}
		}
		return all[pkg]
	}
	for pkg := range direct {
		visit(pkg)
	}
	return all
}

func isKubernetes(p string) bool {
	return strings.HasPrefix(p, "k8s.io/") || strings.HasPrefix(p, "sigs.k8s.io/") || strings.HasPrefix(p, "go.etcd.io/")
}

// impure returns the packages that may know Kubernetes, a lab or a target. All
// others are pure.
func impure() []string {
	return []string{
		".", "internal/cli", "internal/cli/advise", "internal/cli/labs", "internal/cli/burner", "internal/cli/experiment", "internal/cli/process", "internal/cli/records",
		"internal/lab", "internal/lab/component", "internal/lab/image", "internal/lab/realnode", "internal/lab/simnode", "internal/lab/virt",
		"internal/system/kubernetes", "internal/advise/schema", "internal/advise/lint", "internal/advise/lint/report", "internal/advise/lint/linttest", "internal/advise/lint/host",
		"internal/advise/lint/objects", "internal/advise/lint/commands",
		"internal/system/kubernetes/api", "internal/system/kubernetes/prepared", "internal/system/kubernetes/kubetest", "internal/system/kubernetes/follow",
		"internal/system/kubernetes/create", "internal/system/kubernetes/change", "internal/system/kubernetes/drain", "internal/system/kubernetes/sweep", "internal/system/kubernetes/survey", "internal/system/kubernetes/virt", "internal/system/kubernetes/netpol", "internal/system/kubernetes/ingress",
		"internal/test/faults", "internal/test/e2e",
	}
}

func TestPackagesArePure(t *testing.T) {
	reached := reach(sources(t))
	for _, name := range impure() {
		if reached[name] == nil {
			t.Errorf("there is no package %s: take it out of the list of impure packages", name)
		}
	}
	for pkg, imports := range reached {
		if slices.Contains(impure(), pkg) {
			continue
		}
		for p := range imports {
			inner := strings.TrimPrefix(p, module+"/")
			if isKubernetes(p) || inner != p && slices.Contains(impure(), inner) {
				t.Errorf("%s reaches %s: hand over what it needs as data, or as an interface that it declares itself", pkg, p)
			}
		}
	}
}

// rooms returns the folders of internal from the top down: a package imports from
// its own room and from those below it.
func rooms() []string {
	return []string{"cli", "run", "system", "report", "judge", "lab", "advise", "plan", "proc", "metrics", "record", "text"}
}

func TestImportsNeverRunUp(t *testing.T) {
	roomOf := func(pkg string) (string, bool) {
		rest, ok := strings.CutPrefix(pkg, "internal/")
		room, _, _ := strings.Cut(rest, "/")
		return room, ok
	}
	seen := make(map[string]bool)
	for _, f := range sources(t) {
		room, ok := roomOf(f.pkg)
		if !ok {
			continue
		}
		seen[room] = true
		if room == "test" {
			continue
		}
		rank := slices.Index(rooms(), room)
		if rank < 0 {
			t.Errorf("%s: the room internal/%s is not among the rooms: find the one that it belongs to", f.name, room)
			continue
		}
		for p, spec := range f.imports() {
			other, ok := roomOf(strings.TrimPrefix(p, module+"/"))
			if ok && slices.Index(rooms(), other) < rank {
				t.Errorf("%s imports %s: imports run down, %s; declare what is needed in the lower room", f.at(spec), p, strings.Join(rooms(), " > "))
			}
		}
	}
	for _, room := range rooms() {
		if !seen[room] {
			t.Errorf("the room internal/%s is empty: take it out of the list of rooms", room)
		}
	}
}

// Inside a folder imports run one way as well: of two of its parts, its own package and
// each folder in it with all below, no more than one reaches the other.
func TestImportsRunOneWayInAFolder(t *testing.T) {
	uses := make(map[string]map[string]string) // by folder and part, the parts that it imports, and where
	for _, f := range sources(t) {
		for folder := f.pkg; strings.HasPrefix(folder, "internal/"); folder = path.Dir(folder) {
			for p, spec := range f.imports() {
				from, to := partOf(folder, f.pkg), partOf(folder, strings.TrimPrefix(p, module+"/"))
				if to == "" || to == from {
					continue
				}
				if uses[from] == nil {
					uses[from] = make(map[string]string)
				}
				uses[from][to] = f.at(spec)
			}
		}
	}
	for from, list := range uses {
		for to, at := range list {
			if way := wayBack(uses, to, from, map[string]bool{}); way != "" {
				t.Errorf("%s: %s imports %s, which leads back: %s; move what both need below them", at, from, to, way)
			}
		}
	}
}

// partOf names the part of a folder that a package is in: the folder with a dot for its own
// package, "" for a package elsewhere.
func partOf(folder, pkg string) string {
	rest, in := strings.CutPrefix(pkg+"/", folder+"/")
	if !in {
		return ""
	}
	part, _, _ := strings.Cut(rest, "/")
	return folder + "/" + cmp.Or(part, ".")
}

// wayBack returns where imports lead from one part to another, "" where they do not.
func wayBack(uses map[string]map[string]string, from, to string, seen map[string]bool) string {
	seen[from] = true
	for next, at := range uses[from] {
		if next == to {
			return at
		}
		if !seen[next] {
			if way := wayBack(uses, next, to, seen); way != "" {
				return at + ", " + way
			}
		}
	}
	return ""
}

// A target plugs into the engine, which knows none; nor does one target know another.
func TestTargetsDoNotImportEachOther(t *testing.T) {
	of := func(pkg string) string {
		rest, ok := strings.CutPrefix(pkg, "internal/system/")
		if !ok {
			return ""
		}
		name, _, _ := strings.Cut(rest, "/")
		if name == "local" || name == "streams" {
			return "" // no targets, but what some have in common
		}
		return name
	}
	for pkg, imports := range reach(sources(t)) {
		own := of(pkg)
		targeted := own != "" || pkg == "internal/run" || strings.HasPrefix(pkg, "internal/run/")
		for p := range imports {
			if other := of(strings.TrimPrefix(p, module+"/")); targeted && other != "" && other != own {
				t.Errorf("%s reaches %s: what both need belongs below them", pkg, p)
			}
		}
	}
}

// The control plane is linked by one package, so that test binaries stay small.
func TestOnlyComponentLinksTheControlPlane(t *testing.T) {
	for _, f := range sources(t) {
		for p, spec := range f.imports() {
			heavy := strings.HasPrefix(p, "k8s.io/kubernetes") || strings.HasPrefix(p, "go.etcd.io/etcd/server") || strings.HasPrefix(p, "sigs.k8s.io/kwok")
			if heavy && f.pkg != "internal/lab/component" {
				t.Errorf("%s imports %s: run it as a component of internal/lab/component, in a process of its own", f.at(spec), p)
			}
			if p == module+"/internal/lab/component" && f.pkg != "." {
				t.Errorf("%s imports internal/lab/component: only main does; start components as processes", f.at(spec))
			}
		}
	}
}

// fromPrometheus returns the packages of Prometheus that may be imported.
func fromPrometheus() []string {
	return []string{
		"model/labels", "model/textparse", "model/value", "promql", "promql/parser", "storage", "tsdb/chunkenc", "tsdb/chunks", "tsdb/encoding", "tsdb/index", "tsdb/record", "tsdb/wlog", "util/annotations", "util/compression",
	}
}

// Its database, its scraper and its remote storage import the kits of three clouds.
func TestLittleOfPrometheusIsImported(t *testing.T) {
	for _, f := range sources(t) {
		for p, spec := range f.imports() {
			if of, is := strings.CutPrefix(p, "github.com/prometheus/prometheus/"); is && !slices.Contains(fromPrometheus(), of) {
				t.Errorf("%s imports %s: of Prometheus use only %s", f.at(spec), p, strings.Join(fromPrometheus(), ", "))
			}
		}
	}
}

// selector is a call or use such as os.Exit, with the import's own name.
func selectors(f file, each func(n ast.Node, importPath, name string)) {
	names := make(map[string]string)
	for p, spec := range f.imports() {
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Obj == nil {
				if p, ok := names[x.Name]; ok {
					each(n, p, s.Sel.Name)
				}
			}
		}
		return true
	})
}

func TestTheOutsideWorldIsPassedIn(t *testing.T) {
	rules := []struct {
		uses    map[string][]string // by import path; nil is all of it
		allowed []string            // packages
		remedy  string
	}{
		{
			uses:    map[string][]string{"os": {"Exit"}, "log": {"Fatal", "Fatalf", "Fatalln"}},
			allowed: []string{".", "agent", "release", "internal/cli/process"},
			remedy:  "return an error",
		},
		{
			uses:    map[string][]string{"os/signal": nil, "golang.org/x/term": nil},
			allowed: []string{"agent", "release", "internal/cli/process", "internal/lab/component", "internal/test/harness"},
			remedy:  "take a context: internal/cli/process owns signals and the terminal",
		},
		{
			uses:    map[string][]string{"os": {"Stdout", "Stderr", "Stdin", "Args"}, "fmt": {"Print", "Printf", "Println"}},
			allowed: []string{".", "agent", "release", "internal/cli/process", "internal/lab/component"},
			remedy:  "return what is to be shown: only the commands of internal/cli print, on the streams of internal/cli/process",
		},
		{
			uses:    map[string][]string{"os": {"Getenv", "LookupEnv", "Environ"}},
			allowed: []string{"release", "internal/cli/process", "internal/lab/component", "internal/test/ring"},
			remedy:  "take it as a parameter: internal/cli/process owns the environment",
		},
		{
			uses:    map[string][]string{"time": {"Now", "Since", "Until"}},
			allowed: []string{".", "agent", "internal/cli/process", "internal/lab/component", "internal/lab", "internal/lab/realnode", "internal/lab/simnode", "internal/lab/virt", "internal/test/harness", "internal/test/e2e", "internal/test/faults", "internal/system/kubernetes/kubetest"},
			remedy:  "take a clock: func() time.Time, or *record.Clock",
		},
		{
			uses: map[string][]string{"math/rand": nil, "math/rand/v2": {"Int", "IntN", "Int64", "Int64N", "Uint64", "Float64", "NormFloat64", "ExpFloat64", "Perm", "Shuffle", "N"},
				"crypto/rand": {"Read", "Int", "Text", "Reader"}},
			allowed: []string{"internal/cli/process", "internal/lab/component", "internal/lab"},
			remedy:  "take a *rand.Rand or an io.Reader: a run must be repeatable from its seed",
		},
	}
	for _, f := range sources(t) {
		selectors(f, func(n ast.Node, importPath, name string) {
			for _, rule := range rules {
				names, ok := rule.uses[importPath]
				if ok && (names == nil || slices.Contains(names, name)) && !slices.Contains(rule.allowed, f.pkg) {
					t.Errorf("%s uses %s.%s: %s", f.at(n), importPath, name, rule.remedy)
				}
			}
		})
	}
}

func TestNamesSayWhatIsInside(t *testing.T) {
	for _, f := range sources(t) {
		if name := f.ast.Name.Name; slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}, name) {
			t.Errorf("%s: package %s: name it by what it answers", f.name, name)
		}
	}
}

// Importing a package does nothing, and no package has a state of its own.
func TestNoHiddenState(t *testing.T) {
	// What a package-level variable may be made with: it is never changed.
	constant := []string{"errors.New", "regexp.MustCompile", "[]byte", "protobuf.NewSerializer", "fs.Sub"}
	for _, f := range sources(t) {
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: func init: make it when it is needed, and pass it on", f.at(d))
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				for _, spec := range d.Specs {
					v := spec.(*ast.ValueSpec)
					if d.Doc != nil && strings.Contains(d.Doc.Text(), "go:embed") || embedded(d) {
						continue
					}
					if isPool(v) || len(v.Names) == 1 && v.Names[0].Name == "_" {
						continue
					}
					for i, name := range v.Names {
						if i >= len(v.Values) || !slices.Contains(constant, made(v.Values[i])) && !isText(v.Values[i]) {
							t.Errorf("%s: package variable %s: make it a constant, a function, or a field of what uses it", f.at(v), name.Name)
						}
					}
				}
			}
		}
	}
}

func embedded(d *ast.GenDecl) bool {
	if d.Doc == nil {
		return false
	}
	return slices.ContainsFunc(d.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed") })
}

// isPool recognises a sync.Pool, whose content nobody relies on.
func isPool(v *ast.ValueSpec) bool {
	if len(v.Values) != 1 {
		return false
	}
	lit, ok := v.Values[0].(*ast.CompositeLit)
	if !ok {
		return false
	}
	s, ok := lit.Type.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Pool"
}

// made names what an expression is made with: errors.New of errors.New("x").
func made(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
	case *ast.ArrayType:
		return "[]byte"
	case *ast.Ident:
		return fun.Name
	}
	return ""
}

// isText recognises literals of text.
func isText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// Every exported name says what it is for.
func TestExportedNamesAreDocumented(t *testing.T) {
	documented := make(map[string]bool)
	packages := make(map[string]string)
	plain := func(f file, n ast.Node, name string, doc *ast.CommentGroup) {
		if doc == nil || saysWhat(name, doc.Text()) {
			return
		}
		first, _, _ := strings.Cut(doc.Text(), "\n")
		t.Errorf("%s: %q: begin with the name and a verb that says what it does, returns or holds", f.at(n), first)
	}
	for _, f := range sources(t) {
		packages[f.pkg] = f.name
		if f.ast.Doc != nil {
			documented[f.pkg] = true
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if !d.Name.IsExported() || !exportedReceiver(d) {
					continue
				}
				if d.Doc == nil && !conventional(d) {
					t.Errorf("%s: %s has no doc comment: say what it does or returns", f.at(d), d.Name.Name)
				}
				plain(f, d, d.Name.Name, d.Doc)
				if d.Doc != nil && returnsNothing.MatchString(d.Doc.Text()) {
					t.Errorf("%s: %s: say what it does, returns or reports, not what it is", f.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						if !s.Name.IsExported() {
							continue
						}
						if d.Doc == nil && s.Doc == nil {
							t.Errorf("%s: type %s has no doc comment: say what it holds", f.at(s), s.Name.Name)
						}
						plain(f, s, s.Name.Name, cmp.Or(s.Doc, d.Doc))
					case *ast.ValueSpec:
						if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
							t.Errorf("%s: %s has no doc comment: say what it means", f.at(s), s.Names[0].Name)
						}
					}
				}
			}
		}
	}
	for pkg, name := range packages {
		if !documented[pkg] {
			t.Errorf("package %s (%s) has no doc comment: say what question it answers", pkg, name)
		}
	}
}

// returnsNothing matches a function's comment that says what it is.
var returnsNothing = regexp.MustCompile(`^\w+ (?:is|are)\b`)

// verb matches a word that can follow a name: the third person, an auxiliary, an adverb.
var verb = regexp.MustCompile(`^(?:[a-z]+s|are|can|may|must|do|have|never|also|only|always|and)$`)

// saysWhat reports whether a doc comment begins with the name and a verb, and says more
// than the name: "Lookup returns the node that owns the pod".
func saysWhat(name, doc string) bool {
	words := strings.Fields(doc)
	if len(words) > 0 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) < 3 || strings.TrimSuffix(words[0], ",") != name {
		return false
	}
	if slices.Contains([]string{"as", "this", "those", "its", "whose", "of", "the"}, words[1]) {
		return false
	}
	return verb.MatchString(words[1]) || strings.HasSuffix(name, "s") // Options say ...
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	id, ok := t.(*ast.Ident)
	return !ok || id.IsExported()
}

// conventional are methods that everybody knows.
func conventional(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "Unwrap", "Kind", "String", "Len", "Less", "Swap", "Push", "Pop", "Close"}, d.Name.Name)
}

// The files that ARCHITECTURE.md names exist, with the functions and types that it names in them.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile("../../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile("(?:`(\\w+)`(?: and `(\\w+)`)? in )?`(internal/[a-z/]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		found++
		code, err := os.ReadFile(filepath.Join("../../..", m[3]))
		if err != nil {
			t.Errorf("ARCHITECTURE.md names %s: %v", m[3], err)
			continue
		}
		for _, name := range m[1:3] {
			if name != "" && !regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type )`+name+`\b`).Match(code) {
				t.Errorf("ARCHITECTURE.md says that %s is in %s, and it is not", name, m[3])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d files were found", found)
	}
}

// The map of the packages shows all of them, and no other.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("../../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, f := range sources(t) {
		if f.pkg == "." || seen[f.pkg] {
			continue
		}
		seen[f.pkg] = true
		if !strings.Contains(string(text), "`"+f.pkg+"`") {
			t.Errorf("ARCHITECTURE.md does not name `%s`: add it to the map of packages", f.pkg)
		}
	}
	for _, word := range strings.Split(string(text), "`") {
		if strings.HasPrefix(word, "internal/") && !strings.ContainsAny(word, " *.") && !seen[word] {
			t.Errorf("ARCHITECTURE.md names `%s`, which does not exist", word)
		}
	}
}

// Nothing in the repository leads to one machine or one registry.
func TestNothingLeadsToOneMachine(t *testing.T) {
	forbidden := []string{"/wo" + "rk/", "proxy.go" + "lang.org", "registry.npm" + "js.org", "deb.deb" + "ian.org"}
	err := filepath.WalkDir("../../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == ".git" || n == "bin" || n == "node_modules" || n == "plimsoll-runs" {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Name() == ".git" {
			return nil // a file in a worktree: it says where the repository is
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, f := range forbidden {
			if i := strings.Index(string(data), f); i >= 0 {
				t.Errorf("%s:%d holds %q: it is known on one machine only", strings.TrimPrefix(p, "../../../"), 1+strings.Count(string(data[:i]), "\n"), f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A comment that names an identifier which does not exist is false: the code has changed
// and the comment has not.
func TestCommentsNameWhatExists(t *testing.T) {
	foreign := []string{ // names of other programs, interfaces and fields
		"OpenSSH", "DeMets", "SplitMix64", "vCPU", "eyJ", "RoundTripperWrapper", "ReadDirFS", "ReadFileFS", "StatFS", "containerStatuses", "DataVolumes",
		"netdevBudgetUsecs", "cpuPressureSeconds", "memoryPressureSeconds", "ioPressureSeconds", // put together from parts
		"TxRx", "WebSocket", "initContainerStatuses", "ListMeta", "BenchmarkDecodePod", "TestMain", "TestMeasured",
	}
	words := regexp.MustCompile(`[A-Za-z_]\w*`)
	names := regexp.MustCompile(`\b(?:[A-Z][a-z0-9]+|[a-z][a-z0-9]*)(?:[A-Z][a-z0-9]*)+\b`)
	known := make(map[string]bool)
	var files []file
	for _, f := range sources(t) {
		files = append(files, f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Ident:
				known[x.Name] = true
			case *ast.BasicLit: // keys of YAML and JSON
				for _, word := range words.FindAllString(x.Value, -1) {
					known[word] = true
				}
			}
			return true
		})
	}
	for _, f := range files {
		for _, group := range f.ast.Comments {
			for _, name := range names.FindAllString(group.Text(), -1) {
				if !known[name] && !slices.Contains(foreign, name) {
					t.Errorf("%s: the comment names %s, which does not exist", f.at(group), name)
				}
			}
		}
	}
}

// Whether a load is of objects or a stream of requests is asked of its account, step or
// axis: a nil pointer says nothing to a reader.
func TestLoadsAreAskedWhetherTheyStream(t *testing.T) {
	allowed := []string{"internal/judge/result/result.go"} // Step.Streams
	asks := regexp.MustCompile(`\.(Stream|Requests) [!=]= nil`)
	for _, f := range sources(t) {
		if room := strings.Split(f.pkg+"/", "/")[1]; !slices.Contains([]string{"judge", "report", "run", "cli"}, room) || slices.Contains(allowed, f.name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../../..", f.name))
		if err != nil {
			t.Fatal(err)
		}
		if found := asks.Find(text); found != nil {
			t.Errorf("%s: %q: ask with Streams()", f.name, found)
		}
	}
}

// What objects are called, and which milestones they reach, is data: the loop,
// the judge and the report take it from the kind of the objects.
func TestTheKindOfTheObjectsIsData(t *testing.T) {
	ofPods := regexp.MustCompile(`\b(Created|Scheduled|ContainersStarted|Ready|Deleted|Unschedulable|[Pp]ods?|[Nn]odes?)\b`)
	allowed := []string{
		"internal/judge/usage/sources.go",        // names of what is measured
		"internal/judge/recorded/differences.go", // what differs between clusters
		"internal/report/view/environment.go",    // what a cluster is, and what of it was real
		"internal/report/view/ceilings.go",       // how far a cluster can be loaded
	}
	where := []string{"internal/run", "internal/judge", "internal/report"}
	seen := make(map[string]bool)
	for _, f := range sources(t) {
		seen[f.name] = true
		in := func(room string) bool { return f.pkg == room || strings.HasPrefix(f.pkg, room+"/") }
		if !slices.ContainsFunc(where, in) || slices.Contains(allowed, f.name) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				if x.Tag != nil {
					return false // a name in a file, which stays
				}
			case *ast.BasicLit:
				if word := ofPods.FindString(x.Value); x.Kind == token.STRING && word != "" {
					t.Errorf("%s says %q: take it from the kind of the objects, record.ObjectKind", f.at(x), word)
				}
			}
			return true
		})
	}
	for _, name := range allowed {
		if !seen[name] {
			t.Errorf("file %s does not exist: take it out of the list", name)
		}
	}
}

// Nor do names in the rooms that every target shares.
func TestNamesAreOfNoTarget(t *testing.T) {
	words := regexp.MustCompile(`(^|[a-z])(Node|Pod|Kube|Brick|Volume|Guest)|^(node|pod|kube|brick|volume|guest)`)
	allowed := []string{"internal/record/dir.go"} // the parts of what was real
	for _, f := range sources(t) {
		room, _, _ := strings.Cut(strings.TrimPrefix(f.pkg, "internal/"), "/")
		if !slices.Contains([]string{"run", "report", "judge", "record"}, room) || slices.Contains(allowed, f.name) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if x, is := n.(*ast.Ident); is && words.MatchString(x.Name) {
				t.Errorf("%s: %s: name it by what any target has, such as a place", f.at(x), x.Name)
			}
			return true
		})
	}
}

// targetWords are files outside of the targets' own folders that name what just
// some targets have, with how often they do. The list may only become shorter.
func targetWords() map[string]int {
	return map[string]int{
		"internal/cli/experiment/check.go":      2, // what check is for, and an example
		"internal/cli/experiment/experiment.go": 3, // examples
		"internal/cli/experiment/runner.go":     3, // agreement to reboots
		"internal/judge/usage/sources.go":       1, // a source in records
		"internal/record/dir.go":                2, // parts of what was real
	}
}

// What a target is made of is named by the target, as data: another one then
// needs no change elsewhere.
func TestWordsOfTargetsStayInTheirFolders(t *testing.T) {
	words := regexp.MustCompile(`(?i)\b(pods?|nodes?|kubelets?|volumes?|bricks?|haproxy|fio|guests?)\b`)
	names := regexp.MustCompile(`\b(node-density|io-volumes|gluster-volumes|002-pods-per-node|too-many-pods)\b`) // of workloads, examples and signatures
	own := []string{
		"internal/system", "internal/lab", "internal/cli/labs", "internal/advise", "internal/cli/advise", "internal/plan/kubeburner",
		"internal/plan/signature", "internal/plan/planted", "internal/test",
	}
	seen := make(map[string]int)
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.pkg, "internal/") || slices.ContainsFunc(own, func(room string) bool { return f.pkg == room || strings.HasPrefix(f.pkg, room+"/") }) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				return x.Tag == nil // else it is a name in a file, which stays
			case *ast.BasicLit:
				if word := words.FindString(names.ReplaceAllString(x.Value, "")); x.Kind == token.STRING && word != "" {
					seen[f.name]++
					if seen[f.name] > targetWords()[f.name] {
						t.Errorf("%s says %q: let the target declare it", f.at(x), word)
					}
				}
			}
			return true
		})
	}
	for name, count := range targetWords() {
		if seen[name] < count {
			t.Errorf("%s has %d such texts, and %d are allowed: lower that", name, seen[name], count)
		}
	}
}

// coined are words that a reader would have to learn, and what to say instead.
func coined() map[string]string {
	return map[string]string{
		`mend(s|ed|ing)?`:                "fix",
		`reckon(s|ed|ing)?`:              "compute, or estimate",
		`laborator(y|ies)`:               "lab",
		`foretold|foretell(s|ing)?`:      "predicted, or extrapolated",
		`foresee(s|n|ing)?|foresaw`:      "predict",
		`(got|gets?|getting) there`:      "be ready, or reach the milestone",
		`for want of`:                    "for lack of, or without",
		`to be known`:                    "note",
		`(no|a|the) laws? stands? on`:    "the fit is based on",
		`tells? nothing of|is told only`: "is unknown",
		`what chance made of`:            "the interval",
	}
}

// One word for one thing, and the field's own.
func TestWordsArePlain(t *testing.T) {
	words := make(map[*regexp.Regexp]string)
	for word, instead := range coined() {
		words[regexp.MustCompile(`(?i)\b(`+word+`)\b`)] = instead
	}
	check := func(f file, n ast.Node, text string) {
		for word, instead := range words {
			if found := word.FindString(text); found != "" {
				t.Errorf("%s says %q: write %s", f.at(n), found, instead)
			}
		}
	}
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.name, "internal/") {
			continue
		}
		for _, group := range f.ast.Comments {
			check(f, group, strings.Join(strings.Fields(group.Text()), " "))
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				check(f, n, literal.Value)
			}
			return true
		})
	}
}

// Messages say what a value is not valid as, what is unknown and what is done again.
func TestMessagesArePlain(t *testing.T) {
	banned := map[*regexp.Regexp]string{
		regexp.MustCompile(`\b(is|are) none\b`):                          "is not one of, is not valid",
		regexp.MustCompile(`\b(is|are) no [a-z]`):                        "is not a",
		regexp.MustCompile(`\banew\b`):                                   "again",
		regexp.MustCompile(`\bnot known\b`):                              "unknown",
		regexp.MustCompile(`\b(till|amid)\b`):                            "until, during",
		regexp.MustCompile(`\b(is|are|was|were) told (of|as|once|by)\b`): "is shown, is reported",
	}
	existence := regexp.MustCompile(`\bthere (is|are) (no|none)\b`) // there is no workload "x"
	for _, f := range sources(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text := existence.ReplaceAllString(literal.Value, "")
			for word, instead := range banned {
				if found := word.FindString(text); found != "" {
					t.Errorf("%s says %q: write %s", f.at(n), found, instead)
				}
			}
			return true
		})
	}
}

// clauses matches constructions that make a reader read a comment twice: a clause
// instead of the thing.
var clauses = regexp.MustCompile(`(?m)^\W*\w+ (?:is|are) (?:what|that|those|how|when|where|whether|which|who|why)\b|\b(?:is|are|was|were) told\b|\b(?:anew|till|amid)\b|\b(?:not known|there is none)\b`)

// A comment says who does what, and not a clause that stands for it.
func TestCommentsArePlain(t *testing.T) {
	for _, f := range parsed(t, func(string) bool { return true }) {
		for _, group := range f.ast.Comments {
			if found := clauses.FindString(group.Text()); found != "" {
				t.Errorf("%s says %q: say who does what, or the thing itself", f.at(group), found)
			}
		}
	}
}

// mostMeasuring bounds the tests of 'make test' that may skip themselves where the machine
// is busy with something else.
const mostMeasuring = 10

// Make and CI find the tests that measure by their name. They are few, so that a
// busy machine tests nearly everything.
func TestTestsThatMeasureAreNamedSo(t *testing.T) {
	head := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n`)
	short := 0
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, "_test.go") || strings.Contains(p, "houserules") {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		text := string(data)
		for _, at := range head.FindAllStringSubmatchIndex(text, -1) {
			name, body := text[at[2]:at[3]], text[at[1]:]
			if end := strings.Index(body, "\n}\n"); end >= 0 {
				body = body[:end]
			}
			measures := strings.Contains(body, "suite.Measures(t)")
			if named := strings.HasPrefix(name, "TestMeasured"); named != measures {
				t.Errorf("%s: %s: a test is called TestMeasured... if and only if it begins with suite.Measures", p, name)
			}
			if measures && !strings.Contains(body, "suite.Long(t,") {
				short++
			}
		}
		return nil
	})
	if err != nil || short == 0 || short > mostMeasuring {
		t.Errorf("%d tests measure, at most %d may: let the others judge on a virtual clock, or by what is exact (%v)", short, mostMeasuring, err)
	}
}
