// The ladder: each step's level and verdict in the order in which they were
// made, and below it how long the step's objects took.

import { scaleLinear, scaleLog } from 'd3-scale'
import { isConfirmed, things, type Latency, type Run, type Step } from './data'
import { choose, segments, svg, widthOf } from './dom'
import { count, number, quantile, said, seconds, tick, tone } from './format'
import { canvas, frame, glyph, titled, yAxis, type Drawing, type Mark } from './frame'

// The x of each step: a column for each, side by side.
export function columns(n: number, left: number, right: number): (i: number) => number {
  const wide = Math.min((right - left) / Math.max(n, 1), 320)
  return (i) => left + wide * (i + 0.5)
}

// The numbers of the steps below a chart, as many as fit.
export function stepAxis(steps: { id: number }[], x: (i: number) => number, y: number): SVGGElement {
  const g = svg('g', { class: 'axis' })
  let last = -Infinity
  steps.forEach((s, i) => {
    if (x(i) - last < 8 + widthOf(String(s.id))) return
    last = x(i)
    g.append(svg('text', { x: x(i), y, 'text-anchor': 'middle' }, String(s.id)))
  })
  return g
}

export const nameOf = (s: Step, unit: string) => `Step ${s.id}, ${number(s.levelReached)} ${unit}${s.arm ? `, ${s.arm}` : ''}`

// Where the true p99 lies, as far as so many objects tell.
function interval(l: Latency): [string, string][] {
  const [lo, hi] = l.intervals?.['p99'] ?? []
  return lo == null ? [] : [['95% interval', `${seconds(lo)} to ${hi == null ? '?' : seconds(hi)}`]]
}

// The first step tells what is normal.
function ratio(l: Latency, normal: Latency | undefined): [string, string][] {
  if (l === normal || l.p99 == null || !normal?.p99) return []
  return [['p99 against step 1', `× ${number(Number((l.p99 / normal.p99).toPrecision(3)))}`]]
}

export function ladder(run: Run, host: HTMLElement, controls: HTMLElement): void {
  const { steps, goals } = run.result
  if (steps.length === 0) return
  const milestones = run.milestones.filter((m) => steps.some((s) => s.latency[m]))
  let milestone = milestones.includes(run.arrived) ? run.arrived : (milestones[0] ?? run.arrived)
  let logarithmic = false
  let goal = 0 // whose verdicts are shown
  const verdictOf = (s: Step) => s.goals[goals[goal]?.name ?? ''] ?? s.verdict

  const render = (width: number): Drawing => {
    const narrow = width < 620
    const lines = goals.filter((g) => g.loadLine)
    const unsure = lines.some((g) => g.loadLine!.level != null && !isConfirmed(g))
    const [left, right] = [56, width - (narrow ? 10 : (goals.length > 1 ? 176 : 132) + (unsure ? 48 : 0))]
    const x = columns(steps.length, left, right)
    const end = Math.min(right, x(steps.length - 1) + (x(1) - x(0)) / 2)
    const [top, bottom] = [56, narrow ? 236 : 276]
    const [top2, bottom2] = [bottom + 58, bottom + (narrow ? 208 : 248)]
    const height = bottom2 + 44
    const svgs: Node[] = []
    const marks: Mark[][] = [[], []]

    // Why the steps were made: spans of one purpose.
    for (let i = 0, from = 0; i <= steps.length; i++) {
      if (i < steps.length && steps[i]!.purpose === steps[from]!.purpose) continue
      const half = (x(1) - x(0)) / 2
      const [a, b] = [x(from) - half, x(i - 1) + half]
      const name = steps[from]!.purpose
      svgs.push(svg('rect', { class: 'span', x: a + 1.5, y: 24, width: Math.max(b - a - 3, 1), height: 18, rx: 4 }))
      const short = widthOf(name, 11) + 4 <= b - a ? name : widthOf(name.slice(0, 2), 11) + 2 <= b - a ? `${name.slice(0, 2)}` : ''
      svgs.push(titled(short, (a + b) / 2, 37, 'middle', 'purpose'))
      if (from > 0) svgs.push(svg('line', { class: 'divide', x1: a, x2: a, y1: 42, y2: bottom2 }))
      from = i
    }

    const all = [...steps.flatMap((s) => [s.levelReached, s.effectiveLevel ?? 0]), ...lines.flatMap((g) => [g.loadLine!.level ?? 0, g.loadLine!.lowestFailing ?? 0])]
    const y = scaleLinear([0, Math.max(...all, 1e-9) * 1.12], [bottom, top])
    svgs.push(yAxis(y.ticks(5), y, left, end, number))
    svgs.push(titled(run.unit ? `Level, ${run.unit}` : 'Level', 0, 14))

    // The load lines; texts beside them, moved apart where they would meet.
    const texts: { at: number; value: number; names: string[]; cls: string }[] = []
    const tell = (value: number, name: string, cls: string) => {
      const same = texts.find((t) => t.value === value && t.cls.split(' ')[0] === cls.split(' ')[0])
      if (same) {
        same.names.push(name)
        if (!cls.includes('further')) same.cls = cls
      }
      else texts.push({ at: y(value), value, names: [name], cls })
    }
    const chosen = goals[goal]
    lines.forEach((g) => {
      const line = g.loadLine!
      if (line.level != null) {
        const kind = isConfirmed(g) ? 'load' : 'held'
        const rest = `${kind === 'held' ? ` v-${tone(g.verdict)}` : ''}${g === chosen ? '' : ' further'}`
        svgs.push(svg('line', { class: `${kind}-line${rest}`, x1: left, x2: end, y1: y(line.level), y2: y(line.level) }))
        if (kind === 'load') svgs.push(svg('circle', { class: 'load-mark', cx: end, cy: y(line.level), r: g === chosen ? 6 : 3.5 }))
        tell(line.level, g.name, `${kind}-text${rest}`)
      }
      if (line.lowestFailing != null) {
        svgs.push(svg('line', { class: g === chosen ? 'fail-line' : 'fail-line further', x1: left, x2: end, y1: y(line.lowestFailing), y2: y(line.lowestFailing) }))
        tell(line.lowestFailing, g.name, g === chosen ? 'fail-text' : 'fail-text further')
      }
    })
    const kinds: Record<string, (v: string) => string> = { 'load-text': (v) => `load line ${v}`, 'held-text': (v) => `${v} held, not confirmed`, 'fail-text': (v) => `fails ${v}` }
    const text = (t: (typeof texts)[number]) => kinds[t.cls.split(' ')[0]!]!(number(t.value)) + (goals.length > 1 ? ` (${t.names.length === goals.length ? 'all' : t.names.join(', ')})` : '')
    texts.sort((a, b) => a.at - b.at)
    if (narrow) {
      const own = texts.find((t) => !t.cls.startsWith('fail') && !t.cls.includes('further'))
      if (own) svgs.push(titled(text(own), right, 14, 'end', own.cls))
    } else {
      let last = top - 16
      for (const t of texts) {
        last = Math.max(t.at + 4, last + 15)
        svgs.push(titled(text(t), end + 13, last, 'start', t.cls))
      }
    }

    let path = ''
    steps.forEach((s, i) => (path += `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(s.levelReached).toFixed(1)}`))
    svgs.push(svg('path', { class: 'way', d: path }))
    const room = x(1) - x(0)
    steps.forEach((s, i) => {
      const at = y(s.levelReached)
      if (s.effectiveLevel != null && s.effectiveLevel < s.levelReached) {
        const low = y(s.effectiveLevel)
        svgs.push(svg('line', { class: 'short', x1: x(i), x2: x(i), y1: at, y2: low }), svg('line', { class: 'short cap', x1: x(i) - 6, x2: x(i) + 6, y1: low, y2: low }))
      }
      svgs.push(glyph(verdictOf(s), x(i), at, Math.min(18, Math.max(9, room - 2))))
      if (room >= widthOf(number(s.levelReached), 11)) svgs.push(titled(number(s.levelReached), x(i), at - 14, 'middle', 'value'))
      marks[0]!.push({
        x: x(i), y: at, title: `${nameOf(s, run.unit)}: ${said[verdictOf(s)] ?? verdictOf(s)}`,
        rows: [
          ['purpose', s.purpose + (s.fromEmpty ? ', from empty' : '')],
          ['ready', `${count(s.objects.ready)} of ${count(s.objects.intended)}`],
          ...(s.effectiveLevel != null && s.effectiveLevel < s.levelReached ? [['level of those', `${number(s.effectiveLevel)} ${run.unit}`] as [string, string]] : []),
          ...Object.entries(s.goals).filter(() => goals.length > 1).map(([name, v]): [string, string] => [`goal ${name}`, said[v] ?? v]),
          ...(s.achievedRate != null ? [['ready per second', number(Math.round(s.achievedRate * 10) / 10)] as [string, string]] : []),
          ...(s.arrivals ? [['arrivals', `${count(s.arrivals.judged)}, ${count(s.arrivals.late)} late, ${count(s.arrivals.dropped)} dropped`] as [string, string]] : []),
          ['why', s.verdictWhy],
        ],
      })
    })

    // Latency.
    const shown = steps.map((s) => s.latency[milestone])
    const known = shown.flatMap((l) => (l ? [l.p50, l.p99] : [])).filter((v): v is number => v != null && v > 0)
    const bounds = run.bounds.filter((b) => b.milestone === milestone)
    let most = Math.max(...known, 1e-6)
    const near = bounds.filter((b) => b.seconds <= most * 4)
    if (known.length === 0) most = Math.max(...bounds.map((b) => b.seconds), 1)
    const high = Math.max(most, ...near.map((b) => b.seconds)) * 1.08
    const least = Math.min(...known, high / 2)
    const never = shown.some((l) => l && l.n > 0 && l.p99 == null)
    const t = logarithmic
      ? scaleLog([10 ** Math.floor(Math.log10(least)), high], [bottom2, top2 + (never ? 22 : 0)])
      : scaleLinear([0, high], [bottom2, top2 + (never ? 22 : 0)])
    const ticks = logarithmic ? (t.ticks(6) as number[]).filter((v) => /^[125]/.test(v.toExponential())) : t.ticks(5)
    svgs.push(yAxis(ticks, t, left, end, tick))
    const title = `${milestone}: p50 to p99`
    svgs.push(titled(title, 0, bottom + 34))
    if (never) {
      svgs.push(svg('rect', { class: 'never', x: left, y: top2 - 6, width: end - left, height: 18, rx: 4 }))
      svgs.push(titled('never', left - 8, top2 + 7, 'end', 'tick'))
    }
    bounds.forEach((b) => {
      const inside = near.includes(b) || known.length === 0
      const at = inside ? t(b.seconds) : top2 - 12
      const text = `${goals.length > 1 ? `${b.goal}: ` : ''}${b.q < 1 ? `p${number(b.q * 100)}` : 'all'} ≤ ${tick(b.seconds)}`
      if (inside) svgs.push(svg('line', { class: 'goal-line', x1: left, x2: end, y1: at, y2: at }))
      const above = `goal ${text}, above this scale ↑`
      const room = end - widthOf(above, 12) > widthOf(title, 12) + 8 // beside the title, else below it
      if (!inside) svgs.push(titled(above, end, room ? at - 5 : at + 8, 'end', 'goal-text'))
      else if (narrow) svgs.push(titled(`goal ${text}`, end, at - 5, 'end', 'goal-text'))
      else svgs.push(titled(text, end + 13, at + 4, 'start', 'goal-text'))
    })
    steps.forEach((s, i) => {
      const l = shown[i]
      if (!l || l.n === 0) return
      const up = top2 + 3
      const [a, b] = [l.p50 == null ? up : t(Math.max(l.p50, least)), l.p99 == null ? up : t(Math.max(l.p99, least))]
      const half = Math.min(9, room / 3)
      const g = svg('g', { class: `range v-${verdictOf(s)}` }, svg('line', { x1: x(i), x2: x(i), y1: a, y2: b }))
      g.append(svg('line', { class: 'p99', x1: x(i) - half, x2: x(i) + half, y1: b, y2: b }), svg('circle', { cx: x(i), cy: a, r: Math.min(4.5, room / 3) }))
      svgs.push(g)
      marks[1]!.push({
        x: x(i), y: b, title: `${nameOf(s, run.unit)}: ${milestone}`,
        rows: [
          ['p50', quantile(l.p50)], ['p90', quantile(l.p90)], ['p99', quantile(l.p99)], ...interval(l), ['max', quantile(l.max)],
          ...ratio(l, shown[0]),
          [things(run), count(l.n)], ...(l.censored ? [['never', count(l.censored)] as [string, string]] : []),
        ],
      })
    })
    svgs.push(stepAxis(steps, x, bottom2 + 18), titled('step', left - 8, bottom2 + 18, 'end', 'tick'))
    return { svg: canvas(width, height, ...svgs), points: marks[0]!.length + marks[1]!.length, rows: marks, top, bottom: bottom2 }
  }
  const redraw = frame(host, 'Levels and latencies of the steps', render)
  if (goals.length > 1) controls.append(choose('Verdicts by goal', goals.map((g, i) => [String(i), g.name]), '0', (v) => ((goal = Number(v)), redraw())))
  if (milestones.length > 0) {
    const bound = new Set(run.bounds.map((b) => b.milestone))
    controls.append(
      choose('Latency to', milestones.map((m) => [m, bound.has(m) ? `${m} (has a goal)` : m]), milestone, (m) => ((milestone = m), redraw())),
      segments('Scale', 'ladder-scale', [['linear', 'linear'], ['log', 'logarithmic']], 'linear', (v) => ((logarithmic = v === 'log'), redraw())),
    )
  }
}
