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
