// CSV as spreadsheets write it: any of three separators, quotes, UTF-8 or UTF-16.

import Papa from 'papaparse'

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

/** The separator that the first line has most of, outside of quotes. The library's guess takes empty lines for records. */
function separatorOf (text: string): string {
  const end = text.search(/[\r\n]/)
  const line = (end < 0 ? text : text.slice(0, end)).replace(/"[^"]*"/g, '')
  const counts = [',', ';', '\t'].map((sign) => ({ sign, count: line.split(sign).length }))
  return counts.reduce((best, one) => one.count > best.count ? one : best).sign
}

/** Reads all records. Lines that are empty are left out; quoted cells may hold separators and line breaks. */
export function parse (text: string): Table {
  const records: string[][] = []
  const lines: number[] = []
  let line = 1
  let from = 0
  Papa.parse<string[]>(text, {
    delimiter: separatorOf(text),
    step: ({ data, meta }) => {
      if (data.length > 1 || data[0]?.trim()) {
        records.push(data)
        lines.push(line)
      }
      line += text.slice(from, meta.cursor).split(/\r\n|\r|\n/).length - 1
      from = meta.cursor
    }
  })
  const [header = [], ...rows] = records
  return { header: header.map((name) => name.trim()), rows, lines: lines.slice(1) }
}

/** Records as CSV (RFC 4180). Where others have written the cells, no spreadsheet may take one for a formula. */
export const toCsv = (records: (string | number | null | undefined)[][], isOfOthers = false): string =>
  Papa.unparse(records, { escapeFormulae: isOfOthers }) + '\r\n'
