package ingress

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	own "plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Claims opens clusters whose storage classes are loaded: clients do IO by fio, each on a volume that it claims.
type Claims struct{}

const axisDepth = "depth"

// Sources of what clients report of their IO.
const (
	sourceFio        = "fio"
	sourceThroughput = "throughput"
)

const (
	fioLead    = 3 * time.Second // from an order to the moment that all clients begin at: fio starts before
	foreignIOs = 1000            // a second, where the plan says nothing, at a cluster that is not a lab
	fillBound  = 30 * time.Minute
	fioMemory  = "512Mi"
)

// volumes says what the clients do IO on, and how.
type volumes struct {
	job         fio.Job // without depth and rate on the axes of these
	class       string
	claim       resource.Quantity // of each client
	provisioner string            // of the class, "" if it is unknown
	bare        bool              // a lab without a storage class gives each client a directory of its node
}

func (v *volumes) text() string {
	if v.bare {
		return "directories of nodes, because the lab has no storage class"
	}
	return fmt.Sprintf("claims of %s of storage class %s", v.claim.String(), cmp.Or(v.class, "(default)"))
}

// file returns the size of each client's file.
func (v *volumes) file() string {
	return resource.NewQuantity(v.job.Size, resource.BinarySI).String()
}

// claimsAs reports whether two arms ask for the same claims, or for none.
func (v *volumes) claimsAs(other *volumes) bool {
	return v == nil || v.class == other.class && v.claim.Equal(other.claim)
}

// mount gives a client's pod its claim, which goes with the pod.
func (v *volumes) mount(pod *corev1.PodSpec, labels map[string]string) {
	source := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	spec := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: v.claim}},
	}
	if v.class != "" {
		spec.StorageClassName = &v.class
	}
	if !v.bare {
		source = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
	}
	const name = "data"
	pod.SecurityContext.FSGroup = new(int64(65532)) // the image's user may then write
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: image.FioData})
	c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(fioMemory)
}

// ios returns the kind of object of the load.
func ios() record.ObjectKind {
	k := fio.Operations()
	k.Place = clientNoun()
	k.Bounds = append(k.Bounds, record.Bound{Name: "clients", What: "the processor of a client", Source: sourceClients, Value: "demand", Full: mostDemand, Generator: true})
	return k
}

func claimFacts(version string, v *volumes) []record.Fact {
	text, provisioner := "", ""
	if v != nil {
		text, provisioner = v.text(), v.provisioner
	}
	return []record.Fact{
		{Name: "kubernetes", What: "version of the API server", Value: version, Bearing: record.Refuses},
		{Name: "claims", What: "volumes that the IO is on", Value: text, Bearing: record.Refuses},
		{Name: "provisioner", What: "provisioner of their storage class", Value: provisioner, Bearing: record.Refuses},
	}
}

// Declare implements system.Provider.
func (Claims) Declare() workload.Target {
	kind := ios()
	return workload.Target{
		Name: "claims", Kind: kind, Settings: func() own.Own { return new(kubernetes.Settings) },
		Axes: map[string]workload.TargetAxis{
			axisDepth: {Loop: workload.Closed, Stream: &kind}, axisRate: {Loop: workload.Open, Stream: &kind},
		},
		Facts: slices.Concat(claimFacts("", nil), clientFacts()),
		Takes: Provider{}.Declare().Takes,
	}
}

// Needs implements system.Provider.
func (Claims) Needs() []proc.Program { return nil }

// Outline implements system.Provider.
func (Claims) Outline(_ context.Context, r system.Request) ([]system.Change, error) {
	if r.Workload == nil {
		return []system.Change{}, nil
	}
	arms, err := read(r, volumesOf)
	if err != nil {
		return nil, err
	}
	base := arms[""]
	return []system.Change{
		{Action: system.Make, What: "namespace plimsoll-" + r.Run},
		{Action: system.Use, What: "image " + base.image},
		{Action: system.Make, What: fmt.Sprintf("a job of %s; each does IO by fio on one of as many %s", clientNoun().Count(base.least), base.io.text())},
		{Action: system.Make, What: "a file of " + base.io.file() + " on each; what a class with the policy Retain keeps of its volumes, it keeps"},
	}, nil
}

// Account returns the service account for runs of a request's workload, which make their own namespace.
func (Claims) Account(r system.Request, namespace string) (kubernetes.Account, error) {
	if namespace != "" {
		return kubernetes.Account{}, ownNamespace()
	}
	if _, err := read(r, volumesOf); err != nil {
		return kubernetes.Account{}, err
	}
	return kubernetes.AccountOf(r, append(clientRights(), ceiling.Right{Verb: "list", Resource: "storageclasses.storage.k8s.io", For: "names the provisioner of the claims", Optional: true})), nil
}

// Open implements system.Provider.
func (Claims) Open(ctx context.Context, r system.Request) (system.Session, error) {
	return open(ctx, r, volumesOf, lab.ImageFio)
}

// volumesOf reads the settings of an arm.
func volumesOf(p workload.Params, images string) (*settings, error) {
	s := &settings{via: viaClaim, event: eventNone, cpu: p.Get("clientCPU"), image: p.Get("image"), rate: int(p.Int("maxRate"))}
	if err := s.readClients(p, images, image.FioReference); err != nil {
		return nil, err
	}
	s.io = &volumes{class: p.Get("class"), job: fio.Job{
		Pattern: p.Get("rw"), ReadPercent: int(p.Int("mix")), Block: p.Bytes("blockSize"), Size: p.Bytes("size"), Direct: p.Flag("direct"),
		Engine: p.Get("engine"), Fsync: int(p.Int("fsync")), Depth: int(p.Int("depth")),
	}}
	var err error
	if s.io.claim, err = resource.ParseQuantity(p.Get("claim")); err != nil {
		return nil, system.ParamMistake("claim", "for example --set claim=10Gi", "%q: %w", p.Get("claim"), err)
	}
	if s.io.claim.Value() < s.io.job.Size {
		return nil, system.ParamMistake("size", "a smaller file, or a larger claim", "a file of %s is larger than the claim, %s", s.io.file(), s.io.claim.String())
	}
	return s, s.io.job.Check()
}

// prepareIO has the clients fill their files for a level.
func (i *instance) prepareIO(ctx context.Context, one *site, level float64) (clients.Order, error) {
	job, most := one.io.job, i.bound(&one.settings)
	if job.Rate = most; i.Plan.Axis.Name == axisRate {
		job.Rate = int(math.Floor(level + 1e-9))
	} else {
		job.Depth = int(math.Floor(level + 1e-9))
	}
	if n := len(i.fleet.Clients); job.Rate > 0 && job.Rate < 2*n {
		return clients.Order{}, system.Mistakef(fmt.Sprintf("at least %d", 2*n), "%d IOs a second are not one read and one write for each of %d clients", job.Rate, n)
	}
	o := clients.Order{Seed: i.Seed, Component: fio.Write}
	if job.Reads() {
		o.Component = fio.Read
	}
	var err error
	if o.Work, err = json.Marshal(job); err != nil {
		return o, err
	}
	filling, cancel := context.WithTimeoutCause(ctx, fillBound, fmt.Errorf("not within %v", fillBound))
	defer cancel()
	var list []string
	for _, err := range i.fleet.Prepare(filling, o) {
		list = append(list, err.Error())
	}
	if len(list) == 0 { // filling may take long, and clocks drift
		for _, err := range i.fleet.Agree(ctx) {
			list = append(list, err.Error())
		}
	}
	if slices.Sort(list); len(list) > 0 {
		return o, &system.UnableError{Err: fmt.Errorf("prepare the IO: %s", named(list)), Hint: remedy(strings.Join(list, " "))}
	}
	return o, nil
}

// tellIO records what the clients report at the end of a stream.
func (s *step) tellIO() {
	sum := 0.0
	for _, v := range s.fleet.Readings(sourceThroughput, "value") {
		sum += v
	}
	s.Rec.Emit(&record.Reading{Source: sourceThroughput, Values: map[string]float64{"value": sum}})
	if waits := s.fleet.Readings(sourceFio, "waitShare"); len(waits) > 0 {
		s.Rec.Emit(&record.Reading{Source: sourceFio, Values: map[string]float64{"waitShare": slices.Max(waits)}})
	}
	for _, note := range s.fleet.Notes() {
		s.Rec.Emit(&record.Note{About: s.Rec.Step(), Text: note})
	}
}

// findClass finds the storage class of the claims, and its provisioner as far as that is known. A lab without a class
// has no claims.
func (i *instance) findClass(ctx context.Context, v *volumes) error {
	list, err := i.Client().Typed.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if api.Refused(err) {
		return nil // the claims tell
	}
	if err != nil {
		return fmt.Errorf("list the storage classes: %w", i.Client().Unreachable(err))
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name)
		if c.Name == v.class || v.class == "" && c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			v.class, v.provisioner = c.Name, c.Provisioner
			return nil
		}
	}
	if v.class == "" && i.Lab() != nil {
		v.bare = true
		return nil
	}
	if v.class == "" {
		return system.ParamMistake("class", "--set class=NAME, of: "+strings.Join(names, ", "), "the cluster has no default storage class")
	}
	return system.ParamMistake("class", nearest.Hint(v.class, names, "there is: "+strings.Join(names, ", ")), "the cluster has no storage class %q", v.class)
}
