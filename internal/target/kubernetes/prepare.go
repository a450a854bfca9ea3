package kubernetes

import (
	"context"
	"fmt"
	"os"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/target"
)

// What a workload's parameters are called that a real node needs other values
// of.
const (
	paramImage        = "image"
	paramGracePeriod  = "gracePeriod"
	paramNodeSelector = "nodeSelector"
	paramServices     = "serviceAddresses"
	paramDatabase     = "databaseImage"
)

// Prepare implements target.Session. On a lab's real node those parameters that
// were left open are set to what suits it: an image that it has, since it can
// get none; addresses of services, since nobody there knows their names; and
// time for pods to stop in, since a level that begins from empty begins when
// the node has stopped them, not only the API has forgotten them.
func (s *session) Prepare(context.Context) error {
	if !s.onRealNode() {
		return nil
	}
	if needsDatabase(s.Request) && !s.lab.HasImage(lab.ImagePostgreSQL) {
		return noDatabase(s.lab.Name(), s.Workload.Name)
	}
	for name, value := range map[string]string{paramImage: image.AgentReference, paramGracePeriod: "1", paramServices: lab.ServiceAddresses} {
		if _, given := s.Plan.Params[name]; given || !hasParam(s.Request, name) {
			continue
		}
		if s.Plan.Params == nil {
			s.Plan.Params = make(map[string]string)
		}
		s.Plan.Params[name] = value
	}
	var err error
	s.renderings, err = renderingsOf(s.Request)
	return err
}

// onRealNode reports whether the load goes to a lab's real node.
func (s *session) onRealNode() bool {
	if s.lab == nil || s.lab.Spec().RealNode == nil {
		return false
	}
	return s.lab.Spec().Nodes == 0 || strings.Contains(s.Plan.Params[paramNodeSelector], lab.RealSelector)
}

// needsDatabase reports whether the workload runs the database's image as this
// program makes it.
func needsDatabase(r target.Request) bool {
	_, given := r.Plan.Params[paramDatabase]
	return !given && hasParam(r, paramDatabase)
}

// noDatabase refuses a real node that was made without an image that the
// workload runs: it has no registry to get it from.
func noDatabase(name, workload string) error {
	return target.Mistakef(fmt.Sprintf("rebuild it and the lab: plimsoll image build %s; plimsoll lab down %s; plimsoll lab up %s --real-node. Or name an image that nodes can pull, with --set %s=", lab.ImagePostgreSQL, name, name, paramDatabase),
		"the real node of lab %q has no image of PostgreSQL, which %s runs", name, workload)
}

// needImages makes the images that a private lab's real node needs for the
// workload and that have not been made before.
func needImages(ctx context.Context, r target.Request, store lab.Store) error {
	if !needsDatabase(r) {
		return nil
	}
	if _, err := os.Stat(store.ImageFile(lab.ImagePostgreSQL)); err == nil {
		return nil
	}
	r.Log("building the PostgreSQL image from the distribution's packages")
	if !image.HasAgent() {
		r.Log("note: this program was built without the small agent (make build adds it): the image holds the whole program")
	}
	_, _, _, err := store.BuildImage(ctx, lab.ImagePostgreSQL)
	return err
}

func hasParam(r target.Request, name string) bool {
	if r.Workload == nil {
		return false
	}
	_, err := r.Workload.Param(name)
	return err == nil
}
