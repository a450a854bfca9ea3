// Builds internal/report/page/assets from src, the same bytes from the same
// sources. With --check it only says whether what is there is what would be
// built.
import { build } from 'esbuild'
import { createHash } from 'node:crypto'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const assets = join(here, '../internal/report/page/assets')

// The hash that ties the bundle to its sources. A test in Go computes it too:
// of each file, in order of their names, the name, the size and the content.
async function hashOfSources() {
  const sources = (await readdir(join(here, 'src'))).map((name) => 'src/' + name)
  const hash = createHash('sha256')
  for (const name of [...sources, 'build.mjs', 'package-lock.json', 'package.json', 'tsconfig.json'].sort()) {
    const content = await readFile(join(here, name))
    hash.update(`${name} ${content.length}\n`).update(content)
  }
  return hash.digest('hex')
}

// The licences of what is bundled, as each of them asks.
async function licences(metafile) {
  const packages = new Set()
  for (const input of Object.keys(metafile.inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)
    if (found) packages.add(found[1])
  }
  let text = ''
  for (const name of [...packages].sort()) {
    const folder = join(here, 'node_modules', name)
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const file = (await readdir(folder)).find((f) => /^licen[cs]e/i.test(f))
    text += `\n${name} ${version} (${license})\n\n${(await readFile(join(folder, file), 'utf8')).trim()}\n`
  }
  return text
}

const common = { bundle: true, minify: true, charset: 'utf8', write: false, metafile: true, absWorkingDir: here, legalComments: 'none', logLevel: 'warning' }
const sources = await hashOfSources()
const built = await build({ ...common, entryPoints: ['src/main.ts'], format: 'iife', target: 'es2022' })
const style = await build({ ...common, entryPoints: ['src/style.css'], target: ['chrome123', 'firefox120', 'safari17.5'] })
const head = `Built from ui/ by \`make ui\`: do not edit.\nsources sha256 ${sources}\n`
const files = {
  'report.js': `/*!\n${head}\nThis bundle contains:\n${await licences(built.metafile)}*/\n${built.outputFiles[0].text}`,
  'report.css': `/*!\n${head}*/\n${style.outputFiles[0].text}`,
}
for (const [name, text] of Object.entries(files)) {
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} would end the element that it stands in`)
  const path = join(assets, name)
  if (!process.argv.includes('--check')) {
    await writeFile(path, text)
  } else if ((await readFile(path, 'utf8')) !== text) {
    console.error(`${name} is not what its sources build: run make ui`)
    process.exitCode = 1
  }
}
