//! The key with which the edge authenticates to control. Its file may be replaced at any time.

use std::{
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use platform::settings::open_to_others;

use crate::error::EdgeError;

/// Longest key in bytes; control's have 80 characters.
const MAX_BYTES: usize = 512;

/// A key in a file: read at the start, and again for each new connection and whenever control refuses it.
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
    /// The file cannot be read, is open to other users of the machine, or does not hold one line with a key.
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
                tracing::error!(%error, "kept the previous key");
                false
            }
        }
    }
}

fn read(path: &Path) -> Result<[HeaderValue; 2], EdgeError> {
    let failed = |source| EdgeError::Storage { path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if let Some(reason) = open_to_others(path, mode) {
        return Err(EdgeError::Config { key: "edge_key_file", reason });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
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
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "KEY\n").unwrap();
        for (mode, is_taken) in
            [(0o600, true), (0o400, true), (0o640, true), (0o644, false), (0o604, false), (0o602, false)]
        {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let opened = EdgeKey::open(&path);
            assert_eq!(opened.is_ok(), is_taken, "{mode:o}");
            let is_named = opened.err().is_none_or(|error| error.to_string().contains("chmod 600"));
            assert!(is_named, "{mode:o}");
        }
    }

    #[test]
    fn a_replaced_key_is_loaded_and_a_broken_one_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "FIRST\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
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
