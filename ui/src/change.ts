// The axis of relative changes: straight in percent, or in ratios where
// changes are so large that the margin would vanish.

import { scaleLinear, scaleLog } from 'd3-scale'
import { svg } from './dom'
import { change, number } from './format'
import { titled } from './frame'

export interface ChangeAxis {
  at: (v: number) => number
  ticks: number[]
  text: (v: number) => string
  // Whether a change lies beyond the axis.
  beyond: (v: number) => boolean
}

const straight = 2 // up to which change the axis is straight
const farthest = 1000 // times, or a thousandth
const ratios = [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1000]

// An axis that has room for values, and for the margin and words at both its
// sides.
export function changeAxis(values: number[], margin: number, range: [number, number], ticks: number): ChangeAxis {
  let lo = Math.min(...values, -1.6 * margin)
  let hi = Math.max(...values, 1.6 * margin)
  if (hi <= straight) {
    const room = 0.14 * (hi - lo)
    lo = Math.min(lo - 0.3 * room, -margin - room)
    hi = Math.max(hi + 0.3 * room, margin + room)
    const at = scaleLinear([lo, hi], range)
    return { at, ticks: at.ticks(ticks), text: (v) => (v === 0 ? '0' : `${v > 0 ? '+' : ''}${number(Number((100 * v).toPrecision(4)))}%`), beyond: () => false }
  }
  const least = Math.max(Math.min(1 + lo, 0.5), 1 / farthest) / 1.15
  const most = Math.min(1 + hi, farthest) * 1.15
  const log = scaleLog([least, most], range).clamp(true)
  return {
    at: (v) => log(Math.max(1 + v, 1e-9)),
    ticks: ratios.filter((r) => r >= least && r <= most).map((r) => r - 1),
    text: (v) => (v === 0 ? '0' : v >= 3 ? `× ${number(Number((1 + v).toPrecision(3)))}` : v <= -0.7 ? `÷ ${number(Number((1 / (1 + v)).toPrecision(3)))}` : change(v).replace('.0', '')),
    beyond: (v) => 1 + v < least || 1 + v > most,
  }
}

// The margin's band across a chart of rows, from -margin to +margin, with the
// words for what lies to its sides. Rows have parts of it where they have texts
// between them.
export function marginBand(axis: ChangeAxis, margin: number, spans: [top: number, bottom: number][], lessIsWorse: boolean, end: number): SVGGElement {
  const [a, b, zero] = [axis.at(-margin), axis.at(margin), axis.at(0)]
  const [left, right] = lessIsWorse ? ['worse', 'better'] : ['better', 'worse']
  const top = spans[0]![0]
  return svg('g', {},
    ...spans.flatMap(([from, to]) => [
      svg('rect', { class: 'margin-band', x: a, y: from, width: b - a, height: to - from }),
      svg('path', { class: 'margin-edge', d: `M${a} ${from}V${to}M${b} ${from}V${to}` }),
      svg('path', { class: 'zero', d: `M${zero} ${from}V${to}` }),
    ]),
    titled(`within ± ${number(100 * margin)}%`, zero, top - 24, 'middle', 'side'),
    a > 64 ? titled(`← ${left}`, a - 8, top - 7, 'end', `side ${left}`) : titled(`← ${left}`, 0, top - 7, 'start', `side ${left}`),
    b + 64 < end ? titled(`${right} →`, b + 8, top - 7, 'start', `side ${right}`) : titled(`${right} →`, end, top - 7, 'end', `side ${right}`),
  )
}
