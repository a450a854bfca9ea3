package network

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// settings hold what one arm says of path and requests.
type settings struct {
	kind     *kindOfPath
	cipher   string // of IPsec
	mtu      int
	queues   int
	linkRate float64 // bits a second, 0 for any
	loss     float64 // share of TCP's segments that each end loses
	window   int64   // bytes of the client's receive buffers, 0 for the kernel's own
	offloads map[string]bool

	pattern string
	size    int // of an answer, in bytes
	streams int // connections of the axis rate, at most, and of the axis size
	random  bool
	service string

	clientCPUs, serverCPUs []int
}

const (
	patternConnect = "connect"

	mostSize    = 64 << 20
	sizeStreams = 64 // connections of the axis size, unless others are asked for
)

// features returns the kernel's names of each offload.
func features() map[string][]string {
	return map[string][]string{
		"tso":      {"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation"},
		"gso":      {"tx-generic-segmentation"},
		"gro":      {"rx-gro"},
		"checksum": {"tx-checksum-ip-generic", "rx-checksum"},
	}
}

func settingsOf(p workload.Params) (settings, error) {
	s := settings{
		mtu: int(p.Int("mtu")), queues: int(p.Int("queues")), offloads: make(map[string]bool), pattern: p.Get("pattern"),
		size: int(p.Int("size")), streams: int(p.Int("streams")), random: p.Get("arrivals") == "random", service: p.Get("serviceTime"), window: p.Bytes("window"),
	}
	s.kind = kindNamed(p.Get("path"))
	if s.cipher = p.Get("cipher"); s.kind.name == "ipsec" {
		s.kind.takes = ipsecTakes(s.mtu, s.cipher)
	}
	if s.size == 0 {
		s.size = cmp.Or(map[string]int{"bulk": 1 << 20}[s.pattern], 64)
	}
	for name := range features() {
		if how := p.Get(name); how != "kernel" {
			s.offloads[name] = how == "on"
		}
	}
	if off, said := s.offloads["gso"]; said && !off && s.offloads["tso"] {
		return s, system.ParamMistake("tso", "gso=on, or tso=off", "the kernel has no tso without gso")
	}
	if text := p.Get("loss"); text != "" {
		share, err := param.ParsePercent(text)
		if err != nil || !(share > 0 && share < 1) {
			return s, system.ParamMistake("loss", "for example 2%", "%q is not a share of packets between 0 and 1", text)
		}
		s.loss = float64(share)
	}
	if text := p.Get("linkRate"); text != "" {
		rate, err := param.ParseRate(text)
		if err != nil {
			return s, system.ParamMistake("linkRate", "", "%w", err)
		}
		s.linkRate = float64(rate)
	}
	cpus, err := proc.Processors(0)
	if err != nil || len(cpus) == 0 {
		cpus = []int{0}
	}
	half := max(len(cpus)/2, 1)
	if s.clientCPUs, err = cpusOf("clientCPUs", p.Get("clientCPUs"), cpus, cpus[:half]); err != nil {
		return s, err
	}
	s.serverCPUs, err = cpusOf("serverCPUs", p.Get("serverCPUs"), cpus, cpus[len(cpus)-half:])
	return s, err
}

// cpusOf reads a list of processors: "auto" is own, "all" those that there are.
func cpusOf(name, text string, all, own []int) (list []int, err error) {
	switch text {
	case "auto":
		return own, nil
	case "all":
		return all, nil
	}
	for one := range strings.SplitSeq(text, "+") {
		n, err := strconv.Atoi(one)
		if err != nil || !slices.Contains(all, n) {
			return nil, system.ParamMistake(name, "auto, all, or numbers such as 0+2", "%q is not one of the processors that this program may use: %v", one, all)
		}
		list = append(list, n)
	}
	return list, nil
}

// inner returns the MTU that is left inside the path.
func (s settings) inner() int { return s.mtu - s.kind.takes }

// load plans what the client sends to an address.
func (s settings) load(address string, enter func() error) load.Plan {
	return load.Plan{
		Address: address, Hosts: []load.Host{{Name: "server", Weight: 1}}, Method: "GET", Path: "/", Size: int64(s.size), Want: backend.Begin(s.size),
		Close: s.pattern == patternConnect, Random: s.random, Threads: len(s.clientCPUs), Enter: enter,
	}
}

const probeBound = 2 * time.Second // for a packet that tries the path
