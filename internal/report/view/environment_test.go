package view

import (
	"fmt"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

func TestNodesOfOneShapeAreTogether(t *testing.T) {
	var nodes []record.Node
	for i := range 1000 {
		nodes = append(nodes, record.Node{Name: fmt.Sprintf("n%03d", 999-i), Pods: int64(100 + i/900*50)})
	}
	groups := groupNodes(nodes)
	if len(groups) != 2 || groups[0].Count != 100 || groups[0].First != "n000" || groups[0].Last != "n099" || groups[1].Count != 900 || groups[1].Last != "n999" {
		t.Errorf("groups %+v", groups)
	}
}
