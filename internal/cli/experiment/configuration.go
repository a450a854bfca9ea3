package experiment

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func (f *experimentFlags) addUserData(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.userData, "user-data", "", "`file` with variables of a kube-burner configuration, YAML or JSON; --set goes before it, the environment after it")
}

// variables fill in a plan of a configuration as it stands: the values of its
// variables, and what it says itself of levels, objectives and waiting.
func (x *experimentCommand) variables(p *process.Process, w *workload.Workload) error {
	if !w.AsItIs {
		if x.flags.userData != "" {
			return process.Usagef("give parameters of a workload with --set", "--user-data is for kube-burner configurations, and %s is a workload", w.Name)
		}
		return nil
	}
	axis, err := w.Axis(x.plan.Axis.Name)
	if err != nil {
		return nil // Validate reports it
	}
	if value, both := x.plan.Params[axis.Sets]; both && axis.Sets != "" && x.file == "" {
		return process.Usagef("leave --set out, or give --axis iterations", "--set %s=%s: a level of the axis %s is its value", axis.Sets, value, axis.Name)
	}
	if x.file == "" {
		values, err := x.flags.values(p, w)
		if err != nil {
			return err
		}
		maps.Copy(values, w.Texts(x.plan.Params))
		for _, name := range x.missing {
			values[name] = "null"
		}
		x.plan.Params = values
		for i := range x.plan.Arms {
			x.plan.Arms[i].Params = w.Texts(x.plan.Arms[i].Params)
		}
	}
	x.plan.Params = w.At(axis.Name, x.plan.Certain(), x.plan.Params)
	given := maps.Clone(x.plan.Params)
	if len(x.plan.Arms) > 0 { // any of them does
		maps.Copy(given, x.plan.Arms[0].Params)
	}
	for _, v := range x.plan.Vary {
		if _, err := w.Param(v.Key); err == nil && len(v.Value) > 0 {
			given[v.Key] = v.Value[0]
		}
	}
	params, err := w.Resolve(given)
	if err != nil {
		return x.planError(underParams(err))
	}
	c, err := w.Config(params, anyUUID)
	if err != nil {
		return process.Usagef("", "%w", err)
	}
	w.Measure(c)
	if len(x.plan.Goals) == 0 {
		x.plan.Goals = strictyaml.Ordered[[]string]{{Key: w.Goals[0].Key, Value: slices.Concat(w.Goals[0].Value, c.Thresholds(func(string) bool { return true }))}}
	}
	if x.plan.Axis.Name != workload.AxisJobs {
		return nil
	}
	if err := x.flags.staysHere(c); err != nil {
		return err
	}
	if _, err := c.Profiles(w.Files()); err != nil {
		return process.Usagef("", "%w", err)
	}
	if x.plan.Kind == plan.Sweep && len(x.plan.Axis.Levels) == 0 {
		c.Stages(nil)
		for i := range c.Jobs {
			x.plan.Axis.Levels = append(x.plan.Axis.Levels, float64(i+1))
		}
	}
	if x.plan.StepTimeout == 0 {
		for _, j := range c.Jobs {
			x.plan.StepTimeout = max(x.plan.StepTimeout, plan.Duration(j.MaxWaitTimeout))
		}
		if x.plan.Budget > 0 {
			x.plan.StepTimeout = min(x.plan.StepTimeout, x.plan.Budget)
		}
	}
	return nil
}

// anyUUID renders a configuration whose objects are not made.
const anyUUID = "00000000-0000-4000-8000-000000000000"

// underParams puts the names of parameters that problems are of where a plan has them.
func underParams(err error) error {
	problems := strictyaml.Problems(err)
	for i := range problems {
		problems[i].Path = "params." + problems[i].Path
	}
	return strictyaml.Join(problems)
}

// values returns the values of a configuration's variables in user data and environment.
func (f *experimentFlags) values(p *process.Process, w *workload.Workload) (map[string]string, error) {
	values := make(map[string]string)
	for _, param := range w.Params {
		if text, set := p.LookupEnv(param.Name); set { // also an empty one, as there
			values[param.Name] = text
		}
	}
	values = w.Texts(values)
	if f.userData == "" {
		return values, nil
	}
	text, err := size.ReadFile(f.userData)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, process.Usagef(nearest.File(f.userData), "--user-data: file %s does not exist", f.userData)
	} else if err != nil {
		return nil, process.Usagef("", "--user-data: %w", err)
	}
	var data map[string]any
	if _, err := strictyaml.Decode(f.userData, text, &data); err != nil {
		return nil, process.Usagef("", "--user-data: %w", err)
	}
	for name, value := range data {
		if _, err := w.Param(name); err != nil {
			continue // one file may serve several configurations
		}
		if values[name], err = workload.Written(value); err != nil {
			return nil, process.Usagef("", "--user-data: %s: %w", name, err)
		}
	}
	return values, nil
}
