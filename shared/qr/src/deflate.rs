//! A zlib stream of repeated rows: one dynamic block, back references to the byte or row before.
//!
//! A QR image is a few dozen distinct rows, each repeated. Knowing that, no match finder is
//! needed: this is faster and smaller than a general compressor, and its bytes never change with
//! one. Formats: RFC 1950 and RFC 1951.

/// Symbols of literals and lengths, of distances, and of code lengths.
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const CODE_LENGTHS: usize = 19;
const END: usize = 256;
const LONGEST: usize = 258;
/// A run of one byte shorter than this is cheaper as literals: frequent ones cost 1 to 3 bits.
const SHORTEST_RUN: usize = 6;
const ADLER: u64 = 65_521;

/// A compressor of rows of one length.
pub(super) struct Zlib {
    /// Bytes of a row, at most the 32,768 that a reference reaches back.
    row: usize,
    tokens: Vec<Token>,
    adler: (u64, u64),
}

#[derive(Clone, Copy)]
enum Token {
    Literal(u8),
    /// Repeats the last byte.
    Run(u16),
    /// Repeats what stands one row above.
    Above(u16),
}

impl Zlib {
    /// A stream of rows of `row` bytes.
    pub(super) fn new(row: usize) -> Self {
        debug_assert!((4..=32_768).contains(&row));
        Self { row, tokens: Vec::with_capacity(2048), adler: (1, 0) }
    }

    /// Appends `bytes`, one row, `times` times.
    pub(super) fn rows(&mut self, bytes: &[u8], times: u32) {
        if times == 0 {
            return;
        }
        self.checksum(bytes, times);
        for run in bytes.chunk_by(|a, b| a == b) {
            let Some(&byte) = run.first() else { continue };
            if run.len() > SHORTEST_RUN {
                self.tokens.push(Token::Literal(byte));
                self.repeat(run.len() - 1, Token::Run);
            } else {
                self.tokens.extend(run.iter().map(|_| Token::Literal(byte)));
            }
        }
        self.repeat(self.row * (times as usize - 1), Token::Above);
    }

    /// The whole stream.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut literals = [0_u32; LITERALS];
        let mut distances = [0_u32; DISTANCES];
        let (above, above_bits, above_extra) = distance_code(self.row);
        literals[END] = 1;
        for token in &self.tokens {
            match *token {
                Token::Literal(byte) => literals[usize::from(byte)] += 1,
                Token::Run(length) => {
                    literals[length_code(length).0] += 1;
                    distances[0] += 1;
                }
                Token::Above(length) => {
                    literals[length_code(length).0] += 1;
                    distances[above] += 1;
                }
            }
        }
        let literals = Code::new(&literals, 15);
        let distances = Code::new(&distances, 15);

        let mut out = Bits { bytes: Vec::with_capacity(1024), buffer: 0, count: 0 };
        // Deflate with a 32 kB window, fastest level.
        out.bytes.extend_from_slice(&[0x78, 0x01]);
        // The last block, with its own codes.
        out.put(0b101, 3);
        header(&mut out, &literals, &distances);
        for token in &self.tokens {
            let (length, above_row) = match *token {
                Token::Literal(byte) => {
                    literals.put(&mut out, usize::from(byte));
                    continue;
                }
                Token::Run(length) => (length, false),
                Token::Above(length) => (length, true),
            };
            let (symbol, bits, extra) = length_code(length);
            literals.put(&mut out, symbol);
            out.put(extra, bits);
            if above_row {
                distances.put(&mut out, above);
                out.put(above_extra, above_bits);
            } else {
                distances.put(&mut out, 0);
            }
        }
        literals.put(&mut out, END);
        let (a, b) = self.adler;
        let mut bytes = out.finish();
        bytes.extend_from_slice(&((b << 16 | a) as u32).to_be_bytes());
        bytes
    }

    /// Splits a repetition into references of 3 to 258 bytes.
    fn repeat(&mut self, mut length: usize, token: impl Fn(u16) -> Token) {
        while length > 0 {
            // The remainder must not be 1 or 2 bytes.
            let step =
                if length > LONGEST && length < LONGEST + 3 { LONGEST - 3 } else { length.min(LONGEST) };
            self.tokens.push(token(step as u16));
            length -= step;
        }
    }

    /// Adler-32 of one row, applied as often as the row is repeated.
    fn checksum(&mut self, bytes: &[u8], times: u32) {
        let length = bytes.len() as u64;
        let (mut sum, mut weighted) = (0_u64, 0_u64);
        for (weight, &byte) in (1..=length).rev().zip(bytes) {
            sum += u64::from(byte);
            weighted += weight * u64::from(byte);
        }
        let (mut a, mut b) = self.adler;
        for _ in 0..times {
            b = (b + length * a + weighted) % ADLER;
            a = (a + sum) % ADLER;
        }
        self.adler = (a, b);
    }
}

/// The two codes, themselves run-length coded (RFC 1951, 3.2.7).
fn header(out: &mut Bits, literals: &Code, distances: &Code) {
    const ORDER: [usize; CODE_LENGTHS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let used = |code: &Code, least: usize| {
        code.lengths.iter().rposition(|&length| length > 0).map_or(least, |last| least.max(last + 1))
    };
    let (literal_count, distance_count) = (used(literals, 257), used(distances, 1));
    let lengths: Vec<u8> = literals.lengths[..literal_count]
        .iter()
        .chain(&distances.lengths[..distance_count])
        .copied()
        .collect();

    // (symbol, extra bits, their value)
    let mut symbols: Vec<(usize, u32, u32)> = Vec::with_capacity(64);
    for run in lengths.chunk_by(|a, b| a == b) {
        let Some(&length) = run.first() else { continue };
        let mut left = run.len() as u32;
        if length > 0 {
            symbols.push((usize::from(length), 0, 0));
            left -= 1;
        }
        while left > 0 {
            let (symbol, bits, least, most) = match (length, left) {
                (_, ..3) => (usize::from(length), 0, 1, 1),
                (0, 3..11) => (17, 3, 3, 10),
                (0, _) => (18, 7, 11, 138),
                (_, _) => (16, 2, 3, 6),
            };
            let step = left.min(most);
            symbols.push((symbol, bits, step - least));
            left -= step;
        }
    }
    let mut frequencies = [0_u32; CODE_LENGTHS];
    for &(symbol, _, _) in &symbols {
        frequencies[symbol] += 1;
    }
    let code = Code::new(&frequencies, 7);
    let sent = ORDER.iter().rposition(|&symbol| code.lengths[symbol] > 0).map_or(4, |last| 4.max(last + 1));
    out.put(literal_count as u32 - 257, 5);
    out.put(distance_count as u32 - 1, 5);
    out.put(sent as u32 - 4, 4);
    for &symbol in &ORDER[..sent] {
        out.put(u32::from(code.lengths[symbol]), 3);
    }
    for (symbol, bits, extra) in symbols {
        code.put(out, symbol);
        out.put(extra, bits);
    }
}

/// A canonical Huffman code.
struct Code {
    lengths: Vec<u8>,
    /// Bits in the order they are sent.
    codes: Vec<u16>,
}

impl Code {
    fn new(frequencies: &[u32], longest: u8) -> Self {
        let lengths = code_lengths(frequencies, longest);
        let mut next = [0_u16; 17];
        for length in 1..=15 {
            let shorter = lengths.iter().filter(|&&other| usize::from(other) == length).count() as u16;
            next[length + 1] = (next[length] + shorter) << 1;
        }
        let assign = |&length: &u8| {
            let code = next[usize::from(length)];
            next[usize::from(length)] += 1;
            if length == 0 { 0 } else { code.reverse_bits() >> (16 - length) }
        };
        let codes = lengths.iter().map(assign).collect();
        Self { lengths, codes }
    }

    fn put(&self, out: &mut Bits, symbol: usize) {
        out.put(u32::from(self.codes[symbol]), u32::from(self.lengths[symbol]));
    }
}

/// Huffman code lengths of at most `longest` bits; 0 for what does not occur.
fn code_lengths(frequencies: &[u32], longest: u8) -> Vec<u8> {
    let mut weights: Vec<(u32, usize)> = frequencies
        .iter()
        .enumerate()
        .filter(|&(_, &count)| count > 0)
        .map(|(at, &count)| (count, at))
        .collect();
    let mut lengths = vec![0; frequencies.len()];
    if let [(_, only)] = weights[..] {
        lengths[only] = 1;
        return lengths;
    }
    loop {
        weights.sort_unstable();
        let depths = depths(&weights);
        if depths.iter().all(|&depth| depth <= longest) {
            for (&(_, symbol), depth) in weights.iter().zip(depths) {
                lengths[symbol] = depth;
            }
            return lengths;
        }
        // Too deep: flatten the weights. All ones give a depth of 9 for 286 symbols, 5 for 19.
        for (weight, _) in &mut weights {
            *weight = weight.div_ceil(2);
        }
    }
}

/// Depths of the Huffman tree over ascending weights, by the two-queue method.
fn depths(weights: &[(u32, usize)]) -> Vec<u8> {
    let leaves = weights.len();
    let mut totals: Vec<u32> = weights.iter().map(|&(weight, _)| weight).collect();
    let mut parents = vec![0; leaves];
    let (mut leaf, mut node) = (0, leaves);
    while totals.len() + 1 < 2 * leaves {
        let parent = totals.len();
        let mut total = 0;
        for _ in 0..2 {
            let take_leaf = leaf < leaves && (node >= parent || totals[leaf] <= totals[node]);
            let taken = if take_leaf { &mut leaf } else { &mut node };
            total += totals[*taken];
            parents[*taken] = parent;
            *taken += 1;
        }
        totals.push(total);
        parents.push(0);
    }
    let mut depths = vec![0_u8; totals.len()];
    for at in (0..totals.len().saturating_sub(1)).rev() {
        depths[at] = depths[parents[at]].saturating_add(1);
    }
    depths.truncate(leaves);
    depths
}

/// Symbol, number of extra bits and their value of a length of 3 to 258.
fn length_code(length: u16) -> (usize, u32, u32) {
    let offset = u32::from(length) - 3;
    match offset {
        0..8 => (257 + offset as usize, 0, 0),
        255 => (285, 0, 0),
        _ => {
            let bits = offset.ilog2() - 2;
            let symbol = 257 + 4 * (bits + 1) + (offset >> bits & 3);
            (symbol as usize, bits, offset & ((1 << bits) - 1))
        }
    }
}

/// The same of a distance of 1 to 32,768.
fn distance_code(distance: usize) -> (usize, u32, u32) {
    let offset = distance as u32 - 1;
    match offset {
        0..4 => (offset as usize, 0, 0),
        _ => {
            let bits = offset.ilog2() - 1;
            let symbol = 2 * (bits + 1) + (offset >> bits & 1);
            (symbol as usize, bits, offset & ((1 << bits) - 1))
        }
    }
}

/// A writer of bits, the lowest first.
struct Bits {
    bytes: Vec<u8>,
    buffer: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        self.buffer |= u64::from(value) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.buffer as u8);
            self.buffer >>= 8;
            self.count -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.buffer as u8);
        }
        self.bytes
    }
}

#[cfg(test)]
#[path = "deflate_tests.rs"]
mod tests;
