// The words that `pageTexts.ts` reads when the console is built.

declare module 'virtual:page-texts' {
  /** By language tag and kind: heading and text; as `offer` the button that leads to the form of a report. */
  const texts: Record<string, Record<string, [string, string]>>
  export default texts
}
