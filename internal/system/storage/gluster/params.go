package gluster

import (
	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
)

// leastXFS is the smallest size for mkfs.xfs.
const leastXFS = 300 << 20

// Params lists the parameters that SettingsOf reads.
func Params() []string {
	return []string{"multiplex", "maxBricksPerProcess", "replica", "bricks", "brickSize"}
}

// SettingsOf reads Settings, without the places, from parameters.
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

// Able returns the error of Check with an install command and an alternative.
func Able(xfs bool, instead string) error {
	return system.Lacking(Check(xfs), instead)
}
