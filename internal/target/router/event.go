package router

import (
	"fmt"
	"slices"
	"strings"
)

// event is a change that is made in the middle of each hold.
type event string

// The events.
const (
	noEvent    event = ""
	evReload   event = "reload"        // HAProxy is started anew and takes the listeners over
	evKill     event = "kill-server"   // a server is killed, for good
	evRoute    event = "route-reload"  // a route is added, by a reload
	evRouteAPI event = "route-runtime" // likewise, by the runtime API
)

func events() []string {
	return []string{"none", string(evReload), string(evKill), string(evRoute), string(evRouteAPI)}
}

func parseEvent(text string) (event, error) {
	switch {
	case text == "" || text == "none":
		return noEvent, nil
	case slices.Contains(events(), text):
		return event(text), nil
	}
	return noEvent, fmt.Errorf("%q is none of %s", text, strings.Join(events(), ", "))
}
