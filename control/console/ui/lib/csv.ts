// CSV as spreadsheets write it: any of three separators, quotes, UTF-8 or UTF-16.

export interface Table {
  header: string[]
  rows: string[][]
  /** The line of the file that each row begins in, from 1. */
  lines: number[]
}

/** The text of a file; `undefined` where it is none. */
export function decode (bytes: ArrayBuffer): string | undefined {
  const [first, second] = new Uint8Array(bytes)
  const encoding = first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
  const text = new TextDecoder(encoding).decode(bytes)
  return text.includes('\0') ? undefined : text
}

/** The separator that the first line has most of, outside of quotes. */
function separatorOf (text: string): string {
  const end = text.search(/[\r\n]/)
  const line = (end < 0 ? text : text.slice(0, end)).replace(/"[^"]*"/g, '')
  const counts = [',', ';', '\t'].map((sign) => ({ sign, count: line.split(sign).length }))
  return counts.reduce((best, one) => one.count > best.count ? one : best).sign
}

/** Reads all records. Lines that are empty are left out; quoted cells may hold separators and line breaks. */
export function parse (text: string): Table {
  const separator = separatorOf(text)
  const records: string[][] = []
  const lines: number[] = []
  let line = 1
  let at = 0
  while (at < text.length) {
    const begun = line
    const record: string[] = []
    for (;;) {
      let cell = ''
      if (text[at] === '"') {
        // Until a quote that no other follows.
        for (at += 1; ;) {
          const end = text.indexOf('"', at)
          cell += text.slice(at, end < 0 ? text.length : end)
          at = end < 0 ? text.length : end + 1
          if (text[at] !== '"') break
          cell += '"'
          at += 1
        }
        for (const sign of cell) if (sign === '\n') line += 1
      }
      const from = at
      while (at < text.length && text[at] !== separator && text[at] !== '\n' && text[at] !== '\r') at += 1
      record.push(cell + text.slice(from, at))
      if (text[at] !== separator) break
      at += 1
    }
    if (text[at] === '\r') at += 1
    if (text[at] === '\n') at += 1
    line += 1
    if (record.length === 1 && record[0]?.trim() === '') continue
    records.push(record)
    lines.push(begun)
  }
  const [header = [], ...rows] = records
  return { header: header.map((name) => name.trim()), rows, lines: lines.slice(1) }
}

/** Records as CSV (RFC 4180). */
export const toCsv = (records: (string | number | null | undefined)[][]): string =>
  records.map((record) => record.map((cell) => {
    const text = String(cell ?? '')
    return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }).join(',') + '\r\n').join('')
