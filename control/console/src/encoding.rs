//! Which packed form a client takes.

/// A packed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Brotli, the smaller one.
    Brotli,
    /// Gzip.
    Gzip,
}

impl Encoding {
    /// Its name in `Content-Encoding`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The best one that the values of `Accept-Encoding` admit by name.
pub(crate) fn best<'a>(accepted: impl Iterator<Item = &'a str>) -> Option<Encoding> {
    let mut found = None;
    for part in accepted.flat_map(|value| value.split(',')) {
        let (name, quality) = part.split_once(';').unwrap_or((part, ""));
        let quality = quality.trim().strip_prefix("q=").and_then(|quality| quality.parse::<f32>().ok());
        if quality == Some(0.0) {
            continue;
        }
        match name.trim() {
            "br" => return Some(Encoding::Brotli),
            "gzip" => found = Some(Encoding::Gzip),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_encoding_that_is_named_is_taken() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", Some(Encoding::Brotli)),
            ("gzip;q=1.0, br;q=0", Some(Encoding::Gzip)),
            ("gzip ; q=0, identity", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(best([accepted].into_iter()), expected, "{accepted}");
        }
    }
}
