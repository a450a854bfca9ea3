package follow

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/workloads"
)

// What watching costs this program for each object that is watched (a machine,
// its instance, its disk, its launcher; a migration), while another process makes
// and removes them. It is the CPU of the whole process, and the bound is one of an
// object: at most 1 ms. What a machine costs is its objects together.
func BenchmarkWatchMachines(b *testing.B) {
	const machines = 300
	for _, args := range [][]string{{"vm-deploy", "machines", "run=true"}, {"vm-migration", "migrations", "parallelMigrations=50"}} {
		b.Run(fmt.Sprintf("machines=%d/%s", machines, args[0]), func(b *testing.B) {
			p := harness.New(os.Getenv).Program(b)
			for range b.N {
				must := func(args ...string) string {
					got := p.Run(b, args...)
					if got.Code != 0 {
						b.Fatalf("plimsoll %s: exit code %d\n%s", strings.Join(args, " "), got.Code, got.Stderr)
					}
					return strings.TrimSpace(got.Stdout)
				}
				must("lab", "up", "l", "--virt", "--time-scale", "60")
				news := watchAll(b, must("lab", "kubeconfig", "l"), args[0])
				before := cpuTime()
				must("sweep", args[0], "--lab", "l", "--axis", args[1], "--set", args[2], "--levels", fmt.Sprint(machines))
				cpu := (cpuTime() - before).Seconds() * 1000
				b.ReportMetric(cpu/float64(news.objects.Load()), "cpu-ms/object")
				b.ReportMetric(1, "bound-ms/object")
				b.ReportMetric(cpu/machines, "cpu-ms/machine")
				b.ReportMetric(float64(news.objects.Load())/machines, "objects/machine")
				b.ReportMetric(float64(news.all.Load())/machines, "news/machine")
				must("lab", "down", "l")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// watchAll watches what tells of a workload's objects, as a run does, of
// whichever run, and counts the news.
func watchAll(b *testing.B, kubeconfig, name string) *newsCount {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	client, err := api.NewClient(config, "plimsoll")
	if err != nil {
		b.Fatal(err)
	}
	machines := observe.Declare()
	machines.Name, machines.Objects = "kubevirt", described.OfMachines
	w, err := workload.Load(workloads.FS(), name, workload.TargetsOf(machines))
	if err != nil {
		b.Fatal(err)
	}
	// Launchers are followed too, as the boot storm does.
	objects := described.Of(w)
	objects.Resources = append(objects.Resources, described.Resource{Name: "launcher", APIVersion: "v1", Kind: "Pod", Of: "owner"})
	for _, condition := range []string{"PodScheduled", "ContainersReady"} {
		objects.Milestones = append(objects.Milestones, described.ObjectMilestone{Name: "Launcher" + condition, When: described.When{Resource: "launcher", Condition: condition}})
	}
	mapper, err := client.Mapper()
	if err != nil {
		b.Fatal(err)
	}
	common := &prepared.Run{Client: client, Load: &prepared.Workload{Objects: objects}, Sink: &kubetest.Sink{}, Clock: record.StartClock(time.Now), Step: func() int { return 1 }}
	set, err := newObjectSet(common, common.Load.Objects, &Ageing{Run: common}, newNamespaceSet(), mapper, silent{})
	if err != nil {
		b.Fatal(err)
	}
	set.ours, set.probing = func(string) bool { return true }, b.Context()
	var news newsCount
	for _, w := range set.watchers() {
		w.Client, w.Clock, w.Emit = client, common.Clock, func(record.Body) {}
		w.Handler = &countedNews{w.Handler, &news}
		if w.Query != nil {
			w.Query = url.Values{"labelSelector": {api.LabelManagedBy + "=" + api.ManagedBy}}
		}
		if err := w.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		go func() { _ = w.Run(b.Context()) }()
	}
	return &news
}

// newsCount counts a watch's events, and their objects.
type newsCount struct{ all, objects atomic.Int64 }

// countedNews counts what a watch tells.
type countedNews struct {
	api.Handler
	n *newsCount
}

func (c *countedNews) Changed(now record.Micros, kind string, object []byte) error {
	c.n.all.Add(1)
	if kind == api.EventAdded {
		c.n.objects.Add(1)
	}
	return c.Handler.Changed(now, kind, object)
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
