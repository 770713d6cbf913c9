//! Reads what people and timers need of a certificate (X.509, RFC 5280 section 4.1): its validity and who issued it.

/// DER tags on the path to the validity and within names.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const VERSION: u8 = 0xA0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Names of an issuer, in the order of preference: organization, common name.
const NAMES: [[u8; 3]; 2] = [[0x55, 0x04, 0x0A], [0x55, 0x04, 0x03]];

/// The expiry date of a certificate in DER, in seconds since 1970; `None` if the bytes are not one.
#[must_use]
pub fn not_after(der: &[u8]) -> Option<i64> {
    validity(der).map(|(_, end)| end)
}

/// From when until when a certificate in DER is valid, in seconds since 1970; `None` if the bytes are not one.
#[must_use]
pub fn validity(der: &[u8]) -> Option<(i64, i64)> {
    let (_, rest) = element(issuer_on(der)?, None)?;
    let (validity, _) = element(rest, Some(SEQUENCE))?;
    let (begin, rest) = time(validity)?;
    Some((begin, time(rest)?.0))
}

/// Who issued a certificate in DER: the organization, else the common name; `None` if it names neither.
#[must_use]
pub fn issuer(der: &[u8]) -> Option<String> {
    let (mut names, _) = element(issuer_on(der)?, Some(SEQUENCE))?;
    let mut found = [None, None];
    while !names.is_empty() {
        let (set, rest) = element(names, Some(SET))?;
        let (name, _) = element(set, Some(SEQUENCE))?;
        let (kind, value) = element(name, Some(OBJECT_ID))?;
        let (text, _) = element(value, None)?;
        for (known, slot) in NAMES.iter().zip(&mut found) {
            if kind == known {
                *slot = Some(String::from_utf8_lossy(text).into_owned());
            }
        }
        names = rest;
    }
    found.into_iter().flatten().next()
}

/// The bytes of a certificate from its issuer on.
fn issuer_on(der: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = element(der, Some(SEQUENCE))?;
    let (mut rest, _) = element(certificate, Some(SEQUENCE))?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest, None)?.1;
    }
    // Serial number, algorithm of the signature.
    for _ in 0..2 {
        rest = element(rest, None)?.1;
    }
    Some(rest)
}

/// The time in the first element, and what follows it.
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    let tag = *der.first()?;
    let (text, rest) = element(der, Some(tag))?;
    Some((seconds(tag, std::str::from_utf8(text).ok()?)?, rest))
}

/// The content of the first element, and what follows it.
fn element(der: &[u8], tag: Option<u8>) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    if tag.is_some_and(|tag| tag != *found) {
        return None;
    }
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7F => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            (bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(len)
}

/// `YYMMDDHHMMSSZ` with years from 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
fn seconds(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (if year < 50 { 2_000 + year } else { 1_900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    Some(days(year, month, day)? * 86_400 + part(4)? * 3_600 + part(6)? * 60 + part(8)?)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, from 0000 on.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March: a leap day is the last day of its year. 400 years have 146,097 days.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "260101000000Z", Some(1_767_225_600)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (GENERALIZED_TIME, "20240229120000Z", Some(1_709_208_000)),
            (GENERALIZED_TIME, "40960101000000Z", Some(67_090_118_400)),
            (GENERALIZED_TIME, "20241301000000Z", None),
            (UTC_TIME, "2601010000Z", None),
            (UTC_TIME, "260101000000+0000", None),
        ] {
            assert_eq!(seconds(tag, text), expected, "{text}");
        }
    }

    #[test]
    fn other_bytes_have_no_expiry_date() {
        // Version, serial, algorithm, issuer, validity; lengths are cut one by one.
        let validity =
            [&[SEQUENCE, 30, UTC_TIME, 13][..], b"250101000000Z", &[UTC_TIME, 13], b"260101000000Z"];
        let body =
            [&[VERSION, 3, 2, 1, 2, 2, 1, 7, SEQUENCE, 0, SEQUENCE, 0][..], &validity.concat()].concat();
        let tbs = [&[SEQUENCE, u8::try_from(body.len()).unwrap()][..], &body].concat();
        let whole = [&[SEQUENCE, 0x81, u8::try_from(tbs.len()).unwrap()][..], &tbs].concat();
        assert_eq!(not_after(&whole), Some(1_767_225_600));
        assert_eq!(super::validity(&whole), Some((1_735_689_600, 1_767_225_600)));
        assert_eq!(issuer(&whole), None, "it names nobody");
        for end in 0..whole.len() {
            assert_eq!(not_after(&whole[..end]), None, "{end} bytes");
        }
    }
}
