// One figure over many experiments, on a logarithmic axis: each with the range
// of its runs, and where the figure changes its level.

import { scaleLog } from 'd3-scale'
import { called, type Run, type Trend, type TrendPoint } from './data'
import { segments, svg, widthOf } from './dom'
import { bytes, change, figure, number, short, tick } from './format'
import { canvas, frame, titled, yAxis, type Drawing, type Mark } from './frame'

const lineOf = 'load line: ' // begins the name of a load line

// The range of a logarithmic axis. One that is too narrow would make mountains
// of chance.
export function logRange(all: (number | null | undefined)[]): [number, number] {
  const values = all.filter((v): v is number => v != null && v > 0)
  if (values.length === 0) return [1, 10]
  let [lo, hi] = [Math.min(...values), Math.max(...values)]
  const wider = Math.sqrt(Math.max(2 / (hi / lo), 1))
  ;[lo, hi] = [lo / wider, hi * wider]
  return [lo / 1.08, hi * 1.08]
}

export function logTicks([lo, hi]: [number, number]): number[] {
  let list: number[] = []
  for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7], [1, 1.2, 1.5, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9]]) {
    list = []
    for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); e++) for (const s of steps) list.push(s * 10 ** e)
    list = list.filter((v) => v >= lo && v <= hi)
    if (list.length >= 3) break
  }
  return list
}

export function trend(run: Run, t: Trend, host: HTMLElement, controls: HTMLElement): void {
  // The axis is the same for all trends of one figure, so that workloads can be
  // compared by eye.
  const alike = run.trends.filter((o) => o.metric === t.metric && o.unit === t.unit)
  let own = false
  const isLine = t.metric.startsWith(lineOf)
  const n = t.points.length
  const text = (v: number) => (t.unit === 's' ? tick(v) : t.unit === 'B' ? bytes(v) : number(Number(v.toPrecision(4))))
  const says = (v: number | null) => (isLine ? (v == null ? '-' : `${number(v)} ${t.unit}`) : figure(v, t.unit, 'latency'))
  const redraw = frame(host, isLine ? `Load lines over ${n} experiments` : `${called(t)} over ${n} experiments`, (width): Drawing => {
    const narrow = width < 620
    const [left, right] = [64, width - 12]
    const missing = t.points.some((p) => p.value == null)
    const top = 46
    const bottom = top + (narrow ? 230 : 290)
    const range = logRange((own ? [t] : alike).flatMap((o) => o.points.flatMap((p) => [p.low, p.value, p.high])))
    const y = scaleLog(range, [bottom, top + (missing ? 32 : 6)])
    const wide = Math.min((right - left) / Math.max(n, 1), 190)
    const x = (i: number) => left + wide * (i + 0.5)
    const end = left + wide * n
    const body: Node[] = [
      yAxis(logTicks(range), y, left, end, text),
      titled(isLine ? `Load line, ${t.unit}, logarithmic` : `${called(t)}, logarithmic`, 0, 14),
    ]
    if (missing) body.push(svg('rect', { class: 'never', x: left, y: top, width: end - left, height: 20, rx: 4 }), titled('none', left - 8, top + 14, 'end', 'tick'))
    let way = ''
    t.points.forEach((p, i) => (way += p.value == null ? '' : `${way ? 'L' : 'M'}${x(i).toFixed(1)} ${y(p.value).toFixed(1)}`))
    if (way) body.push(svg('path', { class: 'way', d: way }))
    // The level of each stretch, where there is more than one.
    const cuts = t.changes.map((c) => c.at)
    if (cuts.length > 0) {
      let from = 0
      for (const to of [...cuts, n]) {
        const logs = t.points.slice(from, to).flatMap((p) => (p.value == null ? [] : [Math.log(p.value)]))
        if (logs.length) {
          const level = y(Math.exp(logs.reduce((a, b) => a + b, 0) / logs.length))
          body.push(svg('line', { class: 'trend-level', x1: x(from) - wide / 3, x2: x(to - 1) + wide / 3, y1: level, y2: level }))
        }
        from = to
      }
    }
    for (const c of t.changes) {
      const at = x(c.at) - wide / 2
      const beside = at + 70 < end
      const better = c.change > 0 === Boolean(t.lessIsWorse)
      body.push(svg('line', { class: `trend-change${better ? ' better' : ''}`, x1: at, x2: at, y1: 26, y2: bottom }), titled(change(c.change), at + (beside ? 6 : -6), 38, beside ? 'start' : 'end', `side ${better ? 'better' : 'worse'}`))
    }
    const r = Math.max(2.5, Math.min(6, wide / 4))
    const row: Mark[] = []
    let told = -Infinity
    const room = Math.max(...t.points.map((p) => Math.max(widthOf(short(p.name, 16)), widthOf(short(p.kubernetes || p.program, 16)))), 10)
    t.points.forEach((p, i) => {
      const at = p.value == null ? top + 10 : y(p.value)
      const g = svg('g', { class: 'trend-point' })
      if (p.low != null && p.high != null) g.append(svg('line', { x1: x(i), x2: x(i), y1: y(p.low), y2: y(p.high) }))
      g.append(p.value == null ? svg('path', { class: 'cross', d: `M${x(i) - 4.5} ${at - 4.5}l9 9m0 -9l-9 9` }) : svg('circle', { cx: x(i), cy: at, r }))
      if (isLine && !p.estimated && p.high != null) body.push(svg('line', { class: 'fail-cap', x1: x(i) - 7, x2: x(i) + 7, y1: y(p.high), y2: y(p.high) }))
      body.push(g)
      // Something else is not as it was before.
      if (p.differs.length) body.push(svg('path', { class: 'trend-differs', d: `M${x(i)} ${bottom - 5}l5 5l-5 5l-5 -5z` }))
      row.push({ x: x(i), y: at, title: p.name, rows: rowsOf(p, says, isLine) })
      if (x(i) - told < room + 10) return
      told = x(i)
      body.push(titled(short(p.name, 16), x(i), bottom + 20, 'middle', 'tick'), titled(short(p.kubernetes || p.program, 16), x(i), bottom + 37, 'middle', 'tick'))
    })
    const differs = t.points.some((p) => p.differs.length)
    if (differs) body.push(svg('path', { class: 'trend-differs', d: `M8 ${bottom + 54}l5 5l-5 5l-5 -5z` }), titled('something else changed since the previous experiment', 20, bottom + 63, 'start', 'tick'))
    return { svg: canvas(width, bottom + (differs ? 70 : 44), ...body), points: n, rows: [row], top: 26, bottom }
  })
  if (alike.length > 1) controls.append(segments('Axis', `${host.id}-axis`, [['common', 'of all workloads'], ['own', 'of this one']], 'common', (v) => ((own = v === 'own'), redraw())))
}

function rowsOf(p: TrendPoint, says: (v: number | null) => string, isLine: boolean): [string, string][] {
  const rows: [string, string][] = []
  if (p.value == null) rows.push(['none', p.note ?? ''])
  else if (p.estimated) rows.push(['estimate', says(Number(p.value.toPrecision(4)))], ['95% interval', [p.low, p.high].map((v) => (v == null ? 'open' : number(Number(v.toPrecision(4))))).join(' to ')])
  else if (isLine) rows.push(['held', says(p.value)], ['failed', p.high == null ? 'none' : says(p.high)])
  else {
    rows.push(['mean of the runs', says(p.value)], ['runs', String(p.runs)])
    if (p.runs > 1 && p.low != null && p.high != null) rows.push(['from', says(p.low)], ['to', says(p.high)])
  }
  if (p.start) rows.push(['started', p.start])
  if (p.program) rows.push(['plimsoll', p.program])
  if (p.kubernetes) rows.push(['Kubernetes', p.kubernetes])
  if (p.differs.length) rows.push(['changed', p.differs.join(', ')])
  return rows
}
