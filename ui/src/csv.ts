// The raw data as CSV (RFC 4180), made when they are asked for.

import { curveOf, decisions, memoryAtStart, things, type Comparison, type Grid, type Run } from './data'
import { html } from './dom'
import { count } from './format'

type Cell = string | number | null | undefined

// A text that a spreadsheet would take for a formula is kept from it.
function cell(v: Cell): string {
  if (v == null) return ''
  if (typeof v === 'number') return String(v)
  const text = /^[=+\-@\t\r]/.test(v) ? `'${v}` : v
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const csv = (rows: Iterable<Cell[]>) => {
  const lines: string[] = []
  for (const row of rows) lines.push(row.map(cell).join(','))
  return lines.join('\r\n') + '\r\n'
}

function* steps(run: Run): Iterable<Cell[]> {
  const milestones = run.milestones
  const goals = run.result.goals.map((g) => g.name)
  yield ['step', 'level', 'level_reached', 'unit', 'arm', 'replicate', 'purpose', 'from_empty', 'full_hold', 'verdict', ...goals.map((g) => `goal_${g}`), 'start', 'end', 'ending', 'seconds', 'reach_seconds', 'offered_per_s', 'achieved_per_s', 'pace', 'in_flight_max', 'answers_429',
    'intended', 'created', 'create_failed', 'dropped', 'there', 'never', 'lost', 'effective_level', 'watch_lag_p50_s', 'watch_lag_p99_s', 'arrivals_judged', 'arrivals_late', 'own_delay_p99_s', 'deleted_per_s', ...milestones.flatMap((m) => ['n', 'never', 'p50_s', 'p90_s', 'p95_s', 'p99_s', 'max_s', 'mean_s'].map((q) => `${m}_${q}`)), 'why']
  for (const s of run.result.steps) {
    const o = s.objects
    yield [s.id, s.level, s.levelReached, run.unit, s.arm, s.replicate, s.purpose, String(s.fromEmpty), String(s.fullHold), s.verdict, ...goals.map((g) => s.goals[g]), s.start, s.end, s.ending, s.seconds, s.reachSeconds, s.offeredRate, s.achievedRate, s.pace, s.inFlightMax, s.retries429,
      o.intended, o.created, o.createFailed, o.dropped, o.ready, o.neverReady, o.lost, s.effectiveLevel, s.watchLag?.p50, s.watchLag?.p99, s.arrivals?.judged, s.arrivals?.late, s.arrivals?.ownDelayP99, s.arrivals?.deletionsPerSecond,
      ...milestones.flatMap((m): Cell[] => {
        const l = s.latency[m]
        return l ? [l.n, l.censored, l.p50, l.p90, l.p95, l.p99, l.max, l.mean] : Array<Cell>(8).fill(null)
      }), s.verdictWhy]
  }
}

function* distributions(run: Run): Iterable<Cell[]> {
  yield ['milestone', 'step', 'level', 'seconds', 'objects', 'of']
  for (const m of run.milestones)
    for (const [i, s] of run.result.steps.entries()) {
      const k = run.distribution[m]?.[i] ?? -1
      if (k < 0) continue
      const c = curveOf(run.curves[k]!)
      for (let j = 0; j < c.x.length; j++) yield [m, s.id, s.levelReached, c.x[j], c.y[j], c.n]
    }
}

function* byLabel(run: Run): Iterable<Cell[]> {
  yield ['step', 'level', 'label', 'value', 'from', 'to', 'n', 'never', 'p50_s', 'p90_s', 'p95_s', 'p99_s', 'max_s', 'mean_s']
  for (const s of run.result.steps)
    for (const b of s.groups ?? [])
      for (const v of b.values)
        for (const [from, to, l] of [[b.from ?? '', b.to, v.time] as const, ...run.milestones.flatMap((m) => (v.latency[m] ? [['', m, v.latency[m]] as const] : []))]) yield [s.id, s.levelReached, b.label, v.value, from, to, l.n, l.censored, l.p50, l.p90, l.p95, l.p99, l.max, l.mean]
}

function* histograms(run: Run): Iterable<Cell[]> {
  yield ['step', 'level', 'label', 'value', 'above_s', 'up_to_s', 'n']
  for (const s of run.result.steps) for (const b of s.groups ?? []) for (const v of b.values) for (const [i, n] of v.counts.entries()) yield [s.id, s.levelReached, b.label, v.value, b.edges?.[i], b.edges?.[i + 1], n]
}

function* progress(run: Run): Iterable<Cell[]> {
  yield ['step', 'what', 'seconds_since_start', 'objects']
  for (const p of run.progress)
    for (const what of ['asked', 'there'] as const) {
      const c = curveOf(p[what])
      for (let j = 0; j < c.x.length; j++) yield [p.step, what, c.x[j], c.y[j]]
    }
}

function* windows(run: Run): Iterable<Cell[]> {
  const kinds = [...new Set(run.streams.flatMap((c) => Object.keys(c.failed)))].sort()
  yield ['step', 'seconds_since_start', 'for_seconds', 'warm_up', 'intended', 'done', ...kinds.map((k) => `failed_${k}`), 'late', 'dropped', 'lost', 'in_flight', 'backlog', 'p50_s', 'p99_s']
  for (const c of run.streams)
    for (const [i, at] of c.at.entries()) yield [c.step, at, c.for[i], String(i < c.warmUp), c.intended[i], c.done[i], ...kinds.map((k) => c.failed[k]?.[i] ?? 0), c.late[i], c.dropped[i], c.lost[i], c.inFlight[i], c.backlog[i], c.p50[i], c.p99[i]]
}

function* reasons(run: Run): Iterable<Cell[]> {
  yield ['step', 'level', 'reason', 'message', 'objects', 'nodes', 'nodes_of']
  for (const s of run.result.steps) for (const r of s.reasons) yield [s.id, s.levelReached, r.reason, r.message, r.count, r.nodes, r.nodesOf]
}

function* resources(run: Run): Iterable<Cell[]> {
  yield ['step', 'level', 'process', 'cpu_s', 'of_s', 'memory_most_bytes', 'memory_start_bytes']
  for (const s of run.result.steps) for (const [name, u] of Object.entries(s.resources)) yield [s.id, s.levelReached, name, u.cpuSeconds, s.seconds, u.peakPSSBytes ?? u.peakRSSBytes, memoryAtStart(u)]
}

function* metrics(c: Comparison): Iterable<Cell[]> {
  yield ['level', 'baseline', 'arm', 'metric', 'unit', 'kind', 'decides', 'verdict', 'change', 'lo', 'hi', 'confidence', 'margin', 'false_discovery', 'runs_baseline', 'runs_arm', 'note']
  for (const l of c.levels)
    for (const { figure: m, verdict } of [...decisions(l), ...l.others.map((figure) => ({ figure, verdict: null }))]) {
      yield [l.level, c.baseline, l.arm, m.metric, m.unit, m.kind, String(verdict != null), c.refused ? null : verdict, m.change, m.lo, m.hi, 1 - c.alpha, c.margin, m.falseDiscovery, l.runs[0], l.runs[1], m.note]
    }
}

function* runs(c: Comparison): Iterable<Cell[]> {
  yield ['level', 'compared_with_baseline', 'metric', 'unit', c.paired ? 'block' : 'run', 'arm', 'value']
  for (const l of c.levels)
    for (const m of [...decisions(l).map((d) => d.figure), ...l.others])
      for (const [name, list] of [[c.baseline, m.baseline], [l.arm, m.arm]] as const) for (const [i, v] of list.entries()) yield [l.level, l.arm, m.metric, m.unit, i + 1, name, v]
}

function* shifts(c: Comparison): Iterable<Cell[]> {
  yield ['level', 'baseline', 'arm', 'milestone', 'component', 'quantile', 'baseline_s', 'arm_s', 'change', 'lo', 'hi', 'distance', 'superiority', 'permutation_p']
  for (const l of c.levels) for (const s of l.series) for (const x of s.shifts) yield [l.level, c.baseline, l.arm, s.milestone, s.component, x.q, x.baseline, x.arm, x.change, x.lo, x.hi, s.distance, s.superiority, s.permutationP]
}

function* shapes(c: Comparison): Iterable<Cell[]> {
  yield ['level', 'compared_with_baseline', 'milestone', 'component', 'arm', 'seconds', 'share', 'of', 'never']
  for (const l of c.levels)
    for (const s of l.series)
      for (const [name, f] of [[c.baseline, s.baseline], [l.arm, s.arm]] as const) for (const [x, share] of f.curve) yield [l.level, l.arm, s.milestone, s.component, name, x, share, f.n, f.censored]
}

function* loadLines(c: Comparison): Iterable<Cell[]> {
  yield ['goal', 'axis', 'unit', 'side', 'level', 'lowest_failing', 'confirmations', 'binding', 'change', 'lo', 'hi', 'verdict', 'why']
  for (const l of c.lines) for (const [side, b] of [['baseline', l.baseline], ['arm', l.arm]] as const) yield [l.goal, l.axis, l.unit, side, b.level, b.lowestFailing, b.confirmations, b.binding, l.change, l.lo, l.hi, l.verdict, l.why]
}

function* differences(c: Comparison): Iterable<Cell[]> {
  yield ['what', 'detail', 'baseline', 'arm', 'bearing']
  for (const d of c.differences) yield [d.what, d.detail, d.baseline, d.arm, d.bearing]
}

function* trends(run: Run): Iterable<Cell[]> {
  yield ['workload', 'metric', 'unit', 'axis', 'level', 'experiment', 'started', 'plimsoll', 'kubernetes', 'value', 'low', 'high', 'runs', 'differs', 'change_from_here', 'p', 'note']
  for (const t of run.trends)
    for (const [i, p] of t.points.entries()) {
      const c = t.changes.find((o) => o.at === i)
      yield [t.workload, t.metric, t.unit, t.axis, t.level, p.name, p.start, p.program, p.kubernetes, p.value, p.low, p.high, p.runs, p.differs.join(' '), c?.change, c?.p, p.note]
    }
}

const valuesOf = (g: Grid, params: Record<string, string> | undefined) => g.vary.map((v) => params?.[v.key])

function* cells(g: Grid): Iterable<Cell[]> {
  const keys = g.vary.map((v) => v.key)
  if (g.kind === 'limit') {
    yield ['cell', ...keys, 'verdict', 'load_line', 'lowest_failing', 'unit', 'confirmations', 'confirmations_made', 'binding', 'not_run']
    for (const { name, params, verdict, loadLine: l, failed } of g.cells) yield [name, ...valuesOf(g, params), verdict, l?.level, l?.lowestFailing, l?.unit, l?.confirmations, l?.confirmationsMade, l?.binding, failed]
    return
  }
  const of = ['rate', 'p50', 'p99', 'metric'] as const
  yield ['cell', ...keys, 'verdict', 'level', 'runs', 'held', ...of.flatMap((f) => [f, `${f}_lo`, `${f}_hi`]), 'metric_name', 'metric_unit', 'not_run']
  for (const c of g.cells) {
    if (c.levels.length === 0) yield [c.name, ...valuesOf(g, c.params), c.verdict, ...Array<Cell>(17).fill(null), c.failed]
    for (const l of c.levels) yield [c.name, ...valuesOf(g, c.params), c.verdict, l.level, l.runs, l.held, ...of.flatMap((f) => [l[f].value, l[f].lo, l[f].hi]), g.metric, l.unit, c.failed]
  }
}

function* cellSteps(g: Grid): Iterable<Cell[]> {
  yield ['cell', ...g.vary.map((v) => v.key), 'step', 'level', 'round', 'purpose', 'verdict', 'counts', 'rate', 'p50_s', 'p99_s', 'metric', 'metric_name', 'metric_unit', 'why']
  for (const c of g.cells) for (const s of c.steps) yield [c.name, ...valuesOf(g, c.params), s.step, s.level, s.round, s.purpose, s.verdict, String(!s.leftOut), s.rate, s.p50, s.p99, s.metric, g.metric, s.unit, s.why]
}

function* pairs(g: Grid): Iterable<Cell[]> {
  yield ['key', 'baseline', 'arm', 'level', 'metric', 'verdict', 'change', 'lo', 'hi', 'margin', 'why']
  for (const p of g.pairs) {
    const d = p.figure ?? p.line
    yield [p.key, p.baseline, p.arm, p.level, p.line ? 'load line' : g.metric, p.verdict, d?.change, d?.lo, d?.hi, g.margin, p.why]
  }
}

function* capacity(g: Grid): Iterable<Cell[]> {
  yield ['key', 'value', 'cell', ...g.vary.map((v) => `with_${v.key}`), 'unit', 'load_line', 'lowest_failing', 'gain', 'gain_lo', 'gain_hi', 'binding', 'knee', 'exponent', 'exponent_lo', 'exponent_hi']
  for (const c of g.curves) for (const p of c.points) yield [c.key, p.value, p.cell, ...valuesOf(g, c.with), c.unit, p.level, p.lowestFailing, p.gain?.value, p.gain?.lo, p.gain?.hi, p.binding, c.knee, c.exponent?.value, c.exponent?.lo, c.exponent?.hi]
}

// The table of objects is packed: see pack in internal/report/objects.go.
async function objects(run: Run): Promise<Iterable<Cell[]>> {
  const packed = run.objects!
  const text = atob(document.getElementById('packed')!.textContent!.trim())
  const deflated = Uint8Array.from(text, (c) => c.charCodeAt(0))
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream('deflate-raw'))
  const data = new Uint8Array(await new Response(stream).arrayBuffer())
  let at = 0
  const varint = () => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const b = data[at++]!
      value += (b & 127) * scale
      if (b < 128) return value
    }
  }
  const zigzag = (v: number) => (v % 2 ? -(v + 1) / 2 : v / 2)
  const n = packed.rows
  const before = new Float64Array(n)
  let times = 0
  const columns = packed.columns.map((c): Cell[] => {
    const list = new Array<Cell>(n)
    if (c.kind === 'word') for (let i = 0; i < n; i++) list[i] = c.words![varint()]
    else if (c.kind === 'number') {
      const unit = c.name.endsWith('_us') ? packed.unit : 1
      for (let i = 0; i < n; i++) list[i] = zigzag(varint()) * unit
    }
    else if (c.kind === 'name') {
      const utf8 = new TextDecoder()
      let last = new Uint8Array(0)
      for (let i = 0; i < n; i++) {
        const same = varint()
        const rest = varint()
        const word = new Uint8Array(same + rest)
        word.set(last.subarray(0, same))
        word.set(data.subarray(at, at + rest), same)
        at += rest
        last = word
        list[i] = utf8.decode(word)
      }
    } else {
      let last = 0
      for (let i = 0; i < n; i++) {
        if (times === 0) before[i] = last
        const v = varint()
        if (v === 0) continue
        before[i] = before[i]! + zigzag(v - 1)
        last = before[i]!
        list[i] = before[i]! * packed.unit
      }
      times++
    }
    return list
  })
  const order = packed.columns.map((_, i) => i).sort((a, b) => Number(packed.columns[a]!.kind === 'time') - Number(packed.columns[b]!.kind === 'time') || Number(packed.columns[b]!.name === 'slot') - Number(packed.columns[a]!.name === 'slot'))
  const level = new Map(run.result.steps.map((s) => [s.id, s.levelReached]))
  const step = columns[packed.columns.findIndex((c) => c.name === 'step')]
  return (function* () {
    yield [...order.map((i) => packed.columns[i]!.name), 'level']
    for (let i = 0; i < n; i++) yield [...order.map((k) => columns[k]![i]), level.get(step?.[i] as number)]
  })()
}

export function downloads(run: Run, list: HTMLElement, status: HTMLElement): void {
  const offer = (name: string, what: string, make: () => Promise<Iterable<Cell[]>> | Iterable<Cell[]>) => {
    const button = html('button', { type: 'button', 'data-csv': name }, `${name}.csv`)
    button.addEventListener('click', async () => {
      const rows = await make()
      const url = URL.createObjectURL(new Blob([csv(rows)], { type: 'text/csv' }))
      const link = html('a', { href: url, download: `${run.result.experiment || 'plimsoll'}-${name}.csv`.replace(/[^\w.-]+/g, '_').slice(-120) })
      link.click()
      setTimeout(() => URL.revokeObjectURL(url), 60_000)
      status.textContent = `${name}.csv was made.`
    })
    list.append(html('li', {}, button, html('span', {}, what)))
  }
  const g = run.grid
  if (g) {
    offer('cells', g.kind === 'limit' ? 'the load line of every cell' : 'every level of every cell, with intervals', () => cells(g))
    if (g.cells.some((x) => x.steps.length)) offer('cell-steps', 'one row for each step of every cell', () => cellSteps(g))
    if (g.pairs.length) offer('pairs', 'the change between every two cells that differ in one value', () => pairs(g))
    if (g.curves.length) offer('capacity', 'the load line against every number that was varied', () => capacity(g))
  }
  if (run.trends.length) offer('trend', 'the figure of every experiment, with versions and changes of its level', () => trends(run))
  const c = run.result.comparison
  if (c?.levels.length) {
    offer('comparison', 'every metric of every arm and level: its change with interval', () => metrics(c))
    offer('comparison-runs', 'every metric of every run that counts', () => runs(c))
    if (c.levels.some((l) => l.series.length)) {
      offer('comparison-shifts', 'the shift of every quantile, by milestone and component', () => shifts(c))
      offer('comparison-distributions', 'the distributions of both arms as they are drawn', () => shapes(c))
    }
  }
  if (c?.lines.length) offer('load-lines', 'both load lines with their brackets, goal by goal', () => loadLines(c))
  if (c?.differences.length) offer('differences', 'what the experiments do not have in common', () => differences(c))
  if (run.objects) {
    const { rows, unit, short } = run.objects
    const how = unit === 1 ? 'to the microsecond' : `to ${unit === 100 ? '0.1 ms' : '1 ms'}${short ? ' and without what tells of the requests' : ''}, so that this page stays small: objects.parquet has all`
    offer('objects', `one row for each of ${count(rows)} ${things(run)}, times since the start of the run ${how}`, () => objects(run))
  }
  if (run.result.steps.length > 0) offer('steps', 'one row for each step, with every figure', () => steps(run))
  if (run.curves.length > 0) offer('distributions', 'the curves of latencies as they are drawn', () => distributions(run))
  if (run.streams.length > 0) offer('windows', 'one row for each window of requests: windows.parquet has their histograms too', () => windows(run))
  if (run.result.steps.some((s) => s.groups?.length)) {
    offer('by-label', `the times of ${things(run)} by their labels`, () => byLabel(run))
    offer('histograms', 'the histograms of these times', () => histograms(run))
  }
  if (run.progress.length > 0) offer('progress', `${things(run)} over time as they are drawn`, () => progress(run))
  if (run.result.steps.some((s) => s.reasons.length)) offer('reasons', `why ${things(run)} were not ready`, () => reasons(run))
  if (run.result.steps.some((s) => Object.keys(s.resources).length)) offer('resources', 'what each process used in each step', () => resources(run))
}
