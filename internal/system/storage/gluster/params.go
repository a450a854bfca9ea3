package gluster

import (
	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
)

// leastXFS is the least that mkfs.xfs makes.
const leastXFS = 300 << 20

// Params are the parameters of workloads that SettingsOf reads.
func Params() []string {
	return []string{"multiplex", "maxBricksPerProcess", "replica", "bricks", "brickSize"}
}

// SettingsOf is what they say of a GlusterFS, but for where it lies.
func SettingsOf(p workload.Params) (Settings, error) {
	s := Settings{Replica: int(p.Int("replica")), Multiplex: p.Flag("multiplex"), MaxBricks: int(p.Int("maxBricksPerProcess")), XFS: p.Get("bricks") == "xfs", Size: p.Bytes("brickSize")}
	switch {
	case s.Replica > machine.MaxConnected:
		return s, system.ParamMistake("replica", "", "there can be %d storage servers at most", machine.MaxConnected)
	case s.XFS && s.Size < leastXFS:
		return s, system.ParamMistake("brickSize", "", "an XFS takes 300MiB at least")
	}
	return s, nil
}

// Able is Check with the command that helps, and what can be done instead.
func Able(xfs bool, instead string) error {
	return system.Lacking(Check(xfs), instead)
}
