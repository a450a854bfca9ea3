package kubernetes

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

// Requests of one verb and resource are summed up whatever their scope; watches
// and leases are nobody's load.
func TestRequestsIn(t *testing.T) {
	list, err := requestsIn([]byte(`# TYPE go_goroutines gauge
go_goroutines 7
# TYPE apiserver_request_duration_seconds histogram
apiserver_request_duration_seconds_bucket{verb="PATCH",resource="pods",subresource="status",scope="resource",le="0.1"} 2
apiserver_request_duration_seconds_bucket{verb="PATCH",resource="pods",subresource="status",scope="resource",le="+Inf"} 3
apiserver_request_duration_seconds_sum{verb="PATCH",resource="pods",subresource="status",scope="resource"} 1
apiserver_request_duration_seconds_count{verb="PATCH",resource="pods",subresource="status",scope="resource"} 3
apiserver_request_duration_seconds_bucket{verb="PATCH",resource="pods",subresource="status",scope="cluster",le="0.1"} 4
apiserver_request_duration_seconds_bucket{verb="PATCH",resource="pods",subresource="status",scope="cluster",le="+Inf"} 4
apiserver_request_duration_seconds_sum{verb="PATCH",resource="pods",subresource="status",scope="cluster"} 0.5
apiserver_request_duration_seconds_count{verb="PATCH",resource="pods",subresource="status",scope="cluster"} 4
apiserver_request_duration_seconds_bucket{verb="WATCH",resource="pods",le="+Inf"} 9
apiserver_request_duration_seconds_sum{verb="WATCH",resource="pods"} 9
apiserver_request_duration_seconds_count{verb="WATCH",resource="pods"} 9
apiserver_request_duration_seconds_bucket{verb="PUT",resource="leases",le="+Inf"} 9
apiserver_request_duration_seconds_sum{verb="PUT",resource="leases"} 9
apiserver_request_duration_seconds_count{verb="PUT",resource="leases"} 9
`))
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if h := list[0]; h.Name != "PATCH pods/status" || h.Count != 7 || h.Sum != 1.5 || !slices.Equal(h.Counts, []uint64{6}) || !slices.Equal(h.Bounds, []float64{0.1}) {
		t.Errorf("%+v", h)
	}
}

// A socket that is read by ourselves is read as net does it: what is there, the
// end of the time, the end of the connection.
func TestSocket(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	s, buf := socket{raw}, make([]byte, 8)
	time.AfterFunc(20*time.Millisecond, func() { _, _ = peer.Write([]byte("news")) })
	if n, err := s.Read(buf); err != nil || string(buf[:n]) != "news" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %d, %v", n, err)
	}
	if err := errors.Join(conn.SetReadDeadline(time.Time{}), peer.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(buf); err == nil {
		t.Error("a closed socket was read")
	}
}
