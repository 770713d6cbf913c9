//! GTINs: the value of the identifier `gs1:01`, with its check digit.

/// Digits of a normalised GTIN: shorter ones are padded with zeros.
const LENGTH: usize = 14;

/// Whether a text is a GTIN of 8, 12, 13 or 14 digits that ends with its check digit.
#[must_use]
pub fn is_valid(gtin: &str) -> bool {
    matches!(gtin.len(), 8 | 12 | 13 | 14) && has_check_digit(gtin.as_bytes())
}

/// Whether digits end with their check digit: weights 1, 3, 1 and so on from the right, a sum that 10 divides.
///
/// This is the rule of all keys of GS1 that are digits only. Other bytes than digits, and none, have no check digit.
#[must_use]
pub fn has_check_digit(digits: &[u8]) -> bool {
    let (mut sum, mut weight) = (0_u64, 1);
    for byte in digits.iter().rev() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return false;
        }
        sum += u64::from(digit) * weight;
        weight = 4 - weight;
    }
    !digits.is_empty() && sum.is_multiple_of(10)
}

/// A GTIN as it is stored, with 14 digits; other texts are unchanged.
#[must_use]
pub fn canonical(gtin: &str) -> String {
    if is_valid(gtin) { format!("{gtin:0>LENGTH$}") } else { gtin.to_owned() }
}

/// The texts under which a GTIN may be stored: normalised, and as given, which older releases stored.
#[must_use]
pub fn spellings(gtin: &str) -> Vec<String> {
    let kept = canonical(gtin);
    let mut all = vec![kept.clone()];
    if is_valid(gtin) {
        let shorter = [13, 12, 8].into_iter().filter_map(|length| {
            let (zeros, rest) = kept.split_at_checked(LENGTH - length)?;
            zeros.bytes().all(|digit| digit == b'0').then(|| rest.to_owned())
        });
        all.extend(shorter);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_of_gtins() {
        for (gtin, expected) in [
            ("09521234543213", true),
            ("9521234543213", true),
            ("09521234543214", false),
            ("96385074", true),
            ("036000291452", true),
            ("", false),
            ("1", false),
            ("0952123454321X", false),
        ] {
            assert_eq!(is_valid(gtin), expected, "{gtin}");
        }
    }

    #[test]
    fn check_digits_of_other_keys() {
        for (digits, expected) in [
            ("106141412345678908", true),
            ("106141412345678909", false),
            ("9521321000018", true),
            ("0", true),
            ("", false),
            ("952132100001X", false),
            ("९521321000010", false),
        ] {
            assert_eq!(has_check_digit(digits.as_bytes()), expected, "{digits}");
        }
    }

    #[test]
    fn a_gtin_is_kept_with_14_digits() {
        for (gtin, kept, spellings_) in [
            ("9521234543213", "09521234543213", vec!["09521234543213", "9521234543213"]),
            ("09521234543213", "09521234543213", vec!["09521234543213", "9521234543213"]),
            (
                "96385074",
                "00000096385074",
                vec!["00000096385074", "0000096385074", "000096385074", "96385074"],
            ),
            ("036000291452", "00036000291452", vec!["00036000291452", "0036000291452", "036000291452"]),
            ("sku-1", "sku-1", vec!["sku-1"]),
        ] {
            assert_eq!(canonical(gtin), kept);
            assert_eq!(spellings(gtin), spellings_, "{gtin}");
        }
    }
}
