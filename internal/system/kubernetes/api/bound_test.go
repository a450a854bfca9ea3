package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
)

// A server whose answer does not end, or says that it is enormous, costs a bounded
// amount of memory, whoever asks, and is asked once.
func TestAnswersWithoutAnEnd(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 1<<20)
	asked := make(map[string]int) // one request after the other
	run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/log") || strings.HasSuffix(r.URL.Path, "/nodes") {
			w.Header().Set("Content-Length", "1000000000000")
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	})
	c, ctx := run.Client, context.Background()
	core := c.Typed.CoreV1()
	for what, ask := range map[string]func() error{
		"a typed list":         func() error { _, err := core.Pods("").List(ctx, metav1.ListOptions{}); return err },
		"a typed list, stated": func() error { _, err := core.Nodes().List(ctx, metav1.ListOptions{}); return err },
		"a log":                func() error { _, err := core.Pods("a").GetLogs("b", &corev1.PodLogOptions{}).DoRaw(ctx); return err },
		"a page":               func() error { _, err := c.List(ctx, "/api/v1/nodes", nil, nil); return err },
		"a request":            func() error { _, err := c.Call(ctx, http.MethodGet, "/api/v1/nodes", nil); return err },
	} {
		clear(asked)
		err := ask()
		if large, ok := errors.AsType[*api.LargeError](err); !ok || asked[large.Path] == 0 {
			t.Errorf("%s: %v", what, err)
		}
		for path, n := range asked {
			if n > 1 && what != "a page" { // which is asked for in smaller parts, down to one object
				t.Errorf("%s: %s was asked for %d times", what, path, n)
			}
		}
	}
}

// Objects that hold nothing take three bytes in an answer, and a thousand in memory.
func TestAnswersWithTooManyValues(t *testing.T) {
	t.Parallel()
	var inProtobuf atomic.Bool
	run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, _ *http.Request) {
		if inProtobuf.Load() {
			w.Header().Set("Content-Type", api.ProtobufType)
			list := bytes.Repeat([]byte{0x12, 0}, 1_000_000) // an empty item
			_, _ = w.Write(append(binary.AppendUvarint([]byte("k8s\x00\x12"), uint64(len(list))), list...))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[{}` + strings.Repeat(",{}", 5_000_000) + "]}"))
	})
	for _, protobuf := range []bool{false, true} {
		inProtobuf.Store(protobuf)
		list, err := run.Client.Typed.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
		if !errors.As(err, new(*api.LargeError)) {
			t.Errorf("in protobuf %t: %d items, %v", protobuf, len(list.Items), err)
		}
	}
}
