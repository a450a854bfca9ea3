package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// kubeBurnerModule names the module that BenchmarkBesideKubeBurner builds: its go.mod has
// replacements, so that it is built in a directory of its own.
const kubeBurnerModule = "github.com/kube-burner/kube-burner/v2@v2.7.3"

// What a run of one configuration costs this program and kube-burner, by turns on one lab,
// and how many of its pods each of them has measured.
func BenchmarkBesideKubeBurner(b *testing.B) {
	other := kubeBurner(b)
	p := suite.Program(b)
	must(b, p, "lab", "up", "l", "--nodes", "100", "--start-latency", "uniform:500ms,1500ms")
	defer must(b, p, "lab", "down", "l")
	kubeconfig := must(b, p, "lab", "kubeconfig", "l")
	template := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: 'p-{{.Iteration}}'\nspec:\n  containers:\n  - name: c\n    image: pause\n"
	if err := os.WriteFile(filepath.Join(p.Dir, "pod.yml"), []byte(template), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, rate := range []int{100, 200} {
		for _, ours := range []bool{false, true} {
			name := map[bool]string{false: "kube-burner", true: "plimsoll"}[ours]
			b.Run(fmt.Sprintf("pods=4000/rate=%d/%s", rate, name), func(b *testing.B) {
				for i := range b.N {
					out := fmt.Sprintf("%s-%d-%d", name, rate, i)
					config := fmt.Sprintf("global: {gc: true, measurements: [{name: podLatency}]}\nmetricsEndpoints: [{indexer: {type: local, metricsDirectory: %s}}]\njobs:\n- {name: j, jobIterations: 4000, qps: %d, burst: %d, preLoadImages: false, namespace: beside, namespacedIterations: false, objects: [{objectTemplate: pod.yml, replicas: 1}]}\n", out, rate, rate)
					if err := os.WriteFile(filepath.Join(p.Dir, "beside.yml"), []byte(config), 0o600); err != nil {
						b.Fatal(err)
					}
					cmd := exec.Command(other, "init", "-c", "beside.yml", "--kubeconfig", kubeconfig, "--skip-log-file")
					if ours {
						cmd = p.Command("kube-burner", "init", "-c", "beside.yml", "--lab", "l", "--out", "record-"+out)
					}
					cmd.Dir = p.Dir
					begin := time.Now()
					if said, err := cmd.CombinedOutput(); cmd.ProcessState == nil {
						b.Fatalf("%v\n%s", err, said)
					}
					b.ReportMetric(1000*(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Seconds()/4000, "cpu-ms/pod")
					b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1e3, "peak-MB")
					b.ReportMetric(time.Since(begin).Seconds(), "s/run")
					b.ReportMetric(float64(measured(b, filepath.Join(p.Dir, out))), "measured")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// measured returns how many pods documents have a figure of.
func measured(b *testing.B, dir string) (n int) {
	b.Helper()
	var pods []struct{ PodReadyLatency *int }
	text, err := os.ReadFile(filepath.Join(dir, "podLatencyMeasurement-j.json"))
	if err == nil {
		err = json.Unmarshal(text, &pods)
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range pods {
		if p.PodReadyLatency != nil {
			n++
		}
	}
	return n
}

// kubeBurner builds kube-burner, or skips the benchmark where that cannot be had.
func kubeBurner(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "kube-burner")
	var module struct{ Dir, Error string }
	download := exec.Command("go", "mod", "download", "-json", kubeBurnerModule)
	download.Dir = os.TempDir() // no module's
	text, _ := download.Output()
	if err := json.Unmarshal(text, &module); err != nil || module.Dir == "" {
		b.Skipf("kube-burner cannot be downloaded: %s %v", module.Error, err)
	}
	if err := os.CopyFS(dir, os.DirFS(module.Dir)); err != nil {
		b.Fatal(err)
	}
	built := filepath.Join(filepath.Dir(dir), "built")
	build := exec.Command("go", "build", "-o", built, "./cmd/kube-burner")
	build.Dir, build.Env = dir, append(build.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		b.Skipf("kube-burner does not build: %v\n%s", err, said)
	}
	return built
}
