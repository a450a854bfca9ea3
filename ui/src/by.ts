// Times told apart by a label: a histogram for each of its values, below each
// other on one scale of time.

import { scaleLinear } from 'd3-scale'
import { things, type Run } from './data'
import { choose, svg } from './dom'
import { count, quantile, said, seconds, tick } from './format'
import { canvas, frame, titled, xAxis, type Drawing, type Mark } from './frame'
import { nameOf } from './ladder'

export function byLabel(run: Run, host: HTMLElement, controls: HTMLElement): void {
  const steps = run.result.steps.filter((s) => s.groups?.length)
  let step = steps.at(-1)!
  let label = step.groups![0]!.label
  const scale = run.result.fidelity?.timeScale || 1
  const time = (v: number | null) => (v == null ? v : v * scale)

  const render = (width: number): Drawing => {
    const by = step.groups!.find((b) => b.label === label) ?? step.groups![0]!
    const [left, right, top, tall] = [56, width - 16, 10, 84]
    const bottom = top + by.values.length * tall
    const edges = (by.edges ?? []).map((v) => v * scale)
    const most = Math.max(...by.values.flatMap((v) => v.counts), 1)
    const last = edges.at(-1) ?? 1
    const x = scaleLinear([Math.max(0, Math.min(edges[0] ?? 0, last * 0.9)), last * 1.01], [left, right])
    const h = scaleLinear([0, most], [0, tall - 30])
    const body: Node[] = [xAxis(x.ticks(width < 620 ? 4 : 9), x, top, bottom, tick, 44), titled(`${by.from ? `${by.from} to ${by.to}` : `time to ${by.to}`}${scale !== 1 ? ', as it would be' : ''}`, right, bottom + 36, 'end', 'tick')]
    const rows = by.values.map((v, k): Mark[] => {
      const base = top + (k + 1) * tall - 6
      const name = v.value || '(unknown)'
      const { time: l } = v
      const mean = time(l.mean)
      body.push(
        titled(`${name}: ${count(l.n)} ${things(run)}, mean ${quantile(mean)}, p50 ${quantile(time(l.p50))}, p99 ${quantile(time(l.p99))}${l.censored ? `, ${count(l.censored)} never` : ''}`, left, base - tall + 20, 'start', 'row-title'),
        svg('line', { class: 'base', x1: left, x2: right, y1: base, y2: base }),
        titled(count(Math.max(...v.counts, 0)), left - 8, base - h(Math.max(...v.counts, 0)) + 4, 'end', 'tick'),
      )
      const marks: Mark[] = []
      v.counts.forEach((n, i) => {
        if (n === 0) return
        const [a, b] = [edges[i]!, edges[i + 1]!]
        body.push(svg('rect', { class: 'bar', x: x(a) + 0.5, y: base - h(n), width: Math.max(x(b) - x(a) - 1, 3), height: h(n) }))
        marks.push({ x: (x(a) + x(b)) / 2, y: base - h(n), title: name, rows: [[`${seconds(a)} to ${seconds(b)}`, `${count(n)} ${things(run)}`]] })
      })
      if (mean != null) body.push(svg('line', { class: 'goal-line', x1: x(mean), x2: x(mean), y1: base - tall + 28, y2: base }))
      return marks
    })
    if (by.cut) body.push(titled(`${by.cut} further values are left out`, left, bottom + 36, 'start', 'tick'))
    return { svg: canvas(width, bottom + 44, ...body), points: rows.flat().length, rows, top, bottom }
  }
  const redraw = frame(host, `Number of ${things(run)} by time; the dashed line is the mean`, render)
  controls.append(choose('Label', step.groups!.map((b) => [b.label, b.label]), label, (v) => ((label = v), redraw())))
  if (steps.length > 1) controls.append(choose('Step', steps.map((s) => [String(s.id), `${nameOf(s, run.unit)}, ${said[s.verdict]}`]), String(step.id), (v) => ((step = steps.find((s) => String(s.id) === v)!), redraw())))
}
