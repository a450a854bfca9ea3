package router

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// The axes that a router can be raised along.
const (
	axisConnections = "connections"
	axisRate        = "rate"
	axisIdle        = "idle"
	axisRoutes      = "routes"
)

// changed is reached by a step's event: a reload once the new process serves, a route once answered.
const changed = "Changed"

// Names of what is read of the parts, among the sources of samples.
const (
	sourceRouter  = "haproxy"
	sourceServers = "backend"
	sourceFigures = "haproxy figures" // what it reports of itself
	sourceLoad    = "generator"       // what its connections came to
	sourceChange  = "change"          // of what a plan changes under load
)

// BoundProcessor is the name of HAProxy's own processor among the bounds.
const BoundProcessor = "HAProxy"

func requests() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "request", Many: "requests"},
		Milestones: []record.Milestone{
			{Name: load.Connected, Owner: "listener"}, {Name: load.Secured, Owner: "TLS handshake"}, {Name: load.Response, Owner: "router and its servers"},
			{Name: changed, Owner: "HAProxy"},
		},
		There:        load.Response,
		FreshPerStep: true,
		Measures:     []record.Measure{record.RequestErrors(0)},
		Metrics: slices.Concat([]record.Metric{
			{
				Name: "requestsPerCPUSecond", Title: "requests per HAProxy CPU second", Unit: "/s", Help: "requests that HAProxy served for each second of CPU time that it used",
				LessIsWorse: true,
				Of:          record.Fold{Source: record.SourceStep, Value: record.ValueDone, Fold: record.FoldLast},
				Per:         &record.Fold{Source: sourceRouter, Value: record.ValueCPU, Fold: record.FoldDifference},
			},
			record.AchievedRate("requests answered per second"),
		}, record.UseOf(sourceRouter, "HAProxy"), []record.Metric{
			{Name: "change", Unit: "s", Help: "time that the event took: a reload until the new process serves, a route until its first right answer", Of: record.Fold{Source: sourceChange, Value: "seconds", Fold: record.FoldLast}},
		}),
		Charts: []record.Chart{
			{Title: "HAProxy: sessions per second", Source: sourceFigures, Values: []record.Value{{Key: "sessRate", Name: "new"}, {Key: "tlsRate", Name: "by TLS"}}},
			{Title: "HAProxy: connections", Source: sourceFigures, Values: []record.Value{
				{Key: "currConns", Name: "current"}, {Key: "backlog", Name: "waiting"}, {Key: "queue", Name: "queue"}, {Key: "idleHeld", Name: "idle"},
			}},
			{Title: "HAProxy: since its start", Source: sourceFigures, Values: []record.Value{
				{Key: "retries", Name: "retries"}, {Key: "denied", Name: "denied"}, {Key: "badRequests", Name: "bad"}, {Key: "serverErrors", Name: "no server"},
			}},
			{Title: "Link: share of its rate", Source: sourceFigures, Values: []record.Value{{Key: "linkShare", Name: "used"}}},
		},
		Bounds: []record.Bound{
			{Name: "maxconn", What: "HAProxy's maxconn: further connections waited in the listener's queue", Source: sourceFigures, Value: "currConns", Limit: "maxconn", Full: 0.8, Waiting: "backlog"},
			{Name: "server queue", What: "the queue of a server: requests waited for a place among its connections (maxconn of the server)", Source: sourceFigures, Value: "queueShare", Full: 0.5},
			{Name: "link", What: "the rate of the link to the router", Source: sourceFigures, Value: "linkShare", Full: 0.9},
			{Name: BoundProcessor, What: "HAProxy's processor time", Source: sourceFigures, Value: "busiestThread", Full: 0.9},
			// Before the servers, whose requests wait for the processor that the generator shares.
			{Name: "generator", What: "the processor of the generator", Source: sourceLoad, Value: "demand", Full: 0.9, Generator: true},
			{Name: "servers", What: "the servers: requests spent most of their time there", Source: sourceFigures, Value: "serverShare", Full: 0.7, Slow: true},
		},
	}
}
