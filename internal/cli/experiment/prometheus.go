package experiment

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan"
)

// prometheusToken is the variable of the environment with a bearer token.
const prometheusToken = "PLIMSOLL_PROMETHEUS_TOKEN"

// prometheusFlags say which Prometheus is asked, and how. What tells it who asks goes
// only to an address of the command line: that of a plan may be anybody's.
type prometheusFlags struct {
	plan.Prometheus
	tokenFile, user, passwordFile, ca string
	insecure                          bool
}

func (f *prometheusFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.URL, "prometheus", "", "also keep what the Prometheus at this `URL` has scraped; "+plan.OpenShift+" for that of the cluster")
	flags.StringArrayVar(&f.Match, "prometheus-match", nil, "`selector` of series to ask it for, besides those of objectives (default CPU and memory of processes); may be repeated")
	flags.StringVar(&f.tokenFile, "prometheus-token-file", "", "`file` with its bearer token, which "+prometheusToken+" in the environment can hold as well")
	flags.StringVar(&f.user, "prometheus-user", "", "`name` for it")
	flags.StringVar(&f.passwordFile, "prometheus-password-file", "", "`file` with the password of that name")
	flags.StringVar(&f.ca, "prometheus-ca", "", "`file` with certificates that are trusted for it, in PEM")
	flags.BoolVar(&f.insecure, "prometheus-insecure", false, "trust any certificate of it")
}

// access puts into the plan which Prometheus is asked, and returns how.
func (f *prometheusFlags) access(p *process.Process, to *plan.Plan) (a metrics.Access, err error) {
	files := [...]struct{ flag, file string }{{"token-file", f.tokenFile}, {"password-file", f.passwordFile}, {"ca", f.ca}}
	if f.URL == "" {
		if f.tokenFile+f.user+f.passwordFile+f.ca != "" || f.insecure || len(f.Match) > 0 {
			err = process.Usagef("add --prometheus URL; what tells who asks is not sent to an address that only a plan names", "no Prometheus is named to which the other flags belong")
		}
		return a, err
	}
	to.Prometheus = &f.Prometheus
	var texts [len(files)]string
	for i, of := range files {
		if of.file == "" {
			continue
		}
		text, err := os.ReadFile(of.file)
		if err != nil {
			return a, process.Usagef("", "--prometheus-%s: %w", of.flag, err)
		}
		texts[i] = strings.TrimSpace(string(text))
	}
	a = metrics.Access{Token: texts[0], User: f.user, Password: texts[1], CA: []byte(texts[2]), Insecure: f.insecure}
	switch {
	case f.tokenFile != "" && f.user != "":
		return a, process.Usagef("leave out one of them", "--prometheus-token-file and --prometheus-user both say who asks")
	case f.passwordFile != "" && f.user == "":
		return a, process.Usagef("add --prometheus-user", "--prometheus-password-file has no user")
	case f.tokenFile == "" && f.user == "":
		a.Token = p.Env(prometheusToken)
	}
	if strings.ContainsAny(a.Token, "\n\r\t ") {
		return a, process.Usagef("", "%w", errors.New("the bearer token of --prometheus is not valid: it has spaces or several lines"))
	}
	return a, nil
}
