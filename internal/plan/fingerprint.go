package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Fingerprint identifies the conditions of a plan's steps, without budget, name and what chooses the steps.
func (p *Plan) Fingerprint() (string, error) {
	said := p.normalised()
	list := []any{
		said.Workload, said.Params, said.Target.String(), said.Axis.Name, said.Axis.Life, said.Arms, said.Repeat.Most, said.Seed,
		said.Pace, said.Hold, said.StepTimeout, said.Primary, said.Guards, said.NormalEvents, said.Fresh,
	}
	if len(said.GuardQueries) > 0 { // earlier versions had none
		list = append(list, said.GuardQueries)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("fingerprint the experiment: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
