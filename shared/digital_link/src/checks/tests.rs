use super::*;

#[test]
fn contents_are_checked() {
    for (check, part, expected) in [
        (Check::Iban, "DE89370400440532013000", true),
        (Check::Iban, "GB82WEST12345698765432", true),
        (Check::Iban, "DE88370400440532013000", false),
        (Check::Iban, "XX89370400440532013000", false),
        (Check::Iban, "de89370400440532013000", false),
        (Check::Iban, "DE89", false),
        (Check::Iban, "", false),
        (Check::PieceOfTotal, "0102", true),
        (Check::PieceOfTotal, "0202", true),
        (Check::PieceOfTotal, "0302", false),
        (Check::PieceOfTotal, "0002", false),
        (Check::PieceOfTotal, "0000", false),
        (Check::PieceOfTotal, "012", false),
        (Check::PieceOfTotal, "", false),
        (Check::Modulo1021, "22", true),
        (Check::Modulo1021, "23", false),
        (Check::Modulo1021, "2", false),
        (Check::Modulo1021, "1987654Ad4X4bL5ttr2310c2K", true),
        (Check::Modulo1021, "1987654Ad4X4bL5ttr2310cK2", false),
        (Check::Date, "240229", true),
        (Check::Date, "230229", false),
        (Check::Date, "000229", true),
        (Check::Date, "240200", false),
        (Check::Date, "240431", false),
        (Check::Date, "241301", false),
        (Check::Date, "240001", false),
        (Check::Date, "24010", false),
        (Check::DateOrMonth, "240200", true),
        (Check::LongDate, "20000229", true),
        (Check::LongDate, "19000229", false),
        (Check::LongDate, "20240100", false),
        (Check::Hour, "23", true),
        (Check::Hour, "24", false),
        (Check::HourMinute, "2359", true),
        (Check::HourMinute, "2360", false),
        (Check::HourMinute, "2400", false),
        (Check::Minute, "59", true),
        (Check::Second, "60", false),
        (Check::Country, "276", true),
        (Check::Country, "000", false),
        (Check::Country, "999", false),
        (Check::CountryOr999, "999", true),
        (Check::CountryOr999, "998", false),
        (Check::CountryLetters, "DE", true),
        (Check::CountryLetters, "ZZ", false),
        (Check::CountryLetters, "AA", false),
        (Check::CountryLetters, "de", false),
        (Check::Currency, "978", true),
        (Check::Currency, "999", true),
        (Check::Currency, "001", false),
        (Check::Medium, "10", true),
        (Check::Medium, "11", false),
        (Check::Latitude, "1800000000", true),
        (Check::Latitude, "1800000001", false),
        (Check::Longitude, "3600000000", true),
        (Check::Longitude, "3600000001", false),
        (Check::PercentEncoded, "a%2Fb%20", true),
        (Check::PercentEncoded, "a%2", false),
        (Check::PercentEncoded, "%%2F", false),
        (Check::Position, "1/2", true),
        (Check::Position, "2/1", false),
        (Check::Position, "0/1", false),
        (Check::Position, "1/0", false),
        (Check::Position, "/12", false),
        (Check::Position, "12/", false),
        (Check::Position, "1//", false),
        (Check::Prefix, "9521", true),
        (Check::Prefix, "952", false),
        (Check::Prefix, "952A", false),
        (Check::PrefixBehindFirst, "x9521", true),
        (Check::PrefixBehindFirst, "9521", false),
        (Check::Winding, "9", true),
        (Check::Winding, "2", false),
        (Check::Sex, "9", true),
        (Check::Sex, "3", false),
        (Check::YesNo, "1", true),
        (Check::YesNo, "2", false),
        (Check::Zero, "0", true),
        (Check::Zero, "1", false),
        (Check::NotZero, "0001", true),
        (Check::NotZero, "0000", false),
        (Check::Hyphen, "-", true),
        (Check::Hyphen, "x", false),
    ] {
        assert_eq!(holds(check, part.as_bytes()), expected, "{check:?} {part}");
    }
}

#[test]
fn coupons_are_digits_with_their_lengths() {
    // The company, the offer, the value, and what must be bought.
    const BASE: &str = "106141416543213150110120";
    for (behind, expected) in [
        ("", true),
        ("0", false),
        ("x", false),
        // A second purchase, of the same company and of another.
        ("1", false),
        ("1115030", false),
        ("111503009", true),
        ("111503000123456", true),
        ("111503006123456789012", true),
        ("111503007", false),
        ("14150300", false),
        ("11150500", false),
        // A third one.
        ("21503009", true),
        ("2150300", false),
        // Dates of the end and of the begin.
        ("3251231", true),
        ("3251301", false),
        ("325123142512310", false),
        ("32512314251231", true),
        ("32512314260101", false),
        ("4260101", true),
        // A serial, and the retailer.
        ("50123456", true),
        ("5012345", false),
        ("59123456789012345", true),
        ("611234567", true),
        ("60123456", false),
        // What else is said; not before other fields.
        ("92010", true),
        ("93010", false),
        ("92310", false),
        ("92012", false),
        ("920103251231", false),
    ] {
        let code = format!("{BASE}{behind}");
        assert_eq!(holds(Check::Coupon, code.as_bytes()), expected, "{behind}");
    }
    for (code, expected) in [
        ("001234561234560123456", true),
        ("16123456789012123456912345678901 2345", false),
        ("161234567890121234569123456789012345", true),
        ("201234561234560123456", false),
        ("071234561234560123456", false),
        ("0012345612345601234567", false),
        ("00123456123456012345", false),
        ("", false),
    ] {
        assert_eq!(holds(Check::CouponOffer, code.as_bytes()), expected, "{code}");
    }
}

#[test]
fn sets_of_characters() {
    for (set, part, expected) in [
        (Set::Digits, "0123456789", true),
        (Set::Digits, "1a", false),
        (Set::Cset82, "!\"%&'()*+,-./0123456789:;<=>?ABCXYZ_abcxyz", true),
        (Set::Cset39, "#-/09AZ", true),
        (Set::Cset39, "a", false),
        (Set::Cset64, "AZaz09-_", true),
        (Set::Cset64, "ab=", true),
        (Set::Cset64, "a=", false),
        (Set::Cset64, "===", false),
        (Set::Cset64, "a=b", false),
        (Set::Cset64, "+", false),
    ] {
        assert_eq!(is_of(set, part.as_bytes()), expected, "{set:?} {part}");
    }
    for byte in b" #$@[\\]^`{|}~\x00\x7f\xc3" {
        assert!(!is_of(Set::Cset82, &[*byte]), "{byte}");
    }
    assert_eq!((0..=255).filter(|byte| is_of(Set::Cset82, &[*byte])).count(), 82);
}
