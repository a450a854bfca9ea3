package simnode

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// What kubectl asks a node for is answered in words.
func TestRefusedInWords(t *testing.T) {
	for path, want := range map[string]string{
		"/containerLogs/ns/a-1/pause?follow=true": "pod ns/a-1 is simulated: no container runs, and nothing is logged.",
		"/exec/ns/a-1/pause?command=sh":           "pod ns/a-1 is simulated: no container runs in which a command could run.",
		"/attach/ns/a-1/pause":                    "pod ns/a-1 is simulated: no container runs that could be attached to.",
		"/portForward/ns/a-1":                     "pod ns/a-1 is simulated: no container runs that could listen on a port.",
		"/configz":                                "this node is simulated: there is no kubelet, and no container runs.",
		"/":                                       "this node is simulated: ",
	} {
		w := httptest.NewRecorder()
		answerFor(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 400 || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
}
