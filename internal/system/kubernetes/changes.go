package kubernetes

import (
	"context"
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/change"
)

// settingChanges lists the changes of settings for a dry run.
func settingChanges(variants []armVariant) (list []system.Change) {
	for _, a := range variants {
		for _, v := range a.Settings {
			var places []string
			for _, in := range v.In {
				if in.Path != "" && !strings.HasPrefix(in.Path, "status.") {
					places = append(places, in.Path+" of "+in.Kind)
				}
			}
			c := system.Change{Action: system.ChangeIt, What: fmt.Sprintf("%s to %v", strings.Join(places, ", or without it "), v.To)}
			if a.arm != "" {
				c.Each = "step of arm " + a.arm
			}
			list = append(list, c)
		}
	}
	return list
}

// settingTexts says what the run would change in the cluster, for the user's consent.
func (s *session) settingTexts(ctx context.Context) (list []string, err error) {
	if s.ToRead {
		return nil, nil
	}
	for _, a := range s.toLoad() {
		during := "the run"
		if a.arm != "" {
			during = "arm " + a.arm
		}
		more, err := change.Texts(ctx, s.cluster.client, a.Settings, during)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}
