package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Bounds of the profiles of a run.
const (
	profileBytes    = 32 << 20
	profilesBytes   = 1 << 30
	profilesAtOnce  = 8
	profilePatience = 2 * time.Minute // a profile of the processors takes 30 s by default
)

// profiler fetches the profiles that a configuration asks for, through the API server, into files of the record.
type profiler struct {
	*prepared.Run
	dir     record.Dir
	files   func() fs.FS // beside the configuration
	forward func(namespace, pod string, port int) (dialer, error)
	present *kubeburner.Measurement // of the present step, or nil
	job     string
	stop    func() // ends the present step's intervals

	mu   sync.Mutex
	kept int64 // bytes
}

// dialer connects to a port of a pod until it is closed.
type dialer interface {
	Dial(ctx context.Context) (net.Conn, error)
	Close()
}

// begin fetches the profiles at the start of a job, and from then on by their interval.
func (p *profiler) begin(ctx context.Context, job *kubeburner.Job) {
	p.cut()
	if p.present, p.job = p.Load.Config.PProf(job), job.Name; p.present == nil {
		return
	}
	p.fetch(ctx, p.job+"-start")
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var working sync.WaitGroup
	p.stop = func() { cancel(); working.Wait() }
	if p.present.PProfInterval > 0 {
		working.Go(func() {
			for api.Sleep(ctx, p.present.PProfInterval) {
				p.fetch(ctx, p.Clock.Start().Add(p.Clock.Now().Duration()).UTC().Format("2006-01-02T15_04_05Z"))
			}
		})
	}
}

// end fetches the last profiles of the present job, once.
func (p *profiler) end(ctx context.Context) {
	if p.stop != nil {
		p.cut()
		p.fetch(ctx, p.job+"-end")
	}
}

// cut ends the fetching by interval.
func (p *profiler) cut() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// profile is one that is to be fetched.
type profile struct {
	file string
	open func(ctx context.Context) (io.ReadCloser, error)
}

// fetch fetches a profile of each pod and node of all targets. Failures are notes: the load goes on.
func (p *profiler) fetch(ctx context.Context, suffix string) {
	ctx, cancel := context.WithTimeout(ctx, profilePatience)
	defer cancel()
	failed := func(what string, err error) {
		if errors.Is(ctx.Err(), context.Canceled) { // the job has ended meanwhile
			return
		}
		p.Emit(&record.Note{Warning: record.WarningNotKnown, Text: fmt.Sprintf("profile %s: %v", what, err)})
	}
	root, err := os.OpenRoot(string(p.dir))
	if err == nil {
		defer root.Close()
		err = root.MkdirAll(p.present.PProfDirectory, 0o700)
	}
	if err != nil {
		failed(suffix, err)
		return
	}
	for i := range p.present.PProfTargets {
		t := &p.present.PProfTargets[i]
		list, err := p.profiles(ctx, t)
		if err == nil && len(list) == 0 {
			err = errors.New("no pod that runs has its labels, or no node")
		}
		if err == nil {
			err = api.InParallel(ctx, len(list), profilesAtOnce, 0, func(ctx context.Context, i int) error {
				name := filepath.Join(p.present.PProfDirectory, fmt.Sprintf("%s-%s-%s.pprof", t.Name, list[i].file, suffix))
				if err := p.write(ctx, root, name, list[i]); err != nil {
					failed(filepath.Base(name), err)
				}
				return nil
			})
		}
		if err != nil {
			failed(t.Name, err)
		}
	}
}

// write writes a profile that is within the bounds.
func (p *profiler) write(ctx context.Context, root *os.Root, name string, of profile) error {
	from, err := of.open(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, profileBytes+1))
	err = errors.Join(err, f.Close())
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && n > profileBytes:
		err = fmt.Errorf("it has more than %d MiB", profileBytes>>20)
	case err == nil && p.kept+n > profilesBytes:
		err = fmt.Errorf("the profiles of the run have %d MiB already, the most that is kept", p.kept>>20)
	}
	if err != nil {
		return errors.Join(err, root.Remove(name))
	}
	p.kept += n
	return nil
}

// profiles lists the profiles of a target: of its running pods, or of the kubelets of nodes.
func (p *profiler) profiles(ctx context.Context, t *kubeburner.PProfTarget) (list []profile, err error) {
	port, path, query, secure, err := t.Address()
	if err != nil {
		return nil, err
	}
	core := p.Client.Typed.CoreV1()
	if t.Nodes() {
		nodes, err := core.Nodes().List(ctx, metav1.ListOptions{LabelSelector: labels.Set(p.present.NodeAffinity).String()})
		if err != nil {
			return nil, p.Client.Unreachable(err)
		}
		for _, node := range nodes.Items {
			list = append(list, profile{node.Name, func(ctx context.Context) (io.ReadCloser, error) {
				request := core.RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix(path)
				for key, values := range query {
					request.Param(key, values[0])
				}
				return request.Stream(ctx)
			}})
		}
		return list, nil
	}
	certificate, err := t.Certificate(p.files())
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the API server leads to the pod itself
	if certificate != nil {
		trust.Certificates = []tls.Certificate{*certificate}
	}
	pods, err := core.Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set(t.LabelSelector).String(), FieldSelector: "status.phase=Running"})
	if err != nil {
		return nil, p.Client.Unreachable(err)
	}
	at := url.URL{Scheme: map[bool]string{true: "https", false: "http"}[secure], Host: net.JoinHostPort("localhost", fmt.Sprint(port)), Path: path, RawQuery: query.Encode()}
	for _, pod := range pods.Items {
		list = append(list, profile{pod.Name, func(ctx context.Context) (io.ReadCloser, error) {
			forward, err := p.forward(pod.Namespace, pod.Name, port)
			if err != nil {
				return nil, err
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
			if err != nil {
				return nil, err
			}
			if t.BearerToken != "" {
				request.Header.Set("Authorization", "Bearer "+t.BearerToken)
			}
			client := http.Client{
				Transport:     &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return forward.Dial(ctx) }},
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}
			reply, err := client.Do(request)
			if err != nil {
				forward.Close()
				return nil, err
			}
			if reply.StatusCode != http.StatusOK {
				reply.Body.Close()
				forward.Close()
				return nil, fmt.Errorf("get %s of pod %s/%s: %s", path, pod.Namespace, pod.Name, reply.Status)
			}
			return forwardedBody{reply.Body, forward}, nil
		}})
	}
	return list, nil
}

// forwardedBody is a reply that came through a forwarded port.
type forwardedBody struct {
	io.ReadCloser
	forward dialer
}

// Close implements io.Closer.
func (b forwardedBody) Close() error {
	err := b.ReadCloser.Close()
	b.forward.Close()
	return err
}
