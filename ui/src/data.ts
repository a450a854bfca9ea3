// What a page carries, as internal/report writes it.

export type Verdict = 'pass' | 'fail' | 'inconclusive' | 'invalid'

export interface Latency {
  n: number
  censored: number
  p50: number | null
  p90: number | null
  p95: number | null
  p99: number | null
  max: number | null
  mean: number | null
  intervals?: Record<string, [number | null, number | null]> | null
}

export interface Account {
  intended: number
  created: number
  createFailed: number
  dropped: number
  ready: number
  neverReady: number
  lost: number
}

// The course of one step's stream, window by window.
export interface Course {
  step: number
  at: number[]
  for: number[]
  warmUp: number
  intended: number[]
  done: number[]
  late: number[]
  dropped: number[]
  lost: number[]
  inFlight: number[]
  backlog: number[]
  failed: Record<string, number[]>
  p50: (number | null)[]
  p99: (number | null)[]
  sampled?: { title: string; at: number[]; lines: { name: string; values: (number | null)[] }[] }[]
}

export interface Step {
  id: number
  level: number
  levelReached: number
  arm?: string
  replicate?: number
  purpose: string
  why: string
  fromEmpty: boolean
  fullHold: boolean
  verdict: Verdict
  verdictWhy: string
  goals: Record<string, Verdict>
  start: string
  end: string
  ending: string
  seconds: number
  reachSeconds: number | null
  offeredRate: number | null
  achievedRate: number | null
  pace: string
  inFlightMax: number
  retries429: number
  watchLag: { n: number; unseen: number; p50: number | null; p99: number | null } | null
  objects: Account
  // Of a stream, instead of objects.
  requests?: { intended: number; sent: number; done: number; failed: Record<string, number> | null; late: number; dropped: number; lost: number } | null
  effectiveLevel: number | null
  latency: Record<string, Latency>
  groups?: ByLabel[] | null
  reasons: { reason: string; message: string; count: number; nodes: number; nodesOf: number }[]
  open?: boolean
  arrivals?: { warmUp: number; judged: number; late: number; dropped: number; ownDelayP99: number | null; deletionsPerSecond: number } | null
  bottleneck?: { waits: { from: string; to: string; for: string; mean: number; p99: number; share: number }[] | null; cpus?: number; cpuBusy: number | null } | null
  resources: Record<string, { cpuSeconds: number; peakRSSBytes: number; startRSSBytes: number; peakPSSBytes?: number; startPSSBytes?: number }>
}

// Times by the values of a label: internal/judge/group.go writes it.
export interface ByLabel {
  label: string
  from?: string
  to: string
  edges: number[] | null
  values: { value: string; time: Latency; counts: number[]; latency: Record<string, Latency> }[]
  cut?: number
}

// A level that held is a load line once its confirmations passed.
export const isConfirmed = (of: { verdict: string }) => of.verdict === 'pass'

export interface LoadLine {
  unit: string
  level: number | null
  lowestFailing: number | null
}

// How arms compare with the baseline: internal/judge/compare writes it. A null is a
// figure that was never reached, or that the runs do not give.
export interface Comparison {
  baseline: string
  metric: string // that decides
  margin: number
  alpha: number
  paired: boolean
  refused?: string
  arms: Record<string, Record<string, string> | null> | null
  differences: { what: string; detail?: string; baseline: string; arm: string; bearing: string }[]
  lines: LineComparison[]
  levels: LevelComparison[]
}

// The metrics that decide, each with its verdict.
export const decisions = (l: LevelComparison) => l.metrics ?? [{ verdict: l.verdict, figure: l.primary }]

// What readers see a metric as.
export const called = (m: { metric: string; title?: string }): string => m.title || m.metric

export interface Bracket {
  level: number | null
  lowestFailing: number | null
  verdict: string
  confirmations: string
  binding: string
}

export interface LineComparison {
  goal: string
  axis: string
  unit: string
  baseline: Bracket
  arm: Bracket
  change: number | null
  lo: number | null
  hi: number | null
  verdict: string
  why: string
}

export interface LevelComparison {
  level: number
  arm: string
  verdict: string
  runs: [number, number]
  primary: Compared
  metrics?: { verdict: string; figure: Compared }[] // those that decide, where they are several: the primary first
  others: Compared[]
  series: SeriesComparison[]
}

export interface Compared {
  metric: string
  title?: string // what readers see in place of the metric's name
  unit: string
  kind: string
  lessIsWorse?: boolean
  baseline: (number | null)[]
  arm: (number | null)[]
  change: number | null
  lo: number | null
  hi: number | null
  note?: string
  falseDiscovery?: number | null
}

export interface Form {
  n: number
  censored: number
  forms: number
  curve: [seconds: number, share: number][]
}

export interface SeriesComparison {
  milestone: string
  component: string // '' is all of them
  baseline: Form
  arm: Form
  distance: number | null
  superiority: number | null
  permutationP: number | null
  shifts: Shift[]
}

export interface Shift {
  q: number
  baseline: number | null
  arm: number | null
  change: number | null
  lo: number | null
  hi: number | null
}

export interface Law {
  name: string
  of: 'memory' | 'cpu' | 'count'
  x: string
  xUnit: string
  yUnit: string
  points: { step: number; x: number; y: number }[]
  line?: { intercept: Interval; slope: Interval } | null
}

export interface Result {
  experiment: string
  workload: string
  verdict: Verdict
  objectKind?: { object?: { one: string; many: string } } | null
  fidelity?: { timeScale?: number }
  comparison: Comparison | null
  loadLine: LoadLine | null
  laws?: { unit: string; list: Law[] | null } | null
  goals: { name: string; slo: string[]; loadLine: LoadLine | null; verdict: Verdict }[]
  steps: Step[]
}

interface Packed {
  rows: number
  unit: number
  short: boolean
  columns: { name: string; kind: 'number' | 'time' | 'word' | 'name'; words?: string[] }[]
}

interface RawCurve {
  n: number
  x: number[]
  y: number[]
  took: number
}

export interface Run {
  result: Result
  axis: string
  unit: string
  arrived: string
  cpus: number
  milestones: string[]
  bounds: { goal: string; text: string; milestone: string; q: number; seconds: number }[]
  times: [number, number][]
  curves: RawCurve[]
  distribution: Record<string, number[]>
  progress: { step: number; asked: RawCurve; there: RawCurve }[]
  streams: Course[]
  objects: Packed | null
  trends: Trend[]
  grid: Grid | null
}

export interface Interval {
  value: number | null
  lo: number | null
  hi: number | null
}

// A grid: a search or a sweep for each combination of values.
export interface Grid {
  kind: 'limit' | 'sweep'
  vary: { key: string; values: string[] }[]
  metric: string // that pairs of sweeps are compared by
  title?: string // of the metric
  margin: number
  alpha: number
  arrived: string
  cells: GridCell[]
  pairs: GridPair[]
  curves: Capacity[]
}

export interface GridCell {
  name: string
  label: string
  params: Record<string, string>
  verdict: Verdict | ''
  failed?: string
  loadLine: (LoadLine & { binding: string; confirmations: number; confirmationsMade: number }) | null
  levels: { level: number; runs: number; held: number; rate: Interval; p50: Interval; p99: Interval; metric: Interval; unit?: string }[]
  steps: { step: number; level: number; round: number; purpose: string; verdict: Verdict; why: string; leftOut?: boolean; rate: number | null; p50: number | null; p99: number | null; metric: number | null; unit?: string }[]
}

export interface GridPair {
  key: string
  baseline: string
  arm: string
  level?: number | null
  verdict: string
  why: string
  figure?: Compared
  line?: LineComparison
}

export interface Capacity {
  key: string
  with?: Record<string, string>
  unit: string
  points: { value: number; cell: string; level: number | null; lowestFailing: number | null; binding: string; gain: Interval | null }[]
  exponent?: Interval | null
  knee: number | null
}

export interface Trend {
  workload: string
  metric: string
  title?: string // of the metric
  unit: string
  lessIsWorse?: boolean
  axis: string
  level: number | null
  points: TrendPoint[]
  changes: { at: number; change: number; p: number }[]
}

export interface TrendPoint {
  name: string
  start: string
  program: string
  kubernetes: string
  value: number | null
  low: number | null
  high: number | null
  runs: number
  estimated?: boolean // value is the estimate of a load line, low and high its interval
  note?: string
  differs: string[]
}

// A curve of straight lines: x in seconds, y in objects.
export interface Curve {
  n: number
  x: number[]
  y: number[]
  took: number
}

// What a process held at the start, what several share counted once.
export function memoryAtStart(u: Step['resources'][string]): number {
  return u.peakPSSBytes === undefined ? u.startRSSBytes : (u.startPSSBytes ?? 0)
}

export function curveOf(raw: RawCurve): Curve {
  let x = 0
  let y = 0
  return { n: raw.n, took: raw.took, x: raw.x.map((d) => (x += d) / 1e6), y: raw.y.map((d) => (y += d)) }
}

// The curve of a form: stairs where each of its objects is there, straight
// lines where some were left out.
export function curveOfForm(f: Form): Curve {
  const c: Curve = { n: f.n, x: [], y: [], took: 0 }
  const whole = f.curve.length === f.n - f.censored
  let last = 0
  for (const [x, share] of f.curve) {
    if (whole || c.x.length === 0) {
      c.x.push(x)
      c.y.push(last)
    }
    last = share * f.n
    c.x.push(x)
    c.y.push(last)
  }
  return c
}

// The height of a curve at a place: after a jump there, not before it.
export function heightAt(c: Curve, x: number): number {
  let lo = 0
  let hi = c.x.length
  while (lo < hi) {
    const mid = (lo + hi) >> 1
    if (c.x[mid]! <= x) lo = mid + 1
    else hi = mid
  }
  if (lo === 0) return 0
  const x0 = c.x[lo - 1]!
  const y0 = c.y[lo - 1]!
  if (lo === c.x.length) return y0
  const x1 = c.x[lo]!
  return x1 > x0 ? y0 + ((c.y[lo]! - y0) * (x - x0)) / (x1 - x0) : y0
}

// Where a curve first comes to a height, undefined if it never does.
export function placeOf(c: Curve, y: number): number | undefined {
  for (let i = 0; i < c.y.length; i++) {
    if (c.y[i]! < y - 1e-9) continue
    const rise = i > 0 ? c.y[i]! - c.y[i - 1]! : 0
    return rise > 0 ? c.x[i - 1]! + ((c.x[i]! - c.x[i - 1]!) * (y - c.y[i - 1]!)) / rise : c.x[i]!
  }
  return undefined
}

// What was asked for.
export const things = (run: Run) => (run.streams.length > 0 ? 'requests' : run.result.objectKind?.object?.many || 'objects')

export const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1)

// What a result leaves out is empty.
export function readRun(): Run {
  const run = JSON.parse(document.getElementById('run')!.textContent!) as Run
  const r = run.result as Partial<Result>
  run.trends ??= []
  run.streams ??= []
  run.grid ??= null
  if (run.grid) {
    run.grid.pairs ??= []
    run.grid.curves ??= []
    for (const c of run.grid.cells) {
      c.levels ??= []
      c.steps ??= []
    }
  }
  for (const t of run.trends as Partial<Trend>[]) {
    t.points ??= []
    t.changes ??= []
    for (const p of t.points as Partial<TrendPoint>[]) p.differs ??= []
  }
  r.goals ??= []
  r.steps ??= []
  r.comparison ??= null
  if (r.comparison) {
    r.comparison.differences ??= []
    r.comparison.lines ??= []
    r.comparison.levels ??= []
    for (const l of r.comparison.levels as Partial<LevelComparison>[]) {
      l.others ??= []
      l.series ??= []
    }
  }
  for (const s of r.steps as Partial<Step>[]) {
    s.goals ??= {}
    s.latency ??= {}
    s.resources ??= {}
    s.reasons ??= []
    const r = s.requests
    // What was done of a stream is what is ready of objects.
    if (r) s.objects = { intended: r.intended, created: r.sent, createFailed: 0, dropped: r.dropped, ready: r.done, neverReady: Object.values(r.failed ?? {}).reduce((a, b) => a + b, 0), lost: r.lost }
  }
  return run
}
