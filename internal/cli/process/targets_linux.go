package process

import (
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/http"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/ingress"
	"plimsoll.dev/plimsoll/internal/system/network"
	"plimsoll.dev/plimsoll/internal/system/router"
	"plimsoll.dev/plimsoll/internal/system/storage/io"
	"plimsoll.dev/plimsoll/internal/system/storage/volumes"
)

// ofThisMachine returns the targets that programs or the generator of this machine load. What they
// declare is in declared.json too, for programs on other systems.
func ofThisMachine() []system.Provider {
	return []system.Provider{router.Provider{}, io.Provider{}, network.Provider{}, http.Provider{}, ingress.Provider{}, ingress.Claims{}, volumes.Provider{}}
}
