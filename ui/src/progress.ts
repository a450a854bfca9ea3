// The course of the run: objects asked for and in place, and those of them
// that were there.

import { scaleLinear } from 'd3-scale'
import { capital, curveOf, heightAt, things, type Run } from './data'
import { choose, svg, widthOf } from './dom'
import { count, number, said, seconds, tick } from './format'
import { canvas, frame, glyph, titled, xAxis, yAxis, type Drawing, type Mark } from './frame'
import { nameOf } from './ladder'

export function progress(run: Run, host: HTMLElement, controls: HTMLElement): void {
  const { steps } = run.result
  if (run.progress.length === 0) return
  const parts = run.progress.map((p) => ({ asked: curveOf(p.asked), there: curveOf(p.there) }))
  const start = parts[0]!.asked.x[0]!
  let only = -1 // a step, or the whole run

  const render = (width: number): Drawing => {
    const narrow = width < 620
    const [left, right, top, bottom] = [56, width - 16, 54, narrow ? 270 : 330]
    const shown = only < 0 ? parts : [parts[only]!]
    const [from, until] = [shown[0]!.asked.x[0]!, shown.at(-1)!.asked.x.at(-1)!]
    // A step's own course is over long before its hold is.
    const far = only < 0 ? until : Math.min(until, Math.max(run.times[only]![1], from + 1e-3))
    const x = scaleLinear([from, Math.max(far, from + 1e-3)], [left, right]).clamp(true)
    const high = Math.max(...shown.flatMap((p) => p.asked.y), 1)
    const y = scaleLinear([0, high * 1.06], [bottom, top])
    const zero = only < 0 ? start : from
    const ticks = scaleLinear([0, x.domain()[1]! - zero], [0, 1]).ticks(narrow ? 4 : 9).map((t) => t + zero)
    const body: Node[] = [
      yAxis(y.ticks(5), y, left, right, count),
      xAxis(ticks, x, top, bottom, (t) => (t - zero >= 120 && only < 0 ? `${number(Math.round(t - zero))} s` : tick(Math.round((t - zero) * 1e6) / 1e6)), 44),
      titled(capital(things(run)), 0, 14),
      titled(only < 0 ? 'since the first step began' : 'since the step began', right, bottom + 36, 'end', 'tick'),
    ]
    const rows: Mark[][] = [[]]
    steps.forEach((s, i) => {
      if (only >= 0 && i !== only) return
      const [a, b] = [x(run.times[i]![0]), x(run.times[i]![1])]
      body.push(svg('rect', { class: i % 2 ? 'band odd' : 'band', x: a, y: 24, width: Math.max(b - a, 1), height: bottom - 24 }))
      if (b - a >= 16) body.push(glyph(s.verdict, b - a >= 44 ? a + 12 : (a + b) / 2, 36, 14))
      const name = b - a >= 40 + widthOf(number(s.levelReached), 11) ? number(s.levelReached) : ''
      body.push(titled(name, a + 23, 40, 'start', 'purpose'))
    })
    const path = (which: 'asked' | 'there') => {
      let d = ''
      for (const p of shown) for (let i = 0; i < p[which].x.length; i++) d += `${d ? 'L' : 'M'}${x(p[which].x[i]!).toFixed(1)} ${y(p[which].y[i]!).toFixed(1)}`
      return d
    }
    const there = path('there')
    body.push(svg('path', { class: 'area', d: `${there}L${x(shown.at(-1)!.there.x.at(-1)!)} ${bottom}L${left} ${bottom}Z` }), svg('path', { class: 'curve there', d: there }), svg('path', { class: 'curve asked', d: path('asked') }))

    const says = (t: number): Mark => {
      let i = shown.length - 1
      while (i > 0 && shown[i]!.asked.x[0]! > t) i--
      const [a, b] = [heightAt(shown[i]!.asked, t), heightAt(shown[i]!.there, t)]
      const s = steps[only < 0 ? i : only]!
      return { x: x(t), y: y(b), title: `${seconds(t - zero)}: ${nameOf(s, run.unit)}`, rows: [['asked for', count(a)], ['ready', count(b)], ['not ready', count(Math.max(a - b, 0))]] }
    }
    if (only < 0) {
      steps.forEach((s, i) => {
        const [a, b] = run.times[i]!
        rows[0]!.push(says(a), ...(s.reachSeconds != null ? [says(Math.min(a + s.reachSeconds, b))] : []), says(Math.max(a, b - 1e-6)))
      })
    } else for (let k = 0; k <= 40; k++) rows[0]!.push(says(from + ((x.domain()[1]! - from) * k) / 40))
    const at = (px: number) => (px < left - 4 || px > right + 4 ? undefined : says(x.invert(px)))
    const points = shown.reduce((n, p) => n + p.asked.x.length + p.there.x.length, 0)
    const key = svg('g', { class: 'legend' }, svg('path', { class: 'curve asked', d: `M${right - 190} 10h22` }), titled('asked for', right - 164, 14, 'start', 'tick'), svg('rect', { class: 'area', x: right - 84, y: 4, width: 22, height: 10 }), svg('path', { class: 'curve there', d: `M${right - 84} 5h22` }), titled(run.arrived, right - 58, 14, 'start', 'tick'))
    return { svg: canvas(width, bottom + 46, key, ...body), points, rows, at, top: 24, bottom }
  }
  const redraw = frame(host, `${capital(things(run))} asked for, and ${run.arrived}, over time`, render)
  controls.append(choose('Show', [['-1', 'the whole run'], ...steps.map((s, i): [string, string] => [String(i), `${nameOf(s, run.unit)}, ${s.purpose}, ${said[s.verdict]}`])], '-1', (v) => ((only = Number(v)), redraw())))
}
