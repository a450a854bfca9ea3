// Elements without ceremony. Texts become text nodes, never markup.

type Child = Node | string | undefined | false

export function html<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, String(value))
  e.append(...children.filter((c): c is Node | string => Boolean(c)))
  return e
}

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, typeof value === 'number' ? String(Math.round(value * 100) / 100) : value)
  e.append(...children.filter((c): c is Node | string => Boolean(c)))
  return e
}

export const byId = (id: string) => document.getElementById(id)

// One of several choices, as radio buttons that look like one control.
export function segments(legend: string, name: string, choices: [value: string, text: string][], value: string, changed: (value: string) => void): HTMLFieldSetElement {
  const set = html('fieldset', { class: 'segments' }, html('legend', {}, legend))
  for (const [v, text] of choices) {
    const input = html('input', { type: 'radio', name, value: v })
    input.checked = v === value
    input.addEventListener('change', () => changed(v))
    set.append(html('label', {}, input, html('span', {}, text)))
  }
  return set
}

// One of many choices, as a list that opens.
export function choose(label: string, choices: [value: string, text: string][], value: string, changed: (value: string) => void): HTMLLabelElement {
  const select = html('select', {}, ...choices.map(([v, text]) => html('option', { value: v }, text)))
  select.value = value
  select.addEventListener('change', () => changed(select.value))
  return html('label', { class: 'choose' }, html('span', {}, label), select)
}

// How wide a text will be, near enough to decide whether it fits.
export const widthOf = (text: string, size = 12) => text.length * size * 0.58
