// What holds along the axis: for each law the measurements, the curve with its
// band, where it bends or peaks, and how far it says anything.

import { scaleLinear, scaleLog } from 'd3-scale'
import type { CurvePoint, Interval, Law, Run } from './data'
import { byId, svg, widthOf } from './dom'
import { bytes, number, seconds, tick } from './format'
import { canvas, frame, titled, xAxis, yAxis, type Drawing, type Mark } from './frame'

export function laws(run: Run): void {
  run.result.laws?.list?.forEach((law, i) => {
    const host = byId(`law-chart-${i}`)
    if (host) chart(law, host)
  })
}

const figure = (v: number, unit: string) => (unit === 's' ? seconds(v) : unit === 'B' ? bytes(v) : `${Number(v.toPrecision(3))}${unit === 'CPUs' ? ' ' : ''}${unit}`)
const span = (i: CurvePoint | Interval, unit: string) => `${i.lo == null ? '?' : figure(i.lo, unit)} to ${i.hi == null ? '?' : figure(i.hi, unit)}`

// Round figures on an axis, in powers of 1024 for bytes.
function ticksOf(from: number, to: number, unit: string, many: number): number[] {
  const step = unit === 'B' ? 1024 ** Math.max(0, Math.floor(Math.log(Math.max(to, 1)) / Math.log(1024))) : 1
  return scaleLinear([from / step, to / step], [0, 1]).ticks(many).map((v) => v * step)
}

function chart(law: Law, host: HTMLElement): void {
  const small = law.of === 'memory' || law.of === 'cpu'
  const knee = law.knee?.at.value == null ? undefined : law.knee
  const logarithmic = Boolean(knee?.logLog)
  const points = law.points
  const extrapolated = !logarithmic && (law.curve.at(-1)?.x ?? 0) > law.highest * 1.0001
  const end = extrapolated ? law.limit : law.highest
  const objects = law.x === 'objects'
  frame(host, law.name, (width): Drawing => {
    const narrow = width < 420
    const [left, right, top] = [small ? 66 : 62, width - 14, 40]
    const bottom = top + (small ? 150 : 230)
    const x = logarithmic ? scaleLog([law.lowest / 1.15, law.highest * 1.15], [left, right]) : scaleLinear([0, end * 1.03], [left, right])

    // The band may be as wide as it likes: the axis is made for the rest.
    const heights = [...points.map((p) => p.y), ...law.curve.map((p) => p.y), ...(knee?.line ?? []).map((p) => p.y)].filter((v) => Number.isFinite(v))
    const most = Math.max(...heights, 1e-9)
    const edges = law.curve.flatMap((p) => [p.lo, p.hi]).filter((v): v is number => v != null)
    let high = Math.min(Math.max(most, ...edges), most * 1.35) * 1.06
    let low = 0
    if (law.of === 'memory') {
      const least = Math.min(...heights)
      const room = Math.max(most - least, 0.02 * most)
      low = Math.max(0, least - 0.35 * room)
      high = most + 0.35 * room
    }
    const y = logarithmic ? scaleLog([Math.min(...heights) / 1.3, most * 1.3], [bottom, top]) : scaleLinear([low, high], [bottom, top])
    const yTicks = logarithmic ? (y.ticks() as number[]).filter((v) => /^[125]/.test(v.toExponential())) : ticksOf(low, high, law.yUnit, small ? 3 : 5)
    const xTicks = logarithmic ? (x.ticks() as number[]).filter((v) => /^[125]/.test(v.toExponential())) : x.ticks(narrow ? 4 : 7)
    const text = (v: number) => (law.yUnit === 's' ? tick(v) : law.yUnit === 'B' ? bytes(v) : number(Number(v.toPrecision(4))))
    const inside = (v: number) => Math.max(top - 6, Math.min(bottom, v))

    const body: Node[] = []
    if (extrapolated) body.push(svg('rect', { class: 'law-extrapolated', x: x(law.highest), y: top, width: Math.max(0, x(law.limit) - x(law.highest)), height: bottom - top }))
    body.push(
      yAxis(yTicks, y, left, right, text),
      xAxis(xTicks, x, top, bottom, (v) => number(v), 40),
      titled(unitOf(law, low > 0, logarithmic), 0, 14),
      titled(`${objects ? (law.of === 'memory' ? 'objects in place' : 'objects') : law.x === 'offered rate' ? `offered, ${law.xUnit}` : law.xUnit || law.x}${logarithmic ? ', logarithmic' : ''}`, right, bottom + 36, 'end', 'tick'),
    )
    if (extrapolated) {
      body.push(svg('path', { class: 'law-limit', d: `M${x(law.limit)} ${bottom}V${top - 4}` }), titled(narrow || small ? 'twice the data' : 'extrapolated to twice the data', x(law.limit) - 5, top - 9, 'end', 'law-note'))
    }

    const band = law.curve.filter((p) => p.lo != null && p.hi != null)
    if (band.length > 1 && !logarithmic) {
      const above = band.map((p) => `${x(p.x).toFixed(1)} ${inside(y(p.hi!)).toFixed(1)}`)
      const below = band.map((p) => `${x(p.x).toFixed(1)} ${inside(y(Math.max(p.lo!, low))).toFixed(1)}`).reverse()
      body.push(svg('path', { class: 'law-band', d: `M${above.join('L')}L${below.join('L')}Z` }))
    }
    const line = (list: CurvePoint[], cls: string) => {
      const d = list.map((p, i) => `${i ? 'L' : 'M'}${x(p.x).toFixed(1)} ${inside(y(p.y)).toFixed(1)}`).join('')
      if (list.length > 1) body.push(svg('path', { class: cls, d }))
    }
    if (knee && law.of !== 'throughput') line(knee.line, 'law-curve')
    else {
      line(law.curve.filter((p) => p.x <= law.highest * (1 + 1e-6)), 'law-curve')
      line(law.curve.filter((p) => p.x >= law.highest * (1 - 1e-6)), 'law-curve law-dashed')
    }

    const rows: Mark[][] = []
    const row: Mark[] = []
    const r = small ? 3.6 : 4.6
    for (const p of points) {
      body.push(svg('circle', { class: 'law-point', cx: x(p.x), cy: y(p.y), r }))
      row.push({ x: x(p.x), y: y(p.y), title: `Step ${p.step}, ${number(p.x)} ${objects ? 'objects' : law.xUnit}`, rows: [['measured', figure(p.y, law.yUnit)]] })
    }
    rows.push(row.sort((a, b) => a.x - b.x))
    const curve = (knee && law.of !== 'throughput' ? knee.line : law.curve).filter((p) => p.x > 0)
    rows.push(curve.map((p) => ({
      x: x(p.x), y: inside(y(p.y)), title: `${number(Number(p.x.toPrecision(4)))} ${objects ? 'objects' : law.xUnit}${p.x > law.highest * 1.0001 ? ', extrapolated' : ''}`,
      rows: [['fit', figure(p.y, law.yUnit)], ...(p.lo !== undefined ? [['95 %', span(p, law.yUnit)] as [string, string]] : [])],
    })))

    // Where it bends, and where it is highest.
    const special: Mark[] = []
    const peak = law.usl?.peak
    const beside = peak != null // the peak tells more
    if (knee) {
      const at = knee.at.value!
      const from = Math.max(knee.at.lo ?? law.lowest, law.lowest)
      const to = Math.min(knee.at.hi ?? law.highest, law.highest)
      const height = nearest(law.of === 'throughput' && law.curve.length ? law.curve : knee.line, at)
      const label = `bends at ${number(Number(at.toPrecision(3)))}`
      const before = x(at) + widthOf(label, 13) > right
      body.push(
        svg('rect', { class: 'law-knee-range', x: x(from), y: beside ? bottom - 5 : top, width: Math.max(1.5, x(to) - x(from)), height: beside ? 5 : bottom - top }),
        svg('path', { class: 'law-knee', d: `M${x(at)} ${bottom}V${beside ? inside(y(height)) : top}` }),
        svg('path', { class: 'law-knee-mark', d: `M${x(at)} ${inside(y(height)) - 7}l7 7l-7 7l-7 -7z` }),
        titled(label, x(at) + (before ? -6 : 6), y(height) > bottom - 34 ? top + 14 : bottom - 8, before ? 'end' : 'start', 'law-knee-text'),
      )
      special.push({ x: x(at), y: inside(y(height)), title: 'Knee', rows: [['at', number(Number(at.toPrecision(4)))], ['95 %', `${knee.at.lo == null ? '?' : number(Number(knee.at.lo.toPrecision(4)))} to ${knee.at.hi == null ? '?' : number(Number(knee.at.hi.toPrecision(4)))}`]] })
    }
    if (peak?.level.value != null && peak.throughput.value != null) {
      const [px, py] = [x(peak.level.value), inside(y(peak.throughput.value))]
      const [lo, hi] = [x(peak.level.lo ?? 0), x(Math.min(peak.level.hi ?? law.limit, law.limit))]
      body.push(svg('g', { class: 'law-peak' }, svg('path', { d: `M${lo} ${py}H${hi}M${lo} ${py - 5}v10M${hi} ${py - 5}v10` }), svg('circle', { cx: px, cy: py, r: 6 })),
        titled(`peak ${number(Number(peak.level.value.toPrecision(3)))}`, px, Math.max(py - 13, top + 8), 'middle', 'law-peak-text'))
      special.push({ x: px, y: py, title: 'Highest throughput', rows: [['level', number(Number(peak.level.value.toPrecision(4)))], ['95 %', `${peak.level.lo == null ? '?' : number(Number(peak.level.lo.toPrecision(4)))} to ${peak.level.hi == null ? '?' : number(Number(peak.level.hi.toPrecision(4)))}`], ['throughput', figure(peak.throughput.value, law.yUnit)], ['95 %', span(peak.throughput, law.yUnit)]] })
    }
    if (special.length) rows.push(special)
    return { svg: canvas(width, bottom + 44, ...body), points: points.length + law.curve.length + (knee?.line.length ?? 0), rows, top, bottom }
  })
}

function unitOf(law: Law, cut: boolean, logarithmic: boolean): string {
  const what = law.of === 'throughput' ? 'objects per second' : law.of === 'memory' ? 'resident memory, at most' : law.of === 'cpu' ? 'CPUs used' : 'time'
  return what + (cut ? ', not from 0' : '') + (logarithmic ? ', logarithmic' : '')
}

// The height of a curve at a place, of the point that is nearest.
function nearest(curve: CurvePoint[], x: number): number {
  return curve.reduce((best, p) => (Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best)).y
}
