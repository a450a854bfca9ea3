// The comparison of arms: which level, arm, milestone and component is shown,
// and the charts of it.

import { blocks } from './blocks'
import { called, type Run, type SeriesComparison } from './data'
import { byId, choose, segments } from './dom'
import { forest, nameOfLevel } from './forest'
import { count } from './format'
import { frame, type Drawing } from './frame'
import { lines } from './lines'
import { shapes } from './shapes'
import { shift } from './shift'

// Series that are the same, since objects reached several milestones at the
// same moments, are one; internal/report puts the same ones together.
interface Shown {
  name: string
  first: SeriesComparison
}

function together(all: SeriesComparison[]): Shown[] {
  const list = new Map<string, Shown>()
  for (const s of all) {
    const key = JSON.stringify([s.component, s.baseline.n, s.baseline.censored, s.baseline.curve, s.arm.n, s.arm.censored, s.arm.curve])
    const known = list.get(key)
    if (known) known.name += `, ${s.milestone}`
    else list.set(key, { name: s.milestone, first: s })
  }
  return [...list.values()]
}

export function arms(run: Run): void {
  const c = run.result.comparison
  if (!c) return
  const part = (id: string, then: (host: HTMLElement) => void) => {
    const host = byId(id)
    if (host) then(host)
  }
  part('forest-chart', (host) => forest(run, host))
  part('lines-chart', (host) => lines(run, host))
  if (c.levels.length === 0) return

  const [deciding = ''] = c.metric.split(' ')
  let level = Math.max(c.levels.findIndex((l) => l.verdict === run.result.verdict), 0)
  let milestone = deciding
  let component = ''
  let logarithmic = false
  const redraws: (() => void)[] = []
  const known = new Map<number, Shown[]>()
  const series = () => {
    if (!known.has(level)) known.set(level, together(c.levels[level]!.series))
    return known.get(level)!
  }
  const shown = (): Shown | undefined => {
    const of = series().filter((s) => s.first.component === component)
    return of.find((s) => s.name.split(', ').includes(milestone)) ?? of[0] ?? series()[0]
  }

  // The chosen level is chosen in every part of the page.
  const selects: HTMLSelectElement[] = []
  const pick = (v: string) => {
    level = Number(v)
    for (const s of selects) s.value = v
    repick()
    for (const redraw of redraws) redraw()
    hide()
  }
  const picked = byId('shapes-picked')
  const repick = () => {
    const list = series()
    const components = [...new Set(list.map((s) => s.first.component))]
    if (!components.includes(component)) component = components[0] ?? ''
    const now = shown()
    const milestones = list.filter((s) => s.first.component === component)
    picked?.replaceChildren(
      ...(milestones.length > 1 ? [choose('Milestone', milestones.map((s) => [s.name, s.name]), now?.name ?? '', (v) => ((milestone = v.split(', ')[0]!), update()))] : []),
      ...(components.length > 1 ? [choose('Component', components.map((v) => [v, v || 'all of them']), component, (v) => ((component = v), repick(), update()))] : []),
    )
  }
  const update = () => {
    for (const redraw of redraws) redraw()
    hide()
  }
  // The tables of levels that are not chosen are on paper only.
  const hide = () => {
    for (const e of document.querySelectorAll<HTMLElement>('[data-level]')) e.hidden = e.dataset.level !== String(level)
    const now = shown()
    for (const e of document.querySelectorAll<HTMLElement>('[data-series]')) e.hidden = !now || !e.dataset.series!.split(', ').includes(now.first.milestone) || e.dataset.component !== now.first.component
    const said = byId('shapes-said')
    if (!said || !now) return
    const l = c.levels[level]!
    const list: string[] = []
    const never = ([[c.baseline, now.first.baseline], [l.arm, now.first.arm]] as const).filter(([, f]) => f.censored > 0).map(([name, f]) => `${count(f.censored)} of ${count(f.n)} objects of ${name}`)
    if (never.length) list.push(`${never.join(' and ')} were never ready.`)
    const forms = ([[c.baseline, now.first.baseline], [l.arm, now.first.arm]] as const).filter(([, f]) => f.forms > 1).map(([name]) => name)
    if (forms.length) list.push(`The objects of ${forms.join(' and ')} have more than one peak: one percentile does not describe them.`)
    said.textContent = list.join(' ')
    said.hidden = list.length === 0
  }
  for (const host of document.querySelectorAll<HTMLElement>('[data-pick]')) {
    if (c.levels.length < 2) continue
    const label = choose('Arm and level', c.levels.map((l, i) => [String(i), nameOfLevel(l, run.unit)]), String(level), pick)
    selects.push(label.querySelector('select')!)
    host.prepend(label)
  }
  const chart = (id: string, label: string, render: (width: number) => Drawing) => part(id, (host) => redraws.push(frame(host, label, render)))
  const now = () => c.levels[level]!
  chart('blocks-chart', `${called(now().primary)} run by run`, (width) => blocks(c, now(), width))
  chart('shapes-chart', 'Whole distributions of both arms', (width) => shapes(c, now(), shown()!.first, logarithmic, width))
  chart('shift-chart', 'Shift of each quantile', (width) => shift(c, now(), shown()!.first, width))
  byId('shapes-controls')?.append(segments('Scale', 'shapes-scale', [['linear', 'linear'], ['log', 'logarithmic']], 'linear', (v) => ((logarithmic = v === 'log'), update())))
  repick()
  hide()
}
