package result

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Top is the reason that most objects or requests are known to have.
func Top(list []Reason) Reason {
	return slices.MaxFunc(list, func(a, b Reason) int { return cmp.Compare(a.Certain, b.Certain) })
}

// Refusal says why most of the requests that failed did, "" where none of the reasons is theirs.
func Refusal(list []Reason) string {
	list = slices.DeleteFunc(slices.Clone(list), func(r Reason) bool { return !r.ofRequest() })
	if len(list) == 0 {
		return ""
	}
	return strings.TrimSuffix(Top(list).Reason+": "+Top(list).Message, ": ")
}

// ofRequest reports whether a reason is that of requests that failed.
func (r Reason) ofRequest() bool {
	return r.Requests || r.Reason == RequestFailed || strings.HasPrefix(r.Reason, HTTPReason)
}

// Mistaken reports whether a reason is that of requests that the server
// refused for what they asked for: that is no limit of anything.
func (r Reason) Mistaken() bool {
	code, _ := strconv.Atoi(strings.TrimPrefix(r.Reason, HTTPReason))
	return slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}, code)
}

// How the reasons of requests that failed begin.
const (
	RequestFailed = "RequestFailed"
	HTTPReason    = "HTTP "
)

// Binding says in a few words what kept most objects from being ready.
func Binding(kind *record.ObjectKind, list []Reason) string {
	if len(list) == 0 {
		return ""
	}
	top := Top(list)
	if top.PlacesOf > 0 && top.Places > 0 {
		return top.Reason + " " + top.On(kind.Place)
	}
	if top.Message != "" {
		return top.Reason + ": " + top.Message
	}
	return top.Reason
}

// Reason groups objects that were not ready by what kept them.
type Reason struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int    `json:"count"`
	// Places is how many places the reason was found on, of PlacesOf; 0 of those where it is unknown.
	Places   int `json:"nodes"`
	PlacesOf int `json:"nodesOf"`
	// Requests says that the count is of requests that failed and that asked
	// for what is not followed, such as a service: not of objects.
	Requests bool `json:"requests,omitempty"`

	Certain int `json:"-"` // of Count, those whose state is known
	// Nowhere says that all places refused them.
	Nowhere bool `json:"-"`
}

// On says on how many places the reason was found, such as "on 2 of 3 nodes",
// and is empty where none is known.
func (r Reason) On(place record.Noun) string {
	switch {
	case r.Places == 0:
		return ""
	case r.PlacesOf == 0:
		return "on " + place.Count(r.Places)
	}
	return fmt.Sprintf("on %d of %s", r.Places, place.Count(r.PlacesOf))
}
