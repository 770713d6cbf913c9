//! From a payload to the codewords of its symbol: segment, padding, error correction, interleaving
//! (ISO/IEC 18004:2015, 7.4 to 7.6).

use super::{
    Ecl,
    capacity::{self, MAX_VERSION, Mode},
};

/// Blocks that the codewords of versions 1 to 40 are cut into at one level: ISO/IEC 18004:2015, table 9.
type Blocks = [u8; MAX_VERSION as usize];

const L: Blocks = [
    1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17,
    18, 19, 19, 20, 21, 22, 24, 25,
];
const M: Blocks = [
    1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16, 17, 17, 18, 20, 21, 23, 25, 26, 28, 29,
    31, 33, 35, 37, 38, 40, 43, 45, 47, 49,
];
const Q: Blocks = [
    1, 1, 2, 2, 4, 4, 6, 6, 8, 8, 8, 10, 12, 16, 12, 17, 16, 18, 21, 20, 23, 23, 25, 27, 29, 34, 34, 35, 38,
    40, 43, 45, 48, 51, 53, 56, 59, 62, 65, 68,
];
const H: Blocks = [
    1, 1, 2, 4, 4, 4, 5, 6, 8, 8, 11, 11, 16, 16, 18, 16, 19, 21, 25, 25, 25, 34, 30, 32, 35, 37, 40, 42, 45,
    48, 51, 54, 57, 60, 63, 66, 70, 74, 77, 81,
];

/// The letters of the alphanumeric mode, in the order of their values.
const ALPHANUMERIC: &[u8; 45] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";

/// The codewords of a payload in the order in which they are placed; `None` when they do not fit.
pub(super) fn codewords(payload: &str, ecl: Ecl, version: u8) -> Option<Vec<u8>> {
    let capacity = capacity::data_codewords(version, ecl)?;
    let data = data(payload, version, capacity)?;
    let table = match ecl {
        Ecl::L => &L,
        Ecl::M => &M,
        Ecl::Q => &Q,
        Ecl::H => &H,
    };
    let blocks = usize::from(*table.get(usize::from(version).checked_sub(1)?)?);
    let total = capacity::data_modules(version) / 8;
    // By table 9 all blocks have as many for correction; the data are one longer in the last blocks.
    let (correction, short, long) = ((total - capacity) / blocks, capacity / blocks, capacity % blocks);
    let generator = generator(correction);
    let cut = |block: usize| {
        let begin = block * short + block.saturating_sub(blocks - long);
        let end = begin + short + usize::from(block >= blocks - long);
        &data[begin..end]
    };
    let corrections: Vec<Vec<u8>> = (0..blocks).map(|block| remainder(cut(block), &generator)).collect();
    let mut out = Vec::with_capacity(total);
    for at in 0..=short {
        out.extend((0..blocks).filter_map(|block| cut(block).get(at)));
    }
    for at in 0..correction {
        out.extend(corrections.iter().map(|block| block[at]));
    }
    Some(out)
}

/// Bits one behind the other, the highest first.
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are taken; 8 when it is full.
    used: u32,
}

impl Bits {
    fn push(&mut self, value: usize, count: u32) {
        for at in (0..count).rev() {
            if self.used == 8 {
                self.bytes.push(0);
                self.used = 0;
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> at & 1) as u8) << (7 - self.used);
            }
            self.used += 1;
        }
    }
}

/// The segment of a payload, its end, and what fills the rest.
fn data(payload: &str, version: u8, capacity: usize) -> Option<Vec<u8>> {
    let (mode, text) = (Mode::of(payload), payload.as_bytes());
    let needed = mode.bits(text.len(), version);
    if needed > capacity * 8 {
        return None;
    }
    let mut bits = Bits { bytes: Vec::with_capacity(capacity), used: 8 };
    bits.push(mode.indicator(), 4);
    bits.push(text.len(), mode.count_bits(version));
    match mode {
        Mode::Numeric => {
            for group in text.chunks(3) {
                let value = group.iter().fold(0, |value, digit| value * 10 + usize::from(digit - b'0'));
                bits.push(value, [0, 4, 7, 10][group.len()]);
            }
        }
        Mode::Alphanumeric => {
            let value = |letter: &u8| ALPHANUMERIC.iter().position(|known| known == letter);
            for group in text.chunks(2) {
                let pair = group.iter().try_fold(0, |pair, letter| Some(pair * 45 + value(letter)?))?;
                bits.push(pair, [0, 6, 11][group.len()]);
            }
        }
        Mode::Byte => text.iter().for_each(|byte| bits.push(usize::from(*byte), 8)),
    }
    // The end is four light bits, or as many as there is room for; then light bits to the end of the byte.
    let end = (capacity * 8 - needed).min(4);
    bits.push(0, end as u32);
    let mut bytes = bits.bytes;
    let fill = [0xEC, 0x11].into_iter().cycle().take(capacity - bytes.len());
    bytes.extend(fill);
    Some(bytes)
}

/// Powers of 2 in GF(256) with the polynomial 0x11D, twice, so that sums of two exponents stay within.
const POWERS: [u8; 510] = {
    let (mut powers, mut value, mut at) = ([0; 510], 1_u16, 0);
    while at < 510 {
        powers[at] = value as u8;
        value <<= 1;
        if value > 0xFF {
            value ^= 0x11D;
        }
        at += 1;
    }
    powers
};

/// The exponent of each number but 0.
const EXPONENTS: [u8; 256] = {
    let (mut exponents, mut at) = ([0; 256], 0);
    while at < 255 {
        exponents[POWERS[at] as usize] = at as u8;
        at += 1;
    }
    exponents
};

/// Exponents of the coefficients of the generator of so many codewords, but for the leading one, which is 1.
fn generator(degree: usize) -> Vec<u8> {
    // (x - 2^0)(x - 2^1)…, from the highest power down.
    let mut product = vec![0_u8; degree];
    if let Some(last) = product.last_mut() {
        *last = 1;
    }
    for root in 0..degree {
        for at in 0..degree {
            let next = product.get(at + 1).copied().unwrap_or(0);
            product[at] = times(product[at], EXPONENTS[usize::from(POWERS[root])]) ^ next;
        }
    }
    // None of them is 0 for the degrees that codes have.
    product.into_iter().map(|coefficient| EXPONENTS[usize::from(coefficient)]).collect()
}

/// A number times 2 to the power of `exponent`.
fn times(number: u8, exponent: u8) -> u8 {
    if number == 0 {
        return 0;
    }
    POWERS[usize::from(EXPONENTS[usize::from(number)]) + usize::from(exponent)]
}

/// The codewords that correct a block.
fn remainder(block: &[u8], generator: &[u8]) -> Vec<u8> {
    let degree = generator.len();
    // Shifting is moving on: what stands before `at` is done with.
    let mut rest = vec![0; block.len() + degree];
    rest[..block.len()].copy_from_slice(block);
    for at in 0..block.len() {
        let factor = rest[at];
        if factor == 0 {
            continue;
        }
        let exponent = usize::from(EXPONENTS[usize::from(factor)]);
        for (rest, coefficient) in rest[at + 1..].iter_mut().zip(generator) {
            *rest ^= POWERS[exponent + usize::from(*coefficient)];
        }
    }
    rest.split_off(block.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_cut_evenly() {
        for version in 1..=MAX_VERSION {
            for (ecl, table) in Ecl::ALL.into_iter().zip([&L, &M, &Q, &H]) {
                let blocks = usize::from(table[usize::from(version) - 1]);
                let data = capacity::data_codewords(version, ecl).unwrap();
                let total = capacity::data_modules(version) / 8;
                assert_eq!((total - data) % blocks, 0, "version {version} at {ecl:?}");
                let found = codewords("1", ecl, version).unwrap();
                assert_eq!(found.len(), total, "version {version} at {ecl:?}");
            }
        }
    }

    #[test]
    fn a_generator_has_its_roots() {
        for degree in 7..=30 {
            let generator = generator(degree);
            for root in 0..degree {
                // Horner's rule over the coefficients, the leading one first.
                let value = generator.iter().fold(1, |value, coefficient| {
                    times(value, root as u8) ^ POWERS[usize::from(*coefficient)]
                });
                assert_eq!(value, 0, "degree {degree}, root {root}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_has_no_codewords() {
        assert!(codewords(&"a".repeat(20), Ecl::Q, 2).is_some());
        assert!(codewords(&"a".repeat(21), Ecl::Q, 2).is_none());
        assert!(codewords("1", Ecl::Q, 0).is_none() && codewords("1", Ecl::Q, 41).is_none());
    }
}
