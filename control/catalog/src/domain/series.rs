//! Series for plots: the numeric history of a property, aggregated in buckets of equal width.

use shared::time::UnixMillis;

/// Buckets of a series that names no number.
pub const DEFAULT_POINTS: u32 = 500;

/// Most buckets: a plot has no more pixels.
pub const MAX_POINTS: u32 = 2_000;

/// The times that a series covers, cut into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first millisecond.
    pub from: UnixMillis,
    /// The last millisecond.
    pub to: UnixMillis,
    /// Milliseconds of each bucket; the last one may reach beyond the end.
    pub width_ms: i64,
}

impl Span {
    /// Cuts a time into at most `points` buckets; `None` when it ends before it begins.
    #[must_use]
    pub fn cut(from: UnixMillis, to: UnixMillis, points: u32) -> Option<Self> {
        // Timestamps reach to 8.64e15 on both sides: this does not overflow.
        let length = to.0.checked_sub(from.0)?.checked_add(1).filter(|length| *length > 0)?;
        let points = i64::from(points.max(1));
        Some(Self { from, to, width_ms: (length + points - 1) / points })
    }

    /// When a bucket begins.
    #[must_use]
    pub const fn begin(&self, bucket: i64) -> UnixMillis {
        UnixMillis(self.from.0 + bucket * self.width_ms)
    }
}

/// The aggregates of a bucket; empty buckets are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Its first millisecond.
    pub timestamp: UnixMillis,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// How many there are.
    pub count: u64,
}

/// A series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The period it covers; `None` when there is no number.
    pub span: Option<Span>,
    /// Its buckets, by time.
    pub buckets: Vec<Bucket>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_period_is_divided_into_equal_buckets() {
        let cut = |from, to, points| Span::cut(UnixMillis(from), UnixMillis(to), points).map(|s| s.width_ms);
        for (from, to, points, expected) in [
            (0, 9, 10, Some(1)),
            (0, 10, 10, Some(2)),
            (-5, 4, 2, Some(5)),
            (7, 7, 500, Some(1)),
            (8, 7, 1, None),
        ] {
            assert_eq!(cut(from, to, points), expected, "{from} {to} {points}");
        }
    }

    proptest! {
        #[test]
        fn each_time_has_one_bucket_and_the_count_is_bounded(
            from in -8_640_000_000_000_000_i64..8_640_000_000_000_000,
            length in 0..1_000_000_000_000_i64,
            points in 1..=MAX_POINTS,
        ) {
            let to = from + length;
            let span = Span::cut(UnixMillis(from), UnixMillis(to), points).unwrap();
            let last = (to - from) / span.width_ms;
            prop_assert!(last < i64::from(points));
            prop_assert!(span.begin(last).0 <= to && span.begin(last + 1).0 > to);
        }
    }
}
