//! What some rounds gave.

use serde::Serialize;

/// Median, least and most of some rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of some values; of an even number the lower of the two in the middle, a value that was measured.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self { median: at(last / 2), min: at(0), max: at(last) }
    }

    /// Median (least–most).
    pub(crate) fn text(self, decimals: usize) -> String {
        let Self { median, min, max } = self;
        format!("{median:.decimals$} ({min:.decimals$}–{max:.decimals$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_of_values_that_were_measured() {
        for (values, expected) in [
            (&[3.0][..], (3.0, 3.0, 3.0)),
            (&[5.0, 1.0, 3.0], (3.0, 1.0, 5.0)),
            (&[4.0, 1.0, 3.0, 2.0], (2.0, 1.0, 4.0)),
        ] {
            let spread = Spread::of(values);
            assert_eq!((spread.median, spread.min, spread.max), expected);
        }
    }
}
