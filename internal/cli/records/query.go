package records

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// queryFlags holds the flags of query.
type queryFlags struct {
	step          int
	at, listen    string
	overall       bool
	every         time.Duration
	serve         bool
	output        string
	store         *metrics.Store
	from, to      time.Time // what is asked for; of an instant both are the same
	where         string    // the same in words
	isRangeOfTime bool
}

func newQueryCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	f := new(queryFlags)
	cmd := &cobra.Command{
		Annotations: map[string]string{process.HoldsNothing: "yes"},
		Use:         "query DIR ['PROMQL']",
		Short:       "Ask a recorded run for its metrics, in PromQL",
		Long: `Answer a question in PromQL from the record of a run alone: about the metrics that
were read while it was made (--scrape), and about its own figures, which have names
that begin with plimsoll_. Without a flag the answer is of the end of the last step.

An answer with nothing in it ends with exit code 3: what is not on record is not
known.`,
		Example: `  plimsoll query runs/density 'plimsoll_level'
  plimsoll query runs/density 'histogram_quantile(0.99, sum by (le) (rate(apiserver_request_duration_seconds_bucket[1m])))' --step 4
  plimsoll query runs/density 'rate(process_cpu_seconds_total{job="kube-apiserver"}[30s])' --range -o csv
  plimsoll query runs/density --serve`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return process.Usagef(process.SeeHelp(cmd), "which run directory?")
			case len(args) == 1 && !f.serve:
				return process.Usagef("for example plimsoll query "+args[0]+" plimsoll_level", "what is asked?")
			case len(args) == 2 && f.serve:
				return process.Usagef("leave it out", "with --serve the questions come by HTTP: %q", args[1])
			}
			return process.NoArguments(cmd, args[min(len(args), 2):])
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			dir, err := OpenDir(args[0])
			if err != nil {
				return err
			}
			reading := p.WaitFor("reading the metrics of " + args[0])
			f.store, err = metrics.Open(dir, os.TempDir())
			reading()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.store.Close()) }()
			if f.store.Built.Cut {
				p.Logf("warning: in %s a part of the run ends within a scrape, or is damaged: the rest of that part is unknown\n", metrics.ScrapesDir)
			}
			if f.serve {
				return f.answerHTTP(stop.Soft, p)
			}
			if err := f.span(); err != nil {
				return err
			}
			return f.answer(stop.Soft, p, args[1])
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.step, "step", 0, "at the end of step `N`, or with --range while it was made")
	flags.StringVar(&f.at, "at", "", "at a `time`: since the start of the run, such as 90s, or by RFC 3339")
	flags.BoolVar(&f.overall, "range", false, "over the whole run, or over the step of --step")
	flags.DurationVar(&f.every, "every", 0, "the time between the values of a range (default 5s, or more where the range is long)")
	flags.BoolVar(&f.serve, "serve", false, "answer as a Prometheus does by HTTP, on this machine alone, until it is interrupted: Grafana can read the run")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "the `address` of --serve; port 0 is any")
	flags.StringVarP(&f.output, "output", "o", "text", "text, json or csv; json is as Prometheus answers")
	return cmd
}

// check refuses what cannot be asked.
func (f *queryFlags) check(cmd *cobra.Command, args []string) error {
	if err := process.CheckOutput(f.output, "csv"); err != nil {
		return err
	}
	given := cmd.Flags().Changed
	switch {
	case given("step") && given("at"), given("at") && f.overall:
		return process.Usagef("name one time", "--at is one time, and --step or --range another")
	case given("every") && !(f.overall && f.every > 0):
		return process.Usagef("for example --range --every 10s", "--every is the time between the values of a --range, above 0")
	case given("listen") && !f.serve:
		return process.Usagef("add --serve", "--listen is the address of --serve")
	case f.serve && (given("step") || given("at") || f.overall || given("output")):
		return process.Usagef("leave it out", "with --serve each question says what it is about")
	}
	if f.serve {
		host, _, err := net.SplitHostPort(f.listen)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return process.Usagef("for example 127.0.0.1:9090", "--listen %s: want an address of this machine alone, since nobody is asked who he is", f.listen)
		}
		return nil
	}
	if err := metrics.Check(args[1]); err != nil {
		return process.Usagef("", "%w", err)
	}
	return nil
}

// span finds the time that is asked for.
func (f *queryFlags) span() error {
	of := f.store.Built
	f.from, f.to, f.where = of.From, of.To, "the whole run"
	last := metrics.Span{From: of.From, To: of.To}
	if n := len(of.Steps); n > 0 {
		last = of.Steps[n-1]
	}
	switch {
	case f.at != "":
		at, err := f.timeOf(of)
		if err != nil {
			return err
		}
		f.from, f.to, f.where = at, at, ""
	case f.step != 0 || !f.overall:
		if f.step != 0 {
			i := slices.IndexFunc(of.Steps, func(s metrics.Span) bool { return s.ID == f.step })
			if i < 0 {
				return process.Usagef(fmt.Sprintf("there are %d", len(of.Steps)), "there is no step %d", f.step)
			}
			last = of.Steps[i]
		}
		f.from, f.to, f.where = last.From, last.To, "the run"
		if last.ID != 0 {
			f.where = fmt.Sprintf("step %d, at %g", last.ID, last.Level)
		}
	}
	if f.isRangeOfTime = f.overall; !f.overall {
		f.from = f.to
	}
	if f.every == 0 {
		const values = 1000
		f.every = max(5*time.Second, (f.to.Sub(f.from) / values).Round(time.Second))
	}
	return nil
}

// timeOf returns the time of --at.
func (f *queryFlags) timeOf(of metrics.Built) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, f.at)
	if since, failed := time.ParseDuration(f.at); failed == nil {
		at, err = of.From.Add(since), nil
	}
	if err != nil {
		return at, process.Usagef("for example 90s, or "+of.From.UTC().Format(time.RFC3339), "--at %q is not a time", f.at)
	}
	return at, nil
}

// answer asks, and prints what comes.
func (f *queryFlags) answer(ctx context.Context, p *process.Process, query string) error {
	engine := metrics.NewEngine(f.store)
	var a metrics.Answer
	var err error
	if f.isRangeOfTime {
		a, err = engine.Range(ctx, query, f.from, f.to, f.every)
	} else {
		a, err = engine.At(ctx, query, f.to)
	}
	if errors.As(err, new(*metrics.MistakeError)) {
		return process.Usagef("", "%w", err)
	}
	if err != nil {
		return err
	}
	for _, w := range a.Warnings {
		p.Logf("note: %s\n", w)
	}
	switch f.output {
	case "json":
		err = json.NewEncoder(p.Stdout).Encode(struct {
			Status string         `json:"status"`
			Data   metrics.Answer `json:"data"`
		}{"success", a})
	case "csv":
		err = writeCSV(p.Stdout, a.Series())
	default:
		err = f.text(p.Stdout, query, a)
	}
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	if a.Empty() {
		return process.ExitError(process.ExitInconclusive)
	}
	return nil
}

// writeCSV writes a row for each value: the time, the value and the labels.
func writeCSV(w io.Writer, list []metrics.Series) error {
	names := make(map[string]bool)
	for _, s := range list {
		for name := range s.Labels {
			names[name] = true
		}
	}
	columns := slices.Sorted(maps.Keys(names))
	rows := csv.NewWriter(w)
	if err := rows.Write(append([]string{"time", "value"}, columns...)); err != nil {
		return err
	}
	for _, s := range list {
		for _, x := range s.Values {
			row := []string{time.UnixMilli(x.T).UTC().Format("2006-01-02T15:04:05.000Z"), exact(x.F)}
			for _, name := range columns {
				row = append(row, s.Labels[name])
			}
			if err := rows.Write(row); err != nil {
				return err
			}
		}
	}
	rows.Flush()
	return rows.Error()
}

// nameOfMetric matches whatever may be the name of a metric in a question.
var nameOfMetric = regexp.MustCompile(`[A-Za-z_:][A-Za-z0-9_:]*`)

// meant names the metric on record that an unknown one in a question is near to, "" for none.
func (f *queryFlags) meant(question string) string {
	q, err := f.store.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return ""
	}
	defer q.Close()
	names, _, err := q.LabelValues(context.Background(), "__name__", nil)
	if err != nil {
		return ""
	}
	for _, word := range nameOfMetric.FindAllString(question, -1) {
		if near, ok := nearest.Word(word, names); ok && near != word {
			return " Did you mean " + near + "?"
		}
	}
	return ""
}

// text prints the answer for people: of a range the least, the mean, the most and the
// last value of each series.
func (f *queryFlags) text(w io.Writer, question string, a metrics.Answer) error {
	of := f.store.Built
	since := func(t time.Time) string { return fmt.Sprintf("%.1f s", t.Sub(of.From).Seconds()) }
	when := "at " + since(f.to)
	if f.isRangeOfTime {
		when = fmt.Sprintf("from %s to %s, each %v", since(f.from), since(f.to), f.every)
	}
	if when += " since the start"; f.where != "" {
		when = f.where + ", " + when
	}
	if a.Empty() {
		_, err := fmt.Fprintf(w, "No data: no series on record matches (%s).%s\n", when, f.meant(question))
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\n", when)
	_, samples := a.Result.(promql.Matrix) // of a range vector
	switch {
	case f.isRangeOfTime:
		fmt.Fprintf(t, "LEAST\tMEAN\tMOST\tLAST\tVALUES\tSERIES\n")
	case samples:
		fmt.Fprintf(t, "AT\tVALUE\tSERIES\n")
	default:
		fmt.Fprintf(t, "VALUE\tSERIES\n")
	}
	for _, s := range a.Series() {
		n := len(s.Values)
		switch {
		case n == 0:
			fmt.Fprintf(t, "%s\n", s.Name)
		case f.isRangeOfTime:
			least, most, sum := math.Inf(1), math.Inf(-1), 0.0
			for _, x := range s.Values {
				least, most, sum = min(least, x.F), max(most, x.F), sum+x.F
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", figure(least), figure(sum/float64(n)), figure(most), figure(s.Values[n-1].F), n, s.Name)
		case samples:
			for _, x := range s.Values {
				fmt.Fprintf(t, "%s\t%s\t%s\n", since(time.UnixMilli(x.T)), figure(x.F), s.Name)
			}
		default:
			fmt.Fprintf(t, "%s\t%s\n", figure(s.Values[0].F), s.Name)
		}
	}
	return t.Flush()
}

func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// figure returns a value in so many digits as people read.
func figure(v float64) string { return number.Text(v, 6) }

// answerHTTP answers by HTTP until ctx ends.
func (f *queryFlags) answerHTTP(ctx context.Context, p *process.Process) error {
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	server := &http.Server{Handler: metrics.API(metrics.NewEngine(f.store), f.store.Built.From, f.store.Built.To), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	if _, err := fmt.Fprintf(p.Stdout, "http://%s answers as a Prometheus does, of %s to %s. Ctrl-C ends it.\n",
		listener.Addr(), f.store.Built.From.UTC().Format(time.RFC3339), f.store.Built.To.UTC().Format(time.RFC3339)); err != nil {
		return errors.Join(fmt.Errorf("print the address: %w", err), listener.Close())
	}
	end := context.AfterFunc(ctx, func() { server.Close() })
	defer end()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
