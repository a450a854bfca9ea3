package settings

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/text/dist"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

type system struct {
	Box   *box   `yaml:"box" flag:"box-"`
	Name  string `yaml:"name" flag:"name" takes:"word" help:"the system of this word"`
	Shade string `yaml:"shade" flag:"shade" beside:"true"`
}

type box struct {
	Size    int               `yaml:"size" flag:"size" default:"10" range:"0..64" unit:"number of sides" help:"sides of it"`
	Share   float64           `yaml:"share" flag:"share" range:"0.." unit:"share" example:"0.5"`
	Delay   dist.Dist         `yaml:"delay" flag:"delay" example:"constant:1s"`
	Lid     bool              `yaml:"lid" flag:"lid"`
	Figures map[string]string `yaml:"figures" flag:"figures" example:"a=1"`
	Marks   []string          `yaml:"marks" flag:"marks"`
	Cuts    []float64         `yaml:"cuts" flag:"cuts" example:"1,2.5"`
}

func (s *system) Complete(func(string) bool) {
	if s.Name == "" && s.Box == nil {
		s.Box = new(box)
	}
}

func (s *system) Check(c *Check) {
	if s.Name != "" && s.Box != nil {
		c.Problem("", "keep one of "+c.Key("box")+" and "+c.Key("name"), "two systems are named")
	}
}

func (b *box) Complete(given func(string) bool) {
	if b.Lid && !given("size") {
		b.Size = 0
	}
}

func (b *box) Check(c *Check) {
	if b.Size == 0 && !b.Lid {
		c.Problem("size", "add "+c.Set("lid", "true"), "an open box has sides")
	}
}

// file parses the value of target: in a file, from its third line on.
func file(t *testing.T, text string) (raw strictyaml.Raw, at *strictyaml.Positions) {
	t.Helper()
	into := struct {
		Target strictyaml.Raw `yaml:"target"`
	}{}
	at, err := strictyaml.Decode("f.yaml", []byte("# a\n# b\ntarget: "+text+"\n"), &into)
	if err != nil {
		t.Fatal(err)
	}
	return into.Target, at
}

// What is written is read, completed, judged with its places, and written again
// so that it reads the same.
func TestSettingsOfAFile(t *testing.T) {
	for _, c := range []struct{ why, text, written, want string }{
		{"nothing", "{}", `{"box":{"size":10}}`, ""},
		{"another system", "{name: x}", `{"name":"x"}`, ""},
		{"a name that reads as a number", "{name: 1.10}", `{"name":"1.10"}`, ""},
		{"a zero that is written stays one", "{box: {size: 0, lid: true}}", `{"box":{"lid":true,"size":0}}`, ""},
		{"what follows from another", "{box: {lid: true}}", `{"box":{"lid":true}}`, ""},
		{"all of it", "{box: {size: 3, share: 1, delay: 'constant:1000ms', figures: {a: 1.50}}}", `{"box":{"delay":"constant:1s","figures":{"a":"1.50"},"share":1,"size":3}}`, ""},
		{"a mapping of nothing is said", "{box: {figures: {}}}", `{"box":{"figures":{},"size":10}}`, ""},

		{"a key that there is not", "{bix: {}}", "", `f.yaml:3:10: target: unknown key "bix" (did you mean "box"?)`},
		{"a key below", "{box: {sze: 1}}", "", `f.yaml:3:16: target.box: unknown key "sze" (did you mean "size"?)`},
		{"another type", "{box: {size: 1.5}}", "", "f.yaml:3:22: target.box.size: wants a whole number, found the number 1.5"},
		{"a text that is none", "{box: {delay: 1s}}", "", `f.yaml:3:23: target.box.delay: delay "1s" has no shape: want ` + dist.Grammar},
		{"more than the bound", "{box: {size: 65}}", "", "f.yaml:3:22: target.box.size: 65 is not a number of sides: want 0 to 64 (for example size: 10)"},
		{"less than the bound", "{box: {share: -1}}", "", "f.yaml:3:23: target.box.share: -1 is not a share: want at least 0 (for example share: 0.5)"},
		{"what does not go together", "{box: {size: 0}}", "", "f.yaml:3:22: target.box.size: an open box has sides (add lid: true)"},
		{"two systems", "{name: a, box: {}}", "", "f.yaml:3:1: target: two systems are named (keep one of box and name)"},
		{"no mapping", "5", "", "f.yaml:3:9: target: wants a mapping, found the number 5"},
	} {
		raw, at := file(t, c.text)
		own := new(system)
		err := Read(raw, own, "target", at)
		if err == nil {
			err = strictyaml.Join(Validate(own, "target", at))
		}
		if c.want != "" || err != nil {
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.why, err, c.want)
			}
			continue
		}
		written := Write(own, raw)
		if got := written.Meaning(); got != c.written {
			t.Errorf("%s: written as %s, want %s", c.why, got, c.written)
		}
		again := new(system)
		if err := Read(written, again, "", nil); err != nil || Write(again, written).Meaning() != written.Meaning() {
			t.Errorf("%s: read again it is %s, %v", c.why, Write(again, written).Meaning(), err)
		}
	}
}

// A flag is read as the same value in a file, and told in words of flags.
func TestSettingsOfFlags(t *testing.T) {
	for _, c := range []struct{ why, line, written, want string }{
		{"nothing", "", "", ""},
		{"some", "--box-size 3 --box-lid --box-delay constant:1s", `{"box":{"delay":"constant:1s","lid":true,"size":3}}`, ""},
		{"a name that reads as a number", "--name 1.10", `{"name":"1.10"}`, ""},
		{"an unset variable names nothing", "--name=", "", ""},
		{"a list", "--box-figures a=1,b=x", `{"box":{"figures":{"a":"1","b":"x"}}}`, ""},
		{"an empty list is one", "--box-figures=", `{"box":{"figures":{}}}`, ""},
		{"a list that is repeated", "--box-marks a,b --box-marks 1.10", `{"box":{"marks":["a,b","1.10"]}}`, ""},
		{"a list with commas", "--box-cuts 1,2.5", `{"box":{"cuts":[1,2.5]}}`, ""},
		{"a list of something else", "--box-cuts 1,x", "", `wants a number, found the text "x", for example --box-cuts 1,2.5`},
		{"no number", "--box-size five", "", `invalid argument "five" for "--box-size" flag: wants a whole number, found the text "five"`},
		{"a text that is none", "--box-delay 1s", "", `has no shape: want ` + dist.Grammar + `, for example --box-delay constant:1s`},
		{"no list", "--box-figures a", "", `"a": want KEY=VALUE, for example --box-figures a=1`},
		{"more than the bound", "--box-size 65", "", "65 is not a number of sides: want 0 to 64 (for example --box-size 10)"},
		{"what does not go together", "--box-size 0", "", "an open box has sides (add --box-lid)"},
		{"two systems", "--box-size 1 --name x", "", "two systems are named (keep one of --box-size, --box-share ... and --name)"},
	} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags := AddFlags(set, new(system), func(Field) bool { return true })
		err := set.Parse(strings.Fields(c.line))
		written := flags.Over(strictyaml.Raw{})
		if own := new(system); err == nil {
			if err = Read(written, own, "target", nil); err == nil {
				err = strictyaml.Join(Validate(own, "target", nil))
			}
		}
		switch {
		case c.want == "" && (err != nil || written.Meaning() != c.written):
			t.Errorf("%s: %s, %v, want %s", c.why, written.Meaning(), err, c.written)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.why, err, c.want)
		}
	}
}

// Flags that name a system leave nothing of what a file says; others go with it.
func TestFlagsOverAFile(t *testing.T) {
	for _, c := range []struct{ why, line, want string }{
		{"nothing is given", "", `{"name":"x","shade":"light"}`},
		{"another system", "--name y", `{"name":"y"}`},
		{"what goes with any", "--shade dark", `{"name":"x","shade":"dark"}`},
		{"both", "--box-size 3 --shade dark", `{"box":{"size":3},"shade":"dark"}`},
		{"an unset variable", "--name= --shade=", `{"name":"x","shade":"light"}`},
	} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags := AddFlags(set, new(system), func(Field) bool { return true })
		if err := set.Parse(strings.Fields(c.line)); err != nil {
			t.Fatal(err)
		}
		written, _ := file(t, "{name: x, shade: light}")
		if got := flags.Over(written).Meaning(); got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
	}
}

func TestHelpOfFlags(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(set, new(system), func(f Field) bool { return f.Flag == "name" || f.Flag == "box-size" })
	const want = "      --box-size int   sides of it (default 10)\n      --name word      the system of this word\n"
	if got := set.FlagUsages(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestNamesOfFlags(t *testing.T) {
	for path, want := range map[string]string{"name": "--name", "box.lid": "--box-lid", "box": "", "none": "", "box.cuts[1]": "--box-cuts", "box.figures.a": "--box-figures a"} {
		if got := FlagOf(new(system), path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestDiffering(t *testing.T) {
	own := &box{Size: 10, Share: 0.5, Lid: true, Figures: map[string]string{"a": "1"}}
	if got, want := Differing(own, "lid"), []string{"share: 0.5", `figures: {"a":"1"}`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// asked are settings of which some say where they are from, and some stand in a list.
type asked struct {
	Name  string  `yaml:"name" flag:"name" needed:"--name a" help:"what it is called"`
	Shape string  `yaml:"shape" flag:"shape" words:"round, square" default:"round"`
	Edge  float64 `yaml:"edge" range:">0" needed:""`
	Count from    `yaml:"count" flag:"count" range:"1..9" default:"3" why:"as usual" when:"counted"`
	Parts []part  `yaml:"parts"`
	note  string  // no setting
}

type part struct {
	Weight int `yaml:"weight" default:"2" range:"1.."`
}

type from struct {
	Value int
	From  string
}

func (f *from) UnmarshalText(text []byte) (err error) {
	f.Value, err = strconv.Atoi(string(text))
	return err
}

func (a *asked) Cases() map[string]bool { return map[string]bool{"counted": a.note == "counted"} }

// Defaults and checks reach the structs in lists, and what says where it is from.
func TestTagsOfFields(t *testing.T) {
	for _, c := range []struct {
		why  string
		own  asked
		want string // of the problems, each on a line
	}{
		{"nothing is said", asked{}, "is needed: what it is called (for example --name a)\nedge: is missing"},
		{"all of it", asked{Name: "a", Edge: 0.5, Parts: []part{{1}, {}}}, ""},
		{"a word that is another", asked{Name: "a", Edge: 1, Shape: "squar"}, `there is no "squar" here (did you mean "square"?)`},
		{"a number that is not above its bound", asked{Name: "a", Edge: -1}, "edge: must be above 0, is -1"},
		{"a value that was given", asked{Name: "a", Edge: 1, Count: from{10, "flag --count"}}, "count: must be 1 to 9, is 10"},
		{"a part of a list", asked{Name: "a", Edge: 1, Parts: []part{{1}, {-1}}}, "parts[1].weight: must be at least 1, is -1"},
	} {
		Default(&c.own, func(string) bool { return false })
		if c.own.Count.From == "" && c.own.Count.Value != 0 || len(c.own.Parts) > 1 && c.own.Parts[1].Weight == 0 {
			t.Errorf("%s: %+v", c.why, c.own)
		}
		err := strictyaml.Join(Validate(&c.own, "", nil))
		for line := range strings.Lines(c.want) {
			if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(line)) {
				t.Errorf("%s: %v, want %s", c.why, err, line)
			}
		}
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	counted := asked{note: "counted"}
	if Default(&counted, func(string) bool { return false }); counted.Count != (from{3, "default: as usual"}) {
		t.Errorf("a default that matters in this case: %+v", counted.Count)
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags, own := AddFlags(set, new(asked), func(Field) bool { return true }), new(asked)
	if err := set.Parse([]string{"--count", "4", "--name", "b"}); err != nil || flags.Fill(own) != nil || own.Count != (from{4, "flag --count"}) || own.Name != "b" {
		t.Errorf("%v %+v", err, own)
	}
	if err := set.Parse([]string{"--shape", "rond"}); err == nil || !strings.Contains(err.Error(), `want round, square (did you mean "round"?)`) {
		t.Errorf("a word by a flag: %v", err)
	}
}
