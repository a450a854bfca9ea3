package kubernetes

import (
	"slices"
	"testing"
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
