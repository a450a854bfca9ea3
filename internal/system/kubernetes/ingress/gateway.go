package ingress

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
)

const (
	gatewayVersion  = "gateway.networking.k8s.io/v1"
	traefikGateways = "traefik.io/gateway-controller" // Traefik's name in gateway classes
)

// gatewayDefinitions holds the definitions of the Gateway API, which internal/lab/virt/generate.go writes.
//
//go:embed gateway.json.gz
var gatewayDefinitions []byte

// defineGateways adds the definitions of the Gateway API to a lab that lacks them. They stay, because another run may
// use them.
func (i *instance) defineGateways(ctx context.Context) error {
	all, err := definitionsOfGateways()
	if err != nil {
		return err
	}
	kind := route{apiextensions.SchemeGroupVersion.String(), "CustomResourceDefinition", "customresourcedefinitions"}
	for _, d := range all {
		d.APIVersion, d.Kind = kind.version, kind.kind
		if err := i.send(ctx, http.MethodPost, kind.path("", ""), d, nil); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return i.await(ctx, "the Gateway API", awaitBound, func() (string, bool, error) {
		for _, d := range all {
			at := route{d.Spec.Group + "/" + d.Spec.Versions[0].Name, "", d.Spec.Names.Plural}.path("", "")
			if err := i.Client().InJSON(ctx, at, nil, nil, new(metav1.PartialObjectMetadataList)); err != nil {
				return err.Error(), false, nil
			}
		}
		return "", true, nil
	})
}

func definitionsOfGateways() (all []apiextensions.CustomResourceDefinition, err error) {
	r, err := gzip.NewReader(bytes.NewReader(gatewayDefinitions))
	if err == nil {
		err = json.NewDecoder(r).Decode(&all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the definitions of the Gateway API: %w", err)
	}
	return all, nil
}

// controllerOf returns the controller of a gateway class, "" without the right to know it.
func (i *instance) controllerOf(ctx context.Context, class string) string {
	var got struct {
		Spec struct{ ControllerName string }
	}
	_ = i.Client().InJSON(ctx, route{gatewayVersion, "GatewayClass", "gatewayclasses"}.path("", class), nil, nil, &got)
	return got.Spec.ControllerName
}

// makeGateway makes a gateway of a class, with a certificate of its own where requests use TLS.
func (i *instance) makeGateway(ctx context.Context, s *site, meta metav1.ObjectMeta, class string) error {
	s.gateway = meta.Namespace + "/" + meta.Name
	listener := map[string]any{"name": "http", "protocol": "HTTP", "port": plainPort}
	if s.secure {
		certificate, key, err := cert.GenerateSelfSignedCertKey(s.host, nil, nil)
		if err != nil {
			return fmt.Errorf("make the gateway's certificate: %w", err)
		}
		if _, err := i.Client().Typed.CoreV1().Secrets(i.namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: meta, Type: corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the gateway's certificate: %w", i.Client().Unreachable(err))
		}
		listener = map[string]any{"name": "https", "protocol": "HTTPS", "port": securePort, "tls": map[string]any{"certificateRefs": []any{map[string]any{"name": meta.Name}}}}
	}
	kind := route{gatewayVersion, "Gateway", "gateways"}
	return i.send(ctx, http.MethodPost, kind.path(i.namespace, ""), kind.object(meta, map[string]any{"gatewayClassName": class, "listeners": []any{listener}}), nil)
}
