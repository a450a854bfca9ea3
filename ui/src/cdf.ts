// Distributions: the share of the objects asked for that had reached a
// milestone after a time. Either one milestone over the steps, or one step
// over its milestones.

import { scaleLinear, scaleLog } from 'd3-scale'
import { curveOf, heightAt, placeOf, things, type Curve, type Run } from './data'
import { choose, html, segments, svg } from './dom'
import { count, number, percent, quantile, said, seconds, tick } from './format'
import { canvas, frame, glyph, titled, xAxis, yAxis, type Drawing, type Mark } from './frame'
import { nameOf } from './ladder'

interface Series {
  key: string
  badge: string // what marks the curve itself
  name: string
  curve: Curve
  verdict?: string
  note: string
}

const styles = 6 // of lines, in style.css
const nines = 4 // that the tail is shown to

export function cdf(run: Run, host: HTMLElement, controls: HTMLElement, list: HTMLFieldSetElement): void {
  const { steps } = run.result
  if (run.curves.length === 0) return
  const cache = new Map<number, Curve>()
  const curve = (milestone: string, step: number): Curve | undefined => {
    const i = run.distribution[milestone]?.[step] ?? -1
    if (i < 0) return undefined
    if (!cache.has(i)) cache.set(i, curveOf(run.curves[i]!))
    return cache.get(i)
  }
  const milestones = run.milestones.filter((m) => steps.some((_, i) => curve(m, i)))
  const able = steps.map((_, i) => i).filter((i) => milestones.some((m) => curve(m, i)))
  let over: 'steps' | 'milestones' = 'steps'
  let milestone = milestones.includes(run.arrived) ? run.arrived : milestones[0]!
  // The tail of a stream is what is asked of it.
  let logarithmic = run.streams.length > 0
  let tail = run.streams.length > 0
  const telling = tellingSteps(run, able)
  let step = telling.at(-1) ?? able[0]!
  const chosen = { steps: new Set(telling.map(String)), milestones: new Set(milestones) }

  const series = (): Series[] => {
    if (over === 'steps')
      return able.flatMap((i) => {
        const [s, c] = [steps[i]!, curve(milestone, i)]
        const l = s.latency[milestone]
        return c ? [{ key: String(i), badge: String(s.id), name: nameOf(s, run.unit), curve: c, verdict: s.verdict, note: `${s.purpose}, p50 ${quantile(l?.p50)}, p99 ${quantile(l?.p99)}` }] : []
      })
    // Milestones that were reached at the same moments are one line.
    const together = new Map<number, string[]>()
    for (const m of milestones) {
      const i = run.distribution[m]?.[step] ?? -1
      if (i >= 0) together.set(i, [...(together.get(i) ?? []), m])
    }
    return [...together.values()].map((names, k) => {
      const l = steps[step]!.latency[names[0]!]
      return { key: names[0]!, badge: String.fromCharCode(65 + (k % 26)), name: names.join(', '), curve: curve(names[0]!, step)!, note: `p50 ${quantile(l?.p50)}, p99 ${quantile(l?.p99)}` }
    })
  }
  // A line keeps its style while it is chosen: the order of choosing decides.
  const styleOf = (key: string) => {
    const there = new Set(series().map((s) => s.key))
    return [...chosen[over]].filter((k) => there.has(k)).indexOf(key) % styles
  }

  const render = (width: number): Drawing => {
    const narrow = width < 620
    const [left, right, top] = [56, width - 18, 30]
    const bottom = narrow ? 300 : 380
    const all = series()
    const bright = all.filter((s) => chosen[over].has(s.key))
    const shown = bright.length > 0 ? bright : all
    const ends = shown.map((s) => s.curve.x.at(-1) ?? 0)
    const bounds = run.bounds.filter((b) => over === 'steps' ? b.milestone === milestone : chosen.milestones.has(b.milestone) || all.some((s) => s.name.split(', ').includes(b.milestone)))
    let far = Math.max(...ends, 1e-5)
    const near = bounds.filter((b) => b.seconds < far * 4)
    far = Math.max(far, ...near.map((b) => b.seconds)) * 1.04
    const { x, low, ticks } = timeScale(shown.map((s) => s.curve), far, logarithmic, left, right, narrow ? 5 : 9)
    const height = scaleLinear([0, 1], [bottom, top])
    const y = tail ? (share: number) => height(Math.min(-Math.log10(Math.max(1 - share, 1e-9)), nines) / nines) : height
    const body: Node[] = [
      yAxis(tail ? [0, 0.5, 0.9, 0.99, 0.999, 0.9999] : [0, 0.25, 0.5, 0.75, 1], y, left, right, (v) => `${number(100 * v)}%`),
      xAxis(ticks, x, top, bottom, tick, 44),
      titled(`Share of the ${things(run)}${run.streams.length > 0 ? '' : ' asked for'}`, 0, 14),
      titled(over === 'steps' ? `time to ${milestone}` : run.streams.length > 0 ? 'time since the request was due' : 'time since the object was asked for', right, bottom + 36, 'end', 'tick'),
    ]
    const said = (b: (typeof bounds)[number]) => `${run.result.goals.length > 1 ? `${b.goal}: ` : ''}${b.q < 1 ? `p${number(100 * b.q)}` : 'all'} ≤ ${tick(b.seconds)}`
    for (const b of bounds) {
      if (!near.includes(b)) {
        body.push(titled(`goal ${said(b)}${narrow ? '' : ', beyond this scale'} →`, right - 4, bottom - 8 - 16 * bounds.indexOf(b), 'end', 'goal-text'))
        continue
      }
      body.push(svg('path', { class: 'goal-line', d: `M${x(b.seconds)} ${bottom}V${y(b.q)}H${left}` }), titled(said(b), x(b.seconds) - 6, bottom - 8 - 16 * near.indexOf(b), 'end', 'goal-text'))
    }
    const draw = (s: Series, cls: string) => {
      const c = s.curve
      const reached = (c.y.at(-1) ?? 0) / c.n
      const d = pathOf(c, (v) => x(Math.max(v, low)), y, left, right)
      body.push(svg('path', { class: cls, d }))
      return reached
    }
    for (const s of all) if (!bright.includes(s)) draw(s, 'curve faint')
    const rows: Mark[][] = []
    const badges: Node[] = [] // above all lines
    const told: number[] = [] // heights that have a text
    bright.forEach((s, i) => {
      const reached = draw(s, `curve s${styleOf(s.key)}`)
      const c = s.curve
      const row: Mark[] = []
      for (const q of [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, ...(tail ? [0.999, 0.9999] : []), 1]) {
        const at = placeOf(c, Math.max(Math.ceil(q * c.n - 1e-9), 1))
        if (at !== undefined) row.push({ x: x(Math.max(at, low)), y: y(q), title: s.name, rows: [[q === 1 ? 'all' : `p${number(100 * q)}`, seconds(at)], [things(run), count(c.n)]] })
      }
      const never = c.n - (c.y.at(-1) ?? 0)
      if (never > 0) row.push({ x: right, y: y(reached), title: s.name, rows: [['never', `${count(never)} of ${count(c.n)}`]] })
      rows.push(row)
      // The badges stand at different heights, where the curves are apart.
      const h = Math.min(0.3 + (0.42 * (i + 0.5)) / bright.length, reached)
      const at = placeOf(c, Math.max(h * c.n, 1)) ?? 0
      const [bx, by] = reached > 0 ? [x(Math.max(at, low)), y(h)] : [left + 30 + 26 * i, bottom]
      badges.push(svg('g', { class: `badge s${styleOf(s.key)}` }, svg('circle', { cx: bx, cy: by, r: 10 }), svg('text', { x: bx, y: by + 4, 'text-anchor': 'middle' }, s.badge)))
      if (never > 0 && reached < 0.985) {
        let line = y(reached) + (reached > 0.9 ? 17 : -13)
        while (told.some((t) => Math.abs(t - line) < 14)) line += reached > 0.9 ? 15 : -15
        told.push(line)
        badges.push(titled(`${s.badge}: ${count(never)} never`, right - 4, line, 'end', `never-text s${styleOf(s.key)}`))
      }
    })
    body.push(...badges)
    const at = (px: number, py: number): Mark | undefined => {
      if (px < left || px > right) return undefined
      const v = x.invert(px)
      let best: Mark | undefined
      for (const s of shown) {
        const share = heightAt(s.curve, v) / s.curve.n
        const m = { x: px, y: y(share), title: s.name, rows: [[`within ${seconds(v)}`, percent(share)], [things(run), `${count(share * s.curve.n)} of ${count(s.curve.n)}`]] as [string, string][] }
        if (!best || Math.abs(m.y - py) < Math.abs(best.y - py)) best = m
      }
      return best
    }
    const points = all.reduce((n, s) => n + Math.max(s.curve.x.length, 1), 0)
    return { svg: canvas(width, bottom + 46, ...body), points, rows, at, top, bottom }
  }
  const redraw = frame(host, 'Distribution of latencies', render)

  const pick = html('div', { class: 'picks' })
  const relist = () => {
    const legend = over === 'steps' ? 'Steps that are drawn in full' : 'Milestones that are drawn in full'
    list.replaceChildren(html('legend', {}, legend))
    for (const s of series()) {
      const input = html('input', { type: 'checkbox' })
      input.checked = chosen[over].has(s.key)
      const swatch = svg('svg', { class: 'swatch', width: 44, height: 22, 'aria-hidden': 'true', focusable: 'false' })
      const paint = () => {
        const cls = input.checked ? `s${styleOf(s.key)}` : 'faint'
        swatch.replaceChildren(svg('path', { class: `curve ${cls}`, d: 'M1 11H43' }), svg('g', { class: `badge ${cls}` }, svg('circle', { cx: 22, cy: 11, r: 9.5 }), svg('text', { x: 22, y: 15, 'text-anchor': 'middle' }, s.badge)))
      }
      paint()
      input.addEventListener('change', () => {
        if (input.checked) chosen[over].add(s.key)
        else chosen[over].delete(s.key)
        relist()
        redraw()
        list.querySelectorAll('input')[series().findIndex((o) => o.key === s.key)]?.focus()
      })
      const mark = s.verdict ? svg('svg', { class: `glyph v-${s.verdict}`, width: 16, height: 16, viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false' }, glyph(s.verdict, 8, 8, 16)) : undefined
      list.append(html('label', {}, input, swatch, html('span', {}, mark, s.name, s.verdict ? html('span', { class: 'unseen' }, ` ${said[s.verdict] ?? s.verdict}`) : undefined, html('small', {}, s.note))))
    }
    const took = Math.max(...series().map((s) => s.curve.took))
    if (took > 0) list.append(html('p', { class: 'hint' }, `Drawn through some of its points, each curve stays within ${percent(took)} of the whole one.`))
  }
  const repick = () => {
    pick.replaceChildren(
      over === 'steps'
        ? choose('Milestone', milestones.map((m) => [m, m]), milestone, (v) => ((milestone = v), relist(), redraw()))
        : choose('Step', able.map((i) => [String(i), `${nameOf(steps[i]!, run.unit)}, ${said[steps[i]!.verdict]}`]), String(step), (v) => ((step = Number(v)), relist(), redraw())),
    )
  }
  controls.append(
    segments('Compare', 'cdf-over', [['steps', 'levels'], ['milestones', 'milestones']], over, (v) => ((over = v as typeof over), repick(), relist(), redraw())),
    pick,
    segments('Scale', 'cdf-scale', [['linear', 'linear'], ['log', 'logarithmic']], logarithmic ? 'log' : 'linear', (v) => ((logarithmic = v === 'log'), redraw())),
    segments('Shares', 'cdf-shares', [['all', 'evenly'], ['tail', 'to 99.99%']], tail ? 'tail' : 'all', (v) => ((tail = v === 'tail'), redraw())),
  )
  repick()
  relist()
}

// The axis of time of distributions, up to far.
export function timeScale(curves: Curve[], far: number, logarithmic: boolean, left: number, right: number, most: number) {
  const first = Math.min(...curves.map((c) => c.x.find((v) => v > 0) ?? far / 10))
  const low = Math.max(Math.min(first, far / 10), 1e-6) * 0.9
  const x = logarithmic ? scaleLog([low, far], [left, right]).clamp(true) : scaleLinear([0, far], [left, right]).clamp(true)
  const ticks = logarithmic ? (x.ticks() as number[]).filter((v) => /^[125]/.test(v.toExponential())) : x.ticks(most)
  return { x, low, ticks }
}

// A distribution's line. Those that never got there keep it down for good.
export function pathOf(c: Curve, x: (v: number) => number, y: (share: number) => number, left: number, right: number): string {
  let d = ''
  for (let i = 0; i < c.x.length; i++) d += `${i ? 'L' : 'M'}${x(c.x[i]!).toFixed(1)} ${y(c.y[i]! / c.n).toFixed(1)}`
  return `${d || `M${left} ${y(0)}`}H${right}`
}

// The steps that tell most: what is normal, what just holds, what just fails.
function tellingSteps(run: Run, able: number[]): number[] {
  if (able.length <= 4) return able
  const { steps, loadLine } = run.result
  const last = (want: (i: number) => boolean) => able.filter(want).at(-1)
  const held = last((i) => steps[i]!.verdict === 'pass' && steps[i]!.level === loadLine?.level) ?? last((i) => steps[i]!.verdict === 'pass')
  const failed = last((i) => steps[i]!.verdict === 'fail' && steps[i]!.level === loadLine?.lowestFailing) ?? last((i) => steps[i]!.verdict === 'fail')
  const list = [able[0]!, failed, held].filter((i): i is number => i !== undefined)
  return [...new Set(list.length > 1 ? list : [able[0]!, able.at(-1)!])]
}
