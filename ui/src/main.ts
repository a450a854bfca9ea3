// The page that a run leaves. What is text stands in it already; this draws
// the charts and makes the controls work.

import { arms } from './arms'
import { byLabel } from './by'
import { cdf } from './cdf'
import { downloads } from './csv'
import { readRun } from './data'
import { byId, html } from './dom'
import { grid } from './grid'
import { ladder } from './ladder'
import { laws } from './laws'
import { progress } from './progress'
import { streams } from './streams'
import { trend } from './trend'
import { usage } from './usage'

function theme(): void {
  const set = (value: string) => {
    if (value) document.documentElement.dataset.theme = value
    else delete document.documentElement.dataset.theme
  }
  for (const input of document.querySelectorAll<HTMLInputElement>('#theme input')) input.addEventListener('change', () => set(input.value))
}

function copying(): void {
  const status = byId('said')
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-copy]')) {
    button.addEventListener('click', async () => {
      const from = byId(button.dataset.copy!)!
      let done = true
      try {
        await navigator.clipboard.writeText(from.textContent!.trim())
      } catch {
        // Without leave to write to the clipboard the text is marked.
        done = false
        const range = document.createRange()
        range.selectNodeContents(from)
        getSelection()?.removeAllRanges()
        getSelection()?.addRange(range)
        done = document.execCommand('copy')
      }
      const before = 'Copy'
      button.textContent = done ? 'Copied' : 'Marked'
      if (status) status.textContent = done ? 'Copied.' : 'Selected: copy it with the keyboard.'
      setTimeout(() => (button.textContent = before), 2000)
    })
  }
}

// Above a table that is wider than its place stands that it can be scrolled.
function scrolling(): void {
  for (const place of document.querySelectorAll<HTMLElement>('.scroll')) {
    const hint = html('p', { class: 'goes-on', hidden: '' }, 'More columns: scroll sideways \u2192')
    place.before(hint)
    new ResizeObserver(() => (hint.hidden = place.scrollWidth <= place.clientWidth + 1)).observe(place)
  }
}

// On paper everything is open.
function printing(): void {
  let opened: HTMLDetailsElement[] = []
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll<HTMLDetailsElement>('details:not([open])')]
    for (const d of opened) d.open = true
  })
  addEventListener('afterprint', () => {
    for (const d of opened) d.open = false
  })
}

const run = readRun()
document.documentElement.classList.add('scripted')
theme()
copying()
printing()
scrolling()
const part = <T extends HTMLElement>(id: string, then: (e: T) => void) => {
  const e = byId(id) as T | null
  if (e) then(e)
}
arms(run)
laws(run)
if (run.grid) grid(run, run.grid)
run.trends.forEach((t, i) => part(`trend-chart-${i}`, (e) => trend(run, t, e, byId(`trend-controls-${i}`)!)))
part('ladder-chart', (e) => ladder(run, e, byId('ladder-controls')!))
part('cdf-chart', (e) => cdf(run, e, byId('cdf-controls')!, byId('cdf-series') as HTMLFieldSetElement))
part('by-chart', (e) => byLabel(run, e, byId('by-controls')!))
part('streams-chart', (e) => streams(run, e, byId('streams-controls')!))
part('progress-chart', (e) => progress(run, e, byId('progress-controls')!))
part('lag-chart', (e) => usage(run, e, byId('waits-chart')!, byId('cpu-chart')!, byId('memory-chart')!))
part('downloads', (e) => downloads(run, e, byId('said')!))
document.documentElement.dataset.drawn = String(document.querySelectorAll('[data-drawn]').length)
