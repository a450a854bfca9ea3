package api

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestAnswersTellTheirErrors(t *testing.T) {
	status := &metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Message: "exceeded quota: pods", Code: 403}
	var b bytes.Buffer
	status.SetGroupVersionKind(metav1.Unversioned.WithKind("Status"))
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(status, &b); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		r    Reply
		want string
		why  string
	}{
		{Reply{Code: 403, Body: b.Bytes()}, "exceeded quota: pods", "a status in protobuf"},
		{Reply{Code: 403, Body: []byte(`{"kind":"Status","apiVersion":"v1","message":"no such thing"}`)}, "no such thing", "a status in JSON"},
		{Reply{Code: 502, Body: []byte("<html>Bad Gateway" + strings.Repeat(" ", 1000))}, "HTTP 502: <html>Bad Gateway", "a proxy's page"},
		{Reply{Code: 200}, "", "success"},
	} {
		err := tt.r.Err()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}

// Secrets in a server's errors are masked before anybody reads them, in whatever
// way they are written.
func TestErrorsAreMasked(t *testing.T) {
	status := &metav1.Status{Status: "Failure", Message: "dial the store: password=hunter2", Code: 500}
	var b bytes.Buffer
	status.SetGroupVersionKind(metav1.Unversioned.WithKind("Status"))
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(status, &b); err != nil {
		t.Fatal(err)
	}
	for why, body := range map[string][]byte{
		"in protobuf":  b.Bytes(),
		"in JSON":      []byte(`{"kind":"Status","apiVersion":"v1","message":"dial the store: password=hunter2","reason":"InternalError","code":500}`),
		"as it stands": []byte("dial the store: password=hunter2"),
	} {
		masked, contentType := maskError(body)
		if err := (Reply{Code: 500, Body: masked}).Err(); contentType == "" || err == nil || !strings.HasSuffix(err.Error(), "dial the store: password=(masked)") {
			t.Errorf("%s: %q, %v", why, contentType, err)
		}
	}
	plain := []byte(`{"kind":"Status","apiVersion":"v1","message":"exceeded quota: pods"}`)
	if masked, contentType := maskError(plain); contentType != "" || !bytes.Equal(masked, plain) {
		t.Errorf("nothing had to be masked: %s", masked)
	}
}
