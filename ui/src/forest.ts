// The verdicts: each change with its interval, against the margin.

import { changeAxis, marginBand } from './change'
import { called, decisions, type Compared, type LevelComparison, type Run } from './data'
import { svg } from './dom'
import { change, number, said, short, tone } from './format'
import { canvas, frame, glyph, titled, xAxis, type Drawing, type Mark } from './frame'

export const nameOfLevel = (l: LevelComparison, unit: string) => `${l.arm} at ${number(l.level)}${unit ? ` ${unit}` : ''}`

// With one run of each arm there is a change, but nothing to tell how sure it is.
const changeOf = (m: Compared) => {
  const { change: d, baseline: [a, more], arm: [b] } = m
  return d ?? (more === undefined && a != null && a > 0 && b != null ? b / a - 1 : null)
}

export interface ChangeRow {
  group?: string[] // a heading above the first of its rows, broken between its parts where it is too long
  name: string
  verdict: string
  change: number | null
  lo: number | null
  hi: number | null
  says: (narrow: boolean) => string
  title: string
  rows: [string, string][]
}

// What a change with its interval says.
export function saysChange(d: number | null, lo: number | null, hi: number | null): string {
  if (d == null) return 'no change to tell'
  if (lo == null && hi == null) return `${change(d)}, no interval`
  if (lo == null) return `${change(d)}  (at most ${change(hi!)})`
  if (hi == null) return `${change(d)}  (at least ${change(lo)})`
  return `${change(d)}  (${change(lo).slice(0, -1)} to ${change(hi)})`
}

// One chart for each metric that decides: more of it may be better or worse.
export function forest(run: Run, host: HTMLElement): void {
  decisions(run.result.comparison!.levels[0]!).forEach((_, i) => {
    const next = i === 0 ? host : host.cloneNode(false) as HTMLElement
    if (i > 0) {
      next.removeAttribute('id')
      host.parentElement!.append(next)
    }
    forestOf(run, next, i)
  })
}

function forestOf(run: Run, host: HTMLElement, which: number): void {
  const c = run.result.comparison!
  const { levels } = c
  const of = (l: LevelComparison) => decisions(l)[which]!
  const metric = called(levels.map((l) => of(l).figure).find((m) => m.title) ?? of(levels[0]!).figure)
  changes(host, `Change of ${metric} with its interval, against the margin`, metric, c.margin, levels.some((l) => of(l).figure.lessIsWorse), 190, () => levels.map((l): ChangeRow => {
    const { verdict, figure: { lo, hi } } = of(l)
    const d = changeOf(of(l).figure)
    return {
      name: `${short(l.arm)}${levels.length > 1 ? ` at ${number(l.level)}` : ''}`, verdict: c.refused ? 'invalid' : verdict, change: d, lo, hi,
      says: () => saysChange(d, lo, hi),
      title: `${nameOfLevel(l, run.unit)}: ${c.refused ? 'no verdict' : (said[verdict] ?? verdict)}`,
      rows: [
        ['change', d == null ? '-' : change(d)],
        [`${number(100 * (1 - c.alpha))}% interval`, lo == null || hi == null ? '-' : `${change(lo)} to ${change(hi)}`],
        ['margin', `± ${number(100 * c.margin)}%`],
        ['runs', `${l.runs[0]} of ${short(c.baseline)}, ${l.runs[1]} of ${short(l.arm)}`],
      ],
    }
  }))
}

// A chart of changes, one below the other. Room is that of the words at the
// right. It is drawn anew by what it returns.
export function changes(host: HTMLElement, label: string, metric: string, margin: number, lessIsWorse: boolean, room: number, list: () => ChangeRow[]): () => void {
  return frame(host, label, (width): Drawing => {
    const shown = list()
    const narrow = width < 620
    const [left, right] = narrow ? [10, width - 10] : [Math.min(250, 34 + 7.2 * Math.max(...shown.map((r) => r.name.length))), width - room]
    const tall = narrow ? 62 : 46
    // On a phone the words stand between the names and the first interval.
    const top = narrow ? 66 : 44
    const headings = shown.map((r, i) => {
      const whole = r.group?.join('')
      if (whole === undefined || whole === shown[i - 1]?.group?.join('')) return []
      const most = Math.floor(width / 8.2) // characters of a line
      const lines: string[] = []
      for (const part of r.group!) {
        if (lines.length > 0 && (lines.at(-1)! + part).length <= most) lines.push(lines.pop()! + part)
        else lines.push(part.replace(/^[, ]+/, ''))
      }
      return lines.map((line) => short(line, most))
    })
    // Where each row begins, below its heading if it has one.
    let next = top
    const starts = headings.map((lines) => {
      const start = next + (lines.length ? 14 + 16 * lines.length : 0)
      next = start + tall
      return start
    })
    const bottom = next + (narrow ? -18 : 6)
    const values = shown.flatMap((r) => [r.change, r.lo, r.hi]).filter((v): v is number => v != null)
    const axis = changeAxis(values, margin, [left, right], narrow ? 4 : 8)
    const spans = narrow ? starts.map((y): [number, number] => [y, y + 34]) : [[top, bottom] as [number, number]]
    const body: Node[] = [xAxis(axis.ticks, axis.at, top, bottom, axis.text, 52), marginBand(axis, margin, spans, lessIsWorse, width)]
    const rows = shown.map((r, i): Mark[] => {
      const { lo, hi, change: d } = r
      const y = starts[i]! + (narrow ? 17 : tall / 2 + 3)
      const lines = headings[i]!
      const name = narrow ? starts[i]! - (i === 0 ? 52 : 9) : y + 4
      lines.forEach((text, k) => body.push(titled(text, 0, (narrow ? name - 4 : starts[i]! + 6) - 17 * (lines.length - k), 'start', 'row-name')))
      body.push(glyph(r.verdict, narrow ? left + 8 : 10, name - 4, 17))
      body.push(titled(r.name, narrow ? left + 22 : 26, name, 'start', 'row-name'))
      body.push(titled(r.says(narrow), width - 4, name, 'end', 'row-value'))
      if (d != null || lo != null || hi != null) {
        const g = svg('g', { class: `range change v-${tone(r.verdict)}` })
        if (lo != null || hi != null) {
          const ends = [[lo ?? 0, -1, lo != null], [hi ?? 0, 1, hi != null]] as const
          g.append(svg('line', { x1: lo == null ? left : axis.at(lo), x2: hi == null ? right : axis.at(hi), y1: y, y2: y }))
          for (const [v, way, known] of ends) {
            const x = known ? axis.at(v) : way < 0 ? left : right
            g.append(!known || axis.beyond(v) ? svg('path', { class: 'arrow', d: `M${x} ${y - 7}l${9 * way} 7l${-9 * way} 7z` }) : svg('line', { x1: x, x2: x, y1: y - 7, y2: y + 7 }))
          }
        }
        if (d != null) g.append(svg('circle', { class: lo == null && hi == null ? 'open' : '', cx: axis.at(d), cy: y, r: 7 }))
        body.push(g)
      }
      return [{ x: axis.at(d ?? lo ?? hi ?? 0), y, title: r.title, rows: r.rows }]
    })
    body.push(titled(`change of ${metric}`, right, bottom + 36, 'end', 'tick'))
    return { svg: canvas(width, bottom + 42, ...body), points: shown.length, rows, top, bottom }
  })
}
