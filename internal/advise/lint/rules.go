package lint

import "plimsoll.dev/plimsoll/docs"

// Rule is one thing that is looked for.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"` // what is found, in a few words
	Why      string   `json:"why"`   // what it costs
	// Source is where that is known from: a row of the seed documents (V17), an
	// official page, or both.
	Source string `json:"source"`
}

// Rules are all rules, grouped by what they look at, as docs/rules.md has them.
func Rules() (rules []Rule) {
	for _, row := range docs.Rules() {
		rules = append(rules, Rule{row[0], Severity(row[1]), row[2], row[3], row[4]})
	}
	return rules
}
