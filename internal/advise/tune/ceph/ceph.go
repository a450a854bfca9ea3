// Package ceph computes placement groups of a Ceph cluster's pools, and how many clones an image carries.
package ceph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Ceph holds the parameters of a Ceph cluster.
type Ceph struct {
	OSDs     param.In[int64]       `yaml:"osds" flag:"osds" help:"number of OSDs" range:"1..1000000" needed:"--osds 141"`
	Replicas param.In[int64]       `yaml:"replicas" flag:"replicas" help:"copies of each object, or k+m of an erasure-coded pool" range:"1..100" default:"3" why:"Ceph's own pool size"`
	Target   param.In[int64]       `yaml:"target" flag:"target" help:"placement groups wanted on each OSD" range:"1..10000" default:"100" why:"V12, and Ceph's mon_target_pg_per_osd" in:"placement groups/OSD"`
	Fill     param.In[param.Share] `yaml:"fill" flag:"fill" help:"largest share of the cluster that is used" range:"0.01..1" default:"85%" why:"V12: the share at which Ceph warns that an OSD is nearly full"`
	// Pool names the only pool of the document's formula, if Pools is empty.
	Pool         param.In[string] `yaml:"poolName" flag:"pool-name" takes:"name" help:"name of the only pool" default:"POOL" why:"a placeholder"`
	Pools        []CephPool       `yaml:"pool" flag:"pool" takes:"name=share[,copies]" help:"one of several pools with its share of the data" example:"vms=80%"`
	Clones       param.In[int64]  `yaml:"clones" flag:"clones" help:"clones of one image" range:"0..10000000"`
	StorageClass param.In[string] `yaml:"storageClass" flag:"storage-class" takes:"name" help:"storage class of the clones" default:"ocs-external-storagecluster-ceph-rbd" why:"the document's" when:"clones" object:"true"`
}

// CephPool is one of several pools.
type CephPool struct {
	Name  string
	Share float64 // of the data, 0 to 1
	Size  int64   // copies; 0 is the cluster's
}

// UnmarshalText reads a pool as a parameter.
func (p *CephPool) UnmarshalText(text []byte) error {
	var share param.Share
	err := param.ReadParts(string(text), "name=share[,copies]", &p.Name, &share, &p.Size)
	p.Share = float64(share)
	return err
}

// noPool is the default of Pool, in place of a name.
const noPool = "POOL"

// Limits of ceph-csi, from the source of its command line.
const (
	CloneSoftLimit = 250 // --minsnapshotsonimage: flattening begins
	cloneHardLimit = 450 // --maxsnapshotsonimage: further clones are refused
	clonePurge     = 100 // above it, CSI clones may not be purged (V25)
)

// Cases returns the cases in which defaults matter.
func (p *Ceph) Cases() map[string]bool { return map[string]bool{"clones": p.Clones.Value > 0} }

// Tune computes placement groups by the document's formula (V12) and by the official calculator.
func Tune(p Ceph) (*answer.Answer, error) {
	b, err := answer.Begin("ceph", &p, func() error {
		for _, pool := range append([]CephPool{{Size: p.Replicas.Value}}, p.Pools...) {
			if pool.Size > p.OSDs.Value {
				return param.Bad("replicas", "", "%d copies on %d OSDs: each copy needs an OSD of its own", pool.Size, p.OSDs.Value)
			}
		}
		return checkPools(p.Pools)
	})
	if err != nil {
		return nil, err
	}
	b.Title = fmt.Sprintf("Ceph: placement groups for %s OSDs with %d copies", param.Grouped(p.OSDs.Value), p.Replicas.Value)
	t := cephTuner{b, p, p.Pools}
	if len(p.Pools) == 0 {
		t.pools = []CephPool{{Name: p.Pool.Value, Share: float64(p.Fill.Value)}}
	}
	placed := 0.0
	for _, pool := range t.pools {
		placed += t.placementGroups(pool)
	}
	if total := shares(t.pools); len(p.Pools) > 0 && total < 0.999 {
		t.Warn("the pools' shares come to %s%%: the rest of the target is left to pools that are not named", param.Trim(math.Round(total*1000)/10))
	}
	perOSD := placed / float64(p.OSDs.Value)
	t.Figure("pgPerOSD", math.Round(perOSD*10)/10, "", "copies of all placement groups named here, for each OSD")
	t.Step("placement groups on each OSD = sum of pg_num x copies / OSDs", fmt.Sprintf("%s / %d = %.1f", param.Trim(placed), p.OSDs.Value, perOSD), "ceph-target")
	const refused = 250
	t.Cite("ceph-max")
	switch {
	case perOSD > refused:
		t.Find(answer.Finding{Grade: answer.Cannot, What: "placement groups on each OSD", Now: fmt.Sprintf("%.0f", perOSD), Wanted: fmt.Sprintf("at most %d (mon_max_pg_per_osd)", refused), Cost: "the monitors refuse the pool", Remedy: "fewer placement groups, or raise mon_max_pg_per_osd"})
	case perOSD > 2*float64(p.Target.Value):
		t.Find(answer.Finding{Grade: answer.Change, What: "placement groups on each OSD", Now: fmt.Sprintf("%.0f", perOSD), Wanted: fmt.Sprintf("about %d", p.Target.Value), Cost: "CPU and memory of the OSDs, and longer peering", Remedy: "a smaller target, or fewer pools"})
	default:
		t.Find(answer.Finding{Grade: answer.OK, What: "placement groups on each OSD", Now: fmt.Sprintf("%.0f", perOSD), Wanted: fmt.Sprintf("about %d, at most %d", p.Target.Value, refused)})
	}
	t.Warn("more placement groups even out the load of the OSDs and cost each of them CPU and memory: raise pg_num in steps and watch (V12)")

	t.writes()
	for _, pool := range t.pools {
		name := param.Quote(pool.Name)
		t.Command("ceph osd pool set "+name+" pg_autoscale_mode off", "before pg_num, else the autoscaler takes it back")
		t.Command(fmt.Sprintf("ceph osd pool set %s pg_num %d", name, t.Result(t.resultName(pool.Name))), "pgp_num follows by itself since Nautilus")
	}
	t.Correct("V13", "ceph osd pool set POOL pg_autoscaler_mode off", "the key is pg_autoscale_mode", "ceph refuses the unknown key, the autoscaler stays on and changes pg_num again")
	t.Cite("ceph-pg")
	t.prometheus()
	t.Cite("V14", "ceph-prometheus")
	t.Warn("mgr/prometheus/scrape_interval must be Prometheus' own scrape interval: set both to 60 s")
	t.clones()
	text, usage := answer.Script("Ceph: placement groups and monitoring of the pools.", t.Commands), "sh ceph-tuning.sh"
	if len(p.Pools) == 0 && p.Pool.Value == noPool {
		// The script takes the name as its argument.
		usage += " NAME-OF-THE-POOL"
		text = strings.Replace(strings.ReplaceAll(text, " "+noPool, ` "$pool"`), "set -eu\n", "set -eu\npool=${1:?usage: "+usage+"}\n", 1)
	}
	t.File("ceph-tuning.sh", text, usage+", on a host with the ceph command and an administrator's key")
	return &t.Answer, nil
}

type cephTuner struct {
	*answer.Builder
	Ceph
	pools []CephPool // with the only one of the document's formula
}

func (t *cephTuner) resultName(pool string) string {
	if len(t.pools) == 1 {
		return "pgNum"
	}
	return "pgNum." + pool
}

// placementGroups computes a pool's placement groups, and returns how many copies it puts on the OSDs.
func (t *cephTuner) placementGroups(pool CephPool) float64 {
	size := cmp.Or(pool.Size, t.Replicas.Value)
	ideal := float64(t.Target.Value) * float64(t.OSDs.Value) * pool.Share / float64(size)
	document := powerOfTwo(math.Round(math.Log2(max(ideal, 1))))
	official, floored := calculatorPGs(ideal, float64(t.OSDs.Value)/float64(size))
	numbers := fmt.Sprintf("%d x %d x %s / %d = %s", t.Target.Value, t.OSDs.Value, param.Trim(pool.Share), size, param.Trim(math.Round(ideal*100)/100))
	of := ""
	if len(t.Pools) > 0 {
		of = " of " + pool.Name
	}
	t.Step("placement groups"+of+" = target x OSDs x share / copies", numbers, "V12", "ceph-pgcalc")
	t.Step("the document: 2^round(log2(x))", fmt.Sprintf("2^round(%.3f) = %d", math.Log2(max(ideal, 1)), document), "V12")
	how := "the calculator: nearest power of two, the next one where that is more than 25% below, at least OSDs / copies"
	if floored {
		how += fmt.Sprintf(" (here the floor, %s)", param.Trim(math.Round(float64(t.OSDs.Value)/float64(size)*100)/100))
	}
	t.Step(how, fmt.Sprint(official), "ceph-pgcalc")
	// The document's formula is for one pool; with several the calculator's floor and rounding count.
	use, other, by, otherBy := document, official, "the document's formula", "the official calculator"
	if len(t.Pools) > 0 {
		use, other, by, otherBy = official, document, otherBy, by
	}
	gives := "the same"
	if use != other {
		gives = fmt.Sprint(other)
	}
	name := t.resultName(pool.Name)
	t.Figure(name, use, "", by+"; "+otherBy+" gives "+gives)
	if use != other {
		t.Figure(strings.Replace(name, "pgNum", "pgNumOther", 1), other, "", "by the other of the two")
	}
	return float64(use) * float64(size)
}

// calculatorPGs rounds as the official calculator does: to the nearest power of two, or up from 25% below.
func calculatorPGs(ideal, floor float64) (groups int64, floored bool) {
	if ideal < floor {
		ideal, floored = floor, true
	}
	ideal = max(ideal, 1)
	groups = powerOfTwo(math.Round(math.Log2(ideal)))
	if float64(groups) < ideal*0.75 {
		groups *= 2
	}
	return groups, floored
}

func powerOfTwo(exponent float64) int64 { return int64(1) << int64(max(exponent, 0)) }

func checkPools(pools []CephPool) error {
	seen := map[string]bool{}
	for _, p := range pools {
		switch {
		case p.Name == "" || !param.IsWord(p.Name):
			return param.Bad("pool", "", "%q is not the name of a pool", p.Name)
		case seen[p.Name]:
			return param.Bad("pool", "", "%s is given twice", p.Name)
		case p.Share <= 0 || p.Share > 1:
			return param.Bad("pool", "for example vms=80%", "%s: a share of the data is above 0 and at most 100%%", p.Name)
		case p.Size < 0 || p.Size > 100:
			return param.Bad("pool", "", "%s: %d copies", p.Name, p.Size)
		}
		seen[p.Name] = true
	}
	if total := shares(pools); total > 1.0001 {
		return param.Bad("pool", "shares are of all data", "the shares come to %s%%", param.Trim(math.Round(total*1000)/10))
	}
	return nil
}

func shares(pools []CephPool) (total float64) {
	for _, p := range pools {
		total += p.Share
	}
	return total
}

// prometheus is V14, with the module's own page.
func (t *cephTuner) prometheus() {
	var names []string
	for _, p := range t.pools {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	t.Command("ceph config set mgr mgr/prometheus/rbd_stats_pools "+param.Quote(strings.Join(names, ",")), "statistics of the images in these pools")
	t.Command("ceph config set mgr mgr/prometheus/rbd_stats_pools_refresh_interval 600", "300 by default")
	t.Command("ceph config set mgr mgr/prometheus/scrape_interval 60", "15 by default; set Prometheus' own interval for this target to 60 s too")
	t.Command("ceph mgr module disable prometheus", "the module reads its settings when it starts")
	t.Command("ceph mgr module enable prometheus", "")
}

// clones is about V23 to V25: the clones of one image that Ceph carries.
func (t *cephTuner) clones() {
	n := t.Clones.Value
	if n == 0 {
		return
	}
	t.Cite("V24", "V25", "ceph-csi")
	t.Figure("clonesBeforeFlatten", CloneSoftLimit, "", "ceph-csi begins to flatten (--minsnapshotsonimage)")
	t.Figure("clonesRefused", cloneHardLimit, "", "ceph-csi answers ResourceExhausted until some are flattened (--maxsnapshotsonimage)")
	parents := param.CeilDiv(n, CloneSoftLimit)
	t.Figure("parentImages", parents, "", fmt.Sprintf("golden images needed so that none has more than %d clones", CloneSoftLimit))
	t.Step("golden images = clones / clones before flattening, rounded up", fmt.Sprintf("%d / %d = %d", n, CloneSoftLimit, parents), "V24", "ceph-csi")
	switch {
	case n > CloneSoftLimit:
		t.Find(answer.Finding{Grade: answer.Change, What: "clones of one image", Now: param.Grouped(n), Wanted: fmt.Sprintf("at most %d, or cloneStrategy copy", CloneSoftLimit), Cost: "flattening makes every further clone wait, the longer the larger the snapshot", Remedy: fmt.Sprintf("%d golden images, or the StorageProfile below", parents)})
	case n > clonePurge:
		t.Find(answer.Finding{Grade: answer.Change, What: "clones of one image", Now: param.Grouped(n), Wanted: fmt.Sprintf("at most %d, or cloneStrategy copy", clonePurge), Cost: "CSI clones above that may not be purged, even by hand", Remedy: "the StorageProfile below"})
	default:
		t.Find(answer.Finding{Grade: answer.OK, What: "clones of one image", Now: param.Grouped(n), Wanted: fmt.Sprintf("at most %d", clonePurge)})
	}
	t.Correct("V25", "oc edit -n openshift-cnv storageprofile NAME", "a StorageProfile belongs to no namespace and has the storage class's name", "")
	t.File("storageprofile.yaml", answer.Manifest(answer.Object("cdi.kubevirt.io/v1beta1", "StorageProfile", answer.Mapping{{"name", t.StorageClass.Value}}, answer.Mapping{{"cloneStrategy", "copy"}}), "Copies instead of CSI clones (V25)."), "the cluster: oc apply --server-side -f, it merges with what the operator keeps there")
}

// writes is V29: the cost of copies for a write.
func (t *cephTuner) writes() {
	n := t.Replicas.Value
	if n < 2 || n > 3 {
		return
	}
	share := 1 - float64(3-n)/3
	t.Step("added latency of writes under load = 88% with 3 copies, a third less for each copy fewer", fmt.Sprintf("88%% x (1 - %d/3) = %.0f%%", 3-n, 88*share), "V29")
	t.Figure("writeLatencyAdded", math.Round(88*share), "%", "at most, under the document's load of 1000 IOPS for each machine")
}
