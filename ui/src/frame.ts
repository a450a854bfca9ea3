// The frame of a chart: it draws it anew when its width changes, shows what is
// under the pointer, and lets the keyboard go from point to point.

import { html, svg } from './dom'
import { tone } from './format'

// Mark is one thing that can be asked for its values.
export interface Mark {
  x: number
  y: number
  title: string
  rows: [name: string, value: string][]
}

export interface Drawing {
  svg: SVGSVGElement
  points: number
  // Left and right go along a row, up and down from row to row.
  rows: Mark[][]
  // What is nearest to the pointer; without it, the nearest mark.
  at?: (x: number, y: number) => Mark | undefined
  // The part of the chart that a cursor's line crosses.
  top: number
  bottom: number
}

export function canvas(width: number, height: number, ...children: Node[]): SVGSVGElement {
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true', focusable: 'false' }, ...children)
}

const saying = (m: Mark) => `${m.title}: ${m.rows.map(([name, value]) => `${name} ${value}`).join(', ')}`

export function frame(host: HTMLElement, label: string, render: (width: number) => Drawing): () => void {
  const stage = html('div', { class: 'stage', tabindex: 0, role: 'slider', 'aria-label': `${label}. Arrow keys go from point to point`, 'aria-valuemin': 0 })
  const tip = html('div', { class: 'tip', 'aria-hidden': 'true', hidden: '' })
  host.replaceChildren(html('figcaption', {}, label), stage)
  let drawing: Drawing
  let width = 0
  let row = 0
  let column = 0
  const cursor = svg('g', { class: 'cursor' })

  const hide = () => {
    tip.hidden = true
    cursor.replaceChildren()
  }
  const show = (m: Mark) => {
    cursor.replaceChildren(svg('line', { x1: m.x, x2: m.x, y1: drawing.top, y2: drawing.bottom }), svg('circle', { cx: m.x, cy: m.y, r: 7 }))
    tip.replaceChildren(html('strong', {}, m.title), html('dl', {}, ...m.rows.map(([name, value]) => html('div', {}, html('dt', {}, name), html('dd', {}, value)))))
    tip.hidden = false
    const scale = stage.clientWidth / width
    const w = tip.offsetWidth
    const h = tip.offsetHeight
    let left = m.x * scale + 14
    if (left + w > stage.clientWidth) left = m.x * scale - w - 14
    let top = m.y * scale - h - 12
    if (left < 0) left = Math.max(0, Math.min(stage.clientWidth - w, m.x * scale - w / 2))
    else if (top < 0) top = m.y * scale + 12
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`
  }
  const current = () => drawing.rows[row]?.[column]
  const tell = () => {
    const all = drawing.rows.flat()
    const m = current()
    stage.setAttribute('aria-valuemax', String(Math.max(all.length - 1, 0)))
    stage.setAttribute('aria-valuenow', String(m ? all.indexOf(m) : 0))
    stage.setAttribute('aria-valuetext', m ? saying(m) : 'no points')
  }
  const redraw = () => {
    const fit = stage.clientWidth
    if (fit < 50) return // not laid out
    width = fit
    drawing = render(width)
    drawing.rows = drawing.rows.filter((r) => r.length > 0)
    drawing.svg.append(cursor)
    stage.replaceChildren(drawing.svg, tip)
    host.dataset.drawn = String(drawing.points)
    row = Math.min(row, Math.max(drawing.rows.length - 1, 0))
    column = Math.min(column, Math.max((drawing.rows[row]?.length ?? 0) - 1, 0))
    hide()
    tell()
  }
  const nearest = (x: number, y: number) => {
    let best: Mark | undefined
    let least = Infinity
    for (const m of drawing.rows.flat()) {
      const d = (m.x - x) ** 2 + ((m.y - y) / 3) ** 2
      if (d < least) [best, least] = [m, d]
    }
    return best
  }
  const pointed = (e: PointerEvent) => {
    const box = drawing.svg.getBoundingClientRect()
    const scale = width / box.width
    const [x, y] = [(e.clientX - box.left) * scale, (e.clientY - box.top) * scale]
    const m = (drawing.at ?? nearest)(x, y)
    if (m) show(m)
    else hide()
  }
  stage.addEventListener('pointermove', pointed)
  stage.addEventListener('pointerdown', pointed)
  stage.addEventListener('pointerleave', () => hide())
  stage.addEventListener('focus', () => {
    const m = current()
    if (m && stage.matches(':focus-visible')) show(m)
  })
  stage.addEventListener('blur', hide)
  stage.addEventListener('keydown', (e) => {
    const rows = drawing.rows
    const here = current()
    if (!here) return
    const along = (to: number) => (column = Math.max(0, Math.min(rows[row]!.length - 1, to)))
    const across = (to: number) => {
      row = Math.max(0, Math.min(rows.length - 1, to))
      const list = rows[row]!
      column = list.reduce((best, m, i) => (Math.abs(m.x - here.x) < Math.abs(list[best]!.x - here.x) ? i : best), 0)
    }
    switch (e.key) {
      case 'ArrowRight':
        along(column + 1)
        break
      case 'ArrowLeft':
        along(column - 1)
        break
      case 'ArrowDown':
        across(row + 1)
        break
      case 'ArrowUp':
        across(row - 1)
        break
      case 'Home':
        along(0)
        break
      case 'End':
        along(Infinity)
        break
      case 'Escape':
        hide()
        return
      default:
        return
    }
    e.preventDefault()
    tell()
    show(current()!)
  })
  new ResizeObserver(() => {
    if (Math.abs(stage.clientWidth - width) >= 1) redraw()
  }).observe(stage)
  redraw()
  return redraw
}

// Axes. Lines behind the data, texts beside it.

export function yAxis(ticks: number[], y: (v: number) => number, left: number, right: number, text: (v: number) => string): SVGGElement {
  return svg('g', { class: 'axis' }, ...ticks.flatMap((t) => [
    svg('line', { class: 'grid', x1: left, x2: right, y1: y(t), y2: y(t) }),
    svg('text', { x: left - 8, y: y(t) + 4, 'text-anchor': 'end' }, text(t)),
  ]))
}

export function xAxis(ticks: number[], x: (v: number) => number, top: number, bottom: number, text: (v: number) => string, room = 34): SVGGElement {
  const g = svg('g', { class: 'axis' })
  let last = -Infinity
  for (const t of ticks) {
    const at = x(t)
    g.append(svg('line', { class: 'grid', x1: at, x2: at, y1: top, y2: bottom }))
    const label = text(t)
    if (label === '' || at - last < Math.max(room, label.length * 7 + 8)) continue
    last = at
    g.append(svg('text', { x: at, y: bottom + 18, 'text-anchor': 'middle' }, label))
  }
  return g
}

export const titled = (text: string, x: number, y: number, anchor = 'start', cls = 'title') => svg('text', { class: cls, x, y, 'text-anchor': anchor }, text)

export function glyph(verdict: string, x: number, y: number, size = 18): SVGGElement {
  return svg('g', { class: `v-${tone(verdict)}`, transform: `translate(${x - size / 2} ${y - size / 2})` }, svg('use', { href: `#v-${verdict}`, width: size, height: size }))
}
