//! The key by which control knows this edge; its file may be replaced at any time.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use http::HeaderValue;

use crate::error::EdgeError;

/// Longest key in bytes; control's have 80 characters.
const MAX_BYTES: usize = 512;

/// A key in a file: read at the start, and again whenever a connection is made or control refuses it.
#[derive(Debug)]
pub struct EdgeKey {
    path: PathBuf,
    /// With `Bearer ` and without.
    forms: ArcSwap<[HeaderValue; 2]>,
}

impl EdgeKey {
    /// Reads the key.
    ///
    /// # Errors
    /// The file cannot be read, or does not hold one line with a key.
    pub fn open(path: &Path) -> Result<Self, EdgeError> {
        Ok(Self { path: path.to_owned(), forms: ArcSwap::from_pointee(read(path)?) })
    }

    /// The value of `Authorization`; never logged.
    #[must_use]
    pub fn authorization(&self) -> HeaderValue {
        let [bearer, _] = &**self.forms.load();
        bearer.clone()
    }

    /// The key alone; never logged.
    #[must_use]
    pub fn token(&self) -> HeaderValue {
        let [_, token] = &**self.forms.load();
        token.clone()
    }

    /// Reads the file again; whether there is another key now. One that cannot be read leaves the old.
    pub fn reload(&self) -> bool {
        match read(&self.path) {
            Ok(forms) if **self.forms.load() == forms => false,
            Ok(forms) => {
                self.forms.store(Arc::new(forms));
                tracing::info!(file = %self.path.display(), "the edge has another key");
                true
            }
            Err(error) => {
                tracing::error!(%error, "kept the key before it");
                false
            }
        }
    }
}

fn read(path: &Path) -> Result<[HeaderValue; 2], EdgeError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| EdgeError::Storage { path: path.to_owned(), source })?;
    let key = text.trim();
    let wrong = || EdgeError::Config {
        key: "edge_key_file",
        reason: format!("{} must hold one line with the edge's key", path.display()),
    };
    if key.is_empty() || key.len() > MAX_BYTES || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(wrong());
    }
    let secret = |text: &str| -> Result<HeaderValue, EdgeError> {
        let mut header = HeaderValue::try_from(text).map_err(|_| wrong())?;
        header.set_sensitive(true);
        Ok(header)
    };
    Ok([secret(&format!("Bearer {key}"))?, secret(key)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_key_is_taken_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "FIRST\n").unwrap();
        let key = EdgeKey::open(&path).unwrap();
        assert_eq!(key.authorization(), "Bearer FIRST");
        assert!(!key.reload(), "nothing changed");
        std::fs::write(&path, "SECOND").unwrap();
        assert!(key.reload());
        assert_eq!(key.token(), "SECOND");
        for broken in ["", "two words", "two\nlines", &"x".repeat(513)] {
            std::fs::write(&path, broken).unwrap();
            assert!(!key.reload());
            assert_eq!(key.authorization(), "Bearer SECOND");
            assert!(EdgeKey::open(&path).is_err());
        }
    }
}
