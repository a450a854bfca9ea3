package sweep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/change"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

// Leftover holds what a run has left in a cluster.
type Leftover struct {
	Run        string   `json:"run"`
	Namespaces []string `json:"namespaces"`
	Others     []string `json:"others"` // has the paths of objects outside of those namespaces
	// Nodes lists the nodes that it has chosen to drain, and may have cordoned.
	Nodes []string `json:"nodes,omitempty"`
	// Pools lists those with its configuration: removing that reboots their nodes.
	Pools   []string `json:"pools,omitempty"`
	Changed []string `json:"changed"` // has the paths of objects of others that it has changed
	Alive   bool     `json:"alive"`   // says that the run may still go on, by a recent sign of life
	// Here says that the run is this user's on this machine, so that Alive is certain.
	Here     bool      `json:"here"`
	LastSign time.Time `json:"lastSign"` // time of its last sign of life; zero if unknown
}

// DeadFrom returns the time from which a run without further signs of life counts as dead.
func (l *Leftover) DeadFrom() time.Time { return l.LastSign.Add(AliveFor) }

// What lists the leftovers in a line.
func (l *Leftover) What() string {
	all := slices.Concat(l.Namespaces, l.Others)
	for _, path := range l.Changed {
		all = append(all, "the settings changed in "+path)
	}
	for _, pool := range l.Pools {
		all = append(all, "the configuration of pool "+pool+" (its removal reboots the nodes)")
	}
	for _, node := range l.Nodes {
		all = append(all, "the cordon of node "+node)
	}
	return strings.Join(all, ", ")
}

// AliveFor is the time after its last sign of life for which a run counts as alive.
const AliveFor = 3 * follow.AliveInterval

// Leftovers finds objects with this program's labels, by run: all, or with quick only namespaces, which
// hold nearly everything; with a namespace, those in it, and namespaces that the user may list.
func Leftovers(ctx context.Context, c *api.Client, host system.Host, quick bool, namespace string) ([]Leftover, error) {
	byRun := make(map[string]*Leftover)
	of := func(run string) *Leftover {
		l, ok := byRun[run]
		if !ok {
			l = &Leftover{Run: run, Namespaces: []string{}, Others: []string{}, Changed: []string{}}
			byRun[run] = l
		}
		return l
	}
	ours := metav1.ListOptions{LabelSelector: api.LabelManagedBy + "=" + api.ManagedBy + "," + api.LabelRun}
	namespaces, err := c.Typed.CoreV1().Namespaces().List(ctx, ours)
	if api.Refused(err) && namespace != "" {
		namespaces, err = new(corev1.NamespaceList), nil
	}
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", c.Unreachable(err))
	}
	taken := make(map[string]bool)
	for _, ns := range namespaces.Items {
		l := of(ns.Labels[api.LabelRun])
		l.Namespaces = append(l.Namespaces, ns.Name)
		taken[ns.Name] = true
		var changed []string
		if json.Unmarshal([]byte(ns.Annotations[api.AnnotationChanged]), &changed) == nil {
			l.Changed = append(l.Changed, changed...)
		}
		l.sign(&ns.ObjectMeta, host)
	}
	err = drain.Drained(ctx, c, func(run, node string) { l := of(run); l.Nodes = append(l.Nodes, node) })
	if err == nil {
		err = drain.RolledOut(ctx, c, func(run, pool string) { l := of(run); l.Pools = append(l.Pools, pool) })
	}
	if err != nil {
		return nil, err
	}
	if !quick || namespace != "" {
		err := strays(ctx, c, namespace, ours.LabelSelector, func(o *metav1.PartialObjectMetadata, at string) {
			if !taken[o.Namespace] && !strings.HasPrefix(at, drain.ConfigsPath+"/") {
				l := of(o.Labels[api.LabelRun])
				l.Others = append(l.Others, at)
				l.sign(&o.ObjectMeta, host)
			}
		})
		if err == nil && namespace == "" {
			err = strays(ctx, c, "", api.LabelChangedBy, func(o *metav1.PartialObjectMetadata, at string) {
				if l := of(o.Labels[api.LabelChangedBy]); !slices.Contains(l.Changed, at) {
					l.Changed = append(l.Changed, at)
				}
			})
		}
		if err != nil {
			return nil, err
		}
	}
	list := make([]Leftover, 0, len(byRun))
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		l := byRun[run]
		switch runState(host, run) {
		case runAlive:
			l.Here, l.Alive = true, true
		case runDead:
			l.Here, l.Alive = true, false
		}
		list = append(list, *l)
	}
	return list, nil
}

// sign reads a sign of life of a run's own namespace, or of its canary in an existing one.
func (l *Leftover) sign(o *metav1.ObjectMeta, host system.Host) {
	if sign, err := time.Parse(time.RFC3339, o.Annotations[api.AnnotationAlive]); err == nil && o.DeletionTimestamp == nil {
		l.LastSign = sign
		l.Alive = host.Now().Sub(sign) < AliveFor
	}
}

// strays finds the labelled objects of every kind but namespaces, in a namespace or with "" in all.
func strays(ctx context.Context, c *api.Client, namespace, selector string, found func(o *metav1.PartialObjectMetadata, at string)) error {
	_, lists, err := c.Typed.Discovery().ServerGroupsAndResources()
	if err != nil && lists == nil {
		return fmt.Errorf("discover the API: %w", c.Unreachable(err))
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || r.Name == "namespaces" || namespace != "" && !r.Namespaced || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") {
				continue
			}
			path := "/api/" + list.GroupVersion
			if strings.Contains(list.GroupVersion, "/") {
				path = "/apis/" + list.GroupVersion
			}
			if err := straysOf(ctx, c, kindPatience, path, namespace, r, selector, found); err != nil {
				return fmt.Errorf("list %s: %w", r.Name, err)
			}
		}
	}
	return nil
}

const kindPatience = 15 * time.Second // bounds the wait for a kind that is new to the server

// straysOf lists the metadata of one resource.
func straysOf(ctx context.Context, c *api.Client, patience time.Duration, path, namespace string, r metav1.APIResource, selector string, found func(o *metav1.PartialObjectMetadata, at string)) error {
	query := url.Values{"labelSelector": {selector}, "limit": {"500"}}
	var buf bytes.Buffer
	at := path + "/" + r.Name
	if namespace != "" {
		at = path + "/namespaces/" + namespace + "/" + r.Name
	}
	for {
		notOurs := []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}
		request, err := c.Request(ctx, http.MethodGet, at, query, "", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", api.ProtobufType+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		// A new kind is not ready for some seconds.
		answer, err := c.SendFor(patience, request, &buf, 0)
		if err = cmp.Or(err, answer.ErrBut(notOurs...)); err != nil {
			return c.Unreachable(err)
		}
		if slices.Contains(notOurs, answer.Code) {
			return nil // a user who may not see them has not made any
		}
		raw, err := api.OpenEnvelope(answer.Body)
		if err != nil {
			return err
		}
		_, next, err := api.DecodeList(raw, func(item []byte) error {
			var o metav1.PartialObjectMetadata
			if err := o.Unmarshal(item); err != nil {
				return err
			}
			at := path + "/" + r.Name + "/" + o.Name
			if r.Namespaced {
				at = path + "/namespaces/" + o.Namespace + "/" + r.Name + "/" + o.Name
			}
			found(&o, at)
			return nil
		})
		if err != nil || next == "" {
			return err
		}
		query.Set("continue", next)
	}
}

// Clean puts back a run's changes, removes its leftovers and waits until they are gone.
func Clean(ctx context.Context, c *api.Client, host system.Host, l Leftover) error {
	if len(l.Pools) > 0 {
		host.Log("note: the nodes of %s are rebooted, since their configuration is taken away; waiting for that", strings.Join(l.Pools, ", "))
	}
	if err := drain.RollBack(ctx, c, l.Run, l.Pools, func([]string) {}, func(string) {}); err != nil {
		return err
	}
	if err := drain.ReleaseNodes(ctx, c, l.Run, l.Nodes); err != nil {
		return err
	}
	for _, path := range l.Changed {
		_, others, err := change.RewriteObject(ctx, c, path, l.Run, nil, false)
		if err != nil {
			return fmt.Errorf("put back the settings changed in %s: %w", path, err)
		}
		for _, text := range others {
			host.Log("note: %s: %s", path, text)
		}
	}
	// Pods go last: their controllers would make them again.
	isPod := func(path string) bool { return strings.HasPrefix(path, "/api/v1/") && strings.Contains(path, "/pods/") }
	slices.SortStableFunc(l.Others, func(a, b string) int { return cmp.Compare(fmt.Sprint(isPod(a)), fmt.Sprint(isPod(b))) })
	for _, path := range l.Others {
		r, err := c.Call(ctx, http.MethodDelete, path, nil)
		if err = cmp.Or(err, r.ErrBut(http.StatusNotFound)); err != nil {
			return fmt.Errorf("delete %s: %w", path, c.Unreachable(err))
		}
	}
	err := api.InParallel(ctx, len(l.Namespaces), removalWorkers, 0, func(ctx context.Context, i int) error {
		err := c.Typed.CoreV1().Namespaces().Delete(ctx, l.Namespaces[i], metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete namespace %s: %w", l.Namespaces[i], c.Unreachable(err))
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The namespace controller would do this later, and wait longer. Without the right, the user has to wait.
	err = deletePods(ctx, c, l.Namespaces, api.LabelRun+"="+l.Run, nil)
	if err != nil && !apierrors.IsForbidden(err) {
		return c.Unreachable(err)
	}
	for _, path := range l.Others {
		if err := awaitGone(ctx, c, host, path); err != nil {
			return err
		}
	}
	if len(l.Namespaces) > 0 {
		if err := awaitNamespacesGone(ctx, c, host, l.Run); err != nil {
			return err
		}
	}
	forgetRun(host, l.Run)
	return nil
}

// awaitGone waits until a deleted object is gone, unless its finalizers hold it.
func awaitGone(ctx context.Context, c *api.Client, host system.Host, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, RemovalBound, fmt.Errorf("not gone after %v", RemovalBound))
	defer cancel()
	begin := host.Now()
	var h holdups
	for {
		r, err := c.Call(ctx, http.MethodGet, path, nil)
		switch {
		case err != nil:
			return fmt.Errorf("wait for %s to be gone: %w", path, c.Unreachable(err))
		case r.Code == http.StatusNotFound || r.Code == http.StatusForbidden:
			return nil
		}
		var held []heldUp
		if o, err := api.MetadataOf(r.Body); err == nil {
			if one, is := objectHeldUp(o, path); is {
				held = append(held, one)
			}
		}
		if err := h.look(ctx, c, host.Now().Sub(begin), 1, held, host.Log); err != nil {
			return fmt.Errorf("still there: %w", err)
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("still there: %s: %w", path, context.Cause(ctx))
		}
	}
}

// unlooked bounds the time without progress of any namespace. A controller that lost the server retries
// after at most a minute: it has backedOff so long while it renews its lease.
const (
	unlooked  = 30 * time.Second
	backedOff = 75 * time.Second
)

// renewed returns the last renewal of the controller manager's lease, "" where unknown.
func renewed(ctx context.Context, c *api.Client) string {
	lease, err := c.Typed.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-controller-manager", metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return ""
	}
	return lease.Spec.RenewTime.String()
}

// awaitNamespacesGone waits until a run has no namespaces, or says that their controller does not act.
func awaitNamespacesGone(ctx context.Context, c *api.Client, host system.Host, run string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, RemovalBound, fmt.Errorf("not gone after %v", RemovalBound))
	defer cancel()
	selector := metav1.ListOptions{LabelSelector: api.LabelManagedBy + "=" + api.ManagedBy + "," + api.LabelRun + "=" + run}
	left, since := 0, host.Now()
	bound, before, alive := unlooked, renewed(ctx, c), ""
	begin := since
	var h holdups
	for {
		list, err := c.Typed.CoreV1().Namespaces().List(ctx, selector)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("wait for the namespaces to be gone: %w", context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("list namespaces: %w", c.Unreachable(err))
		case len(list.Items) == 0:
			return nil
		}
		noun, now := follow.NamespaceNoun().Count(len(list.Items)), host.Now()
		var held []heldUp
		for i := range list.Items {
			if one, is := namespaceHeldUp(&list.Items[i]); is {
				held = append(held, one)
			}
		}
		if err := h.look(ctx, c, now.Sub(begin), len(list.Items), held, host.Log); err != nil {
			return fmt.Errorf("still there: %s: %w", noun, err)
		}
		// The controller's first look leaves conditions on namespaces that are not empty.
		looked := slices.ContainsFunc(list.Items, func(ns corev1.Namespace) bool { return len(ns.Status.Conditions) > 0 })
		if looked || len(list.Items) != left {
			left, since = len(list.Items), now
		}
		waited := now.Sub(since)
		if waited >= bound && bound == unlooked && before != "" {
			if is := renewed(ctx, c); is != "" && is != before {
				bound, alive = backedOff, ", though its lease is renewed"
			}
		}
		if waited >= bound {
			return fmt.Errorf("still there: %s: the controller manager, which removes namespaces, has not acted on any for %.0f s%s", noun, waited.Seconds(), alive)
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("still there: %s: %w", noun, context.Cause(ctx))
		}
	}
}

// runsDir, below the state directory, has a file of each run of this user here, locked while it lives:
// the kernel unlocks it when the process ends.
const runsDir = "runs"

// Hold shows other commands of this user that a run lives, until end is called with whether nothing is left.
func Hold(host system.Host, run string) (end func(clean bool)) {
	nothing := func(bool) {}
	dir, err := host.StateDir()
	if err != nil {
		return nothing
	}
	dir = filepath.Join(dir, runsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nothing
	}
	forgetOld(dir, host.Now())
	f, err := os.OpenFile(filepath.Join(dir, run), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nothing
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nothing // the file system has no locks
	}
	return func(clean bool) {
		if clean {
			_ = os.Remove(f.Name()) // a file that stays says that the run is dead, which is true
		}
		f.Close()
	}
}

// runHere is the state of a run of this user on this machine.
type runHere int8

const (
	runElsewhere runHere = iota // unknown: perhaps another user's or machine's
	runAlive
	runDead
)

func runState(host system.Host, run string) runHere {
	if host.StateDir == nil || run == "" || strings.ContainsRune(run, filepath.Separator) {
		return runElsewhere
	}
	dir, err := host.StateDir()
	if err != nil {
		return runElsewhere
	}
	return lockState(filepath.Join(dir, runsDir, run))
}

func lockState(path string) runHere {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return runElsewhere
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return runAlive
	case err != nil:
		return runElsewhere
	}
	return runDead
}

func forgetRun(host system.Host, run string) {
	if runState(host, run) != runDead {
		return
	}
	if dir, err := host.StateDir(); err == nil {
		_ = os.Remove(filepath.Join(dir, runsDir, run))
	}
}

// forgetOld removes the files of runs that died long ago: their signs of life are enough.
func forgetOld(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(dir, e.Name())
		if err == nil && now.Sub(info.ModTime()) > forgetAfter && lockState(path) == runDead {
			_ = os.Remove(path) // the next run tries again
		}
	}
}

const forgetAfter = 30 * 24 * time.Hour
