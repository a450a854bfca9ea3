// The verdicts: each arm's change at each level with its interval, against the
// margin.

import { changeAxis, marginBand } from './change'
import type { LevelComparison, Run } from './data'
import { svg } from './dom'
import { change, number, said, short, tone } from './format'
import { canvas, frame, glyph, titled, xAxis, type Drawing, type Mark } from './frame'

export const nameOfLevel = (l: LevelComparison, unit: string) => `${l.arm} at ${number(l.level)}${unit ? ` ${unit}` : ''}`

// With one run of each arm there is a change, but nothing to tell how sure it is.
const changeOf = (l: LevelComparison) => {
  const { change: d, baseline: [a, more], arm: [b] } = l.primary
  return d ?? (more === undefined && a != null && a > 0 && b != null ? b / a - 1 : null)
}

export function forest(run: Run, host: HTMLElement): void {
  const c = run.result.comparison!
  const { levels } = c
  const verdictOf = (l: LevelComparison) => (c.refused ? 'invalid' : l.verdict)
  frame(host, `Change of ${c.metric} with its interval, against the margin`, (width): Drawing => {
    const narrow = width < 620
    const [left, right] = narrow ? [10, width - 10] : [Math.min(250, 34 + 7.2 * Math.max(...levels.map((l) => Math.min(l.arm.length, 18) + 12))), width - 190]
    const tall = narrow ? 62 : 46
    // On a phone the words stand between the names and the first interval.
    const top = narrow ? 66 : 44
    const bottom = top + levels.length * tall + (narrow ? -18 : 6)
    const values = levels.flatMap((l) => [changeOf(l), l.primary.lo, l.primary.hi]).filter((v): v is number => v != null)
    const axis = changeAxis(values, c.margin, [left, right], narrow ? 4 : 8)
    const spans = narrow ? levels.map((_, i): [number, number] => [top + i * tall, top + i * tall + 34]) : [[top, bottom] as [number, number]]
    const body: Node[] = [xAxis(axis.ticks, axis.at, top, bottom, axis.text, 52), marginBand(axis, c.margin, spans, levels.some((l) => l.primary.lessIsWorse))]
    const rows = levels.map((l, i): Mark[] => {
      const { lo, hi } = l.primary
      const d = changeOf(l)
      const y = top + i * tall + (narrow ? 17 : tall / 2 + 3)
      const name = narrow ? (i === 0 ? 14 : y - 26) : y + 4
      body.push(glyph(verdictOf(l), narrow ? left + 8 : 10, name - 4, 17))
      body.push(titled(`${short(l.arm)}${levels.length > 1 ? ` at ${number(l.level)}` : ''}`, narrow ? left + 22 : 26, name, 'start', 'row-name'))
      const text = d == null ? 'no change to tell' : lo == null || hi == null ? `${change(d)}, no interval` : `${change(d)}  (${change(lo).slice(0, -2)} to ${change(hi)})`
      body.push(titled(text, width - 4, name, 'end', 'row-value'))
      if (d != null) {
        const g = svg('g', { class: `range change v-${tone(verdictOf(l))}` })
        if (lo != null && hi != null) {
          g.append(svg('line', { x1: axis.at(lo), x2: axis.at(hi), y1: y, y2: y }))
          for (const [v, way] of [[lo, -1], [hi, 1]] as const) {
            const x = axis.at(v)
            g.append(axis.beyond(v) ? svg('path', { class: 'arrow', d: `M${x} ${y - 7}l${9 * way} 7l${-9 * way} 7z` }) : svg('line', { x1: x, x2: x, y1: y - 7, y2: y + 7 }))
          }
        }
        g.append(svg('circle', { class: lo == null ? 'open' : '', cx: axis.at(d), cy: y, r: 7 }))
        body.push(g)
      }
      return [{
        x: axis.at(d ?? 0), y, title: `${nameOfLevel(l, run.unit)}: ${c.refused ? 'no verdict' : (said[l.verdict] ?? l.verdict)}`,
        rows: [
          ['change', d == null ? '-' : change(d)],
          [`${number(100 * (1 - c.alpha))} % interval`, lo == null || hi == null ? '-' : `${change(lo)} to ${change(hi)}`],
          ['margin', `± ${number(100 * c.margin)} %`],
          ['runs', `${l.runs[0]} of ${short(c.baseline)}, ${l.runs[1]} of ${short(l.arm)}`],
        ],
      }]
    })
    body.push(titled(`change of ${c.metric}`, right, bottom + 36, 'end', 'tick'))
    return { svg: canvas(width, bottom + 42, ...body), points: levels.length, rows, top, bottom }
  })
}
