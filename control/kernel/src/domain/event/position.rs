//! Places in the event log, as rows and as the text of an event id.

use std::{fmt, str::FromStr};

/// A place in the log, behind a row of it or an item of a row; the order is that of the settled log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The transaction that wrote the row; 0 where rows are seen in the order of their numbers.
    pub xid: i64,
    /// The row's number.
    pub seq: i64,
    /// The last item that was passed; [`Self::WHOLE`] for all of them.
    pub item: i64,
}

impl Position {
    /// Behind all items of a row.
    pub const WHOLE: i64 = i64::MAX;

    /// Before everything.
    pub const START: Self = Self { xid: 0, seq: 0, item: Self::WHOLE };

    /// Behind a row.
    #[must_use]
    pub const fn behind(xid: i64, seq: i64) -> Self {
        Self { xid, seq, item: Self::WHOLE }
    }

    /// The first place from which rows are still to be read: of a row that was passed whole, the next.
    #[must_use]
    pub const fn from(self) -> (i64, i64) {
        if self.item == Self::WHOLE { (self.xid, self.seq.saturating_add(1)) } else { (self.xid, self.seq) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { xid, seq, item } = self;
        if *item == Self::WHOLE { write!(f, "{xid}-{seq}") } else { write!(f, "{xid}-{seq}-{item}") }
    }
}

/// A text that is no place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not the id of an event")]
pub struct InvalidPosition;

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        // The stored form has no sign and no leading zeros.
        let number = |part: &str| {
            let is_plain =
                part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
            if is_plain { part.parse::<i64>().map_err(|_| InvalidPosition) } else { Err(InvalidPosition) }
        };
        let mut parts = text.split('-').map(number);
        let mut next = || parts.next().transpose();
        match (next()?, next()?, next()?, next()?) {
            (Some(xid), Some(seq), item, None) => Ok(Self { xid, seq, item: item.unwrap_or(Self::WHOLE) }),
            (_, _, _, _) => Err(InvalidPosition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip_as_text() {
        for (text, expected) in [
            ("7-9", Some(Position::behind(7, 9))),
            ("0-1-0", Some(Position { xid: 0, seq: 1, item: 0 })),
            ("0-1-4999", Some(Position { xid: 0, seq: 1, item: 4_999 })),
            ("", None),
            ("1", None),
            ("1-", None),
            ("1--2", None),
            ("+1-2", None),
            ("01-2", None),
            ("1-2-3-4", None),
            ("1-99999999999999999999", None),
            ("a-b", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
            if let Some(position) = expected {
                assert_eq!(position.to_string(), text);
            }
        }
        assert_eq!(Position::behind(3, 4).from(), (3, 5));
        assert_eq!(Position { xid: 3, seq: 4, item: 1 }.from(), (3, 4));
        assert!(Position { xid: 3, seq: 4, item: 1 } < Position::behind(3, 4));
    }
}
