package judge

import (
	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
)

// What users of this package read of a result, as package result has it.
type (
	APIRequests      = result.APIRequests
	ArmsSpec         = result.ArmsSpec
	Arrivals         = result.Arrivals
	Bottleneck       = result.Bottleneck
	BoundShare       = result.BoundShare
	Breach           = result.Breach
	BrokeFirst       = result.BrokeFirst
	Bucket           = result.Bucket
	CPUShare         = result.CPUShare
	Conditions       = result.Conditions
	CurvePoint       = result.CurvePoint
	Diagnosis        = result.Diagnosis
	Figure           = result.Figure
	GoalResult       = result.GoalResult
	HistogramSummary = result.HistogramSummary
	Interval         = result.Interval
	Latencies        = result.Latencies
	Latency          = result.Latency
	Law              = result.Law
	LawPoint         = result.LawPoint
	Laws             = result.Laws
	LeftOut          = result.LeftOut
	LoadLine         = result.LoadLine
	LogTail          = result.LogTail
	ObjectCost       = result.ObjectCost
	Objects          = result.Objects
	Overhead         = result.Overhead
	Published        = result.Published
	PublishedSpec    = result.PublishedSpec
	Reason           = result.Reason
	RecordedRequest  = result.RecordedRequest
	Result           = result.Result
	Slope            = result.Slope
	Spec             = result.Spec
	Step             = result.Step
	StepProgress     = result.StepProgress
	StreamRequests   = result.StreamRequests
	Usage            = result.Usage
	Live             = fold.Live
)

// Words of a result, as package result has them.
const (
	BreachLatency    = result.BreachLatency
	BreachMissing    = result.BreachMissing
	BreachStandstill = result.BreachStandstill
	FigureAPI        = result.FigureAPI
	FigureCPU        = result.FigureCPU
	FigurePending    = result.FigurePending
	FromLevels       = result.FromLevels
	FromSteps        = result.FromSteps
	LawCPU           = result.LawCPU
	LawCount         = result.LawCount
	LawLatency       = result.LawLatency
	LawMemory        = result.LawMemory
	LawThroughput    = result.LawThroughput
	LawTime          = result.LawTime
	ResultSchema     = result.Schema
)
