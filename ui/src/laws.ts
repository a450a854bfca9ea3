// Along the axis: throughput and latency of each step, and for each cost per object
// its measurements with the line.

import { scaleLinear } from 'd3-scale'
import type { Law, Run, Step } from './data'
import { byId, svg } from './dom'
import { bytes, number, seconds, tick } from './format'
import { canvas, frame, titled, xAxis, yAxis, type Drawing, type Mark } from './frame'

interface Point { x: number; y: number; title: string }

interface Shown {
  title: string // of the y axis
  axis: string // title of the x axis
  unit: string // of y
  sets: { name: string; points: Point[] }[]
  line?: { intercept: number; slope: number } | undefined
}

export function laws(run: Run): void {
  const unit = run.result.laws?.unit || run.unit
  const shown = run.result.steps.filter((s) => s.verdict === 'pass' || s.verdict === 'fail')
  const set = (name: string, value: (s: Step) => number | null | undefined) => ({
    name,
    points: shown.flatMap((s) => {
      const y = value(s)
      return y == null ? [] : [{ x: s.levelReached, y, title: `Step ${s.id}, ${number(s.levelReached)} ${unit}` }]
    }),
  })
  draw('throughput', 'Throughput', { title: `${run.arrived} per second`, axis: unit, unit: '/s', sets: [set('throughput', (s) => s.achievedRate)] })
  draw('latency', `Latency to ${run.arrived}`, { title: 'p50 (circles) and p99 (squares)', axis: unit, unit: 's', sets: [set('p50', (s) => s.latency[run.arrived]?.p50), set('p99', (s) => s.latency[run.arrived]?.p99)] })
  run.result.laws?.list?.forEach((law, i) => draw(String(i), law.name, cost(law)))
}

function cost(law: Law): Shown {
  const what = law.x === 'objects' ? 'objects' : law.xUnit
  const line = law.line?.intercept.value != null && law.line.slope.value != null ? { intercept: law.line.intercept.value, slope: law.line.slope.value } : undefined
  return {
    title: law.of === 'memory' ? 'resident memory, at most' : law.of === 'cpu' ? 'CPUs used' : 'at most',
    axis: law.of !== 'cpu' && law.x === 'objects' ? 'objects in place' : what,
    unit: law.yUnit, line,
    sets: [{ name: 'measured', points: law.points.map((p) => ({ x: p.x, y: p.y, title: `Step ${p.step}, ${number(p.x)} ${what}` })) }],
  }
}

const figure = (v: number, unit: string) => (unit === 's' ? seconds(v) : unit === 'B' ? bytes(v) : `${Number(v.toPrecision(3))}${unit === '/s' ? '' : ' '}${unit}`)

// Round figures on an axis, in powers of 1024 for bytes.
function ticksOf(from: number, to: number, unit: string): number[] {
  const step = unit === 'B' ? 1024 ** Math.max(0, Math.floor(Math.log(Math.max(to, 1)) / Math.log(1024))) : 1
  return scaleLinear([from / step, to / step], [0, 1]).ticks(4).map((v) => v * step)
}

function draw(id: string, label: string, s: Shown): void {
  const host = byId(`law-chart-${id}`)
  if (!host) return
  if (!s.sets.some((one) => one.points.length)) return host.remove()
  frame(host, label, (width): Drawing => {
    const [left, right, top, bottom] = [66, width - 14, 40, 200]
    const points = s.sets.flatMap((one) => one.points)
    const xs = points.map((p) => p.x)
    const ends = s.line ? [Math.min(...xs), Math.max(...xs)].map((v) => ({ x: v, y: s.line!.intercept + s.line!.slope * v })) : []
    const heights = [...points, ...ends].map((p) => p.y)
    const most = Math.max(...heights, 1e-9)
    let [low, high] = [0, most * 1.06]
    if (s.unit === 'B') {
      const room = Math.max(most - Math.min(...heights), 0.02 * most)
      ;[low, high] = [Math.max(0, Math.min(...heights) - 0.35 * room), most + 0.35 * room]
    }
    const x = scaleLinear([0, Math.max(...xs, 1e-9) * 1.03], [left, right])
    const y = scaleLinear([low, high], [bottom, top])
    const text = (v: number) => (s.unit === 's' ? tick(v) : s.unit === 'B' ? bytes(v) : number(Number(v.toPrecision(4))))
    const body: Node[] = [
      yAxis(ticksOf(low, high, s.unit), y, left, right, text),
      xAxis(x.ticks(width < 420 ? 4 : 7), x, top, bottom, number, 40),
      titled(s.title + (low > 0 ? ', not from 0' : ''), 0, 14),
      titled(s.axis, right, bottom + 36, 'end', 'tick'),
    ]
    if (ends.length) body.push(svg('path', { class: 'law-line', d: `M${ends.map((p) => `${x(p.x)} ${y(p.y)}`).join('L')}` }))
    const rows = s.sets.map((one, i) => one.points.map((p): Mark => {
      const [px, py] = [x(p.x), y(p.y)]
      body.push(i ? svg('rect', { class: 'law-point', x: px - 4, y: py - 4, width: 8, height: 8 }) : svg('circle', { class: 'law-point', cx: px, cy: py, r: 4.2 }))
      return { x: px, y: py, title: p.title, rows: [[one.name, figure(p.y, s.unit)]] }
    }).sort((a, b) => a.x - b.x))
    return { svg: canvas(width, bottom + 44, ...body), points: points.length, rows, top, bottom }
  })
}
