//! E-mail addresses.

/// Longest e-mail address in bytes (RFC 5321).
const MAX_EMAIL: usize = 254;
/// Longest part before the `@`.
const MAX_LOCAL: usize = 64;

/// An e-mail address; two that differ in case only are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// An address of a plausible form; the fault is a sentence without its subject.
    ///
    /// # Errors
    /// The text has no `@` between two parts, spaces, or too many characters.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let fault = "must be an e-mail address of at most 254 bytes";
        let (local, domain) = text.rsplit_once('@').ok_or(fault)?;
        let has_space = text.chars().any(|c| c.is_whitespace() || c.is_control());
        if has_space
            || text.len() > MAX_EMAIL
            || local.len() > MAX_LOCAL
            || local.is_empty()
            || domain.is_empty()
        {
            return Err(fault);
        }
        Ok(Self(text.to_owned()))
    }

    /// The address as it was sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address in the form in which it is compared.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_form() {
        for (text, fits) in [
            ("a@b", true),
            ("Ada.Lovelace+x@Example.COM", true),
            ("ü@münchen.de", true),
            ("", false),
            ("a", false),
            ("@b", false),
            ("a@", false),
            ("a b@c", false),
            ("a@b\n", false),
            ("a@b\0", false),
            (&format!("{}@b", "a".repeat(64)), true),
            (&format!("{}@b", "a".repeat(65)), false),
            (&format!("a@{}", "b".repeat(253)), false),
        ] {
            assert_eq!(Email::parse(text).is_ok(), fits, "{text:?}");
        }
        assert_eq!(Email::parse("Ä@B").unwrap().folded(), "ä@b");
    }
}
