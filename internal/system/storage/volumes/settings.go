package volumes

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

type settings struct {
	gluster  gluster.Settings // without its places
	mount    bool
	write    int64 // bytes of each volume's file, 0 for none
	creators int   // volumes made in parallel
	options  map[string]string
	distinct int           // number of distinct sets of options
	patience time.Duration // for a mount and a file
	memory   int64         // bytes, 0 for the available memory
	life     time.Duration // of a volume on the axis rate
	wait     time.Duration // before volumes are deleted
	fault    string
}

const (
	faultRestart = "restart" // glusterd alone
	faultReboot  = "reboot"  // every process of a storage server
	faultKill    = "kill"    // the process that serves most bricks
)

func settingsOf(p workload.Params, life time.Duration) (settings, error) {
	s := settings{
		mount: p.Flag("mount"), creators: int(p.Int("creators")), distinct: int(p.Int("distinctOptions")), patience: p.Duration("patience"),
		life: life, wait: p.Duration("deleteAfter"), fault: p.Get("fault"), write: p.Bytes("write"), memory: p.Bytes("memory"),
	}
	switch {
	case s.write > 0 && !s.mount:
		return s, system.ParamMistake("write", "set mount=true, or write=0", "only a volume that is mounted can be written to")
	case s.patience <= 0:
		return s, system.ParamMistake("patience", "for example 30s", "it must be more than 0")
	}
	var err error
	if s.options, err = optionsOf(p.Get("options")); err != nil {
		return s, err
	}
	s.gluster, err = gluster.SettingsOf(p)
	return s, err
}

// optionsOf reads options of volumes: name=value, separated by spaces.
func optionsOf(text string) (map[string]string, error) {
	options := make(map[string]string)
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" || value == "" {
			return nil, system.ParamMistake("options", "for example 'performance.io-cache=off network.ping-timeout=10'", "%q is not an option with its value", word)
		}
		options[name] = value
	}
	return options, nil
}

// optionsOf returns the options of volume n. Different ones keep bricks from sharing a process.
func (s settings) optionsOf(n int) map[string]string {
	if s.distinct <= 1 {
		return s.options
	}
	options := maps.Clone(s.options)
	options["network.inode-lru-limit"] = strconv.Itoa(16384 + n%s.distinct)
	return options
}

// kindOn returns the kind of objects on an axis, with the milestones that the settings reach.
func kindOn(k record.ObjectKind, all map[string]settings) record.ObjectKind {
	mounts, writes := false, false
	for _, s := range all {
		mounts, writes = mounts || s.mount, writes || s.write > 0
	}
	var list []record.Milestone
	for _, m := range k.Milestones {
		if !mounts && (m.Name == mounted || m.Name == unmounted) || !writes && (m.Name == written || m.Name == verified) {
			continue
		}
		list = append(list, m)
	}
	k.Milestones = list
	return k
}
