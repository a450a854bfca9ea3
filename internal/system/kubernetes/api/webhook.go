package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// WebhookError says that nothing serves a webhook that the API server must call: no retry helps.
type WebhookError struct {
	Name          string // of the webhook
	Configuration string // such as validatingwebhookconfiguration/x; "" where unknown
	Cause         string
}

func (e *WebhookError) Error() string {
	text := "webhook " + e.Name
	if e.Configuration != "" {
		text += " of " + e.Configuration
	}
	return "nobody answers for " + text + ", which the API server asks before it takes this request: " + e.Cause
}

// Remedy says how to end the refusals.
func (e *WebhookError) Remedy() string {
	if e.Configuration == "" {
		return "start what serves the webhook, or remove its configuration"
	}
	return "start what serves the webhook, or remove its configuration: kubectl delete " + e.Configuration
}

// failedWebhook returns the name of the webhook that the server could not call, "" for other answers.
func (r Reply) failedWebhook() string {
	if r.Code != http.StatusInternalServerError {
		return ""
	}
	if m := webhookFailed.FindSubmatch(r.Body); m != nil {
		return string(m[1])
	}
	if m := conversionFailed.FindSubmatch(r.Body); m != nil {
		return "that converts " + string(m[1])
	}
	return ""
}

var (
	// webhookFailed finds the name of a webhook that could not be called; JSON escapes the quotes.
	webhookFailed = regexp.MustCompile(`failed calling webhook \\?"([^"\\]+)`)
	// conversionFailed finds the kind whose objects a webhook could not convert.
	conversionFailed = regexp.MustCompile(`conversion webhook for ([^:]+) failed: `)
)

// deadWebhook returns the cause if nothing serves a failed webhook: no endpoints, or refused connections.
// It returns nil where a retry may succeed.
func (c *Client) deadWebhook(ctx context.Context, name string, failed error) *WebhookError {
	ctx, cancel := context.WithTimeout(ctx, webhookLook)
	defer cancel()
	hooks, _ := c.Webhooks(ctx) // without rights the list is empty
	dead := &WebhookError{Name: name}
	for _, h := range hooks {
		if h.Name != name {
			continue
		}
		dead.Configuration = h.Configuration
		if h.Service == "" {
			break
		}
		if without, known := c.withoutEndpoints(ctx, h.Namespace, h.Service); without {
			dead.Cause = fmt.Sprintf("its service %s/%s has no endpoints", h.Namespace, h.Service)
			return dead
		} else if known {
			return nil // an endpoint may answer next time
		}
	}
	// The cause is at the end.
	text := failed.Error()
	nobodyThere := []string{"no endpoints available for service", " not found", "connection refused", "no such host", "no route to host", "network is unreachable", "x509: "}
	if !slices.ContainsFunc(nobodyThere, func(cause string) bool { return strings.Contains(text, cause) }) {
		return nil
	}
	dead.Cause = strings.TrimPrefix(text[strings.LastIndex(text, `": `)+1:], ": ")
	return dead
}

const webhookLook = 5 * time.Second // bounds the search for the server of a webhook

// Webhook describes a webhook that the API server calls before it accepts a request.
type Webhook struct {
	Name               string
	Configuration      string // kind and name, as kubectl takes them
	Namespace, Service string // Namespace and Service name the service behind it, "" for one with an address.
	Refuses            bool   // says that requests are refused while nothing serves it
}

// Webhooks lists the webhooks for admission. The error is a lack of rights, or of the network.
func (c *Client) Webhooks(ctx context.Context) (list []Webhook, err error) {
	for _, kind := range []string{"validatingwebhookconfiguration", "mutatingwebhookconfiguration"} {
		var found admissionv1.ValidatingWebhookConfigurationList // the mutating ones have the same fields, and more
		if err := c.glance(ctx, "/apis/admissionregistration.k8s.io/v1/"+kind+"s", nil, &found); err != nil {
			return list, err
		}
		for _, of := range found.Items {
			for _, hook := range of.Webhooks {
				h := Webhook{Name: hook.Name, Configuration: kind + "/" + of.Name, Refuses: hook.FailurePolicy == nil || *hook.FailurePolicy == admissionv1.Fail}
				if at := hook.ClientConfig.Service; at != nil {
					h.Namespace, h.Service = at.Namespace, at.Name
				}
				list = append(list, h)
			}
		}
	}
	return list, nil
}

// withoutEndpoints reports whether a service has no ready endpoints, and whether the user may know that.
func (c *Client) withoutEndpoints(ctx context.Context, namespace, service string) (without, known bool) {
	var slicesOf discoveryv1.EndpointSliceList
	query := url.Values{"labelSelector": {discoveryv1.LabelServiceName + "=" + service}}
	if err := c.glance(ctx, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices", query, &slicesOf); err != nil {
		return false, false
	}
	for _, s := range slicesOf.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				return false, true
			}
		}
	}
	return true, true
}

// glance reads an object or a list as JSON, in a single attempt.
func (c *Client) glance(ctx context.Context, path string, query url.Values, into any) error {
	request, err := c.Request(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	r, err := c.attempt(request, new(bytes.Buffer), 0)
	if err = cmp.Or(err, r.Err()); err != nil {
		return err
	}
	return json.Unmarshal(r.Body, into)
}

// BrokenAPI describes an API version whose server does not answer: meanwhile no namespace can be removed.
type BrokenAPI struct {
	Version string // such as metrics.k8s.io/v1beta1
	Service string // the name of its APIService
	Cause   string // as the API server gives it, "" where it is unknown
}

// BrokenAPIs returns the broken versions by the discovery, with the causes as far as the user may read them.
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
