// Two load lines with their brackets, goal by goal: what held, and what is
// open up to what failed.

import { scaleLinear } from 'd3-scale'
import { isConfirmed, type Bracket, type Run } from './data'
import { svg } from './dom'
import { change, number, said, short } from './format'
import { canvas, frame, glyph, titled, xAxis, type Drawing, type Mark } from './frame'

export function lines(run: Run, host: HTMLElement): void {
  const c = run.result.comparison!
  const arm = [...new Set([...c.levels.map((l) => l.arm), ...Object.keys(c.arms ?? {})])].filter((name) => name !== c.baseline).join(', ')
  frame(host, 'Load lines and their brackets', (width): Drawing => {
    const narrow = width < 620
    const [left, right] = narrow ? [10, width - 16] : [170, width - 150]
    const tall = narrow ? 52 : 34
    const head = 40
    const top = 6
    const bottom = top + c.lines.length * (head + 2 * tall) + 4
    const most = Math.max(...c.lines.flatMap((l) => [l.baseline, l.arm]).flatMap((b) => [b.level ?? 0, b.lowestFailing ?? 0]), 1e-9)
    const x = scaleLinear([0, most * 1.06], [left, right])
    const body: Node[] = [xAxis(x.ticks(narrow ? 4 : 8), x, top + head - 8, bottom, number, 30)]
    const rows: Mark[][] = []
    c.lines.forEach((line, i) => {
      const start = top + i * (head + 2 * tall)
      body.push(glyph(c.refused ? 'invalid' : line.verdict, 10, start + 16, 17), titled(`${short(line.goal, 24)}: ${c.refused ? 'no verdict' : (said[line.verdict] ?? line.verdict)}`, 26, start + 20))
      const sides: [string, Bracket, string][] = [[c.baseline, line.baseline, 'of-base'], [arm, line.arm, 'of-arm']]
      sides.forEach(([name, b, cls], k) => {
        const y = start + head + k * tall + (narrow ? 22 : 2)
        const h = 20
        const text = narrow ? y - 6 : y + 14
        body.push(titled(short(name, narrow ? 22 : 20), narrow ? left : 8, text, 'start', 'row-name'))
        const level = b.level ?? 0
        const unsure = b.level != null && !isConfirmed(b)
        if (b.level != null) body.push(svg('rect', { class: `${unsure ? 'open' : 'held'} ${cls}`, x: left, y, width: Math.max(x(level) - left, 1), height: h, rx: 3 }))
        if (b.lowestFailing != null) {
          body.push(svg('rect', { class: `open ${cls}`, x: x(level), y: y + 0.75, width: Math.max(x(b.lowestFailing) - x(level), 0), height: h - 1.5 }))
          body.push(svg('line', { class: 'fail-cap', x1: x(b.lowestFailing), x2: x(b.lowestFailing), y1: y - 4, y2: y + h + 4 }))
        } else if (b.level != null) body.push(svg('path', { class: `more ${cls}`, d: `M${x(level) + 3} ${y + 2}l9 ${h / 2 - 2}l-9 ${h / 2 - 2}` }))
        const says = (b.level == null ? (b.lowestFailing == null ? 'unknown' : `below ${number(b.lowestFailing)}`) : b.lowestFailing == null ? `at least ${number(b.level)}` : `${number(b.level)}, fails at ${number(b.lowestFailing)}`) + (unsure ? ', not confirmed' : '')
        body.push(titled(says, width - 4, text, 'end', 'row-value'))
        rows.push([{
          x: x(b.level ?? b.lowestFailing ?? 0), y: y + h / 2, title: `${name}, goal ${line.goal}`,
          rows: [
            ['held', b.level == null ? '-' : `${number(b.level)} ${line.unit}`],
            ['failed', b.lowestFailing == null ? 'none' : `${number(b.lowestFailing)} ${line.unit}`],
            ...(b.confirmations ? [['confirmed', b.confirmations] as [string, string]] : []),
            ...(b.binding ? [['bound by', b.binding] as [string, string]] : []),
            ...(line.change != null ? [['change', change(line.change)] as [string, string]] : []),
          ],
        }])
      })
    })
    body.push(titled([...new Set(c.lines.map((l) => l.unit))].join(', '), right, bottom + 34, 'end', 'tick'))
    return { svg: canvas(width, bottom + 40, ...body), points: rows.length, rows, top, bottom }
  })
}
