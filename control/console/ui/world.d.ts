// The map that `world.ts` makes when the console is built.

declare module 'virtual:world' {
  const world: {
    width: number
    height: number
    /** Countries by their codes, and their outlines as paths. */
    shapes: [string, string][]
    /** Countries that are too small for an outline, and where they lie. */
    dots: [string, number, number][]
    /** All other land, as one path. */
    rest: string
  }
  export default world
}
