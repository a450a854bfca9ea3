package advise_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	kubeletapi "k8s.io/kubelet/config/v1beta1"
	kubevirt "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// variedParameters returns the parameters of each calculator that decide on files:
// a number is drawn between two, words are drawn from those between bars, a
// parameter with an exclamation mark is always given, the others half the time.
func variedParameters() map[string]string {
	const router = "rate=1..1000000 connections=100..3000000 routes=1..20000 header=1..300000 threads=1..64 memory=64..100000Mi nofile=1000..10000000 " +
		"domain=apps.example.com|a.b page=1..1000000 encryption=none|edge|passthrough|reencrypt measured=100..90000 link=1Gbit|25GbE|2x100GbE metal"
	return map[string]string{
		"subnet": "platform=openshift|kubernetes nodes=1..20000 pods-per-node=10..3000 services=1..100000 host-prefix=16..29 dual-stack growth=1..90% " +
			"machine-cidr=10.0.0.0/16|192.168.0.0/16|fd00::/64 cluster-cidr=10.128.0.0/10|10.128.0.0/14|172.20.0.0/15|fd01::/48 service-cidr=172.30.0.0/16|10.96.0.0/12|fd02::/112 network=OVNKubernetes|OpenShiftSDN avoid=10.128.0.0/16|172.17.0.0/16",
		"kubelet": "!max-pods=10..4000 platform=openshift|kubernetes nodes=1..2000 host-prefix=18..28 cores=1..256 memory=2..2000Gi qps=1..2000 burst=1..4000 even-spread " +
			"max-unavailable=1..50 pool=worker|dense|gpu-1 label=a=b|example.com/pool=x pid-max=32768..4194304 measured=kubelet@100=0.4,300Mi reboot=5m|90s",
		"host": "!format=sysctl|tuned|machineconfig|ansible pods=1..5000 connections=1..20000000 outgoing=1..60000 neighbours=1..1000000 arp-flux " +
			"packet=64..20000000 rtt=0.01ms|0.208ms|7ms|300ms link=1Gbit|50Gbit|400Gbit pids-per-pod=100..100000 pool=worker|dense platform=openshift|kubernetes",
		"ceph":                      "!osds=1..5000 replicas=1..6 target=10..400 fill=10..100% clones=1..5000 pool=a=50%|vms=80%|b=20%,6 pool-name=vms|my.pool storage-class=fast|ocs-rbd",
		"virt":                      "!vms=1..20000 nodes=1..1000 pods=1..100000 migrate=1..2000 zones=1..8 parallel=1..200 parallel-node=1..20 kubevirt=0.40|0.44|1.0|1.4|1.6 platform=openshift|kubernetes link=10Gbit|100Gbit vm-memory=1..64Gi max-unavailable=1..30 cores=4..128 memory=16..1024Gi clones=1..2000 clone-lock=1s|300ms max-pods=100..2500",
		"router":                    router + " platform=openshift|openshift3",
		"router --platform=haproxy": router + " cpus=0|0-3|1,3|0-7,16-23|5",
		"network":                   "mtu=1280..9500 overlay=geneve|vxlan|ipip|wireguard|none ipsec ipv6 platform=openshift|kubernetes networks=1..20000000 link=1Gbit|100Gbit",
		"plan": "!nodes=1..2000 platform=openshift|kubernetes pods=1..200000 vms=1..20000 pods-per-node=10..2800 osds=3..2000 replicas=2..4 mtu=1400..9000 rtt=0.1ms|5ms link=10Gbit|2x25GbE " +
			"growth=1..90% machine-cidr=10.0.0.0/16|192.168.0.0/16 cores=8..128 memory=64..2000Gi pool-name=vms max-unavailable=1..20",
	}
}

// drawFlags draws parameters.
func drawFlags(random *rand.Rand, parameters string) (args []string) {
	between := regexp.MustCompile(`^(\d+)\.\.(\d+)(\D*)$`)
	for p := range strings.FieldsSeq(parameters) {
		name, values, _ := strings.Cut(strings.TrimPrefix(p, "!"), "=")
		if name == strings.TrimPrefix(p, "!") && random.IntN(2) == 0 {
			args = append(args, "--"+name)
			continue
		}
		if values == "" || p[0] != '!' && random.IntN(2) == 0 {
			continue
		}
		if m := between.FindStringSubmatch(values); m != nil {
			low, _ := strconv.ParseFloat(m[1], 64)
			high, _ := strconv.ParseFloat(m[2], 64)
			// As many small ones as large ones.
			args = append(args, fmt.Sprintf("--%s=%.0f%s", name, low*math.Pow(high/low, random.Float64()), m[3]))
			continue
		}
		words := strings.Split(values, "|")
		args = append(args, "--"+name+"="+words[random.IntN(len(words))])
	}
	return args
}

// Whatever the parameters are, what is written is taken by what reads it, and
// by our own lint, all of it together.
func TestWhatReadsTheFilesTakesThem(t *testing.T) {
	t.Parallel()
	read := map[string]int{}
	var profiles []string // of tuned: one program reads them all, at the end
	try := func(args []string) (wrote bool) {
		line := "tune " + strings.Join(args, " ")
		dir := filepath.Join(t.TempDir(), "written")
		got := e2e.Command(t, nil, append(append([]string{"tune"}, args...), "--write", dir)...)
		if got.Code != process.ExitPass && got.Code != process.ExitFail && (got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "plimsoll: --")) {
			t.Errorf("%s: exit code %d\n%s", line, got.Code, got.Stderr)
		}
		if _, err := os.Stat(dir); err != nil {
			return false // what cannot be is refused, and there may be nothing to write
		}
		if got := e2e.Command(t, nil, "lint", "-R", dir); got.Code != process.ExitPass && !strings.Contains(got.Stderr, "no file was checked") {
			t.Errorf("%s: lint ends with %d\n%s%s", line, got.Code, got.Stdout, got.Stderr)
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if d.Name() == "tuned.conf" {
				profiles = append(profiles, path)
				return nil
			}
			reader, says := readWritten(t, path)
			if read[reader]++; says != "" {
				data, _ := os.ReadFile(path)
				t.Errorf("%s: %s: %s: %s\n%.3000s", line, d.Name(), reader, says, data)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	for _, args := range []string{
		"plan --vms 3000 --pods 21400 --nodes 100 --osds 141 --rtt 0.208ms --link 2x25GbE",
		"plan --pods-per-node 2500 --nodes 26 --cores 112 --memory 512Gi",
		"subnet --cluster-cidr 10.128.0.0/10 --host-prefix 23",
		"subnet --platform kubernetes --nodes 400 --dual-stack",
		"kubelet --max-pods 400 --platform kubernetes",
		"host --pods 400 --connections 5000 --outgoing 40000 --arp-flux --format sysctl --format tuned --format machineconfig",
		"router --platform haproxy --header 64Ki --threads 2 --cpus 0-1 --connections 5000",
		"router --routes 5000 --domain apps.example.com --rate 50000 --header 64Ki",
		"virt --vms 3000 --kubevirt 0.44 --zones 3",
		"virt --vms 3000 --kubevirt 0.44 --platform kubernetes",
		"ceph --osds 141 --clones 500",
		"network --mtu 9000",
		"network --mtu 9000 --ipsec --overlay geneve",
		"host --rtt 100ms --link 100Gbit --format sysctl --format tuned --format machineconfig --format ansible",
		"host --rtt 0.05ms --link 1Gbit --pods 500 --connections 2000000 --format tuned --format machineconfig",
		"host --packet 4Mi --outgoing 50000 --neighbours 100000",
		"router --platform haproxy --threads 8 --cpus 0-3",
		"router --platform openshift3 --connections 30000 --header 64Ki",
		"kubelet --max-pods 2500 --pool dense --label a=b --max-unavailable 5 --nodes 26 --even-spread --qps 300",
		"kubelet --max-pods 500 --pool dense --cores 112 --memory 512Gi",
		"subnet --cluster-cidr 10.0.0.0/14 --cluster-cidr 10.4.0.0/15 --machine-cidr 192.168.0.0/16",
		"subnet --cluster-cidr fd01::/48 --host-prefix 64",
		"ceph --osds 12 --pool vms=50% --pool archive=20%,6 --clones 80",
		"virt --vms 100 --kubevirt 0.40",
		"plan --platform kubernetes --pods-per-node 500 --nodes 100 --osds 12 --pool-name vms",
	} {
		if !try(strings.Fields(args)) {
			t.Errorf("tune %s wrote nothing", args)
		}
	}
	random := rand.New(rand.NewPCG(14, 8))
	all := variedParameters()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		draws := suite.Size(8, 40)
		wrote := 0
		for range draws {
			if try(append(strings.Fields(name), drawFlags(random, all[name])...)) {
				wrote++
			}
		}
		if wrote < draws/8 {
			t.Errorf("tune %s: only %d of %d draws wrote files", name, wrote, draws)
		}
	}
	if reader, says := tunedReads(profiles...); says != "" {
		t.Errorf("%s: %s", reader, says)
	} else {
		read[reader] += len(profiles)
	}
	for _, reader := range slices.Sorted(maps.Keys(read)) {
		t.Logf("%s: %d files", reader, read[reader])
	}
}

// reads runs a program that reads files, and returns its name and what it says.
func reads(name string, args ...string) (reader, says string) {
	if _, err := exec.LookPath(name); err != nil {
		return name + ", which is not here", ""
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return name, fmt.Sprintf("%v\n%s", err, out)
	}
	return name, string(out)
}

// tunedReads opens profiles as tuned does.
func tunedReads(paths ...string) (reader, says string) {
	return reads("python3", append([]string{"-c", `import configparser, sys
for path in sys.argv[1:]:
    c = configparser.ConfigParser(delimiters=("=",), inline_comment_prefixes=("#",), strict=True)
    c.optionxform = str
    c.read(path)
    assert c["main"]["include"] == "throughput-performance", (path, dict(c["main"]))
    for key, value in c["sysctl"].items():
        assert value.lstrip(">").replace("\t", " ").replace(" ", "").replace("-", "").replace(",", "").isdigit(), (path, key, value)`}, paths...)...)
}

// readWritten gives a file to the program or the types that read it, and
// returns which, and what they have against it.
func readWritten(t *testing.T, path string) (reader, says string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch base := filepath.Base(path); {
	case strings.HasSuffix(base, ".sh"):
		return reads("sh", "-n", path)
	case strings.HasSuffix(base, ".conf"):
		if _, err := os.Stat("/proc/sys/net/core/netdev_budget"); err != nil {
			t.Logf("sysctl does not read %s: only the first network namespace has all that it sets", base)
			return "sysctl", ""
		}
		reader, says = reads("sysctl", "--dry-run", "--ignore", "-p", path) // of names that this kernel lacks
		for line := range strings.Lines(says) {
			if _, _, ok := strings.Cut(line, " = "); !ok || strings.Contains(line, "#") {
				return reader, says
			}
		}
		return reader, ""
	case base == "haproxy-global.cfg":
		rest := filepath.Join(t.TempDir(), "rest.cfg")
		if err := os.WriteFile(rest, []byte("defaults\n  mode http\n  timeout client 1s\n  timeout server 1s\n  timeout connect 1s\nfrontend a\n  bind 127.0.0.1:1\n  default_backend b\nbackend b\n  server s 127.0.0.1:1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		reader, says = reads("haproxy", "-c", "-f", path, "-f", rest)
		if strings.Contains(says, "WARNING") || strings.Contains(says, "ALERT") || strings.Contains(says, "exit status") {
			return reader, says
		}
		return reader, ""
	case strings.HasSuffix(base, ".yaml"), strings.HasSuffix(base, ".yml"):
		var object any = new(any)
		var head struct{ Kind string }
		_ = k8syaml.Unmarshal(data, &head)
		switch head.Kind {
		case "KubeVirt":
			object = new(kubevirt.KubeVirt)
		case "StorageProfile":
			object = new(cdi.StorageProfile)
		case "KubeletConfiguration":
			object = new(kubeletapi.KubeletConfiguration)
		case "KubeletConfig":
			object = new(struct {
				APIVersion, Kind string
				Metadata         any
				Spec             struct {
					MachineConfigPoolSelector any
					KubeletConfig             kubeletapi.KubeletConfiguration
				}
			})
		}
		if err := k8syaml.UnmarshalStrict(data, object); err != nil {
			says = err.Error()
		}
		return strings.TrimSuffix("YAML of a "+head.Kind, " of a "), says
	}
	return "no program: " + filepath.Base(path), ""
}
