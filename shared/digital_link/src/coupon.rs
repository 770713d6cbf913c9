//! Coupon codes of North America (8110 and 8112): digits, in which lengths stand before what they measure.

use crate::checks;

/// Whether a company prefix may begin so: with at least four digits.
pub(crate) fn is_prefix(part: &[u8]) -> bool {
    part.get(..4).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// Whether a value of 8110 is built as a coupon code.
pub(crate) fn is_coupon(part: &[u8]) -> bool {
    part.iter().all(u8::is_ascii_digit) && coupon(&mut Reader(part)).is_some()
}

/// Whether a value of 8112 is built as a positive offer.
pub(crate) fn is_offer(part: &[u8]) -> bool {
    part.iter().all(u8::is_ascii_digit) && offer(&mut Reader(part)).is_some()
}

/// The digits that were not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// One digit, which must be one of these.
    fn one_of(&mut self, allowed: &[u8]) -> Option<u8> {
        let (digit, rest) = self.0.split_first()?;
        self.0 = rest;
        allowed.contains(digit).then_some(*digit)
    }

    /// A digit, and so many digits more than `beyond` as it says.
    fn measured(&mut self, allowed: &[u8], beyond: usize) -> Option<&'a [u8]> {
        let length = self.one_of(allowed)?;
        self.take(usize::from(length - b'0') + beyond)
    }

    /// Whether the next digit begins this optional field; it is read then.
    fn begins(&mut self, field: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == field => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

fn coupon(code: &mut Reader<'_>) -> Option<()> {
    // The prefix of the company, the offer, the value; then what must be bought.
    code.measured(b"0123456", 6)?;
    code.take(6)?;
    code.measured(b"12345", 0)?;
    requirement(code)?;
    if code.begins(b'1') {
        code.one_of(b"0123")?;
        requirement(code)?;
        other_company(code)?;
    }
    if code.begins(b'2') {
        requirement(code)?;
        other_company(code)?;
    }
    let mut expiry = None;
    if code.begins(b'3') {
        expiry = Some(date(code)?);
    }
    if code.begins(b'4') {
        let start = date(code)?;
        if expiry.is_some_and(|expiry| start > expiry) {
            return None;
        }
    }
    if code.begins(b'5') {
        code.measured(b"0123456789", 6)?;
    }
    if code.begins(b'6') {
        code.measured(b"1234567", 6)?;
    }
    if code.begins(b'9') {
        code.one_of(b"01256")?;
        code.one_of(b"012")?;
        code.take(1)?;
        code.one_of(b"01")?;
    }
    code.end()
}

/// What must be bought: how much, of what kind, and the family of products.
fn requirement(code: &mut Reader<'_>) -> Option<()> {
    code.measured(b"12345", 0)?;
    code.one_of(b"012349")?;
    code.take(3).map(drop)
}

/// The prefix of another company; 9 says that there is none.
fn other_company(code: &mut Reader<'_>) -> Option<()> {
    if code.begins(b'9') { Some(()) } else { code.measured(b"0123456", 6).map(drop) }
}

fn date<'a>(code: &mut Reader<'a>) -> Option<&'a [u8]> {
    code.take(6).filter(|date| checks::is_date(date, 1))
}

fn offer(code: &mut Reader<'_>) -> Option<()> {
    code.one_of(b"01")?;
    code.measured(b"0123456", 6)?;
    code.take(6)?;
    code.measured(b"0123456789", 6)?;
    code.end()
}
