// By how much each quantile of a distribution changed, with its interval,
// against the margin.

import { changeAxis } from './change'
import type { Comparison, LevelComparison, SeriesComparison } from './data'
import { svg, widthOf } from './dom'
import { change, number, quantile, short } from './format'
import { canvas, titled, yAxis, type Drawing, type Mark } from './frame'

export function shift(c: Comparison, l: LevelComparison, s: SeriesComparison, width: number): Drawing {
  const narrow = width < 620
  const [left, right] = [64, width - (narrow ? 10 : 86)]
  const missing = s.shifts.some((x) => x.baseline == null || x.arm == null)
  const top = 30
  const bottom = top + (narrow ? 230 : 280) + (missing ? 26 : 0)
  if (s.shifts.length === 0) {
    return { svg: canvas(width, 60, titled('The runs are too small for any quantile.', 0, 34, 'start', 'tick')), points: 1, rows: [], top: 0, bottom: 60 }
  }
  // Without an interval: over all objects.
  const changeOf = (x: (typeof s.shifts)[number]) => x.change ?? (x.baseline != null && x.baseline > 0 && x.arm != null ? x.arm / x.baseline - 1 : null)
  const values = s.shifts.flatMap((x) => [changeOf(x), x.lo, x.hi]).filter((v): v is number => v != null)
  const axis = changeAxis(values, c.margin, [bottom, top + (missing ? 30 : 0)], 6)
  const [a, b] = [axis.at(c.margin), axis.at(-c.margin)]
  const wide = (right - left) / s.shifts.length
  const x = (i: number) => left + wide * (i + 0.5)
  const body: Node[] = [
    svg('rect', { class: 'margin-band', x: left, y: a, width: right - left, height: b - a }),
    yAxis(axis.ticks, axis.at, left, right, axis.text),
    svg('path', { class: 'margin-edge', d: `M${left} ${a}H${right}M${left} ${b}H${right}` }),
    svg('path', { class: 'zero', d: `M${left} ${axis.at(0)}H${right}` }),
    titled('Change', 0, 14),
  ]
  if (missing) body.push(svg('rect', { class: 'never', x: left, y: top, width: right - left, height: 20, rx: 4 }), titled('never', left - 8, top + 14, 'end', 'tick'))
  const side = narrow ? right - 6 : right + 8
  const anchor = narrow ? 'end' : 'start'
  body.push(titled('later ↑', side, a - 8, anchor, 'side worse'), titled('earlier ↓', side, b + 17, anchor, 'side better'))
  if (!narrow) body.push(titled(`± ${number(100 * c.margin)}%`, side, (a + b) / 2 + 4, anchor, 'side'))
  let way = ''
  const marks: Node[] = []
  const row: Mark[] = []
  s.shifts.forEach((sh, i) => {
    const d = changeOf(sh)
    const name = `p${number(100 * sh.q)}`
    const y = d == null ? top + 10 : axis.at(d)
    if (wide >= widthOf(name) + 2 || i % 2 === 0) body.push(titled(name, x(i), bottom + 18, 'middle', 'tick'))
    if (d == null) {
      marks.push(svg('path', { class: 'cross of-arm', d: `M${x(i) - 5} ${y - 5}l10 10m0 -10l-10 10` }))
    } else {
      way += `${way ? 'L' : 'M'}${x(i).toFixed(1)} ${y.toFixed(1)}`
      const g = svg('g', { class: 'range change of-arm' })
      if (sh.lo != null && sh.hi != null) {
        g.append(svg('line', { x1: x(i), x2: x(i), y1: axis.at(sh.lo), y2: axis.at(sh.hi) }))
        for (const v of [sh.lo, sh.hi]) if (!axis.beyond(v)) g.append(svg('line', { x1: x(i) - 6, x2: x(i) + 6, y1: axis.at(v), y2: axis.at(v) }))
      }
      g.append(svg('circle', { class: sh.change == null ? 'open' : '', cx: x(i), cy: y, r: 6 }))
      marks.push(g)
    }
    const interval = sh.lo != null && sh.hi != null ? `${change(sh.lo)} to ${change(sh.hi)}` : sh.change == null && d != null ? 'none: over all objects' : '-'
    row.push({ x: x(i), y, title: `${s.milestone} ${name}`, rows: [[short(c.baseline), quantile(sh.baseline)], [short(l.arm), quantile(sh.arm)], ['change', d == null ? 'never reached' : change(d)], [`${number(100 * (1 - c.alpha))}% interval`, interval]] })
  })
  if (way) body.push(svg('path', { class: 'shift-way', d: way }))
  body.push(...marks, titled(`quantile of the time to ${s.milestone}`, right, bottom + 36, 'end', 'tick'))
  const notes: string[] = []
  if (s.shifts.some((x) => x.change == null && changeOf(x) != null)) notes.push(Math.min(...l.runs) > 1 ? '○ no interval: never reached in some run' : '○ no interval: there is one run')
  if (missing) notes.push('× never reached')
  notes.forEach((note, i) => body.push(titled(note, 0, bottom + 54 + 17 * i, 'start', 'tick')))
  return { svg: canvas(width, bottom + 42 + 17 * notes.length, ...body), points: row.length, rows: [row], top, bottom }
}
