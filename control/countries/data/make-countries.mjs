// Packs the countries of Natural Earth (1:50m) for `countries.rs`.
//
//   npm pack world-atlas@2.0.2 i18n-iso-countries@7.14.0, unpack them into ./wa and ./iso, then
//   node make.mjs wa/countries-50m.json iso/codes.json countries.bin
//
// The form, numbers as LEB128, signed ones zigzag: scale and translate (4 doubles, little endian); arcs: count, each
// with its points as differences; countries: count, each two letters, its rings: count, each its arcs: count, numbers
// (the one's complement runs an arc backwards).

import { readFileSync, writeFileSync } from 'node:fs'

const [, , atlas, codes, out] = process.argv
const topology = JSON.parse(readFileSync(atlas, 'utf8'))
const letters = new Map(JSON.parse(readFileSync(codes, 'utf8')).map(([two, , number]) => [number, two]))
// Natural Earth has no ISO number for these.
const NAMED = { Kosovo: 'XK', 'N. Cyprus': 'CY', Somaliland: 'SO', 'Indian Ocean Ter.': 'AU', 'Ashmore and Cartier Is.': 'AU', 'Siachen Glacier': '' }
const bytes = []
const unsigned = (n) => { do { bytes.push((n % 128) + (n >= 128 ? 128 : 0)); n = Math.floor(n / 128) } while (n > 0) }
const signed = (n) => unsigned(n < 0 ? -2 * n - 1 : 2 * n)
const numbers = Buffer.alloc(32)
const { scale, translate } = topology.transform
;[...scale, ...translate].forEach((n, at) => numbers.writeDoubleLE(n, at * 8))
bytes.push(...numbers)
unsigned(topology.arcs.length)
for (const arc of topology.arcs) {
  unsigned(arc.length)
  for (const [x, y] of arc) { signed(x); signed(y) }
}
// Overseas departments of France, which have codes of their own: south, north, west, east.
const DEPARTMENTS = [
  ['GF', 2, 6, -55, -51], ['GP', 15.8, 16.6, -62, -61], ['MQ', 14.3, 15, -61.3, -60.7], ['RE', -21.5, -20.8, 55, 56],
  ['YT', -13.1, -12.5, 44.9, 45.4]
]
function department (polygon) {
  const arc = polygon[0][0]
  const [x, y] = topology.arcs[arc < 0 ? ~arc : arc][0]
  const [longitude, latitude] = [x * scale[0] + translate[0], y * scale[1] + translate[1]]
  const found = DEPARTMENTS.find(([, south, north, west, east]) =>
    latitude > south && latitude < north && longitude > west && longitude < east)
  return found ? found[0] : 'FR'
}
const countries = new Map()
const add = (two, rings) => countries.set(two, [...(countries.get(two) ?? []), ...rings])
for (const one of topology.objects.countries.geometries) {
  const two = letters.get(one.id) ?? NAMED[one.properties.name]
  if (two === undefined) throw new Error(`${one.id} ${one.properties.name} has no letters`)
  if (two === '') continue
  const polygons = one.type === 'Polygon' ? [one.arcs] : one.arcs
  for (const polygon of polygons) add(two === 'FR' ? department(polygon) : two, polygon)
}
unsigned(countries.size)
for (const [two, rings] of [...countries].sort()) {
  bytes.push(...Buffer.from(two))
  unsigned(rings.length)
  for (const ring of rings) { unsigned(ring.length); ring.forEach(signed) }
}
writeFileSync(out, Buffer.from(bytes))
console.log(`${countries.size} countries, ${topology.arcs.length} arcs, ${bytes.length} bytes`)
