package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// BrokenAPI describes a version of an API group whose server does not answer. Until it does, no
// namespace of the cluster can be removed.
type BrokenAPI struct {
	Version string // such as metrics.k8s.io/v1beta1
	Service string // the name of its APIService
	Cause   string // as the API server gives it, "" where it is unknown
}

// BrokenAPIs returns the broken versions by the API server's discovery, which every user may read,
// with the causes as far as this user may read them.
func (c *Client) BrokenAPIs(ctx context.Context) ([]BrokenAPI, error) {
	request, err := c.Request(ctx, http.MethodGet, "/apis", nil, "", nil)
	if err != nil {
		return nil, err
	}
	// An older server's answer has no freshness.
	request.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json")
	r, err := c.Send(request, new(bytes.Buffer))
	if err = cmp.Or(err, r.Err()); err != nil {
		return nil, err
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(r.Body, &groups); err != nil {
		return nil, err
	}
	var list []BrokenAPI
	for _, g := range groups.Items {
		for _, v := range g.Versions {
			if v.Freshness != apidiscoveryv2.DiscoveryFreshnessStale {
				continue
			}
			b := BrokenAPI{Version: g.Name + "/" + v.Version, Service: v.Version + "." + g.Name}
			var service struct {
				Status struct {
					Conditions []struct{ Type, Status, Message string } `json:"conditions"`
				} `json:"status"`
			}
			if c.glance(ctx, "/apis/apiregistration.k8s.io/v1/apiservices/"+b.Service, nil, &service) == nil { // else the cause stays unknown
				for _, condition := range service.Status.Conditions {
					if condition.Type == "Available" && condition.Status != "True" {
						b.Cause = condition.Message
					}
				}
			}
			list = append(list, b)
		}
	}
	return list, nil
}
