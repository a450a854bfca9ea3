package sweep

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// Labelled returns the names of the namespaces that a selector matches, and the paths of the matching objects that lie
// in none of them.
func Labelled(ctx context.Context, c *api.Client, selector string) (spaces, others []string, err error) {
	list, err := c.Typed.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, nil, fmt.Errorf("list namespaces: %w", c.Unreachable(err))
	}
	for _, ns := range list.Items {
		spaces = append(spaces, ns.Name)
	}
	err = strays(ctx, c, "", selector, func(o *metav1.PartialObjectMetadata, at string) {
		if !slices.Contains(spaces, o.Namespace) {
			others = append(others, at)
		}
	})
	return spaces, others, err
}

// Remove deletes namespaces and other objects, and waits until they are gone.
func Remove(ctx context.Context, c *api.Client, host system.Host, spaces, others []string) error {
	for _, name := range spaces {
		others = append(others, "/api/v1/namespaces/"+name)
	}
	err := api.InParallel(ctx, len(others), removalWorkers, 0, func(ctx context.Context, i int) error {
		r, err := c.Call(ctx, http.MethodDelete, others[i], nil)
		if err = cmp.Or(err, r.ErrBut(http.StatusNotFound)); err != nil {
			return fmt.Errorf("delete %s: %w", others[i], c.Unreachable(err))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return api.InParallel(ctx, len(others), removalWorkers, 0, func(ctx context.Context, i int) error { return awaitGone(ctx, c, host, others[i]) })
}
