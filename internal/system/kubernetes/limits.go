package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/change"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// readLimits reads the cluster's own limits of concurrent objects, where the workload says.
func readLimits(ctx context.Context, c *api.Client, from *described.Limits, to *record.Concurrent) error {
	if from == nil {
		return nil
	}
	mapper, err := c.Mapper()
	if err != nil {
		return err
	}
	group, err := schema.ParseGroupVersion(from.APIVersion)
	if err != nil {
		return system.Mistakef("", "limits: %w", err)
	}
	mapping, err := mapper.RESTMapping(group.WithKind(from.Kind).GroupKind(), group.Version)
	if err != nil {
		return fmt.Errorf("the cluster knows no %s in %s: %w", from.Kind, from.APIVersion, err)
	}
	found := false
	_, err = c.ListIn(ctx, api.JSONEncoding(), api.Collection(mapping.Resource, ""), nil, func(object []byte) error {
		if !found {
			to.Limit, to.PerPlaceLimit = limitIn(object, from.All), limitIn(object, from.PerPlace)
		}
		found = true
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("there is no %s", from.Kind)
	}
	return err
}

// changed returns a limit as the run sets it, 0 where arms differ in it.
func changed(arms []armVariant, limit int, l described.Limit) int {
	of := func(v prepared.Variant) int {
		for _, setting := range v.Settings {
			if slices.ContainsFunc(setting.In, func(p workload.SettingPlace) bool { return p.Path != "" && p.Path == l.Path }) {
				if to, err := strconv.Atoi(fmt.Sprint(setting.To)); err == nil {
					return to
				}
			}
		}
		return limit
	}
	for _, a := range arms {
		if of(a.Variant) != of(arms[0].Variant) {
			return 0
		}
	}
	return of(arms[0].Variant)
}

func limitIn(object []byte, l described.Limit) int {
	if v := gjson.GetBytes(object, l.Path); l.Path != "" && v.Exists() {
		return int(v.Int())
	}
	return l.Default
}

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
