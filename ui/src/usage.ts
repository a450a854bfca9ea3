// What each process used, step by step, and how late news came: small charts
// of one scale, one above the other, so that no colour is needed.

import { scaleLinear } from 'd3-scale'
import { memoryAtStart, type Run, type Step } from './data'
import { html, svg } from './dom'
import { bytes, count, number, percent, quantile, seconds, tick } from './format'
import { canvas, frame, titled, yAxis, type Drawing, type Mark } from './frame'
import { columns, nameOf, stepAxis } from './ladder'

export function usage(run: Run, lag: HTMLElement, waits: HTMLElement, cpu: HTMLElement, memory: HTMLElement): void {
  const { steps } = run.result
  const sources = [...new Set(steps.flatMap((s) => Object.keys(s.resources)))].sort()
  watchLag(run, lag)
  const wait = (s: Step, way: string) => s.bottleneck?.waits?.find((w) => wayOf(w) === way)
  const ways = [...new Set(steps.flatMap((s) => s.bottleneck?.waits ?? []).sort((a, b) => run.milestones.indexOf(a.to) - run.milestones.indexOf(b.to)).map(wayOf))]
  const long = ways.filter((way) => steps.some((s) => (wait(s, way)?.share ?? 0) >= 0.5)) // the table has all
  rows(run, waits, 'Waiting, on average', long, (s, way) => wait(s, way)?.mean, seconds, (s, way) => [['p99', seconds(wait(s, way)!.p99)], ['of the waiting', percent(wait(s, way)!.share / 100)]], '')
  rows(run, cpu, 'CPUs used, on average', sources, (s, source) => {
    const u = s.resources[source]
    return u && s.seconds > 0 ? u.cpuSeconds / s.seconds : undefined
  }, (v) => `${number(Number(v.toPrecision(2)))}`, (s, source) => [['CPU time', seconds(s.resources[source]!.cpuSeconds)], ['of', seconds(s.seconds)]], together(run))
  rows(run, memory, 'Memory, at most', sources, (s, source) => s.resources[source]?.peakPSSBytes ?? s.resources[source]?.peakRSSBytes, bytes, (s, source) => [['at the start', bytes(memoryAtStart(s.resources[source]!))]], '')
}

const wayOf = (w: { from: string; to: string; for: string }) => `${w.from} → ${w.to} (${w.for})`

// What all processes used together, at the most. A real node in all, and the
// parts of a source, are counted in others.
function together(run: Run): string {
  const own = (s: Step) => Object.entries(s.resources).filter(([source]) => source !== 'node' && !source.includes('/'))
  const sums = run.result.steps.map((s) => (s.seconds > 0 ? own(s).reduce((sum, [, u]) => sum + u.cpuSeconds, 0) / s.seconds : 0))
  const most = Math.max(...sums)
  return `All together at most ${most.toPrecision(2)}${run.cpus > 0 ? ` of ${run.cpus}` : ''} CPUs, in step ${run.result.steps[sums.indexOf(most)]!.id}`
}

// One row of bars for each process.
function rows(run: Run, host: HTMLElement, title: string, sources: string[], value: (s: Step, source: string) => number | undefined, text: (v: number) => string, more: (s: Step, source: string) => [string, string][], note: string): void {
  const [, what = ''] = title.split(', ') // on average, or at most
  const { steps } = run.result
  if (sources.length === 0) {
    host.replaceWith()
    return
  }
  frame(host, title, (width): Drawing => {
    const [left, right, top, tall] = [8, width - 58, 34, 52]
    const x = columns(steps.length, left, right)
    const most = Math.max(...sources.flatMap((source) => steps.map((s) => value(s, source) ?? 0)), 1e-9)
    const h = scaleLinear([0, most], [0, tall - 22])
    const half = Math.max(Math.min((x(1) - x(0)) / 2 - 2, 16), 1)
    const body: Node[] = []
    const marks: Mark[][] = []
    sources.forEach((source, k) => {
      const base = top + k * tall + tall - 6
      const row: Mark[] = []
      const own = Math.max(...steps.map((s) => value(s, source) ?? 0))
      body.push(titled(source, left, base - tall + 18, 'start', 'row-title'), svg('line', { class: 'base', x1: left, x2: right, y1: base, y2: base }))
      body.push(titled(text(own), right + 6, base - h(own) + 4, 'start', 'tick'))
      steps.forEach((s, i) => {
        const v = value(s, source)
        if (v === undefined) return
        body.push(svg('rect', { class: 'bar', x: x(i) - half, y: base - Math.max(h(v), 0.75), width: 2 * half, height: Math.max(h(v), 0.75) }))
        row.push({ x: x(i), y: base - h(v), title: `${source}, ${nameOf(s, run.unit)}`, rows: [[what, text(v)], ...more(s, source)] })
      })
      marks.push(row)
    })
    const bottom = top + sources.length * tall
    if (note) body.push(titled(note, left, bottom + 34, 'start', 'tick'))
    body.push(stepAxis(steps, x, bottom + 12), titled('step', right + 6, bottom + 12, 'start', 'tick'))
    return { svg: canvas(width, bottom + (note ? 42 : 20), ...body), points: marks.flat().length, rows: marks, top, bottom }
  })
}

function watchLag(run: Run, host: HTMLElement): void {
  const { steps } = run.result
  if (!steps.some((s) => s.watchLag)) {
    host.replaceChildren(html('figcaption', {}, 'Watch lag'), html('p', { class: 'none' }, 'No canary was sent.'))
    return
  }
  frame(host, 'Watch lag, median to p99', (width): Drawing => {
    const [left, right, top, bottom] = [56, width - 12, 26, 190]
    const x = columns(steps.length, left, right)
    const values = steps.flatMap((s) => [s.watchLag?.p50, s.watchLag?.p99]).filter((v): v is number => v != null)
    const y = scaleLinear([0, Math.max(...values, 1e-3) * 1.1], [bottom, top])
    const body: Node[] = [yAxis(y.ticks(4), y, left, right, tick)]
    const row: Mark[] = []
    const half = Math.min(9, (x(1) - x(0)) / 3)
    steps.forEach((s, i) => {
      const l = s.watchLag
      if (!l) return
      const [a, b] = [l.p50 == null ? top : y(l.p50), l.p99 == null ? top : y(l.p99)]
      body.push(svg('g', { class: 'range' }, svg('line', { x1: x(i), x2: x(i), y1: a, y2: b }), svg('line', { class: 'p99', x1: x(i) - half, x2: x(i) + half, y1: b, y2: b }), svg('circle', { cx: x(i), cy: a, r: Math.min(4.5, half) })))
      row.push({ x: x(i), y: b, title: nameOf(s, run.unit), rows: [['p50', quantile(l.p50)], ['p99', quantile(l.p99)], ['canaries', count(l.n)], ...(l.unseen ? [['never seen', count(l.unseen)] as [string, string]] : [])] })
    })
    body.push(stepAxis(steps, x, bottom + 18), titled('step', left - 8, bottom + 18, 'end', 'tick'))
    return { svg: canvas(width, bottom + 28, ...body), points: row.length, rows: [row], top, bottom }
  })
}
