package records

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// ComparisonFile is the file that compare leaves in the directory of --out,
// beside its report.
const ComparisonFile = "comparison.json"

func newCompareCommand(p *process.Process) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Annotations: map[string]string{process.HoldsNothing: "yes"},
		Use:         "compare A B | compare DIR DIR DIR...",
		Short:       "Better, worse or the same? Compare recorded experiments, or follow many",
		Long: `Compare two recorded experiments. A is the baseline. Each is a run directory, or
DIR:ARM for an arm of a run that compared arms. No cluster is needed. A run that
was not judged since its record was written is judged first, as by
'plimsoll analyze'.

Steps that began from empty and were held for the full time are compared, and
those of a sweep over the same levels. At every level that both experiments
have, one figure is compared: the one that both plans declare, or else the
workload's. Two searches for a load line are compared by their lines.

The result lists everything in which the two differ. Their parameters are what is
compared: the arm. Any other difference that may cause a change prevents a
verdict, unless --arm-is says that it is part of the arm. Other differences are
noted. --arm-is takes, separated by commas, what follows and any other fact that
the records differ in; the part before a colon stands for all that begin with it:

` + armNames() + `
With -o junit each load line, or each figure at each level, is a test.

Three or more experiments make a trend: the figure of each in the order of the
runs, on a logarithmic axis, with versions and with what changed since the one
before. With ten or more, the program finds where the level changes.

The exit code is 0 for better, equivalent, notWorse and for a trend, 1 for
worse, 3 for inconclusive and for what cannot be compared, 4 if the program itself
was the bottleneck.`,
		Example: `  plimsoll compare plimsoll-runs/20261121-101500-node-density plimsoll-runs/20261123-091200-node-density
  plimsoll compare v1-runc v2-crun --arm-is cgroup,runtime
  plimsoll compare cloud bare-metal --arm-is machine
  plimsoll compare 'plimsoll-runs/20261121-101500-node-density:runc' 'plimsoll-runs/20261121-101500-node-density:crun' --metric 'Ready p99'
  plimsoll compare plimsoll-runs/*-nightly --metric 'Ready max' --out trend`,
		Args: func(cmd *cobra.Command, args []string) error {
			hint := process.SeeHelp(cmd)
			switch len(args) {
			case 0:
				return process.Usagef(hint, "which experiments? Name two run directories")
			case 1:
				return process.Usagef(hint, "compare %s with what? Name two run directories", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(p, cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.ArmIs, "arm-is", nil, "what belongs to the arm besides the parameters: `NAMES` as above")
	flags.StringVar(&o.Metric, "metric", "", "the figure that decides: `MILESTONE pNN|max`, or a metric by its name, which 'plimsoll workloads show' lists (default the plans', else the workload's)")
	flags.StringVar(&o.margin, "margin", "", "relative change that still counts as the same (default the plans', else 5%)")
	flags.Float64Var(&o.Alpha, "alpha", 0, "error rate of the interval (default the plans', else 0.05)")
	flags.BoolVar(&o.AsGiven, "as-given", false, "keep the order of the arguments in a trend")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the search for change points in a trend")
	flags.StringVar(&o.out, "out", "", "write "+ComparisonFile+" and report.html into this `directory`")
	process.OutputFlag(cmd, &o.output, "junit")
	return cmd
}

// run compares the records that args name, and shows the outcome.
func (o *compareOptions) run(p *process.Process, cmd *cobra.Command, args []string) error {
	if err := o.read(cmd, len(args) > 2); err != nil {
		return err
	}
	// The objects of large experiments are most of the memory: what is
	// no longer needed of them goes twice as early, for little work.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	compared := p.WaitFor("comparing the records")
	defer compared()
	judged, remove, err := judgedDir()
	if err != nil {
		return err
	}
	defer remove()
	operands, err := loadOperands(cmd.Context(), p, args, judged, false)
	if err != nil {
		return err
	}
	if err := recorded.NameOperands(operands); err != nil {
		return process.Usagef("name another", "%w", err)
	}
	if err := o.checkOut(operands); err != nil {
		return err
	}
	var outcome recorded.Outcome
	if len(operands) == 2 {
		outcome, err = recorded.Compare(operands[0], operands[1], o.Options)
	} else {
		outcome, err = recorded.TrendOf(operands, o.TrendOptions)
	}
	if err != nil {
		return compareUsage(err)
	}
	outcome.Command, outcome.Version = p.CommandLine(), process.Version
	compared()
	return o.show(p, outcome, operands)
}

// compareOptions are the flags of compare.
type compareOptions struct {
	recorded.TrendOptions
	margin, out, output string
}

// read takes in the flags that need it.
func (o *compareOptions) read(cmd *cobra.Command, trend bool) error {
	o.Workload, o.Facts = process.LoadWorkload, process.DeclaredFacts()
	if name, given := process.FirstChanged(cmd, "arm-is", "margin"); given && trend {
		return process.Usagef("name two experiments", "--%s: a trend has no verdict", name)
	}
	if name, given := process.FirstChanged(cmd, "as-given", "seed"); given && !trend {
		return process.Usagef("", "--%s: a trend needs at least three experiments", name)
	}
	if f, err := slo.ParseFigure(o.Metric); err == nil {
		o.Metric = f.String() // as the figures of a run are named
	}
	for i, name := range o.ArmIs {
		o.ArmIs[i] = strings.TrimSpace(name)
	}
	if o.margin != "" {
		share, err := plan.Primary{Margin: o.margin}.Share()
		if err != nil {
			return process.Usagef("", "--margin: %w", err)
		}
		o.Margin = share
	}
	if cmd.Flags().Changed("alpha") && !(o.Alpha > 0 && o.Alpha < 1) {
		return process.Usagef("", "--alpha %g: want a number between 0 and 1, such as 0.05", o.Alpha)
	}
	return nil
}

// armNames returns the list of what --arm-is takes.
func armNames() string {
	var b strings.Builder
	for _, n := range recorded.Names(process.DeclaredFacts()) {
		fmt.Fprintf(&b, "  %-22s %s\n", n.Name, n.Help)
	}
	return b.String()
}

// loadOperands judges the histories of the runs, in a directory of their own, with users'
// mistakes as usage errors. A result may have been edited: with believe it is read instead,
// where it is newer than the history and has its sum.
func loadOperands(ctx context.Context, p *process.Process, args []string, judged string, believe bool) ([]*recorded.Operand, error) {
	var operands []*recorded.Operand
	made := make(map[record.Dir]record.Dir)
	for _, text := range args {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		text, err := CellPath(text)
		if err != nil {
			return nil, err
		}
		path, arm := splitOperand(text)
		dir, of, err := OpenRun(path)
		if err != nil {
			return nil, err
		}
		if believe && Judged(dir) {
			made[dir] = dir
		} else if made[dir] == "" { // two arms of one run are judged once
			if made[dir], err = judgeIn(p, dir, record.Dir(judged).Path(strconv.Itoa(len(made)))); err != nil {
				return nil, err
			}
		}
		operand, err := recorded.Load(dir, made[dir], of, arm)
		if wrong, ok := errors.AsType[*recorded.ArmError](err); ok {
			return nil, armUsage(wrong)
		}
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", text, err)
		}
		operands = append(operands, operand)
	}
	return operands, nil
}

// judgeIn judges a run in a new directory, and tells where its record says otherwise.
func judgeIn(p *process.Process, dir record.Dir, path string) (record.Dir, error) {
	_, x, err := OpenRecord(string(dir))
	if err != nil {
		return "", err
	}
	into, err := record.CreateDir(path)
	if err != nil {
		return "", err
	}
	if _, err := run.ReplayInto(dir, into, x); err != nil {
		return "", fmt.Errorf("judge %s: %w", dir, err)
	}
	if _, err := os.Stat(dir.Path(record.ResultFile)); err == nil && !dir.Intact() {
		p.Logf("warning: %s is not as it was written: its history is compared, and not that\n", dir.Path(record.ResultFile))
	}
	return into, nil
}

// splitOperand divides DIR:ARM. A path that exists is a path, whatever is in
// its name.
func splitOperand(text string) (path, arm string) {
	if _, err := os.Stat(text); err == nil {
		return text, ""
	}
	at := strings.LastIndexByte(text, ':')
	if at <= 0 {
		return text, ""
	}
	return text[:at], text[at+1:]
}

func armUsage(err *recorded.ArmError) error {
	switch {
	case len(err.Arms) == 0:
		return process.Usagef("name the directory alone: "+err.Path, "%w", err)
	case err.Arm == "":
		return process.Usagef(fmt.Sprintf("for example %s:%s", err.Path, err.Arms[0]), "%w", err)
	}
	return process.Usagef(nearest.Hint(err.Arm, err.Arms, "there is: "+strings.Join(err.Arms, ", ")), "%w", err)
}

// compareUsage makes usage errors of options that fit nothing.
func compareUsage(err error) error {
	var name *recorded.UnknownNameError
	var metric *recorded.UnknownMetricError
	switch {
	case errors.As(err, &name):
		return process.Usagef(nearest.Hint(name.Name, name.Known, "'plimsoll compare --help' lists the names"), "--arm-is %s: %w", name.Name, err)
	case errors.As(err, &metric):
		return process.Usagef(nearest.Hint(metric.Metric, metric.Known, "there is: "+strings.Join(metric.Known, ", ")), "--metric: %w", err)
	}
	return err
}

// show prints an outcome, and writes it down where it is wanted.
func (o *compareOptions) show(p *process.Process, outcome recorded.Outcome, operands []*recorded.Operand) error {
	// What is not finite is null where it is written, which a warning tells.
	if _, err := record.Encode(&outcome, ""); err != nil {
		return fmt.Errorf("encode the comparison: %w", err)
	}
	in := viewed(outcome, operands)
	if o.out != "" {
		if err := o.write(in); err != nil {
			return fmt.Errorf("write the comparison: %w", err)
		}
	}
	if o.output != "text" {
		print := func() error { return process.PrintJSON(p, outcome) }
		if o.output == "junit" {
			print = func() error { return report.ComparedJUnit(p.Stdout, outcome) }
		}
		return cmp.Or(print(), error(process.ExitError(outcome.ExitCode)))
	}
	if err := text.Write(p.Text(), view.Compared(in)); err != nil {
		return fmt.Errorf("print the comparison: %w", err)
	}
	if o.out != "" {
		p.Printf("Record: %s\nReport: %s\n", record.Dir(o.out).Path(ComparisonFile), record.Dir(o.out).Path(record.ReportFile))
	}
	return process.ExitError(outcome.ExitCode)
}

// viewed returns an outcome with what is shown of its experiments.
func viewed(outcome recorded.Outcome, operands []*recorded.Operand) view.ComparisonInput {
	in := view.ComparisonInput{Outcome: outcome}
	for _, e := range outcome.Experiments { // in their order
		of := func(x *recorded.Operand) bool { return x.Name == e.Name }
		in.Operands = append(in.Operands, operands[slices.IndexFunc(operands, of)])
	}
	if axis, unit := operands[0].Axis(); operands[1].SameAxis(operands[0]) {
		in.Axis, in.Unit = axis, unit
	}
	return in
}

// checkOut refuses a directory that holds something else: a run's record, or a
// comparison of what is not compared now. A comparison that is made again, or
// a trend that has grown, replaces what it was.
func (o *compareOptions) checkOut(operands []*recorded.Operand) error {
	if o.out == "" {
		return nil
	}
	dir := record.Dir(o.out)
	const hint = "name another directory with --out"
	if _, err := os.Stat(dir.Path(ComparisonFile)); err != nil { // writing tells of any other trouble
		for _, name := range []string{record.HistoryFile, record.ResultFile, record.ExperimentFile, record.ReportFile} {
			if _, err := os.Lstat(dir.Path(name)); err == nil {
				return process.Usagef(hint, "--out: %s holds something else: it has a %s and no %s", o.out, name, ComparisonFile)
			}
		}
		return nil
	}
	var before recorded.Outcome
	if err := dir.ReadJSON(ComparisonFile, &before); err != nil || before.Schema != recorded.Schema {
		return process.Usagef(hint, "--out: %s is not a comparison that this program can replace", dir.Path(ComparisonFile))
	}
	for _, e := range before.Experiments {
		if !slices.ContainsFunc(operands, func(x *recorded.Operand) bool {
			return filepath.Clean(x.Path) == filepath.Clean(e.Path) && x.Arm == e.Arm
		}) {
			return process.Usagef(hint, "--out: %s holds another comparison, with %s", o.out, e.Name)
		}
	}
	return nil
}

// write leaves an outcome and its page in a directory.
func (o *compareOptions) write(in view.ComparisonInput) error {
	if err := os.MkdirAll(o.out, record.DirMode); err != nil {
		return err
	}
	dir := record.Dir(o.out)
	if err := dir.WriteJSON(ComparisonFile, &in.Outcome); err != nil {
		return err
	}
	p, err := view.ComparedPage(in)
	if err != nil {
		return err
	}
	var html bytes.Buffer
	if err := page.Write(&html, p); err != nil {
		return err
	}
	return dir.WriteFile(record.ReportFile, html.Bytes())
}

// judgedDir makes a directory for the results of records that are judged again. The caller must remove it.
func judgedDir() (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", "plimsoll-judged-*"); err != nil {
		return "", nil, fmt.Errorf("make a directory for judged records: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
