package simnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Refuse answers the API server for the kubelets of all simulated nodes, which have nothing to read or run.
func Refuse(ctx context.Context, port int, certificate, key string) error {
	server := &http.Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Handler: http.HandlerFunc(answerFor),
		ReadHeaderTimeout: 10 * time.Second,
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ListenAndServeTLS(certificate, key); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer for the simulated nodes at %s: %w", server.Addr, err)
	}
	return nil
}

// answerFor answers one request, such as /containerLogs/NAMESPACE/POD/CONTAINER.
func answerFor(w http.ResponseWriter, r *http.Request) {
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	of := "this node"
	if parts := strings.Split(rest, "/"); len(parts) >= 2 && parts[1] != "" {
		of = "pod " + parts[0] + "/" + parts[1]
	}
	why := map[string]string{
		"containerLogs": "no container runs, and nothing is logged",
		"exec":          "no container runs in which a command could run",
		"attach":        "no container runs that could be attached to",
		"portForward":   "no container runs that could listen on a port",
	}[what]
	if why == "" {
		why = "there is no kubelet, and no container runs"
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, of+" is simulated: "+why+". A lab with --real-node runs containers.")
}
