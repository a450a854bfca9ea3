package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		want string // part of the error, "" if it may be
		why  string
	}{
		{"default", "", "the usual one"},
		{"a", "", "one letter"},
		{"7-of-9", "", "a DNS label may begin with a digit"},
		{strings.Repeat("x", 63), "", "as long as a label may be"},
		{strings.Repeat("x", 64), "64 characters, at most 63", "longer than a label may be"},
		{"", "is empty", "nothing"},
		{"-a", "begins or ends", "it would look like a flag"},
		{"a-", "begins or ends", "no label ends so"},
		{"-", "begins or ends", "both at once"},
		{"Big", `'B'`, "a label is in lower case"},
		{"a.b", `'.'`, "two labels"},
		{"..", `'.'`, "it would leave the directory"},
		{"a/b", `'/'`, "it would be a directory below"},
		{"a b", `' '`, "it would be two arguments"},
		{"größe", `'ö'`, "letters of ASCII only, and the error names the whole letter"},
	} {
		err := ValidateName(tt.name)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%q (%s): %v", tt.name, tt.why, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%q (%s): error %v, want %q in it", tt.name, tt.why, err, tt.want)
		}
		if wrong := (*SpecError)(nil); err != nil && !errors.As(err, &wrong) {
			t.Errorf("%q: %T, want a *SpecError", tt.name, err)
		}
	}
}

func TestSpecs(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
		why  string
	}{
		{Spec{Name: "a"}, "", "no nodes are none, not the default"},
		{Spec{Name: "a", Shape: Shape{Nodes: 5000, MaxPods: 500}}, "", "a large one"},
		{Spec{Name: "a", Shape: Shape{Nodes: 100_001}}, "want 0 to 100000", "there are no addresses for them"},
		{Spec{Name: "a", Shape: Shape{Nodes: -1}}, "-1 is not a number of simulated nodes", "nodes"},
		{Spec{Name: "a", Shape: Shape{MaxPods: -1}}, "-1 is not a number of pods", "pods"},
		{Spec{}, "is empty", "only a private one is given a name"},
	} {
		store := Store{Root: filepath.Join(t.TempDir(), "state"), Executable: "/nonexistent/program"}
		err := tt.spec.withDefaults().validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v (%s): error %v, want %q in it", tt.spec, tt.why, err, tt.want)
		}
		if tt.want == "" {
			continue
		}
		var wrong *SpecError
		if _, err := store.Up(t.Context(), tt.spec); !errors.As(err, &wrong) {
			t.Errorf("%+v (%s): Up returns %v, want a *SpecError", tt.spec, tt.why, err)
		}
		if _, err := os.Stat(store.Root); err == nil {
			t.Errorf("%+v: what cannot be left %s", tt.spec, store.Root)
		}
	}
	got := Spec{Name: "a"}.withDefaults()
	want := Spec{Name: "a", Shape: Shape{MaxPods: protocol.DefaultMaxPods}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults: %+v, want %+v", got, want)
	}
}

// written makes a lab's files as Up does, without its processes.
func written(t *testing.T, s Store, spec Spec) *Lab {
	t.Helper()
	l := s.open(spec.Name)
	held, err := claim(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.release()
	if l.record, err = s.prepare(l.dir, spec.withDefaults(), time.Now()); err != nil {
		t.Fatal(err)
	}
	return l
}

// recorded makes a lab's directory with nothing but a record.
func recorded(t *testing.T, s Store, r record) directory {
	t.Helper()
	dir := directory(s.dir(r.Name))
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	r.Schema = recordSchema
	if err := dir.writeRecord(r); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	s := Store{Root: filepath.Join(t.TempDir(), "deep", "state")}
	l := written(t, s, Spec{Name: "a", Shape: Shape{Nodes: 3}})
	files := 0
	err := filepath.WalkDir(filepath.Dir(s.Root), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || files < 15 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
	if got := l.Spec(); got.Nodes != 3 || got.MaxPods != protocol.DefaultMaxPods || got.Name != "a" {
		t.Errorf("spec %+v", got)
	}
}

func TestWhatIsFound(t *testing.T) {
	s := Store{Root: t.TempDir()}
	if labs, err := s.List(); len(labs) != 0 || err != nil {
		t.Errorf("where there is nothing: %v, %v", labs, err)
	}
	recorded(t, s, record{Name: "b", Ready: true, Shape: Shape{StartLatency: dist.Dist{Shape: dist.Constant, A: time.Second}}})
	recorded(t, s, record{Name: "a", Ready: true})
	os.Mkdir(filepath.Join(s.labs(), "No Name"), 0o700)
	os.WriteFile(filepath.Join(s.labs(), "file"), nil, 0o600)
	labs, err := s.List()
	var names []string
	for _, l := range labs {
		names = append(names, l.Name())
	}
	if err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("labs %v, %v, want a and b", names, err)
	}
	if got := labs[1].Spec().StartLatency; got != (dist.Dist{Shape: dist.Constant, A: time.Second}) {
		t.Errorf("start latency %v", got)
	}
	var missing *NotFoundError
	if _, err := s.Open("c"); !errors.As(err, &missing) || !slices.Equal(missing.Have, []string{"a", "b"}) {
		t.Errorf("a name that there is not: %v", err)
	}
	var wrong *SpecError
	if _, err := s.Open("../a"); !errors.As(err, &wrong) {
		t.Errorf("a name that none can have: %v", err)
	}
	var exists *ExistsError
	if _, err := s.Up(t.Context(), Spec{Name: "a"}); !errors.As(err, &exists) {
		t.Errorf("a name that there is already: %v", err)
	}
	var component *ComponentError
	if _, err := labs[0].Logs("apiserver"); !errors.As(err, &component) {
		t.Errorf("logs of a component that there is not: %v", err)
	}
	if err := labs[0].Restart(t.Context(), "apiserver"); !errors.As(err, &component) {
		t.Errorf("restart of a component that there is not: %v", err)
	}
}

// A lab whose record cannot be read must neither hide the others nor
// stay for ever.
func TestDamagedRecords(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string
		why  string
	}{
		{"", "unexpected end", "cut off at once"},
		{`{"schema": "plimsoll/lab/v1", "na`, "unexpected end", "cut off"},
		{"\x00\x00\x00\x00", "invalid character", "a disk that lost its power"},
		{`{"schema": "plimsoll/lab/v2", "name": "a"}`, `"plimsoll/lab/v2"`, "of a later program"},
		{`{"schema": "plimsoll/lab/v1", "nodes": "many"}`, "nodes", "of another type"},
		{`[]`, "cannot unmarshal array", "something else"},
		{"missing", "no such file", "lost"},
	} {
		s := Store{Root: t.TempDir()}
		recorded(t, s, record{Name: "good", Ready: true})
		dir := recorded(t, s, record{Name: "a"})
		file := dir.path("lab.json")
		err := os.WriteFile(file, []byte(tt.text), 0o600)
		if tt.text == "missing" {
			err = os.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Open("a")
		if err != nil {
			t.Errorf("%s: open: %v", tt.why, err)
			continue
		}
		if damage := l.Damage(); damage == nil || !strings.Contains(damage.Error(), tt.want) || !strings.Contains(damage.Error(), file) {
			t.Errorf("%s: damage %v, want %q and the file's name in it", tt.why, damage, tt.want)
		}
		if status, err := l.Status(t.Context()); err != nil || status.State != Broken || status.Name != "a" || len(status.Components) != 5 {
			t.Errorf("%s: status %+v, %v, want broken", tt.why, status, err)
		}
		if labs, err := s.List(); len(labs) != 2 || err != nil {
			t.Errorf("%s: it hides the others: %v, %v", tt.why, labs, err)
		}
		if err := l.Restart(t.Context(), protocol.Etcd); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: restart: %v", tt.why, err)
		}
		var exists *ExistsError
		if _, err := s.Up(t.Context(), Spec{Name: "a"}); !errors.As(err, &exists) {
			t.Errorf("%s: Up over it: %v", tt.why, err)
		}
		if err := l.Down(t.Context()); err != nil {
			t.Errorf("%s: down: %v", tt.why, err)
		}
		if labs, err := s.List(); len(labs) != 1 || err != nil {
			t.Errorf("%s: after down: %v, %v", tt.why, labs, err)
		}
	}
}

func TestRecordIsReplacedWhole(t *testing.T) {
	s := Store{Root: t.TempDir()}
	r := record{Schema: recordSchema, Name: "a", ID: "id", Owner: 7, Shape: Shape{Nodes: 2, StartLatency: dist.Dist{Shape: dist.Uniform, A: time.Second, B: 2 * time.Second}, Virt: map[string]string{"qps": "5"}, TimeScale: 1}, Ports: ports{1, 2, 3, 4, 5, 6, 7, 8}, Created: time.Now().UTC()}
	dir := recorded(t, s, r)
	got, err := dir.readRecord()
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("read back %+v, %v\nwant %+v", got, err, r)
	}
	entries, _ := os.ReadDir(string(dir))
	if len(entries) != 1 {
		t.Errorf("writing it left %v", entries)
	}
}

func TestSweep(t *testing.T) {
	for _, tt := range []struct {
		record record
		held   bool // by an owner that lives
		text   string
		want   bool
		why    string
	}{
		{record{Ready: true}, false, "", false, "a named one outlives its command"},
		{record{Ready: false}, false, "", true, "its making was cut short"},
		{record{Ready: true, Private: true}, false, "", true, "its owner is gone"},
		{record{Ready: true, Private: true}, true, "", false, "its owner lives"},
		{record{Ready: false}, true, "", false, "it is being made"},
		{record{}, false, "{", false, "who knows what it was: for the user to remove"},
		{record{}, false, "missing", true, "neither record nor process: its making was cut short early"},
	} {
		s := Store{Root: t.TempDir()}
		r := tt.record
		r.Name = "a"
		dir := recorded(t, s, r)
		switch tt.text {
		case "":
		case "missing":
			os.Remove(dir.path("lab.json"))
		default:
			os.WriteFile(dir.path("lab.json"), []byte(tt.text), 0o600)
		}
		if tt.held {
			held, err := tryLock(string(dir))
			if held == nil {
				t.Fatal(err)
			}
			defer held.release()
		}
		swept, err := sweptBy(t, s)
		if err != nil || slices.Equal(swept, []string{"a"}) != tt.want {
			t.Errorf("%s: swept %v, %v", tt.why, swept, err)
		}
		if _, err := os.Stat(string(dir)); (err == nil) == tt.want {
			t.Errorf("%s: its directory: %v", tt.why, err)
		}
	}
	if swept, err := sweptBy(t, (Store{Root: filepath.Join(t.TempDir(), "none")})); len(swept) != 0 || err != nil {
		t.Errorf("where there is nothing: %v, %v", swept, err)
	}
}

func TestDownWaitsItsTurn(t *testing.T) {
	suite.Long(t, "it waits for another process")
	for _, tt := range []struct {
		private bool
		why     string
	}{
		{true, "a private one of a command that lives is refused at once"},
		{false, "a named one is waited for, as long as the caller wants"},
	} {
		s := Store{Root: t.TempDir()}
		dir := recorded(t, s, record{Name: "a", Ready: true, Private: tt.private, Owner: 4711})
		held, err := tryLock(string(dir))
		if held == nil {
			t.Fatal(err)
		}
		l, err := s.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		var busy *BusyError
		if err := l.Down(ctx); !errors.As(err, &busy) || busy.PID != 4711 {
			t.Errorf("%s: %v", tt.why, err)
		}
		if (ctx.Err() == nil) != tt.private {
			t.Errorf("%s: context %v", tt.why, ctx.Err())
		}
		cancel()
		time.AfterFunc(50*time.Millisecond, held.release)
		if tt.private {
			time.Sleep(100 * time.Millisecond)
		}
		if err := l.Down(t.Context()); err != nil {
			t.Errorf("%s: after its holder let go: %v", tt.why, err)
		}
		if entries, err := os.ReadDir(s.Root); err == nil {
			t.Errorf("%s: left %v", tt.why, entries)
		}
	}
}

func TestLocks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	if held, err := tryLock(dir); held != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there: %v, %v", held, err)
	}
	os.Mkdir(dir, 0o700)
	first, err := tryLock(dir)
	if first == nil {
		t.Fatal(err)
	}
	if second, err := tryLock(dir); second != nil || err != nil {
		t.Errorf("locked twice: %v, %v", second, err)
	}
	// Whoever holds a directory that was removed and made again holds nothing.
	os.Remove(dir)
	os.Mkdir(dir, 0o700)
	second, err := tryLock(dir)
	if second == nil {
		t.Fatalf("the lock on a removed directory stands in the way: %v", err)
	}
	second.release()
	first.release()
	third, err := tryLock(dir)
	if third == nil {
		t.Fatalf("a lock that was given back: %v", err)
	}
	third.release()
}

// The way to the labs is the same however it is spelt: processes are
// found by it.
func TestRootIsOneHoweverSpelt(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(real, "state", "labs")
	for _, root := range []string{real + "/state", real + "//state/", real + "/x/../state", link + "/state"} {
		if got := (Store{Root: root}).labs(); got != want {
			t.Errorf("%s: %s, want %s", root, got, want)
		}
	}
}

func TestStartLatencyOf(t *testing.T) {
	second := dist.Dist{Shape: dist.Constant, A: time.Second}
	for _, tt := range []struct {
		annotation string
		lab        dist.Dist
		want       time.Duration
		fails      string
		why        string
	}{
		{"", dist.Dist{}, 0, "", "nothing planted"},
		{"", second, time.Second, "", "the lab's"},
		{"250ms", second, 250 * time.Millisecond, "", "the pod's own, as a duration"},
		{"0s", second, 0, "", "none for this pod"},
		{"0", second, 0, "", "Go's one duration without a unit"},
		{"constant:2s", second, 2 * time.Second, "", "the pod's own, as a distribution"},
		{"uniform:3s,3s", dist.Dist{}, 3 * time.Second, "", "a distribution without width"},
		{"1.2", second, 0, "neither a duration", "without a unit"},
		{"quick", second, 0, "neither a duration", "a word"},
		{"-1s", second, 0, "negative", "before it was asked for"},
		{"uniform:2s,1s", second, 0, "below the first", "the wrong way round"},
		{"normal:1s,2s", second, 0, "unknown shape", "a shape that there is not"},
	} {
		got, err := protocol.StartLatencyOf("uid", tt.annotation, tt.lab)
		if got != tt.want || (err != nil) != (tt.fails != "") {
			t.Errorf("%q (%s): %v, %v, want %v", tt.annotation, tt.why, got, err, tt.want)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.fails) || !strings.Contains(err.Error(), protocol.StartLatencyAnnotation)) {
			t.Errorf("%q (%s): error %v, want %q and the annotation's name", tt.annotation, tt.why, err, tt.fails)
		}
	}
}

// Latencies are spread as planted over UIDs of any kind, and the same each time.
func TestStartLatenciesAreSpreadEvenly(t *testing.T) {
	planted := dist.Dist{Shape: dist.Uniform, A: time.Second, B: 2 * time.Second}
	for _, tt := range []struct {
		uid func(i int) string
		why string
	}{
		{func(i int) string {
			return "0d8a6e0e-2f1c-4b7e-9d59-" + strings.Repeat("0", 11) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		}, "differences at the end"},
		{func(i int) string { return string(rune('a'+i%26)) + string(rune('a'+i/26)) }, "short ones"},
		{func(i int) string {
			return string(rune('a'+i%26)) + string(rune('a'+i/26)) + "-2f1c-4b7e-9d59-000000000000"
		}, "differences at the beginning"},
	} {
		var tenths [10]int
		const n = 26 * 40
		for i := range n {
			got, err := protocol.StartLatencyOf(tt.uid(i), "", planted)
			again, _ := protocol.StartLatencyOf(tt.uid(i), "", planted)
			if err != nil || got != again || got < planted.A || got >= planted.B {
				t.Fatalf("%s: %v, then %v, %v", tt.why, got, again, err)
			}
			tenths[(got-planted.A)*10/time.Second]++
		}
		// Chi-squared with 9 degrees of freedom exceeds 27.9 once in 1000 times;
		// the UIDs are fixed, so that this never changes.
		var chi float64
		for _, count := range tenths {
			d := float64(count) - n/10
			chi += d * d / (n / 10)
		}
		if chi > 27.9 {
			t.Errorf("%s: %v in the tenths, chi-squared %.1f", tt.why, tenths, chi)
		}
	}
}

// sweptBy are the names of the labs that a Sweep removes.
func sweptBy(t *testing.T, s Store) (names []string, err error) {
	t.Helper()
	left, err := s.Sweep(t.Context(), false)
	for _, l := range left {
		if !l.Alive {
			names = append(names, strings.Split(l.Things[0], `"`)[1])
		}
	}
	return names, err
}
