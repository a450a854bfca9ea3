package lab

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

func TestLeases(t *testing.T) {
	for _, tt := range []struct {
		nodes int
		want  time.Duration
		why   string
	}{
		{0, 40 * time.Second, "the kubelet's"},
		{40, 40 * time.Second, "the last that can keep the kubelet's"},
		{41, 41 * time.Second, "from here on in proportion"},
		{1000, 1000 * time.Second, "a thousand"},
		{5000, 5000 * time.Second, "the most that is promised"},
	} {
		got := leaseDuration(tt.nodes)
		if got != tt.want {
			t.Errorf("%d nodes (%s): leases of %v, want %v", tt.nodes, tt.why, got, tt.want)
		}
		// Each is renewed four times in its duration.
		if rate := float64(tt.nodes) * 4 / got.Seconds(); rate > leaseRenewals {
			t.Errorf("%d nodes: %.1f renewals a second, at most %d are wanted", tt.nodes, rate, leaseRenewals)
		}
		// The third of a lease that a renewal may take, and then some.
		if grace := nodeMonitorGrace(tt.nodes); grace < got || grace > 2*got {
			t.Errorf("%d nodes: not ready after %v with leases of %v", tt.nodes, grace, got)
		}
	}
}

// What the caller's environment says reaches no component.
func TestEnvironmentIsOurs(t *testing.T) {
	for _, name := range []string{"ETCD_DATA_DIR", "KUBECONFIG", "HTTPS_PROXY", "GODEBUG", "SSL_CERT_FILE", "PLIMSOLL_SECRET", "GOMEMLIMIT"} {
		t.Setenv(name, "of-the-caller")
	}
	t.Setenv("GOGC", "1")
	t.Setenv("GOMAXPROCS", "77")
	t.Setenv("HOME", "/of-the-caller")
	t.Setenv("PATH", "/of-the-caller")
	for _, tt := range []struct {
		component string
		cpus      int
		want      []string
		why       string
	}{
		{protocol.Etcd, 8, []string{"PATH", "HOME", "TMPDIR", "GOGC", "GOMAXPROCS=4"}, "half of the processors"},
		{protocol.Scheduler, 1, []string{"PATH", "HOME", "TMPDIR", "GOGC", "GOMAXPROCS=1"}, "half of one is one"},
		{protocol.APIServer, 8, []string{"PATH", "HOME", "TMPDIR", "GOGC"}, "all of them"},
	} {
		got := environment("/lab", tt.component, tt.cpus)
		for i, v := range got {
			name, _, _ := strings.Cut(v, "=")
			if strings.Contains(v, "of-the-caller") || strings.HasSuffix(v, "=77") || v == "GOGC=1" {
				t.Errorf("%s: %s", tt.component, v)
			}
			if i >= len(tt.want) || name != tt.want[i] && v != tt.want[i] {
				t.Errorf("%s with %d processors (%s): %v, want %v", tt.component, tt.cpus, tt.why, got, tt.want)
				break
			}
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.component, got, tt.want)
		}
	}
}

func TestPorts(t *testing.T) {
	anyFree := func(int) bool { return true }
	for _, tt := range []struct {
		first, last int // of the kernel's for outgoing connections
		free        func(port int) bool
		fails       bool
		why         string
	}{
		{32768, 60999, anyFree, false, "Linux's default"},
		{1024, 59000, anyFree, false, "a kernel that takes nearly all"},
		{32768, 60999, func(p int) bool { return p%7 == 0 }, false, "most are taken"},
		{32768, 60999, func(int) bool { return false }, true, "all are taken"},
		{lowestPort, highestPort, anyFree, true, "the kernel takes all"},
		{lowestPort + 4, highestPort, anyFree, true, "four are too few"},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			got, err := drawPorts(random.IntN, tt.first, tt.last, tt.free)
			if (err != nil) != tt.fails {
				t.Errorf("%s: %v, %v", tt.why, got, err)
				break
			}
			if err != nil {
				break
			}
			all := []int{got.Etcd, got.EtcdPeer, got.APIServer, got.ControllerManager, got.Scheduler, got.SimulatedNodes, got.VirtAPI, got.Guests}
			slices.Sort(all)
			if len(slices.Compact(slices.Clone(all))) != 8 {
				t.Errorf("%s: the same port twice: %v", tt.why, all)
			}
			for _, p := range all {
				if p < lowestPort || p > highestPort || p >= tt.first && p <= tt.last || !tt.free(p) {
					t.Errorf("%s: port %d", tt.why, p)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	got, err := drawPorts(func(int) int { return random.IntN(9) }, 32768, 60999, anyFree)
	all := []int{got.Etcd, got.EtcdPeer, got.APIServer, got.ControllerManager, got.Scheduler, got.SimulatedNodes, got.VirtAPI, got.Guests}
	slices.Sort(all)
	if err != nil || len(slices.Compact(all)) != 8 {
		t.Errorf("seven of eight ports: %+v, %v", got, err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if listenable(port) {
		t.Errorf("port %d is in use and passes for free", port)
	}
	l.Close()
	if !listenable(port) {
		t.Errorf("port %d is free and passes for used", port)
	}
}

// Every component is found again by the command line that it is started with,
// and listens on the loopback interface.
func TestCommandLines(t *testing.T) {
	s := Store{Root: "/state"}
	dir := directory(s.dir("a"))
	r := record{Name: "a", Shape: Shape{Nodes: 5, MaxPods: 20, StartLatency: dist.Dist{Shape: dist.Uniform, A: time.Second, B: 2 * time.Second}}, Ports: ports{1, 2, 3, 4, 5, 6, 7, 8}}
	for _, component := range ComponentNames() {
		args := arguments(component, dir, r)
		gotComponent, gotLab, ok := parseCmdline(append([]string{"/bin/plimsoll", "component", component}, args...), s.labs())
		if !ok || gotComponent != component || gotLab != "a" {
			t.Errorf("%s is found as %q of %q, %v", component, gotComponent, gotLab, ok)
		}
		for _, arg := range args {
			if strings.Contains(arg, "0.0.0.0") || strings.Contains(arg, "://") && !strings.Contains(arg, "://127.0.0.1:") && !strings.Contains(arg, "issuer") {
				t.Errorf("%s: %s", component, arg)
			}
		}
		switch component {
		case protocol.APIServer, protocol.ControllerManager, protocol.Scheduler:
			if !slices.Contains(args, "--bind-address=127.0.0.1") {
				t.Errorf("%s listens everywhere", component)
			}
		case protocol.SimulatedNodes:
			for _, want := range []string{"--nodes=5", "--max-pods=20", "--start-latency=uniform:1s,2s"} {
				if !slices.Contains(args, want) {
					t.Errorf("%s lacks %s", component, want)
				}
			}
		}
	}
	_, services, err := net.ParseCIDR(serviceRange)
	if err != nil {
		t.Fatal(err)
	}
	if ones, _ := services.Mask.Size(); ones > 16 {
		t.Errorf("services have /%d, at least a /16 is promised", ones)
	}
	if !services.Contains(net.ParseIP(firstServiceAddress)) {
		t.Errorf("%s is not in %s", firstServiceAddress, serviceRange)
	}
}

func TestParseCmdline(t *testing.T) {
	for _, tt := range []struct {
		line           string
		component, lab string
		why            string
	}{
		{"plimsoll component etcd --data-dir=/state/labs/a/etcd ", protocol.Etcd, "a", "a flag with a value"},
		{"/usr/bin/containerd --config=/state/labs/a/node/containerd.toml ", protocol.Containerd, "a", "the system's program for a lab"},
		{"/usr/bin/containerd --config=/etc/containerd/config.toml ", "", "", "the system's program for others"},
		{"/usr/bin/containerd ", "", "", "the system's program alone"},
		{"/usr/bin/qemu-system-x86_64 -name guest-2 -pidfile /state/labs/a/guests/1/pid ", "guest-2", "a", "a real guest"},
		{"/usr/bin/qemu-system-x86_64 -name mine -pidfile /run/mine ", "", "", "a guest of another's"},
		{"plimsoll component etcd --data-dir /state/labs/a/etcd ", protocol.Etcd, "a", "a value of its own"},
		{"plimsoll component etcd --v=1 --data-dir=/state/labs/b-2 ", protocol.Etcd, "b-2", "the directory itself, not at first"},
		{"plimsoll component etcd --data-dir=/state/labs2/a/etcd ", "", "", "another directory that begins the same"},
		{"plimsoll component etcd --data-dir=/other/state/labs/a/etcd ", "", "", "of another store"},
		{"plimsoll component etcd --data-dir=/state/labs/../a ", "", "", "no lab has this name"},
		{"plimsoll component etcd ", "", "", "names no directory"},
		{"tail -f component /state/labs/a/logs/etcd.log ", "", "", "somebody reads a log"},
		{"plimsoll lab logs etcd /state/labs/a ", "", "", "another command of ours"},
		{"", "", "", "a process that has ended"},
	} {
		component, lab, ok := parseCmdline(strings.Fields(tt.line), "/state/labs")
		if component != tt.component || lab != tt.lab || ok != (tt.lab != "") {
			t.Errorf("%s (%s): %q of %q, %v", tt.line, tt.why, component, lab, ok)
		}
	}
}

func TestProcessesEnd(t *testing.T) {
	suite.Long(t, "it waits for processes to end")
	self := process{pid: os.Getpid()}
	if !self.ended() {
		t.Error("a process that started at another time is not this one")
	}
	found, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	stat, err := found.Stat()
	if self.start = stat.Starttime; err != nil || self.ended() {
		t.Errorf("this process has ended, %v", err)
	}
	child := exec.Command("true")
	if err := child.Start(); err != nil {
		t.Skip("no program to start: ", err)
	}
	defer child.Wait()
	found, err = procfs.NewProc(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err = found.Stat()
	ended := process{pid: child.Process.Pid, start: stat.Starttime}
	for deadline := time.Now().Add(20 * time.Second); !ended.ended(); time.Sleep(time.Millisecond) {
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("a process that waits to be reaped has not ended, %v", err)
		}
	}
}

// Whoever may talk to one server may not thereby talk to another.
func TestAuthoritiesAreApart(t *testing.T) {
	s := Store{Root: t.TempDir()}
	l := written(t, s, Spec{Name: "a"})
	pool := func(ca string) *x509.CertPool {
		data, err := os.ReadFile(l.dir.cert(ca))
		if err != nil {
			t.Fatal(err)
		}
		p := x509.NewCertPool()
		p.AppendCertsFromPEM(data)
		return p
	}
	parse := func(data []byte) *x509.Certificate {
		block, _ := pem.Decode(data)
		if block == nil {
			t.Fatal("no certificate")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	fromFile := func(name string) *x509.Certificate {
		if _, err := tls.LoadX509KeyPair(l.dir.cert(name), l.dir.key(name)); err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(l.dir.cert(name))
		if err != nil {
			t.Fatal(err)
		}
		return parse(data)
	}
	fromConfig := func(path string) *x509.Certificate {
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
		return parse(user.ClientCertificateData)
	}
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for _, tt := range []struct {
		cert   *x509.Certificate
		by     string
		usage  x509.ExtKeyUsage
		user   string
		groups []string
		why    string
	}{
		{fromFile(etcdServerCert), etcdCA, server, "etcd", nil, "etcd"},
		{fromFile(etcdClientCert), etcdCA, client, protocol.APIServer, nil, "only the API server may talk to etcd"},
		{fromFile(protocol.APIServer), clusterCA, server, protocol.APIServer, nil, "the API server"},
		{fromFile(frontProxyClient), frontProxyCA, client, userFrontProxy, nil, "speaks for any user"},
		{fromConfig(l.Kubeconfig()), clusterCA, client, userExperiments, nil, "an ordinary user, to whom fairness applies"},
		{fromConfig(l.dir.componentConfig("admin")), clusterCA, client, userAdmin, []string{"system:masters"}, "may do anything"},
		{fromConfig(l.dir.componentConfig(protocol.SimulatedNodes)), clusterCA, client, userSimulatedNodes, []string{"system:nodes"}, "treated as kubelets are"},
	} {
		if tt.cert.Subject.CommonName != tt.user || !slices.Equal(tt.cert.Subject.Organization, tt.groups) {
			t.Errorf("%s: user %q of %q, want %q of %q", tt.why, tt.cert.Subject.CommonName, tt.cert.Subject.Organization, tt.user, tt.groups)
		}
		for _, ca := range []string{clusterCA, etcdCA, frontProxyCA} {
			_, err := tt.cert.Verify(x509.VerifyOptions{Roots: pool(ca), KeyUsages: []x509.ExtKeyUsage{tt.usage}})
			if (err == nil) != (ca == tt.by) {
				t.Errorf("%s: verified by %s: %v", tt.why, ca, err)
			}
		}
		if tt.usage == server {
			if err := tt.cert.VerifyHostname("127.0.0.1"); err != nil {
				t.Errorf("%s: %v", tt.why, err)
			}
		}
	}
}

func TestMarker(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	r := record{Name: "a", ID: "1234", Ports: ports{APIServer: 4711}}
	if err := writeKubeconfig(good, r, "u", []byte("ca"), []byte("cert"), []byte("key")); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written), "https://127.0.0.1:4711") {
		t.Errorf("it leads elsewhere: %s", written)
	}
	for _, tt := range []struct {
		from, to string // what is changed in the kubeconfig
		context  string
		want     bool
		why      string
	}{
		{"", "", "", true, "as written, the current context"},
		{"", "", "plimsoll-a", true, "as written, by name"},
		{"", "", "prod", false, "a context that there is not"},
		{"name: " + MarkerExtension, "name: other", "", false, "without the extension"},
		{"id: \"1234\"", "id: \"\"", "", false, "without the ID"},
		{"name: a\n", "name: \"\"\n", "", false, "without the name"},
		{"current-context: plimsoll-a", "current-context: \"\"", "", false, "no current context"},
	} {
		text := strings.ReplaceAll(string(written), tt.from, tt.to)
		if tt.from == "" {
			text = string(written)
		} else if text == string(written) {
			t.Errorf("%s: %q is not in\n%s", tt.why, tt.from, written)
		}
		config, err := clientcmd.Load([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		m, ok := MarkerOf(config, tt.context)
		if ok != tt.want || ok && m != (Marker{"a", "1234"}) {
			t.Errorf("%s: %+v, %v", tt.why, m, ok)
		}
	}
}

func TestDoctor(t *testing.T) {
	findings := Store{Root: filepath.Join(t.TempDir(), "not", "there", "yet")}.Doctor()
	for _, n := range Needs() {
		findings = append(findings, ProgramRequirement(t.Context(), n))
	}
	if len(findings) < 15 {
		t.Errorf("%d findings", len(findings))
	}
	gone := ProgramRequirement(t.Context(), proc.Program{Name: "plimsoll-nothing", Package: "nothing", For: "a test"})
	if gone.Grade != Missing || gone.Value != "not found" || !strings.HasSuffix(gone.Remedy, " nothing") {
		t.Errorf("a program that is not there: %+v", gone)
	}
	if spare := ProgramRequirement(t.Context(), proc.Program{Name: "plimsoll-nothing", Optional: "for more"}); spare.Grade != Scarce || spare.Need != "installed, for more" {
		t.Errorf("one that can be done without: %+v", spare)
	}
	for _, f := range findings {
		if f.For == "" || f.What == "" || f.Value == "" || f.Need == "" {
			t.Errorf("half a finding: %+v", f)
		}
		if (f.Grade == Good) != (f.Remedy == "") {
			t.Errorf("a remedy belongs to what is not well, and to nothing else: %+v", f)
		}
	}
	// Wherever this test is run, /proc takes no directories.
	if f := disk("/proc/plimsoll"); f.Grade != Missing || f.Remedy == "" {
		t.Errorf("a place that cannot be written: %+v", f)
	}
	for _, tt := range []struct {
		findings []Requirement
		want     bool
		why      string
	}{
		{nil, true, "nothing is wrong"},
		{[]Requirement{{For: forLab, Grade: Good}, {For: forLab, Grade: Scarce}}, true, "scarce is not missing"},
		{[]Requirement{{For: forRealNode, Grade: Missing}}, true, "simulated nodes do without"},
		{[]Requirement{{For: forLab, Grade: Missing}}, false, "every lab needs it"},
	} {
		if got := Healthy(tt.findings); got != tt.want {
			t.Errorf("%s: %v", tt.why, got)
		}
	}
}

func TestErrorsNameWhatTheyAreAbout(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want []string
	}{
		{&NotFoundError{"a", nil}, []string{`"a"`}},
		{&ExistsError{"a"}, []string{`"a"`, "exists"}},
		{&BusyError{"a", 7}, []string{`"a"`, "process 7"}},
		{&BusyError{"a", 0}, []string{`"a"`, "another command"}},
		{&ComponentError{"apiserver", ComponentNames()}, append(ComponentNames(), `"apiserver"`)},
		{errors.Join(&endedError{protocol.Etcd, "exit status 1", "the log"}), []string{"exit status 1", "the log"}},
	} {
		for _, part := range tt.want {
			if !strings.Contains(tt.err.Error(), part) {
				t.Errorf("%q lacks %q", tt.err, part)
			}
		}
	}
}

// A component is found by its command line as soon as it was started: one that
// is looked for in vain would be left behind. In one of ten starts the kernel has
// not put the command line down yet.
func TestAStartedComponentIsFound(t *testing.T) {
	suite.Long(t, "it starts a component")
	t.Parallel()
	forever, err := exec.LookPath("yes")
	if err != nil {
		t.Skip(err)
	}
	dir := directory(filepath.Join(t.TempDir(), "labs", "found"))
	if err := os.MkdirAll(filepath.Dir(dir.log(protocol.Etcd)), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		c, err := start(forever, dir, protocol.Etcd, []string{string(dir) + "/data"}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		started, err := procfs.NewProc(c.PID())
		_, found := inspect(started, filepath.Dir(string(dir)))
		c.Kill()
		c.Wait()
		if err != nil || !found {
			t.Fatalf("component %d is not found: %v", i, err)
		}
		os.Remove(dir.log(protocol.Etcd))
	}
}
