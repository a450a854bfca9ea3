package survey

import (
	"context"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
)

// Health returns the condition of the cluster as surveyed: the API server's checks, its nodes and pods.
func (s *Survey) Health() ceiling.Health {
	h := ceiling.Health{
		Checks: s.checks, Code: s.checksCode, ChecksRead: s.checksRead,
		Nodes: len(s.nodes), NodesRead: s.nodesRead, Pressure: make(map[string][]string),
		Pods: s.pods, Unplaced: s.unplaced, Restarting: s.restarting, NoImage: s.noImage, PodsRead: s.podsRead,
	}
	for _, b := range s.broken {
		h.BrokenAPIs = append(h.BrokenAPIs, ceiling.BrokenAPI{Name: b.Service, Why: b.Cause})
	}
	for _, n := range s.nodes {
		if !n.ready {
			h.NotReady = append(h.NotReady, n.Name)
		}
		if n.Spec.Unschedulable {
			h.Cordoned++
		}
		for _, kind := range n.pressure {
			h.Pressure[kind] = append(h.Pressure[kind], n.Name)
		}
	}
	return h
}

// Examine adds what takes further requests: clock, rights, duration of reads, and leftovers, in an
// existing namespace if given. The error is an *UnreachableError.
func (s *Survey) Examine(ctx context.Context, h *ceiling.Health, needs []ceiling.Right, namespace string) error {
	if err := s.time(ctx, h); err != nil {
		return err
	}
	if err := s.identify(ctx, h); err != nil {
		return err
	}
	left, err := sweep.Leftovers(ctx, s.Client, s.host, true, namespace)
	if err != nil {
		why, err := s.why(err)
		if err != nil {
			return err
		}
		h.Found = append(h.Found, record.HealthFinding{Severity: record.SeverityWarning, What: "leftovers", Text: "whether an earlier run has left anything is unknown: " + why})
	}
	for _, l := range left {
		h.Leftovers = append(h.Leftovers, ceiling.Leftover{Run: l.Run, Namespaces: len(l.Namespaces), Alive: l.Alive})
	}
	return s.review(ctx, h, needs)
}

// time measures the duration of some reads, and compares the clocks.
func (s *Survey) time(ctx context.Context, h *ceiling.Health) error {
	for range 5 {
		before := s.host.Now()
		r, err := s.Call(ctx, http.MethodGet, "/api/v1/namespaces/default", nil)
		if err != nil {
			return s.Unreachable(err)
		}
		after := s.host.Now()
		h.Reads = append(h.Reads, after.Sub(before).Seconds())
		h.ClockOffset = api.ClockOffset(r.Header, before, after)
	}
	return nil
}

// identify finds the user's name, and whether priority and fairness applies.
func (s *Survey) identify(ctx context.Context, h *ceiling.Health) error {
	var groups []string
	review, err := s.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil {
		h.User, groups = review.Status.UserInfo.Username, review.Status.UserInfo.Groups
	} else if _, err := s.why(err); err != nil {
		return err
	}
	if h.Exempt, err = s.Exemption(ctx); err != nil {
		return err
	}
	// Every cluster has a flow schema that exempts this group.
	if slices.Contains(groups, user.SystemPrivilegedGroup) {
		h.Exempt = new(true)
	}
	return nil
}

// review checks which of the needs the user may do. The server keeps no record of that.
func (s *Survey) review(ctx context.Context, h *ceiling.Health, needs []ceiling.Right) error {
	h.Rights = slices.Clone(needs)
	return api.InParallel(ctx, len(needs), 4, 0, func(ctx context.Context, i int) error {
		r := &h.Rights[i]
		var asked authorizationv1.SelfSubjectAccessReviewSpec
		if strings.HasPrefix(r.Resource, "/") {
			asked.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.Resource, Verb: r.Verb}
		} else {
			resource, group, _ := strings.Cut(r.Resource, ".")
			resource, part, _ := strings.Cut(resource, "/")
			asked.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: r.Where, Verb: r.Verb, Group: group, Resource: resource, Subresource: part}
		}
		review, err := s.Typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: asked}, metav1.CreateOptions{})
		if err != nil {
			r.Why, err = s.why(err)
			return err
		}
		r.Allowed = review.Status.Allowed
		return nil
	})
}
