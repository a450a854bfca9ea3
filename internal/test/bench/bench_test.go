package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// suite is the benchmarks, which run the built program.
var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }

// must runs a command that has to succeed, and returns what it prints.
func must(b *testing.B, p *harness.Program, args ...string) string {
	b.Helper()
	got := p.Run(b, args...)
	if got.Code != 0 {
		b.Fatalf("plimsoll %s: exit code %d\n%s", strings.Join(args, " "), got.Code, got.Stderr)
	}
	return strings.TrimSpace(got.Stdout)
}

// How long a lab takes until it can be used, and what it holds then.
func BenchmarkLabUp(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			p := suite.Program(b)
			for range b.N {
				begin := time.Now()
				must(b, p, "lab", "up", "l", "--nodes", fmt.Sprint(nodes))
				b.ReportMetric(time.Since(begin).Seconds(), "s/up")
				b.ReportMetric(float64(memoryOf(p.State))/1e6, "MB")
				must(b, p, "lab", "down", "l")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// memoryOf returns the resident memory of all processes of a state directory.
func memoryOf(state string) int64 {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	total := int64(0)
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(line), state+"/") {
			continue
		}
		statm, err := os.ReadFile(filepath.Join(filepath.Dir(file), "statm"))
		var size, resident int64
		if err == nil {
			fmt.Sscan(string(statm), &size, &resident)
		}
		total += resident * int64(os.Getpagesize())
	}
	return total
}

// What a pod costs this program, from the first request to the end of the
// hold, and what it costs a plain typed client that creates and watches.
func BenchmarkPods(b *testing.B) {
	for _, level := range []int{40, 100} {
		pods := 100 * level
		b.Run(fmt.Sprintf("pods=%d/plimsoll", pods), func(b *testing.B) {
			p := suite.Program(b)
			for range b.N {
				must(b, p, "sweep", "node-density", "--lab-nodes", "100", "--levels", fmt.Sprint(level), "--slo", "all Ready", "--out", "r")
				r := p.Result(b, "r")
				s := r.Steps[0]
				if s.Objects.Ready != pods || s.Objects.Intended != pods {
					b.Fatalf("of %d pods: %+v", pods, s.Objects)
				}
				os.RemoveAll(filepath.Join(p.Dir, "r"))
				b.ReportMetric(1000*r.Cost.LoadCPUSeconds/float64(pods), "cpu-ms/pod")
				b.ReportMetric(float64(r.Cost.LoadPeakMemoryBytes)/1e6, "peak-MB")
				b.ReportMetric(*s.AchievedRate, "pods/s")
				lab := 0.0
				for source, u := range s.Resources {
					if source != usage.SourceSelf {
						lab += u.CPUSeconds
					}
				}
				b.ReportMetric(1000*lab/float64(pods), "lab-cpu-ms/pod")
			}
			b.ReportMetric(0, "ns/op")
		})
		b.Run(fmt.Sprintf("pods=%d/plain-client", pods), func(b *testing.B) {
			p := suite.Program(b)
			for range b.N {
				must(b, p, "lab", "up", "l", "--nodes", "100")
				begin := time.Now()
				cpu := plainClient(b, must(b, p, "lab", "kubeconfig", "l"), pods)
				b.ReportMetric(1000*cpu.Seconds()/float64(pods), "cpu-ms/pod")
				b.ReportMetric(float64(pods)/time.Since(begin).Seconds(), "pods/s")
				must(b, p, "lab", "down", "l")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// plainClient creates pods with 8 in flight and watches them until they are
// ready, and does nothing else. It returns the CPU time that took.
func plainClient(b *testing.B, kubeconfig string, pods int) time.Duration {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := cpuTime()
	ready := make(map[string]bool)
	watch, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(pods); i = next.Add(1) {
				no := false
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i), Labels: map[string]string{"app": "plain"}},
					Spec:       corev1.PodSpec{AutomountServiceAccountToken: &no, EnableServiceLinks: &no, Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
				}
				if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready[pod.Name] = true
			}
		}
		if len(ready) == pods {
			break
		}
	}
	wg.Wait()
	return cpuTime() - before
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
