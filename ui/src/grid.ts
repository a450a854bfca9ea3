// A grid of searches or sweeps: a small chart of each cell, with axes in common;
// the changes between cells; and the load line against what was varied.

import { scaleLinear, scaleLog } from 'd3-scale'
import { called, isConfirmed, type Capacity, type Grid, type GridCell, type GridPair, type Interval, type Run } from './data'
import { byId, choose, svg, widthOf } from './dom'
import { change, figure, number, quantile, said, short, tick, tone } from './format'
import { canvas, frame, glyph, titled, xAxis, yAxis, type Drawing, type Mark } from './frame'
import { changes, saysChange, type ChangeRow } from './forest'
import { columns, stepAxis } from './ladder'
import { logRange, logTicks } from './trend'

export function grid(run: Run, g: Grid): void {
  const all = byId('cells-chart')
  if (all) dots(g, all)
  const draw = g.kind === 'limit' ? search(run, g) : sweep(run, g)
  g.cells.forEach((c, i) => {
    const host = byId(`cell-chart-${i}`)
    if (host) draw(c, host)
  })
  g.vary.forEach((v, i) => {
    const host = byId(`pairs-chart-${i}`)
    if (host) pairs(g, v.key, host, byId(`pairs-controls-${i}`)!)
  })
  g.curves.forEach((c, i) => {
    const host = byId(`capacity-chart-${i}`)
    if (host) capacity(g, c, host)
  })
}

interface Axis {
  at: (v: number) => number
  ticks: (many: number) => number[]
  log: boolean
}

const decade = (values: number[]) => Math.min(...values) > 0 && Math.max(...values) >= 10 * Math.min(...values)

// An axis from 0, or a logarithmic one, by default where the values span a
// decade.
function axisOf(values: number[], range: [number, number], log = decade(values)): Axis {
  const [least, most] = [Math.min(...values), Math.max(...values, 1e-9)]
  if (log) {
    const ends: [number, number] = [least / 1.25, most * 1.25]
    return { at: scaleLog(ends, range).clamp(true), ticks: () => logTicks(ends), log: true }
  }
  const at = scaleLinear([0, most * 1.1], range)
  return { at, ticks: (many) => at.ticks(many), log: false }
}

const inCell = (what: string, log: boolean) => what + (log ? ', logarithmic' : '')
const place = (v: number | null | undefined, unit: string) => (v == null ? 'none' : `${number(v)} ${unit}`.trim())

// The levels that each search tried, in their order, with its bracket.
function search(run: Run, g: Grid) {
  const steps = Math.max(...g.cells.map((c) => c.steps.length))
  const levels = g.cells.flatMap((c) => [...c.steps.map((s) => s.level), c.loadLine?.level, c.loadLine?.lowestFailing]).filter((v): v is number => v != null)
  return (c: GridCell, host: HTMLElement) => frame(host, `Levels of ${c.label}`, (width): Drawing => {
    const [left, right, top, bottom] = [48, width - 8, 30, 170]
    const x = columns(steps, left, right)
    const y = axisOf(levels, [bottom, top])
    const room = x(1) - x(0)
    const body: Node[] = [yAxis(y.ticks(4), y.at, left, right, number), titled(inCell(run.unit || 'level', y.log), 0, 14, 'start', 'tick')]
    const line = c.loadLine
    if (line?.level != null) body.push(svg('path', { class: isConfirmed(c) ? 'bracket-held' : `held-line v-${tone(c.verdict)}`, d: `M${left} ${y.at(line.level)}H${right}` }))
    if (line?.lowestFailing != null) body.push(svg('path', { class: 'fail-line', d: `M${left} ${y.at(line.lowestFailing)}H${right}` }))
    body.push(svg('path', { class: 'way', d: c.steps.map((s, i) => `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y.at(s.level).toFixed(1)}`).join('') }))
    const r = Math.max(2, Math.min(5, room / 2 - 0.5))
    const row = c.steps.map((s, i): Mark => {
      const at = y.at(s.level)
      if (s.verdict === 'pass' || s.verdict === 'fail') body.push(svg('circle', { class: s.verdict === 'pass' ? 'step-held' : 'step-failed', cx: x(i), cy: at, r }))
      else body.push(glyph(s.verdict, x(i), at, 2.6 * r))
      return { x: x(i), y: at, title: `Step ${s.step}, ${place(s.level, run.unit)}: ${said[s.verdict] ?? s.verdict}`, rows: [['purpose', s.purpose], ...(s.why ? [['why', s.why] as [string, string]] : [])] }
    })
    body.push(stepAxis(Array.from({ length: steps }, (_, i) => ({ id: i + 1 })), x, bottom + 18), titled('step', left - 8, bottom + 18, 'end', 'tick'))
    return { svg: canvas(width, bottom + 26, ...body), points: row.length, rows: [row], top, bottom }
  })
}

const spread = (i: number, n: number, half: number) => (n > 1 ? half * ((2 * i) / (n - 1) - 1) : 0)
const within = ({ lo, hi }: { lo: number | null; hi: number | null }, text: (v: number) => string) => (lo != null && hi != null ? `${text(lo)} to ${text(hi)}` : lo != null ? `at least ${text(lo)}` : hi != null ? `at most ${text(hi)}` : '-')
const said95 = (i: Interval, text: (v: number | null) => string) => (i.lo == null || i.hi == null ? '-' : `${text(Math.max(i.lo, 0))} to ${text(i.hi)}`)

// The median and the 99th percentile against the level: each run, and the mean
// with its interval.
function sweep(run: Run, g: Grid) {
  const both = [['p50', 'of-p50'], ['p99', 'of-p99']] as const
  const levels = g.cells.flatMap((c) => c.steps.map((s) => s.level))
  const range = logRange(g.cells.flatMap((c) => [...c.steps.flatMap((s) => [s.p50, s.p99]), ...c.levels.flatMap((l) => [l.p50.hi, l.p99.hi])]))
  const never = g.cells.some((c) => c.steps.some((s) => s.p50 == null || s.p99 == null))
  return (c: GridCell, host: HTMLElement) => frame(host, `Latencies of ${c.label}`, (width): Drawing => {
    const [left, right, top, bottom] = [56, width - 34, 30, 210]
    const x = axisOf(levels, [left + 10, right - 10])
    const y = scaleLog(range, [bottom, top + (never ? 24 : 4)]).clamp(true)
    const known = [...new Set(levels)].sort((a, b) => a - b)
    const body: Node[] = [yAxis(logTicks(range), y, left, right, tick), xAxis(known, x.at, top, bottom, number, 30), titled(inCell(run.unit ? `at ${run.unit}` : 'at level', x.log), right, bottom + 34, 'end', 'tick'), titled(g.arrived, 0, 14, 'start', 'tick')]
    if (never) body.push(svg('rect', { class: 'never', x: left, y: top, width: right - left, height: 16, rx: 4 }), titled('never', left - 8, top + 12, 'end', 'tick'))
    const rows: Mark[][] = []
    for (const [q, cls] of both) {
      const row: Mark[] = []
      const means = c.levels.filter((l) => l[q].value != null)
      body.push(svg('path', { class: `mean ${cls}`, d: means.map((l, i) => `${i ? 'L' : 'M'}${x.at(l.level).toFixed(1)} ${y(l[q].value!).toFixed(1)}`).join('') }))
      for (const l of means) {
        const { lo, hi } = l[q]
        if (lo == null || hi == null) continue
        const [a, b, at] = [y(Math.max(lo, range[0])), y(hi), x.at(l.level)]
        body.push(svg('path', { class: `whisker ${cls}`, d: `M${at - 4} ${b}h8M${at} ${b}V${a}${lo > range[0] ? `M${at - 4} ${a}h8` : ''}` }))
      }
      for (const level of known) {
        const runs = c.steps.filter((s) => s.level === level)
        const mean = c.levels.find((l) => l.level === level)
        runs.forEach((s, i) => {
          const [at, v] = [x.at(level) + spread(i, runs.length, 9), s[q]]
          const h = v == null ? top + 8 : y(v)
          body.push(svg('circle', { class: `run ${s.leftOut ? 'left-out' : cls}`, cx: at, cy: h, r: 3.2 }))
          row.push({
            x: at, y: h, title: `${number(level)} ${run.unit}, round ${s.round || i + 1}: ${said[s.verdict] ?? s.verdict}`.replace('  ', ' '),
            rows: [[q, quantile(v)], ...(s.leftOut ? [['counts', 'no'] as [string, string]] : []), ...(mean ? [['mean', quantile(mean[q].value)], ['95% interval', said95(mean[q], quantile)]] as [string, string][] : [])],
          })
        })
      }
      const last = means.at(-1)
      if (last) body.push(titled(q, x.at(last.level) + 15, y(last[q].value!) + 4, 'start', `end ${cls}`))
      rows.unshift(row)
    }
    return { svg: canvas(width, bottom + 42, ...body), points: rows.flat().length, rows, top, bottom }
  })
}

// The metric of all cells at their one level: each run a dot, and the mean with
// its interval.
function dots(g: Grid, host: HTMLElement): void {
  const metric = called(g) || `${g.arrived} p99`
  const of = g.metric ? ((s: GridCell['steps'][number]) => s.metric) : ((s: GridCell['steps'][number]) => s.p99)
  const meanOf = (c: GridCell): Interval => c.levels[0]?.[g.metric ? 'metric' : 'p99'] ?? { value: null, lo: null, hi: null }
  const unit = g.metric ? (g.cells.flatMap((c) => c.steps).find((s) => s.unit)?.unit ?? '') : 's'
  const values = g.cells.flatMap((c) => [...c.steps.map(of), meanOf(c).hi]).filter((v): v is number => v != null)
  const text = (v: number | null) => figure(v, unit, unit === 's' ? 'latency' : '')
  frame(host, `${metric} of all cells`, (width): Drawing => {
    const [left, right, top, tall] = [10, width - 20, 26, 48]
    const bottom = top + g.cells.length * tall
    const x = axisOf(values, [left, right])
    const body: Node[] = [xAxis(x.ticks(width < 620 ? 4 : 8), x.at, top, bottom, unit === 's' ? tick : (v) => text(v), 56), titled(inCell(metric, x.log), 0, 14)]
    const rows = g.cells.map((c, i): Mark[] => {
      const [name, y] = [top + i * tall + 18, top + i * tall + 33]
      const mean = meanOf(c)
      const says = c.failed ? 'not run' : c.steps.length === 0 ? 'no run' : text(mean.value)
      if (c.verdict) body.push(glyph(c.verdict, 8, name - 4, 16))
      body.push(titled(short(c.label, Math.floor((width - 110) / 7.4)), 22, name, 'start', 'row-name'), titled(says, right, name, 'end', 'row-value'))
      if (mean.lo != null && mean.hi != null) {
        const [a, b] = [x.at(Math.max(mean.lo, 0)), x.at(mean.hi)]
        body.push(svg('path', { class: 'whisker of-p99', d: `M${a} ${y - 6}v12M${a} ${y}H${b}M${b} ${y - 6}v12` }))
      }
      return c.steps.flatMap((s, k): Mark[] => {
        const v = of(s)
        const at = v == null ? right : x.at(v)
        body.push(v == null ? svg('path', { class: 'cross', d: `M${at - 4.5} ${y - 4.5}l9 9m0 -9l-9 9` }) : svg('circle', { class: `run ${s.leftOut ? 'left-out' : 'of-p99'}`, cx: at, cy: y, r: 4 }))
        return [{
          x: at, y, title: `${c.label}, round ${s.round || k + 1}: ${said[s.verdict] ?? s.verdict}`,
          rows: [[metric, text(v)], ...(s.leftOut ? [['counts', 'no'] as [string, string]] : []), ['mean', text(mean.value)], ['95% interval', said95(mean, text)]],
        }]
      })
    })
    return { svg: canvas(width, bottom + 26, ...body), points: rows.flat().length, rows, top, bottom }
  })
}

const longest = 26 // characters of a row's name

// The changes between cells that differ in one key.
function pairs(g: Grid, key: string, host: HTMLElement, controls: HTMLElement): void {
  const own = g.pairs.filter((p) => p.key === key)
  const levels = [...new Set(own.flatMap((p) => (p.level == null ? [] : [p.level])))].sort((a, b) => a - b)
  const cells = new Map(g.cells.map((c) => [c.name, c]))
  let level = levels.length > 1 && own.length > 24 ? String(levels.at(-1)) : ''
  const value = (p: GridPair, side: 'arm' | 'baseline') => cells.get(p[side])?.params[key] ?? p[side]
  const metric = g.kind === 'limit' ? 'the load line' : called(g)
  const rowOf = (p: GridPair): ChangeRow => {
    const d = p.figure ?? p.line
    const [by, hi] = [d?.change ?? null, d?.hi ?? null]
    const lo = d?.lo != null && d.lo > -1 ? d.lo : null // nothing can fall by more
    const between = [value(p, 'arm'), ` against ${value(p, 'baseline')}`]
    const names = between.join('')
    const others = g.vary.filter((v) => v.key !== key).map((v) => `${v.key}=${cells.get(p.arm)?.params[v.key]}`).join(', ')
    const at = p.level != null && levels.length > 1 && level === '' ? `at ${number(p.level)}` : ''
    // What tells the rows of a group apart is the level, or else the other values.
    const apart = at || (others.length <= longest ? others : '')
    const verdict = said[p.verdict] ?? p.verdict
    return {
      group: others && apart !== others ? [...between, `, ${others}`] : apart ? between : undefined, name: apart || (others ? 'all' : short(names, longest)), verdict: p.verdict, change: by, lo, hi,
      says: (narrow) => (by == null ? [verdict, within({ lo, hi }, change)].filter((s) => s !== '-').join(': ') : `${verdict}: ${narrow ? change(by) : saysChange(by, lo, hi)}`),
      title: `${key} ${names}${others ? `, ${others}` : ''}${p.level == null ? '' : ` at ${number(p.level)}`}: ${verdict}`,
      rows: [
        ['change', by == null ? '-' : change(by)],
        [p.line ? 'within the brackets' : `${number(100 * (1 - g.alpha))}% interval`, within({ lo, hi }, change)],
        ['margin', `± ${number(100 * g.margin)}%`],
        ['why', p.why],
      ],
    }
  }
  // Rows of the same two values stand together.
  const ordered = () => {
    const groups = new Map<string, ChangeRow[]>()
    for (const p of own) {
      if (level !== '' && p.level !== Number(level)) continue
      const row = rowOf(p)
      const name = row.group?.join('') ?? row.name
      const group = groups.get(name)
      if (group) group.push(row)
      else groups.set(name, [row])
    }
    return [...groups.values()].flat()
  }
  const redraw = changes(host, `Change of ${metric} between values of ${key}, against the margin`, metric, g.margin, own.some((p) => p.line || p.figure?.lessIsWorse), 290, ordered)
  if (levels.length > 1) controls.append(choose('Level', [['', 'all levels'], ...levels.map((l): [string, string] => [String(l), number(l)])], level, (v) => ((level = v), redraw())))
}

// The load line against a number: each bracket as a bar.
function capacity(g: Grid, c: Capacity, host: HTMLElement): void {
  const alike = g.curves.filter((o) => o.key === c.key)
  const sure = new Set(g.cells.filter(isConfirmed).map((cell) => cell.name))
  const xs = alike.flatMap((o) => o.points.map((p) => p.value))
  const ys = alike.flatMap((o) => o.points.flatMap((p) => [p.level, p.lowestFailing])).filter((v): v is number => v != null)
  frame(host, `Load line against ${c.key}`, (width): Drawing => {
    const [left, right, top, bottom] = [52, width - 16, 34, 230]
    const log = decade(xs) && Math.min(...ys) > 0 // both, so that what is in proportion is straight
    const x = axisOf(xs, [left, right], log)
    const y = axisOf(ys, [bottom, top], log)
    const known = [...new Set(c.points.map((p) => p.value))]
    const body: Node[] = [yAxis(y.ticks(5), y.at, left, right, number), xAxis(known, x.at, top, bottom, number, 30), titled(inCell(`Load line, ${c.unit}`, y.log), 0, 14), titled(inCell(c.key, x.log), right, bottom + 36, 'end', 'tick')]
    const first = c.points.find((p) => p.level != null && p.level > 0)
    if (first) {
      // It ends where it leaves the chart.
      const ratio = first.level! / first.value
      const end = Math.min(Math.max(...xs), Math.max(...ys) / ratio)
      if (end > first.value) body.push(svg('path', { class: 'law-linear', d: `M${x.at(first.value)} ${y.at(first.level!)}L${x.at(end)} ${y.at(ratio * end)}` }))
    }
    const held = c.points.filter((p) => p.level != null && sure.has(p.cell))
    body.push(svg('path', { class: 'mean of-p99', d: held.map((p, i) => `${i ? 'L' : 'M'}${x.at(p.value).toFixed(1)} ${y.at(p.level!).toFixed(1)}`).join('') }))
    const row = c.points.map((p): Mark => {
      const at = x.at(p.value)
      const low = p.level == null ? bottom : y.at(p.level)
      if (p.lowestFailing != null) {
        const high = y.at(p.lowestFailing)
        body.push(svg('rect', { class: 'bracket-open', x: at - 6, y: high, width: 12, height: Math.max(low - high, 0.5) }), svg('path', { class: 'fail-cap', d: `M${at - 8} ${high}h16` }))
      } else if (p.level != null) body.push(svg('path', { class: 'more of-p99', d: `M${at - 6} ${low - 9}l6 -9l6 9z` }))
      if (p.level != null) body.push(svg('circle', { class: sure.has(p.cell) ? 'step-held' : 'step-unsure', cx: at, cy: low, r: 5 }), titled(number(p.level), at, low + 20, 'middle', 'row-value'))
      const gain = p.gain
      return {
        x: at, y: low, title: `${c.key}=${number(p.value)}`,
        rows: [
          [sure.has(p.cell) ? 'held' : 'held, not confirmed', place(p.level, c.unit)], ['failed', place(p.lowestFailing, c.unit)], ...(p.binding ? [['bound by', p.binding] as [string, string]] : []),
          ...(gain ? [['grows for each % more', `${gain.lo == null || gain.hi == null || gain.value == null ? '' : `${gain.value.toFixed(2)}%, `}${within(gain, (v) => `${v.toFixed(2)}%`)}`] as [string, string]] : []),
        ],
      }
    })
    const knee = c.points.find((p) => p.value === c.knee)
    if (knee?.level != null) {
      const [at, high] = [x.at(knee.value), y.at(knee.lowestFailing ?? knee.level) - 16]
      const label = `gains little from ${number(knee.value)} on`
      const before = at + widthOf(label, 13) + 12 > right
      body.push(svg('path', { class: 'knee-mark', d: `M${at} ${high - 6}l6 6l-6 6l-6 -6z` }), titled(label, before && at - widthOf(label, 13) - 12 > 0 ? at - 10 : before ? right : at + 10, before && at - widthOf(label, 13) - 12 <= 0 ? high - 12 : high + 4, before ? 'end' : 'start', 'knee-text'))
    }
    return { svg: canvas(width, bottom + 44, ...body), points: row.length, rows: [row], top: 24, bottom }
  })
}
