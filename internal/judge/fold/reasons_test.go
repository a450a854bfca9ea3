package fold

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestNormalise(t *testing.T) {
	for _, tt := range []struct {
		message, object, want, why string
	}{
		{`Back-off restarting failed container app in pod web-17_ns-3(0f8fad5b-d9cb-469f-a165-70867728950e)`, "ns-3/web-17", `Back-off restarting failed container app in pod NAME_NAMESPACE(*)`, "names and the UID"},
		{`back-off 1m20s restarting failed container=app pod=web-17_ns-3(0f8fad5b-d9cb-469f-a165-70867728950e)`, "ns-3/web-17", `back-off * restarting failed container=app pod=NAME_NAMESPACE(*)`, "the time until the next try differs"},
		{`back-off 2.5s restarting`, "ns/a-1", `back-off * restarting`, "the time of a young one"},
		{`Readiness probe failed: Get "http://10.88.3.17:8080/": dial tcp 10.88.3.17:8080: connect: connection refused`, "ns/a-1", `Readiness probe failed: Get "http://*/": dial tcp *: connect: connection refused`, "addresses with their ports"},
		{`failed to setup network for sandbox "3f0c1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6": no addresses in 10.0.0.1-10.0.0.254`, "ns/a-1", `failed to setup network for sandbox "*": no addresses in *-*`, "the sandbox and the range"},
		{`pod web-1 waits for web-10 and web-1-x and xweb-1, not for web-1.`, "ns/web-1", `pod NAME waits for web-10 and web-1-x and xweb-1, not for NAME.`, "longer names are other names"},
		{"7: 7 7-7 77 7", "ns/7", "NAME: NAME 7-7 77 NAME", "a name of one digit"},
		{"777 77", "ns/77", "777 NAME", "a name that begins within itself"},
		{`pods "pause-1" is forbidden: exceeded quota: few, in quota/pause-1 of "quota"`, "quota/pause-1", `pods "NAME" is forbidden: exceeded quota: few, in NAMESPACE/NAME of "NAMESPACE"`, "a name that is a word of the message, too"},
		{"pod=web_apps(x) of web", "apps/web", "pod=NAME_NAMESPACE(x) of web", "a word is a name where it is written like one"},
		{"node-1 in node-1", "node-1/node-1", "NAME in NAME", "a namespace of the same name"},
		{"  the container is out of memory \n", "ns/a-1", "the container is out of memory", "stray spaces"},
		{"lookup web-1.ns.svc.cluster.local: no such host", "ns/web-1", "lookup NAME.NAMESPACE.svc.cluster.local: no such host", "a point ends a name, as in the name of a host"},
		{"version 1.2.3", "ns/a-1", "version 1.2.3", "three numbers are no address"},
		{"x", "", "x", "no object"},
		{"x", "a", "x", "an object without a namespace, such as a node"},
		{"x/ y", "/", "x/ y", "no name at all"},
		{"näme x1 ü", "ns/x1", "näme NAME ü", "letters of more than a byte"},
	} {
		if got := normalise(tt.message, tt.object); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.why, got, tt.want)
		}
	}
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// What is normal has no UID left and no spaces around it, stays as it is, and
// a name that it does not have changes nothing.
func FuzzNormalise(f *testing.F) {
	f.Add("back-off 10s restarting failed container=app pod=web-1_ns(0f8fad5b-d9cb-469f-a165-70867728950e)", "ns", "web-1")
	f.Add("dial tcp 10.0.0.1:80", "a", "a")
	f.Add("aaaa", "aa", "a")
	f.Fuzz(func(t *testing.T, message, namespace, name string) {
		got := normalise(message, namespace+"/"+name)
		if uuid.MatchString(got) || strings.TrimSpace(got) != got {
			t.Errorf("normalise(%q) = %q", message, got)
		}
		if strings.Contains(namespace+name, "/") {
			return
		}
		if !strings.Contains(message, namespace) && !strings.Contains(message, name) && got != normalise(message, "") {
			t.Errorf("normalise(%q, %q, %q) = %q, without them %q", message, namespace, name, got, normalise(message, ""))
		}
	})
}

// Two objects with the same message fall into one group, whatever their names.
func TestNormaliseMakesEqual(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	letter := func() byte { return "abcdefghijklmnopqrstuvwxyz0123456789"[rng.IntN(36)] }
	word := func() string {
		b := []byte{letter()}
		for range rng.IntN(12) {
			b = append(b, letter(), '-', letter())
		}
		return string(b)
	}
	for range 2000 {
		a, b := normalised("s1"+word(), "n1"+word()), normalised("s1"+word(), "n1"+word())
		if a != b {
			t.Fatalf("%q and %q", a, b)
		}
	}
}

func normalised(namespace, name string) string {
	text := strings.NewReplacer("$N", name, "$S", namespace).Replace(`ERROR: <$N_$S(0f8fad5b-d9cb-469f-a165-70867728950e)> "$S/$N": $N, $S!`)
	return normalise(text, namespace+"/"+name)
}
