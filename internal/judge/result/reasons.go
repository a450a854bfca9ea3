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

// Top returns the reason of the most objects or requests.
func Top(list []Reason) Reason {
	return slices.MaxFunc(list, func(a, b Reason) int { return cmp.Compare(a.Certain, b.Certain) })
}

// Refusal says why most of the failed requests failed, "" without any.
func Refusal(list []Reason) string {
	list = slices.DeleteFunc(slices.Clone(list), func(r Reason) bool { return !r.ofRequest() })
	if len(list) == 0 {
		return ""
	}
	return strings.TrimSuffix(Top(list).Reason+": "+Top(list).Message, ": ")
}

func (r Reason) ofRequest() bool {
	return r.Requests || r.Reason == RequestFailed || strings.HasPrefix(r.Reason, HTTPReason)
}

// Mistaken reports whether the server refused the requests' content: that is no limit of anything.
func (r Reason) Mistaken() bool {
	code, _ := strconv.Atoi(strings.TrimPrefix(r.Reason, HTTPReason))
	return slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}, code)
}

// The reasons of failed requests begin like this.
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
	return strings.TrimSuffix(top.Reason+": "+top.Message, ": ")
}

// Reason groups objects that were not ready by the reason.
type Reason struct {
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Count    int    `json:"count"`
	Places   int    `json:"nodes"` // number of the places with the reason, of PlacesOf; both are 0 where that is unknown
	PlacesOf int    `json:"nodesOf"`
	Requests bool   `json:"requests,omitempty"` // it counts failed requests for things that are not followed, such as a service

	Certain int  `json:"-"` // of Count, in a known state
	Nowhere bool `json:"-"` // all places refused them
}

// On says on how many places the reason was found, such as "on 2 of 3 nodes", or "".
func (r Reason) On(place record.Noun) string {
	switch {
	case r.Places == 0:
		return ""
	case r.PlacesOf == 0:
		return "on " + place.Count(r.Places)
	}
	return fmt.Sprintf("on %d of %s", r.Places, place.Count(r.PlacesOf))
}
