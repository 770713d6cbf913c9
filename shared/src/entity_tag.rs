//! `ETag` and `If-Match` (RFC 9110, 8.8.3 and 13.1.1): a number in quotes names the state of a resource.

use std::fmt;

use serde::Serialize;

/// Numbers of tags are below it, so that they are exact in every client.
const BOUND: u64 = 1_000_000_000_000_000;

/// Names a state of a resource, as a strong tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag(u64);

impl EntityTag {
    /// Of all that is stored of a resource; another state has another tag, but for one in 10^15.
    #[must_use]
    pub fn of(state: &impl Serialize) -> Self {
        let hash = blake3::hash(&serde_json::to_vec(state).unwrap_or_default());
        let bytes = hash.as_bytes().iter().take(8);
        Self(bytes.fold(0, |number: u64, byte| (number << 8) | u64::from(*byte)) % BOUND)
    }

    /// The same of a state that is no document: of every member, as `Debug` writes it.
    #[must_use]
    pub fn of_members(state: &impl fmt::Debug) -> Self {
        Self::of(&format!("{state:?}"))
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// The states that a change may be about: those that its caller has seen. The default is any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition(Option<Vec<u64>>);

/// `If-Match` is neither `*` nor tags in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("If-Match must be * or the ETag of the resource, in quotes")]
pub struct NoTag;

impl Condition {
    /// Reads the lines of `If-Match`; without one any state will do. A tag that is none of ours matches nothing.
    ///
    /// # Errors
    /// A line is neither `*` nor tags in quotes.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, NoTag> {
        let mut numbers: Option<Vec<u64>> = None;
        for line in lines {
            for tag in str::from_utf8(line).map_err(|_| NoTag)?.split(',').map(str::trim) {
                if tag == "*" {
                    return Ok(Self(None));
                }
                let text = tag.strip_prefix("W/").unwrap_or(tag);
                let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).ok_or(NoTag)?;
                // By the strong comparison a weak tag matches nothing.
                let number = text.parse::<u64>().ok().filter(|_| !tag.starts_with("W/"));
                numbers.get_or_insert_with(Vec::new).extend(number);
            }
        }
        Ok(Self(numbers))
    }

    /// The numbers of the tags; `None` where any state will do.
    #[must_use]
    pub fn into_numbers(self) -> Option<Vec<u64>> {
        self.0
    }

    /// Whether a state is one of them; its tag is made only if it matters.
    pub fn admits(&self, tag: impl FnOnce() -> EntityTag) -> bool {
        self.0.as_ref().is_none_or(|numbers| numbers.contains(&tag().0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> Result<Option<Vec<u64>>, NoTag> {
        Condition::parse(lines.iter().map(|line| line.as_bytes())).map(Condition::into_numbers)
    }

    #[test]
    fn tags_are_read_as_clients_send_them() {
        for (lines, expected) in [
            (vec![], Ok(None)),
            (vec!["*"], Ok(None)),
            (vec!["\"1\""], Ok(Some(vec![1]))),
            (vec!["\"1\", \"22\"", "\"3\""], Ok(Some(vec![1, 22, 3]))),
            (vec!["\"1\", *"], Ok(None)),
            (vec!["W/\"1\""], Ok(Some(vec![]))),
            (vec!["\"abc\""], Ok(Some(vec![]))),
            (vec!["\"\""], Ok(Some(vec![]))),
            (vec![""], Err(NoTag)),
            (vec!["1"], Err(NoTag)),
            (vec!["\"1"], Err(NoTag)),
            (vec!["\""], Err(NoTag)),
        ] {
            assert_eq!(parse(&lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn another_state_has_another_tag() {
        let tag = EntityTag::of(&("a", 1));
        assert_eq!(tag, EntityTag::of(&("a", 1)));
        assert_ne!(tag, EntityTag::of(&("a", 2)));
        let condition = Condition::parse([tag.to_string().as_bytes()]).unwrap();
        assert!(condition.admits(|| tag) && !condition.admits(|| EntityTag::of(&"b")));
        assert!(Condition::default().admits(|| tag));
    }
}
