//! Sets of characters, and the checks of what a value holds.

use shared::gtin;

use crate::{
    coupon,
    identifiers::{COUNTRIES, COUNTRY_LETTERS, CURRENCIES, Check, MEDIA, Set},
    value::Kinds,
};

/// Whether all bytes are of the set.
pub(crate) fn is_of(set: Set, part: &[u8]) -> bool {
    match set {
        Set::Digits => part.iter().all(u8::is_ascii_digit),
        Set::Cset82 => Kinds::of(part).are_cset82(),
        Set::Cset39 => {
            let one = |byte: &u8| {
                byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'#' | b'-' | b'/')
            };
            part.iter().all(one)
        }
        Set::Cset64 => {
            let padding = part.iter().rev().take_while(|byte| **byte == b'=').count();
            let (text, _) = part.split_at(part.len() - padding);
            // Three, as GS1's engine has it.
            let padded = padding == 0 || padding <= 2 && part.len().is_multiple_of(3);
            padded && text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        }
    }
}

/// Whether the content of a part is what a check asks for. The characters were checked before.
pub(crate) fn holds(check: Check, part: &[u8]) -> bool {
    match check {
        Check::Modulo10 => gtin::has_check_digit(part),
        Check::Modulo1021 => has_check_pair(part),
        Check::Country => number(part).is_some_and(|code| is_listed(COUNTRIES, code)),
        Check::CountryLetters => is_country(part),
        Check::CountryOr999 => part == b"999" || number(part).is_some_and(|code| is_listed(COUNTRIES, code)),
        Check::Coupon => coupon::is_coupon(part),
        Check::CouponOffer => coupon::is_offer(part),
        Check::Currency => number(part).is_some_and(|code| is_listed(CURRENCIES, code)),
        Check::Date => is_date(part, 1),
        Check::DateOrMonth => is_date(part, 0),
        Check::LongDate => is_long_date(part, 1),
        Check::Hour => number(part).is_some_and(|hour| hour < 24),
        Check::HourMinute => number(part).is_some_and(|time| time / 100 < 24 && time % 100 < 60),
        Check::Minute | Check::Second => number(part).is_some_and(|value| value < 60),
        Check::Hyphen => part.iter().all(|byte| *byte == b'-'),
        Check::Iban => is_iban(part),
        Check::Latitude => number(part).is_some_and(|value| value <= 1_800_000_000),
        Check::Longitude => number(part).is_some_and(|value| value <= 3_600_000_000),
        Check::Medium => number(part).is_some_and(|code| is_listed(MEDIA, code)),
        Check::NotZero => part.iter().any(|digit| *digit != b'0'),
        Check::PercentEncoded => is_percent_encoded(part),
        Check::PieceOfTotal => is_piece_of_total(part),
        Check::Position => is_position(part),
        Check::Prefix => coupon::is_prefix(part),
        Check::PrefixBehindFirst => part.split_first().is_some_and(|(_, rest)| coupon::is_prefix(rest)),
        Check::Sex => matches!(part, [b'0' | b'1' | b'2' | b'9']),
        Check::Winding => matches!(part, [b'0' | b'1' | b'9']),
        Check::YesNo => matches!(part, [b'0' | b'1']),
        Check::Zero => part.iter().all(|digit| *digit == b'0'),
    }
}

/// What a value must be, as the end of the sentence "(11) must be …".
pub(crate) const fn wanted(check: Check) -> &'static str {
    match check {
        Check::Modulo10 => "a number with its check digit",
        Check::Modulo1021 => "a text with its pair of check characters",
        Check::Country | Check::CountryOr999 => "a numeric country code of ISO 3166",
        Check::CountryLetters => "a country code of ISO 3166 with two letters",
        Check::Coupon => "a coupon code of North America",
        Check::CouponOffer => "a positive offer code of North America",
        Check::Currency => "a numeric currency code of ISO 4217, and an amount",
        Check::Date => "a date YYMMDD",
        Check::DateOrMonth => "a date YYMMDD, where the day may be 00",
        Check::LongDate => "a date YYYYMMDD",
        Check::Hour | Check::HourMinute | Check::Minute | Check::Second => "a date and a time",
        Check::Hyphen => "a temperature, with `-` behind it if it is negative",
        Check::Iban => "an IBAN",
        Check::Latitude | Check::Longitude => {
            "a latitude from 0 to 180 and a longitude from 0 to 360, times 10^7"
        }
        Check::Medium => "a medium of AIDC",
        Check::NotZero | Check::Winding => "width, length, diameter, winding direction and splices of a roll",
        Check::PercentEncoded => "a text in which each `%` begins two hexadecimal digits",
        Check::PieceOfTotal => "a number and the number of a piece of a total",
        Check::Position => "a position such as `1/2`",
        Check::Prefix | Check::PrefixBehindFirst => "a key that begins with a company prefix of digits",
        Check::Sex => "0, 1, 2 or 9",
        Check::YesNo => "0 or 1",
        Check::Zero => "a zero and a number of an asset",
    }
}

/// The number that digits write; `None` if there are others, none, or more than 18.
pub(crate) fn number(part: &[u8]) -> Option<u64> {
    if part.is_empty() || part.len() > 18 {
        return None;
    }
    part.iter()
        .try_fold(0_u64, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u64::from(*digit - b'0')))
}

/// Whether the bit of a number is set; that of number 0 is the highest of the first word.
fn is_listed(field: &[u64], code: u64) -> bool {
    let word = usize::try_from(code / 64).ok().and_then(|at| field.get(at));
    word.is_some_and(|word| (word >> (63 - code % 64)) & 1 == 1)
}

fn is_country(part: &[u8]) -> bool {
    match part {
        [first @ b'A'..=b'Z', second @ b'A'..=b'Z'] => {
            is_listed(COUNTRY_LETTERS, u64::from(*first - b'A') * 26 + u64::from(*second - b'A'))
        }
        _ => false,
    }
}

pub(crate) fn is_date(part: &[u8], least_day: u64) -> bool {
    // Leap years are the same in all centuries that two digits may mean here: 1972 to 2071.
    part.len() == 6 && number(part).is_some_and(|date| is_day(2000 + date / 10_000, date % 10_000, least_day))
}

fn is_long_date(part: &[u8], least_day: u64) -> bool {
    part.len() == 8 && number(part).is_some_and(|date| is_day(date / 10_000, date % 10_000, least_day))
}

fn is_day(year: u64, month_and_day: u64, least_day: u64) -> bool {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let last_day = match month_and_day / 100 {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (least_day..=last_day).contains(&(month_and_day % 100))
}

/// The check of ISO 13616: letters are numbers from 10, the first four characters go to the end, modulo 97 is 1.
fn is_iban(part: &[u8]) -> bool {
    let Some((head, rest)) = part.split_at_checked(4) else { return false };
    if !(11..=34).contains(&part.len()) || !head.get(..2).is_some_and(is_country) {
        return false;
    }
    let sum = rest.iter().chain(head).try_fold(0_u32, |sum, byte| match byte {
        b'0'..=b'9' => Some((sum * 10 + u32::from(*byte - b'0')) % 97),
        b'A'..=b'Z' => Some((sum * 100 + u32::from(*byte - b'A') + 10) % 97),
        _ => None,
    });
    sum == Some(1)
}

/// The pair of check characters of a Global Model Number: values times primes from the right, modulo 1021.
fn has_check_pair(part: &[u8]) -> bool {
    const PRIMES: [u32; 25] =
        [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97];
    const VALUES: &[u8; 82] =
        b"!\"%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    const PAIR: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
    let Some((text, [high, low])) = part.split_last_chunk::<2>() else { return false };
    if text.len() > PRIMES.len() {
        return false;
    }
    let sum = text.iter().rev().zip(PRIMES).try_fold(0_u32, |sum, (byte, prime)| {
        let value = VALUES.iter().position(|one| one == byte)?;
        Some(sum + u32::try_from(value).ok()? * prime)
    });
    let digit = |value: u32| usize::try_from(value).ok().and_then(|at| PAIR.get(at));
    sum.map(|sum| sum % 1021).is_some_and(|sum| digit(sum >> 5) == Some(high) && digit(sum & 31) == Some(low))
}

fn is_percent_encoded(part: &[u8]) -> bool {
    let mut rest = part;
    while let [byte, behind @ ..] = rest {
        rest = match (byte, behind) {
            (b'%', [high, low, behind @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => behind,
            (b'%', _) => return false,
            (_, behind) => behind,
        };
    }
    true
}

fn is_piece_of_total(part: &[u8]) -> bool {
    let (piece, total) = part.split_at(part.len() / 2);
    let same_length = piece.len() == total.len();
    match (number(piece), number(total)) {
        (Some(piece), Some(total)) => same_length && 0 < piece && piece <= total,
        _ => false,
    }
}

/// `1/2`: neither begins with a zero, and the first is at most the second.
fn is_position(part: &[u8]) -> bool {
    let mut halves = part.split(|byte| *byte == b'/');
    let (Some(position), Some(end), None) = (halves.next(), halves.next(), halves.next()) else {
        return false;
    };
    let counted = |half: &[u8]| number(half).filter(|_| half.first() != Some(&b'0'));
    match (counted(position), counted(end)) {
        (Some(position), Some(end)) => position <= end,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
