// The metric that decides, run by run: the runs of a block joined by a line,
// with the change of each block below; runs that were made apart in two
// columns.

import { scaleLinear } from 'd3-scale'
import { changeAxis } from './change'
import { called, type Comparison, type LevelComparison } from './data'
import { svg, widthOf } from './dom'
import { change, figure, number, short, tick, tone } from './format'
import { canvas, titled, yAxis, type Drawing, type Mark } from './frame'

// Which arm a mark is of: a ring for the baseline, a dot for the other.
export const legend = (baseline: string, arm: string, x: number, y: number) => {
  const name = short(baseline, 16)
  const second = x + 30 + widthOf(name, 12.5)
  return svg('g', {}, dot('of-base', x + 7, y - 4), titled(name, x + 19, y, 'start', 'row-name'), dot('of-arm', second + 12, y - 4), titled(short(arm, 16), second + 22, y, 'start', 'row-name'))
}

// A ring is larger than a dot, so that both are seen where they meet.
const dot = (cls: string, x: number, y: number, r = 5) => svg('circle', { class: `dot ${cls}`, cx: x, cy: y, r: cls === 'of-base' ? r + 1.5 : r })

const medianOf = (list: number[]) => {
  const sorted = [...list].sort((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
}

export function blocks(c: Comparison, l: LevelComparison, width: number): Drawing {
  const p = l.primary
  const narrow = width < 620
  const known = [...p.baseline, ...p.arm].filter((v): v is number => v != null)
  const missing = p.baseline.length + p.arm.length > known.length
  const [left, top] = [64, 44]
  const bottom = top + (narrow ? 170 : 210)
  const [low, high] = [Math.min(...known), Math.max(...known)]
  const pad = known.length ? Math.max(0.12 * (high - low), 0.02 * high, 1e-9) : 0
  const never = missing ? 26 : 0
  const y = scaleLinear(known.length ? [low - pad, high + pad] : [0, 1], [bottom, top + never])
  const text = p.unit === 's' ? tick : (v: number) => figure(v, p.unit, p.kind)
  const at = (v: number | null) => (v == null ? top + 9 : y(v))
  const n = Math.max(p.baseline.length, p.arm.length)
  const body: Node[] = []
  const row: Mark[] = []
  const right = width - 10
  const begin = (end: number) => {
    body.push(yAxis(known.length ? y.ticks(4) : [], y, left, end, text))
    if (missing) body.push(svg('rect', { class: 'never', x: left, y: top, width: end - left, height: 18, rx: 4 }), titled(p.kind === 'latency' ? 'never' : 'unknown', left - 8, top + 13, 'end', 'tick'))
    body.push(titled(called(p), 0, 14), legend(c.baseline, l.arm, narrow ? 0 : Math.max(widthOf(called(p), 13) + 24, left), narrow ? 32 : 14))
  }
  if (!c.paired) {
    begin(right)
    const middle = [left + (right - left) * 0.27, left + (right - left) * 0.73]
    const spread = (right - left) * 0.17
    const rows = [p.baseline, p.arm].map((list, k): Mark[] => {
      const cls = k ? 'of-arm' : 'of-base'
      const name = k ? l.arm : c.baseline
      const there = list.filter((v): v is number => v != null)
      if (there.length === list.length && there.length > 1) {
        const m = y(medianOf(there))
        body.push(svg('line', { class: `median ${cls}`, x1: middle[k]! - spread - 14, x2: middle[k]! + spread + 14, y1: m, y2: m }))
      }
      body.push(titled(`${short(name)}, ${list.length} ${list.length === 1 ? 'run' : 'runs'}`, middle[k]!, bottom + 20, 'middle', 'tick'))
      return list.map((v, i) => {
        const x = middle[k]! + (list.length > 1 ? spread * ((2 * i) / (list.length - 1) - 1) : 0)
        body.push(dot(cls, x, at(v)))
        return { x, y: at(v), title: `${name}, run ${i + 1}`, rows: [[called(p), figure(v, p.unit, p.kind)]] }
      })
    })
    return { svg: canvas(width, bottom + 30, ...body), points: rows.flat().length, rows, top, bottom }
  }

  // The change of each block below, if any has one, and at the end what they
  // come to.
  const top2 = bottom + 62
  const bottom2 = top2 + (narrow ? 120 : 140)
  const changes = p.baseline.map((a, i) => (a != null && a > 0 && p.arm[i] != null ? p.arm[i]! / a - 1 : null))
  const shown = [...changes, p.change, p.lo, p.hi].filter((v): v is number => v != null)
  const axis = changeAxis(shown, c.margin, [bottom2, top2], 3)
  const end = narrow ? 66 : 120 // of the column of what they come to
  const wide = Math.min((right - left - end) / Math.max(n, 1), 185)
  const x = (i: number) => left + wide * (i + 0.5)
  const sum = x(n - 1) + wide / 2 + end / 2
  const last = Math.min(right, sum + end / 2)
  begin(last)
  const any = changes.some((d) => d != null)
  if (any) {
    const [a, b] = [axis.at(c.margin), axis.at(-c.margin)]
    body.push(svg('rect', { class: 'margin-band', x: left, y: a, width: last - left, height: b - a }))
    body.push(yAxis(axis.ticks, axis.at, left, last, axis.text))
    body.push(svg('path', { class: 'margin-edge', d: `M${left} ${a}H${last}M${left} ${b}H${last}` }), svg('path', { class: 'zero', d: `M${left} ${axis.at(0)}H${last}` }))
    body.push(titled(narrow ? 'Change in each block' : 'Change in each block, and of all with its interval, against the margin', 0, top2 - 14))
  }
  const below: Mark[] = []
  const r = Math.min(5, Math.max(2, wide / 4))
  let told = -Infinity
  for (let i = 0; i < n; i++) {
    const [base, arm, d] = [p.baseline[i] ?? null, p.arm[i] ?? null, changes[i] ?? null]
    body.push(svg('line', { class: 'pair', x1: x(i), x2: x(i), y1: at(base), y2: at(arm) }), dot('of-base', x(i), at(base), r), dot('of-arm', x(i), at(arm), r))
    const rows: [string, string][] = [[c.baseline, figure(base, p.unit, p.kind)], [l.arm, figure(arm, p.unit, p.kind)], ['change', d == null ? '-' : change(d)]]
    row.push({ x: x(i), y: at(arm), title: `Block ${i + 1}`, rows })
    if (d != null) {
      body.push(svg('line', { class: 'stem', x1: x(i), x2: x(i), y1: axis.at(0), y2: axis.at(d) }), dot('of-change', x(i), axis.at(d), Math.min(r, 4.5)))
      below.push({ x: x(i), y: axis.at(d), title: `Block ${i + 1}: change`, rows })
    }
    const name = narrow || wide < 54 ? String(i + 1) : `block ${i + 1}`
    if (x(i) - told < widthOf(name) + 8) continue
    told = x(i)
    for (const line of any ? [bottom, bottom2] : [bottom]) body.push(titled(name, x(i), line + 18, 'middle', 'tick'))
  }
  if (p.change != null) {
    const g = svg('g', { class: `range change v-${c.refused ? 'invalid' : tone(l.verdict)}` })
    if (p.lo != null && p.hi != null) {
      g.append(svg('line', { x1: sum, x2: sum, y1: axis.at(p.lo), y2: axis.at(p.hi) }))
      for (const v of [p.lo, p.hi]) g.append(svg('line', { x1: sum - 7, x2: sum + 7, y1: axis.at(v), y2: axis.at(v) }))
    }
    g.append(svg('circle', { cx: sum, cy: axis.at(p.change), r: 7 }))
    body.push(g, titled('all', sum, bottom2 + 18, 'middle', 'tick'))
    below.push({ x: sum, y: axis.at(p.change), title: 'All blocks', rows: [['change', change(p.change)], [`${number(100 * (1 - c.alpha))}% interval`, p.lo == null || p.hi == null ? '-' : `${change(p.lo)} to ${change(p.hi)}`]] })
  }
  const foot = any ? bottom2 : bottom
  return { svg: canvas(width, foot + 28, ...body), points: row.length + below.length, rows: [row, below], top, bottom: foot }
}
