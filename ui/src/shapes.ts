// The whole distributions of both arms, one over the other.

import { scaleLinear } from 'd3-scale'
import { pathOf, timeScale } from './cdf'
import { curveOfForm, heightAt, placeOf, type Comparison, type Curve, type LevelComparison, type SeriesComparison } from './data'
import { svg } from './dom'
import { count, number, percent, seconds, short, tick } from './format'
import { canvas, titled, xAxis, yAxis, type Drawing, type Mark } from './frame'

export function shapes(c: Comparison, l: LevelComparison, s: SeriesComparison, logarithmic: boolean, width: number): Drawing {
  const narrow = width < 620
  const [left, right, top] = [56, width - 18, 30]
  const bottom = narrow ? 300 : 380
  const sides = [{ name: c.baseline, cls: 'of-base', form: s.baseline, curve: curveOfForm(s.baseline) }, { name: l.arm, cls: 'of-arm', form: s.arm, curve: curveOfForm(s.arm) }]
  const far = Math.max(...sides.map((o) => o.curve.x.at(-1) ?? 0), 1e-5) * 1.04
  const { x: scale, low, ticks } = timeScale(sides.map((o) => o.curve), far, logarithmic, left, right, narrow ? 5 : 9)
  const x = (v: number) => scale(Math.max(v, low))
  const y = scaleLinear([0, 1], [bottom, top])
  const body: Node[] = [
    yAxis([0, 0.25, 0.5, 0.75, 1], y, left, right, (v) => `${100 * v}%`),
    xAxis(ticks, scale, top, bottom, tick, 44),
    titled('Share of the objects asked for', 0, 14),
    titled(`time to ${s.milestone}${s.component ? ` of ${short(s.component)}` : ''}`, right, bottom + 36, 'end', 'tick'),
  ]
  const paths = sides.map((o) => pathOf(o.curve, x, y, left, right))
  // What lies between the curves: by how much one arm is later.
  const back = sides[1]!.curve
  let d = `${paths[0]}V${y((back.y.at(-1) ?? 0) / back.n)}`
  for (let i = back.x.length - 1; i >= 0; i--) d += `L${x(back.x[i]!).toFixed(1)} ${y(back.y[i]! / back.n).toFixed(1)}`
  body.push(svg('path', { class: 'between', d: `${d}V${bottom}H${left}` }))

  const rows: Mark[][] = []
  const texts: Node[] = []
  const told: number[] = []
  const share = (curve: Curve, v: number) => heightAt(curve, v) / curve.n
  sides.forEach((o, k) => {
    body.push(svg('path', { class: `curve ${o.cls}`, d: paths[k]! }))
    const row: Mark[] = []
    for (const q of [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1]) {
      const at = placeOf(o.curve, Math.max(Math.ceil(q * o.curve.n - 1e-9), 1))
      if (at !== undefined) row.push({ x: x(at), y: y(q), title: o.name, rows: [[q === 1 ? 'all' : `p${number(100 * q)}`, seconds(at)], ['objects', count(o.form.n)]] })
    }
    const reached = (o.curve.y.at(-1) ?? 0) / o.curve.n
    if (o.form.censored > 0) {
      row.push({ x: right, y: y(reached), title: o.name, rows: [['never', `${count(o.form.censored)} of ${count(o.form.n)}`]] })
      let line = y(reached) + (reached > 0.9 ? 17 : -7)
      while (told.some((t) => Math.abs(t - line) < 15)) line += reached > 0.9 ? 15 : -15
      told.push(line)
      texts.push(titled(`${short(o.name)}: ${count(o.form.censored)} never`, right - 4, line, 'end', `of-text ${o.cls}`))
    }
    rows.push(row)
  })

  // The names stand outside of the two curves, at a height that both reach, or
  // else each at its own.
  const reaches = sides.map((o) => (o.curve.y.at(-1) ?? 0) / o.curve.n)
  const both = Math.min(...reaches) > 0.05
  const places = sides.map((o, k) => placeOf(o.curve, Math.max(0.6 * (both ? Math.min(...reaches) : reaches[k]!) * o.curve.n, 1)) ?? 0)
  sides.forEach((o, k) => {
    const text = short(o.name)
    if (reaches[k] === 0) {
      texts.push(titled(text, left + 6, bottom - 8, 'start', `of-text name ${o.cls}`))
      return
    }
    const height = y(0.6 * (both ? Math.min(...reaches) : reaches[k]!))
    const before = !both || (places[k]! < places[1 - k]! || (places[k] === places[1 - k] && k === 0))
    const at = x(places[k]!) + (before ? -10 : 10)
    if (before ? at - text.length * 8 > left : at + text.length * 8 < right) texts.push(titled(text, at, height + (before ? -4 : 16), before ? 'end' : 'start', `of-text name ${o.cls}`))
    else texts.push(titled(text, before ? left + 4 : right - 4, height + (before ? -4 : 24), before ? 'start' : 'end', `of-text name ${o.cls}`))
  })

  // Where the curves are farthest apart.
  const apart = farthest(sides[0]!.curve, sides[1]!.curve)
  if (s.distance != null && apart && s.distance > 0.02) {
    const [a, b] = [y(share(sides[0]!.curve, apart)), y(share(sides[1]!.curve, apart))]
    body.push(svg('path', { class: 'apart', d: `M${x(apart)} ${a}V${b}M${x(apart) - 5} ${a}h10M${x(apart) - 5} ${b}h10` }))
    const text = `${percent(s.distance)} apart`
    const beside = x(apart) + 10 + text.length * 7.5 < right
    // Below the later curve there is room, unless that is at the bottom.
    const low = Math.max(a, b) + 17
    texts.push(titled(text, x(apart) + (beside ? 7 : -7), low < bottom - 4 ? low : (a + b) / 2 + 4, beside ? 'start' : 'end', 'apart-text'))
    rows.push([{ x: x(apart), y: (a + b) / 2, title: 'Largest distance', rows: [['apart', percent(s.distance)], ['within', seconds(apart)], ...sides.map((o): [string, string] => [short(o.name), percent(share(o.curve, apart))])] }])
  }
  body.push(...texts)
  const at = (px: number): Mark | undefined => {
    if (px < left || px > right) return undefined
    const v = scale.invert(px)
    const heights = sides.map((o) => y(share(o.curve, v)))
    return { x: px, y: Math.min(...heights), title: `within ${seconds(v)}`, rows: sides.map((o) => [short(o.name), `${percent(share(o.curve, v))}, ${count(heightAt(o.curve, v))} of ${count(o.curve.n)}`]) }
  }
  return { svg: canvas(width, bottom + 46, ...body), points: sides.reduce((n, o) => n + Math.max(o.curve.x.length, 1), 0), rows, at, top, bottom }
}

// Where two distributions are farthest apart, as far as their lines tell.
function farthest(a: Curve, b: Curve): number | undefined {
  let best: number | undefined
  let most = 0
  for (const v of [...a.x, ...b.x]) {
    const d = Math.abs(heightAt(a, v) / a.n - heightAt(b, v) / b.n)
    if (d > most + 1e-9) [best, most] = [v, d]
  }
  return best
}
