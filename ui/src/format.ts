// Figures as people read them, with their units; internal/report does the same
// in Go.

export function seconds(x: number): string {
  if (x === 0) return '0 s'
  const a = Math.abs(x)
  if (a < 0.0005) return `${(x * 1e6).toFixed(0)} µs`
  if (a < 0.01) return `${(x * 1e3).toFixed(2)} ms`
  if (a < 1) return `${(x * 1e3).toFixed(0)} ms`
  if (a < 10) return `${x.toFixed(2)} s`
  return `${x.toFixed(1)} s`
}

// A mark on an axis of time, without digits that say nothing.
export function tick(x: number): string {
  const plain = (v: number) => String(Number(v.toPrecision(6)))
  if (x === 0) return '0'
  if (x < 0.000_999_9) return `${plain(x * 1e6)} µs`
  if (x < 0.999_99) return `${plain(x * 1e3)} ms`
  return `${plain(x)} s`
}

export const quantile = (v: number | null | undefined) => (v == null ? 'never' : seconds(v))

export const number = (x: number) => String(Number(x.toPrecision(10)))

export const count = (x: number) => Math.round(x).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f')

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let unit = 0
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024
    unit++
  }
  return `${unit === 0 ? n : Number(n.toPrecision(3))} ${units[unit]}`
}

export function percent(x: number): string {
  const p = 100 * x
  return `${p > 99 || p < 1 ? Number(p.toFixed(2)) : p.toFixed(1)}%`
}

// A relative change in percent, with its sign.
export function change(x: number): string {
  const p = (100 * x).toFixed(x > 10 ? 0 : 1)
  return `${x >= 0 && !p.startsWith('-') ? '+' : ''}${p}%`
}

// A figure with its unit; what was never reached is never, what is not a
// latency and not there is unknown.
export function figure(x: number | null, unit: string, kind: string): string {
  if (x == null) return kind === 'latency' ? 'never' : '-'
  if (unit === 's') return seconds(x)
  if (unit === 'B') return bytes(x)
  return `${Number(x.toPrecision(4))} ${unit}`.trim()
}

// A name that has little room.
export const short = (name: string, most = 18) => (name.length > most ? `${name.slice(0, most - 1)}…` : name)

export const said: Record<string, string> = {
  pass: 'pass', fail: 'fail', inconclusive: 'inconclusive', invalid: 'invalid',
  better: 'better', equivalent: 'equivalent', notWorse: 'not worse', worse: 'worse',
}

// The verdict of a step that looks like that of a comparison.
export const tone = (verdict: string) => ({ better: 'pass', equivalent: 'pass', notWorse: 'pass', worse: 'fail' })[verdict] ?? verdict
