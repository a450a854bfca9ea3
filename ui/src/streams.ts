// The course of a step's stream: requests that were due and done, their
// latency, the backlog and failures, window by window.

import { scaleLinear, scaleLog } from 'd3-scale'
import type { Course, Run } from './data'
import { choose, svg } from './dom'
import { count, number, said, seconds, short, tick } from './format'
import { canvas, frame, titled, xAxis, yAxis, type Drawing, type Mark } from './frame'
import { nameOf } from './ladder'

interface Line {
  name: string
  cls: string
  values: (number | null)[]
}

export function streams(run: Run, host: HTMLElement, controls: HTMLElement): void {
  if (run.streams.length === 0) return
  const steps = new Map(run.result.steps.map((s) => [s.id, s]))
  const failed = run.streams.find((c) => steps.get(c.step)?.verdict === 'fail')
  let chosen = failed ?? run.streams.at(-1)!

  const render = (width: number): Drawing => {
    const c = chosen
    const n = c.at.length
    const each = (list: number[]) => list.map((v, i) => v / Math.max(c.for[i]!, 1e-9))
    const kinds = Object.keys(c.failed).sort()
    const panels: { title: string; lines: Line[]; text: (v: number) => string; log?: boolean; at?: number[] }[] = [
      { title: 'Requests per second', text: count, lines: [{ name: 'due', cls: 'asked', values: each(c.intended) }, { name: 'done', cls: 's0', values: each(c.done) }] },
      { title: `${run.arrived}, logarithmic`, text: seconds, log: true, lines: [{ name: 'p50', cls: 's0', values: c.p50 }, { name: 'p99', cls: 's1', values: c.p99 }] },
      { title: 'Backlog, requests', text: count, lines: [{ name: 'backlog', cls: 's0', values: c.backlog }] },
    ]
    const lost: Line[] = [
      ...kinds.map((k, i) => ({ name: short(k), cls: `s${i % 6}`, values: each(c.failed[k]!) })),
      ...([['dropped', c.dropped], ['late', c.late], ['lost', c.lost]] as const).filter(([, v]) => v.some((x) => x > 0)).map(([name, v], i) => ({ name, cls: `s${(kinds.length + i) % 6}`, values: each([...v]) })),
    ]
    if (lost.length) panels.push({ title: 'Not done or late, per second', text: count, lines: lost })
    for (const s of c.sampled ?? []) panels.push({ title: s.title, text: (v) => (v < 1 ? String(v) : count(v)), at: s.at, lines: s.lines.map((l, i) => ({ ...l, cls: `s${i % 6}` })) })
    const [left, right, tall, gap, top] = [64, width - 16, 96, 44, 26]
    const bottom = top + panels.length * tall + (panels.length - 1) * gap
    const zero = c.at[0]!
    const x = scaleLinear([0, Math.max(c.at[n - 1]! + c.for[n - 1]! - zero, 1e-3)], [left, right])
    const body: Node[] = []
    if (c.warmUp > 0) body.push(svg('rect', { class: 'band odd', x: left, y: top, width: Math.max(x((c.at[c.warmUp] ?? c.at[n - 1]!) - zero) - left, 1), height: bottom - top }))
    body.push(xAxis(x.ticks(width < 620 ? 4 : 9), x, top, bottom, tick, 44), titled('since the step began', right, bottom + 36, 'end', 'tick'))
    const rows: Mark[][] = []
    panels.forEach((p, k) => {
      const [from, to] = [top + k * (tall + gap) + tall, top + k * (tall + gap)]
      const all = p.lines.flatMap((l) => l.values).filter((v): v is number => v != null && (!p.log || v > 0))
      const high = Math.max(...all, p.log ? 1e-6 : 1e-9)
      const low = p.log ? Math.min(...all, high / 10) : 0
      const y = p.log ? scaleLog([low * 0.9, high * 1.1], [from, to]).clamp(true) : scaleLinear([0, Math.max(high, 1) * 1.08], [from, to])
      const ticks = p.log ? (y.ticks() as number[]).filter((v) => /^1e/.test(v.toExponential(0))) : y.ticks(3)
      body.push(yAxis(p.log && ticks.length < 2 ? [low, high] : ticks, y, left, right, p.text), titled(p.title, 0, to - 10))
      let at = right
      for (const l of [...p.lines].reverse()) {
        at -= 44 + l.name.length * 7
        body.push(svg('path', { class: `curve ${l.cls}`, d: `M${at} ${to - 14}h24` }), titled(l.name, at + 30, to - 10, 'start', 'tick'))
      }
      const px = (i: number) => x((p.at ? p.at[i]! : c.at[i]! + c.for[i]! / 2) - zero)
      for (const l of p.lines) {
        let d = ''
        l.values.forEach((v, i) => {
          if (v == null) return
          d += `${d && l.values[i - 1] != null ? 'L' : 'M'}${px(i).toFixed(1)} ${y(Math.max(v, p.log ? low : 0)).toFixed(1)}`
        })
        body.push(svg('path', { class: `curve ${l.cls}`, d: d || `M${left} ${from}` }))
      }
      if (p.at) {
        rows.push(p.at.map((t, i) => ({ x: px(i), y: y(p.lines[0]!.values[i] ?? 0), title: seconds(t - zero), rows: p.lines.map((l): [string, string] => [l.name, l.values[i] == null ? '-' : number(l.values[i]!)]) })))
        return
      }
      rows.push(c.at.map((t, i) => {
        const v = p.lines[0]!.values[i] ?? low
        return { x: x(t - zero + c.for[i]! / 2), y: y(Math.max(v, p.log ? low : 0)), title: `${seconds(t - zero)} to ${seconds(t - zero + c.for[i]!)}${i < c.warmUp ? ', warm-up' : ''}`, rows: says(c, i) }
      }))
    })
    return { svg: canvas(width, bottom + 46, ...body), points: n * panels.length, rows, top, bottom }
  }
  const says = (c: Course, i: number): [string, string][] => [
    ['due', count(c.intended[i]!)], ['done', count(c.done[i]!)],
    ...Object.keys(c.failed).sort().filter((k) => c.failed[k]![i]! > 0).map((k): [string, string] => [k, count(c.failed[k]![i]!)]),
    ...([['late', c.late], ['dropped', c.dropped], ['lost', c.lost]] as const).filter(([, v]) => v[i]! > 0).map(([k, v]): [string, string] => [k, count(v[i]!)]),
    ['backlog', count(c.backlog[i]!)], ['in flight', count(c.inFlight[i]!)],
    ['p50', c.p50[i] == null ? '-' : seconds(c.p50[i]!)], ['p99', c.p99[i] == null ? '-' : seconds(c.p99[i]!)],
  ]
  const redraw = frame(host, 'Requests, latency, backlog and failures over time', render)
  const name = (c: Course) => {
    const s = steps.get(c.step)
    return s ? `${nameOf(s, run.unit)}, ${s.purpose}, ${said[s.verdict]}` : number(c.step)
  }
  controls.append(choose('Step', run.streams.map((c): [string, string] => [String(c.step), name(c)]), String(chosen.step), (v) => ((chosen = run.streams.find((c) => c.step === Number(v))!), redraw())))
}
