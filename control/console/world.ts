// The outlines of the countries, projected when the console is built: the browser gets paths that it only has to draw.
// The outlines are those of Natural Earth, by the package `world-atlas`.

import { readFileSync } from 'node:fs'
import { geoCentroid, geoEqualEarth, geoPath, type ExtendedFeature, type GeoContext, type GeoPermissibleObjects } from 'd3-geo'
import { feature } from 'topojson-client'
import type { Plugin } from 'vite'

const MODULE = 'virtual:world'
/** The package whose data is in the bundle; `licences.txt` names it. */
export const SOURCE = 'world-atlas'
const WIDTH = 2000
/** A country with a smaller area, in square units of the map, is a dot: nobody could see or hit it. */
const SMALLEST = 60

type Topology = Parameters<typeof feature>[0]
type Country = ExtendedFeature & { id?: string | number }

function read (scale: string): Country[] {
  const folder = new URL(`./node_modules/${SOURCE}/`, import.meta.url)
  const topology = JSON.parse(readFileSync(new URL(`countries-${scale}.json`, folder), 'utf8')) as Topology
  const countries = topology.objects.countries
  if (!countries) throw new Error(`${SOURCE} has no countries`)
  return (feature(topology, countries) as unknown as { features: Country[] }).features
}

/** The code of two letters, by the number of ISO 3166: that is how Unicode writes a region. */
function codeOf (country: Country): string | undefined {
  // Kosovo has a user-assigned code (XK), and no ISO number.
  if (country.id === undefined) return country.properties?.name === 'Kosovo' ? 'XK' : undefined
  const region = new Intl.Locale(`und-${String(country.id).padStart(3, '0')}`).region
  return region?.length === 2 ? region : undefined
}

/** Writes a path in whole units and relative, which packs best. */
class Path implements GeoContext {
  text = ''
  #at: [number, number] = [0, 0]
  #start: [number, number] = [0, 0]

  beginPath (): void {}
  arc (): void {}
  closePath (): void {
    this.text += 'z'
    this.#at = this.#start
  }

  moveTo (x: number, y: number): void {
    this.#to(x, y, 'm')
    this.#start = this.#at
  }

  lineTo (x: number, y: number): void {
    if (Math.round(x) !== this.#at[0] || Math.round(y) !== this.#at[1]) this.#to(x, y, 'l')
  }

  #to (x: number, y: number, command: string): void {
    const [column, row] = [Math.round(x), Math.round(y)]
    const [dx, dy] = [column - this.#at[0], row - this.#at[1]]
    this.text += `${command}${dx}${dy < 0 ? '' : ' '}${dy}`
    this.#at = [column, row]
  }
}

function draw (): string {
  // Of Antarctica nobody scans, and it takes a quarter of the height.
  const lands = read('110m').filter((country) => country.properties?.name !== 'Antarctica')
  const all = { type: 'FeatureCollection', features: lands } as unknown as GeoPermissibleObjects
  // An area on the map is one on the earth: a large country does not look larger than it is.
  const projection = geoEqualEarth().fitWidth(WIDTH, all)
  const plane = geoPath(projection)
  const height = Math.ceil(plane.bounds(all)[1][1])
  const outline = (land: Country) => {
    const path = new Path()
    geoPath(projection, path)(land)
    return path.text
  }
  const shapes: [string, string][] = []
  const drawn = new Set<string>()
  let rest = ''
  for (const land of lands) {
    const code = codeOf(land)
    if (code !== undefined && plane.area(land) >= SMALLEST) {
      shapes.push([code, outline(land)])
      drawn.add(code)
    } else rest += outline(land).replace(/^m/, 'M')
  }
  const dots: [string, number, number][] = []
  for (const land of read('50m')) {
    const code = codeOf(land)
    if (code === undefined || drawn.has(code) || code === 'AQ') continue
    // On the globe: islands on both sides of the date line have their middle in the Pacific.
    const place = projection(geoCentroid(land))
    if (place) dots.push([code, Math.round(place[0]), Math.round(place[1])])
  }
  const value = { width: WIDTH, height, shapes, dots, rest }
  return `export default JSON.parse(${JSON.stringify(JSON.stringify(value))})`
}

/** The map as a module. */
export const world = (): Plugin => ({
  name: 'world',
  resolveId: (id) => id === MODULE ? `\0${MODULE}` : undefined,
  load: (id) => id === `\0${MODULE}` ? draw() : undefined
})
