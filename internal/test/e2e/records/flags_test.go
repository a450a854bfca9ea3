package records_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// came runs an experiment and returns what it came to: what it printed and its result.
// Plan is the experiment as it was run.
func came(t *testing.T, line string) (text, plan string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	var args []string
	for word := range strings.FieldsSeq(line) {
		args = append(args, strings.ReplaceAll(word, "_", " "))
	}
	text = e2e.Shown(dir, nil, e2e.Command(t, nil, append(args, "--out", dir)...))
	read := func(file string) string {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(data)
	}
	return text + read(record.ResultFile), read(record.ExperimentFile)
}

// A flag that is parsed and not used misleads its user. What each flag of the three
// verbs does is seen with it and not without it, or another test holds it.
func TestEveryFlagChangesAnExperiment(t *testing.T) {
	const (
		limit = "limit simulated --set limit=12 --seed 1 --hold 1s"
		sweep = "sweep simulated --levels 5,10 --seed 1 --hold 1s"
		rate  = "sweep simulated --axis rate --levels 5 --seed 1 --hold 1s"
		ab    = "ab simulated --level 10 --seed 1 --hold 1s --arm a: --arm b:latency=constant:90ms"
		goal  = sweep + " --goal fast=Ready_p99_<=_1ms"
	)
	rows := map[string]struct {
		base, flag string // an experiment, and what is added to it; _ is a blank in a word
		shows      string // a pattern of what it came to
		plan       string // a pattern of the plan as it was run, where what it came to needs luck
	}{
		"alpha":        {base: ab + " --repeat 4", flag: "--alpha 0.01", shows: `99% interval`},
		"arm":          {base: ab + " --repeat 4", flag: "--arm c:latency=constant:200ms", shows: `c against a at 10: worse`},
		"axis":         {base: sweep, flag: "--axis requests", shows: `holds?\b.*requests/s|requests/s holds`},
		"baseline":     {base: sweep, flag: "--baseline last", shows: `has no earlier run of simulated`},
		"budget":       {base: limit, flag: "--budget 2s", shows: `the budget is spent`},
		"confirm":      {base: limit, flag: "--confirm 1", shows: `confirmed 1 of 1`},
		"dry-run":      {base: sweep, flag: "--dry-run", shows: `This was a dry run: nothing was done`},
		"explain":      {base: limit, flag: "--explain", shows: `Why each level was chosen`},
		"from":         {base: limit, flag: "--from 5", shows: `(?m)^ +1 +ramp +5 `},
		"goal":         {base: sweep, flag: "--goal fast=Ready_p99_<=_1s", shows: `goal fast \(Ready p99 <= 1s\): pass`},
		"guard":        {base: sweep, flag: "--guard apiErrors=1%", shows: `the load stops when apiErrors is 1%`},
		"guard-query":  {base: sweep, flag: "--guard-query query_'up'_<_1", plan: `- query 'up' < 1`},
		"hold":         {base: sweep, flag: "--hold 7s", shows: `"seconds": 7\.`},
		"hold-max":     {base: rate, flag: "--hold-max 7s", plan: `holdMax: 7s`},
		"level":        {base: ab + " --repeat 4", flag: "--level 11", shows: `(?m)^ +1 +[ab] +11 `},
		"levels":       {base: sweep, flag: "--levels 5,11", shows: `(?m)sweep +11 `},
		"life":         {base: rate, flag: "--life 9s", shows: `"seconds": 10,`},
		"margin":       {base: ab + " --repeat 4", flag: "--margin 50%", shows: `margin 50%`},
		"max":          {base: limit, flag: "--max 8", shows: `nothing failed up to the highest level tried`},
		"metric":       {base: ab + " --repeat 4", flag: "--metric Ready_p90", shows: `Ready p90 changed by`},
		"name":         {base: sweep, flag: "--name nightly", plan: `(?m)^name: nightly$`},
		"output":       {base: sweep, flag: "--output json", shows: `(?m)^\$ plimsoll\n\{`},
		"pace":         {base: sweep, flag: "--pace 7", shows: `"pace": "7/s"`},
		"repeat":       {base: sweep, flag: "--repeat 2", shows: `4 of 4 steps were made`},
		"require":      {base: goal, flag: "--require all", shows: `(?m)^exit code 1$`},
		"resolution":   {base: limit, flag: "--resolution 4", shows: `"resolution": 4`},
		"seed":         {base: sweep, flag: "--seed 2", plan: `seed: 2\b`},
		"set":          {base: sweep, flag: "--set latency=constant:77ms", shows: `\b77(\.\d+)? ms`},
		"slo":          {base: sweep, flag: "--slo Ready_p99_<=_1ms", shows: `Ready p99 <= 1ms: it was`},
		"step":         {base: limit, flag: "--step 2", shows: `"why": "ramp: 3 held, up by 2"`},
		"step-timeout": {base: sweep, flag: "--step-timeout 9s", plan: `stepTimeout: 9s`},
		"summary":      {base: sweep, flag: "--summary", shows: `(?m)^\{"schema":"plimsoll/summary/v1",.*"exitCode":0`},
		"until":        {base: ab, flag: "--repeat 4..6 --until notWorse", shows: `after 4 of at most 6 blocks`, plan: `until: notWorse`},
		"vary":         {base: sweep, flag: "--vary places=1,2", shows: `places=2: pass`},
	}
	elsewhere := map[string]string{
		"help": "it is the help itself", "out": "every test of a record names its directory", "signatures": "TestAnalyzeTakesSignatures",
		"prometheus": "TestFlagsOfAPrometheus", "prometheus-ca": "TestFlagsOfAPrometheus", "prometheus-insecure": "TestFlagsOfAPrometheus",
		"prometheus-match": "TestFlagsOfAPrometheus", "prometheus-password-file": "TestFlagsOfAPrometheus",
		"prometheus-token-file": "TestFlagsOfAPrometheus", "prometheus-user": "TestFlagsOfAPrometheus",
		"user-data": "TestAConfigurationRunsAsItStands: a simulated target has no kube-burner configuration",
	}
	named := regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)
	seen := make(map[string]bool)
	for _, verb := range []string{"limit", "sweep", "ab"} {
		for _, m := range named.FindAllStringSubmatch(e2e.Command(t, nil, verb, "simulated", "--help").Stdout, -1) {
			seen[m[1]] = true
			if _, is := rows[m[1]]; !is && elsewhere[m[1]] == "" {
				t.Errorf("%s has the flag --%s, and no row shows what it does: add one", verb, m[1])
			}
		}
	}
	for flag := range elsewhere {
		if !seen[flag] {
			t.Errorf("no verb has --%s: take it out of the table", flag)
		}
	}
	type outcome struct{ text, plan string }
	without := make(map[string]outcome) // by experiment
	for flag, row := range rows {
		if !seen[flag] {
			t.Errorf("no verb has --%s: take its row out", flag)
		}
		e2e.OnVirtualClock(t, func(t *testing.T) {
			plain, made := without[row.base]
			if !made {
				plain.text, plain.plan = came(t, row.base)
				without[row.base] = plain
			}
			text, plan := came(t, row.base+" "+row.flag)
			check := func(what, pattern, with, without string) {
				shows := regexp.MustCompile(pattern)
				if pattern != "" && (!shows.MatchString(with) || shows.MatchString(without)) {
					t.Errorf("%s %s: %s has %q with it: %v, and without it: %v\n%s", row.base, row.flag, what, pattern, shows.MatchString(with), shows.MatchString(without), with)
				}
			}
			check("what it came to", row.shows, text, plain.text)
			check("the plan", row.plan, plan, plain.plan)
			if row.shows+row.plan == "" {
				t.Errorf("--%s: its row shows nothing", flag)
			}
		})
	}
}
