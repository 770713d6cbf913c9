//! Links of RFID and NFC tags: a path of one segment, `eh` or `ex` with the binary EPC of an item behind it.

use shared::gtin;

use crate::link::{DigitalLink, Qualifier};

/// Fewest characters of a segment; the shortest EPC of an item takes 18.
const MIN_LEN: usize = 17;
const SGTIN_96: u128 = 0x30;
const SGTIN_198: u128 = 0x36;
/// SGTIN+ and SGTIN++; behind the serial of the latter there is a host.
const SGTIN_PLUS: [u128; 2] = [0xf7, 0xfd];
/// The same with a date before the GTIN.
const DATED_SGTIN_PLUS: [u128; 2] = [0xfb, 0xfc];

/// Bits and digits of the company prefix, by the partition. The item reference has the rest of 44 bits and 13 digits.
const PARTITIONS: [(usize, usize); 7] = [(40, 12), (37, 11), (34, 10), (30, 9), (27, 8), (24, 7), (20, 6)];
const BASE_16: &[u8] = b"0123456789abcdef";
const BASE_64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The characters of URN Code 40; the first stands for none.
const CODE_40: &[u8] = b"\0ABCDEFGHIJKLMNOPQRSTUVWXYZ-.:0123456789";

impl DigitalLink<'static> {
    /// The link of the item whose binary EPC is this segment: `eh` with hexadecimal digits of lower case, or `ex` with base 64
    /// for URLs. `None` where it is anything else.
    ///
    /// The schemes SGTIN-96, SGTIN-198, SGTIN+, DSGTIN+, and their forms with a host. What they say beside GTIN and serial is
    /// passed over: filter, date, host and further data.
    #[must_use]
    pub fn from_epc(segment: &str) -> Option<Self> {
        let mut bits = Bits::of(segment)?;
        let (gtin, serial) = match bits.take(8)? {
            SGTIN_96 => {
                let of = (bits.gtin()?, bits.take(38)?.to_string());
                bits.are_over().then_some(of)?
            }
            SGTIN_198 => {
                let of = (bits.gtin()?, bits.padded_text()?);
                bits.are_over().then_some(of)?
            }
            scheme if SGTIN_PLUS.contains(&scheme) => {
                bits.take(4)?;
                (bits.digits(14, 10)?, bits.text()?)
            }
            scheme if DATED_SGTIN_PLUS.contains(&scheme) => {
                bits.take(24)?;
                (bits.digits(14, 10)?, bits.text()?)
            }
            _ => return None,
        };
        Self::new(gtin).ok()?.with(Qualifier::Serial, serial).ok()
    }
}

/// Bits that are read one after the other.
struct Bits {
    /// The bits of each character.
    groups: Vec<u8>,
    width: usize,
    at: usize,
}

impl Bits {
    fn of(segment: &str) -> Option<Self> {
        let (prefix, text) = segment.split_at_checked(2).filter(|_| segment.len() >= MIN_LEN)?;
        let (width, alphabet) = match prefix {
            "eh" => (4, BASE_16),
            "ex" => (6, BASE_64),
            _ => return None,
        };
        let value = |byte| {
            let place = alphabet.iter().position(|letter| *letter == byte)?;
            u8::try_from(place).ok()
        };
        let groups = text.bytes().map(value).collect::<Option<Vec<u8>>>()?;
        Some(Self { groups, width, at: 0 })
    }

    /// The next bits as a number, at most 128.
    fn take(&mut self, count: usize) -> Option<u128> {
        let mut number = 0;
        for _ in 0..count {
            let group = *self.groups.get(self.at / self.width)?;
            let bit = group >> (self.width - 1 - self.at % self.width) & 1;
            number = number << 1 | u128::from(bit);
            self.at += 1;
        }
        Some(number)
    }

    fn place(&mut self, count: usize) -> Option<usize> {
        usize::try_from(self.take(count)?).ok()
    }

    /// Whether nothing is left but zeros that fill the last characters up.
    fn are_over(&mut self) -> bool {
        let left = self.groups.len() * self.width - self.at;
        left < 8 && self.take(left) == Some(0)
    }

    /// Filter, partition, company prefix and item reference, as a GTIN.
    fn gtin(&mut self) -> Option<String> {
        self.take(3)?;
        let partition = self.place(3)?;
        let (bits, digits) = *PARTITIONS.get(partition)?;
        let (prefix, reference) = (self.decimal(bits, digits)?, self.decimal(44 - bits, 13 - digits)?);
        let (indicator, rest) = reference.split_at_checked(1)?;
        let with = |check: char| format!("{indicator}{prefix}{rest}{check}");
        ('0'..='9').map(with).find(|gtin| gtin::has_check_digit(gtin.as_bytes()))
    }

    /// A number of so many digits.
    fn decimal(&mut self, bits: usize, digits: usize) -> Option<String> {
        let text = format!("{:0>digits$}", self.take(bits)?);
        (text.len() == digits).then_some(text)
    }

    /// Digits of four bits each.
    fn digits(&mut self, count: usize, base: u32) -> Option<String> {
        let digit = |_| char::from_digit(u32::try_from(self.take(4)?).ok()?, base);
        (0..count).map(digit).collect()
    }

    /// Characters of seven bits, in the place of 20.
    fn padded_text(&mut self) -> Option<String> {
        let (mut text, mut is_over) = (String::new(), false);
        for _ in 0..20 {
            match u8::try_from(self.take(7)?).ok()? {
                0 => is_over = true,
                _ if is_over => return None,
                letter => text.push(char::from(letter)),
            }
        }
        Some(text)
    }

    /// A text behind its encoding and its length.
    fn text(&mut self) -> Option<String> {
        let (encoding, length) = (self.take(3)?, self.place(5)?);
        match encoding {
            0 => {
                let most = 10_u128.checked_pow(u32::try_from(length).ok()?)? - 1;
                self.decimal(most.checked_ilog2()? as usize + 1, length)
            }
            1 => self.digits(length, 16).map(|text| text.to_ascii_uppercase()),
            2 => self.digits(length, 16),
            3 => {
                let letter = |_| BASE_64.get(self.place(6)?).copied().map(char::from);
                (0..length).map(letter).collect()
            }
            4 => (0..length).map(|_| Some(char::from(u8::try_from(self.take(7)?).ok()?))).collect(),
            5 => self.code_40(length),
            _ => None,
        }
    }

    /// Three characters in 16 bits each.
    fn code_40(&mut self, length: usize) -> Option<String> {
        let mut text = String::new();
        for _ in 0..length.div_ceil(3) {
            let number = self.place(16)?.checked_sub(1)?;
            for place in [number / 1_600, number / 40 % 40, number % 40] {
                let letter = char::from(*CODE_40.get(place)?);
                if letter != '\0' {
                    text.push(letter);
                }
            }
        }
        (text.len() == length).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(segment: &str) -> Option<String> {
        DigitalLink::from_epc(segment).map(|link| link.path())
    }

    #[test]
    fn items_are_read_from_their_epc() {
        let item = |serial: &str| Some(format!("/01/09528765123457/21/{serial}"));
        for (segment, expected, why) in [
            ("eh30164596f40c0e5cbe991a83", item("123456789123"), "SGTIN-96, the example of GS1"),
            ("exMBZFlvQMDly-mRqD", item("123456789123"), "the same in base 64"),
            ("eh36164596f40c0e60afc4b58800000000000000000000000000", item("A%2Fb-1"), "SGTIN-198"),
            ("exNhZFlvQMDmCvxLWIAAAAAAAAAAAAAAAAA", item("A%2Fb-1"), "the same in base 64"),
            ("ehf70095287651234570400bc", item("0047"), "SGTIN+ with a number"),
            ("ehf700952876512345723abc", item("ABC"), "with digits of base 16"),
            ("ehf700952876512345743abc", item("abc"), "the same of lower case"),
            ("ehf700952876512345763699fc", item("aZ_"), "with base 64"),
            ("ehf7009528765123457838 2bd88", None, "a space"),
            ("ehf70095287651234578382bd88", item("A%2F1"), "with seven bits"),
            ("ehf7009528765123457a406ace741", item("AB-7"), "with URN Code 40"),
            ("ehfb04359f0952876512345782a6c4", item("S1"), "DSGTIN+"),
            ("eh30164596F40C0E5CBE991A83", None, "upper case"),
            ("eh30164596f40c0e5cbe991a8300", None, "a byte too much"),
            ("eh30164596f40c0e5cbe991a", None, "too few bits"),
            ("eh301e4596f40c0e5cbe991a83", None, "partition 7"),
            ("eh31164596f40c0e5cbe991a83", None, "another scheme"),
            ("ehf700952876512345823abc", None, "a wrong check digit"),
            ("ehf700952876512345700", None, "no serial"),
            ("ez30164596f40c0e5cbe991a83", None, "another prefix"),
            ("eh3016", None, "short"),
            ("é3016xxxxxxxxxxxxxxxx", None, "no ASCII"),
        ] {
            assert_eq!(path(segment), expected, "{segment}: {why}");
        }
    }

    proptest! {
        #[test]
        fn no_segment_panics(segment in "(eh(30|36|f7|fb|fc|fd)?[0-9a-f]{0,60}|ex[A-Za-z0-9_-]{0,40}|\\PC{0,20})") {
            if let Some(link) = DigitalLink::from_epc(&segment) {
                let path = link.path();
                prop_assert!(DigitalLink::parse(&path, None).is_ok(), "{path}");
            }
        }
    }
}
