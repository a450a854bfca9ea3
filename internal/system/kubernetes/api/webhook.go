package api

import (
	"bytes"
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
	discoveryv1 "k8s.io/api/discovery/v1"
)

// WebhookError says that nobody answers for a webhook that the API server asks before
// it takes a request: no retry helps.
type WebhookError struct {
	Name          string // of the webhook
	Configuration string // that has it, such as validatingwebhookconfiguration/x; "" where that is unknown
	Cause         string
}

// Error implements error.
func (e *WebhookError) Error() string {
	text := "webhook " + e.Name
	if e.Configuration != "" {
		text += " of " + e.Configuration
	}
	return "nobody answers for " + text + ", which the API server asks before it takes this request: " + e.Cause
}

// Remedy says what ends the refusals.
func (e *WebhookError) Remedy() string {
	if e.Configuration == "" {
		return "start what serves the webhook, or remove its configuration"
	}
	return "start what serves the webhook, or remove its configuration: kubectl delete " + e.Configuration
}

// failedWebhook is the name of the webhook that the server could not ask, "" where an
// answer does not say so.
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
	// webhookFailed is how the API server names a webhook that it could not ask; quotes
	// are escaped in JSON.
	webhookFailed = regexp.MustCompile(`failed calling webhook \\?"([^"\\]+)`)
	// conversionFailed is how it says so of one that converts objects of a kind.
	conversionFailed = regexp.MustCompile(`conversion webhook for ([^:]+) failed: `)
)

// deadWebhook finds out whether nobody answers for a webhook that failed: its service has no
// endpoints, or its address refuses connections. It is nil where the next attempt may
// succeed.
func (c *Client) deadWebhook(ctx context.Context, name string, failed error) *WebhookError {
	ctx, cancel := context.WithTimeout(ctx, webhookLook)
	defer cancel()
	hooks, _ := c.Webhooks(ctx) // what this user may not read is unknown
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
			return nil // one of them may answer the next time
		}
	}
	// The cause stands at the end.
	text := failed.Error()
	if !slices.ContainsFunc(nobodyThere(), func(cause string) bool { return strings.Contains(text, cause) }) {
		return nil
	}
	dead.Cause = text[strings.LastIndex(text, `": `)+1:]
	dead.Cause = strings.TrimPrefix(dead.Cause, ": ")
	return dead
}

// webhookLook bounds how long it is looked for who should answer for a webhook.
const webhookLook = 5 * time.Second

// nobodyThere are the causes that the API server gives where nobody answers for a webhook.
func nobodyThere() []string {
	return []string{"no endpoints available for service", " not found", "connection refused", "no such host", "no route to host", "network is unreachable", "x509: "}
}

// Webhook is one that the API server asks before it takes a request.
type Webhook struct {
	Name          string
	Configuration string // kind and name, as kubectl takes them
	// Namespace and Service are whose endpoints answer, "" for one with an address.
	Namespace, Service string
	// Refuses says that requests are refused while nobody answers.
	Refuses bool
}

// Webhooks lists the webhooks for admission. The error is the user's lack of rights, or
// the network's.
func (c *Client) Webhooks(ctx context.Context) (list []Webhook, err error) {
	add := func(kind, configuration, name string, at admissionv1.WebhookClientConfig, then *admissionv1.FailurePolicyType) {
		h := Webhook{Name: name, Configuration: kind + "/" + configuration, Refuses: then == nil || *then == admissionv1.Fail}
		if at.Service != nil {
			h.Namespace, h.Service = at.Service.Namespace, at.Service.Name
		}
		list = append(list, h)
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := c.glance(ctx, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", nil, &validating); err != nil {
		return nil, err
	}
	for _, of := range validating.Items {
		for _, h := range of.Webhooks {
			add("validatingwebhookconfiguration", of.Name, h.Name, h.ClientConfig, h.FailurePolicy)
		}
	}
	var mutating admissionv1.MutatingWebhookConfigurationList
	if err := c.glance(ctx, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", nil, &mutating); err != nil {
		return list, err
	}
	for _, of := range mutating.Items {
		for _, h := range of.Webhooks {
			add("mutatingwebhookconfiguration", of.Name, h.Name, h.ClientConfig, h.FailurePolicy)
		}
	}
	return list, nil
}

// withoutEndpoints reports whether nothing stands behind a service, as far as the user may
// know that.
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

// glance reads an object or a list as JSON, with a single attempt.
func (c *Client) glance(ctx context.Context, path string, query url.Values, into any) error {
	request, err := c.Request(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	r, err := c.attempt(request, new(bytes.Buffer), 0)
	if err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	return json.Unmarshal(r.Body, into)
}
