//! The file of the keys that encrypt the secrets in the database (`WAYMARK_SECRET_KEY_FILE`).

use ::secrets::keys::{KeyId, SecretKeys};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::{config::ConfigError, system::SystemRandom};

/// The setting that names the file.
pub const SETTING: &str = "WAYMARK_SECRET_KEY_FILE";

/// A thousand keys.
const MAX_BYTES: u64 = 65_536;

/// The file that a setting names.
///
/// # Errors
/// There is none.
pub fn required(text: Option<String>) -> Result<PathBuf, ConfigError> {
    text.map(PathBuf::from).ok_or_else(|| {
        let reason = "the secrets in the database are encrypted: give the file of keys that all processes share, \
                      or make one by `control secrets new-key`";
        ConfigError::new(SETTING, reason)
    })
}

/// Reads the keys.
///
/// # Errors
/// The file cannot be read, others than its owner can use it, or it holds something else.
pub fn read(path: &Path) -> Result<SecretKeys, ConfigError> {
    SecretKeys::parse(&read_text(path)?).map_err(|error| {
        let path = path.display();
        wrong(format!("{path}: {error}; it has one key a line, as `secrets new-key` writes them"))
    })
}

/// Puts a new key in front of those of a file, or makes the file; it is whole or as it was, and on disk when this
/// returns.
///
/// # Errors
/// The file cannot be written, or what there is cannot be used.
pub fn add_key(path: &Path) -> Result<KeyId, ConfigError> {
    let unwritable = |error: io::Error| wrong(format!("{} cannot be written: {error}", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = File::open(folder).map_err(unwritable)?;
    // Two that add a key at once must not lose one.
    folder.lock().map_err(unwritable)?;
    let line = ::secrets::new_key_line(&SystemRandom).map_err(|error| wrong(error.to_string()))?;
    let before = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unwritable(error)),
        Ok(found) => {
            read(path)?;
            Some((found, read_text(path)?))
        }
    };
    let text = format!("{line}\n{}", before.as_ref().map_or("", |(_, text)| text));
    let owner = before.map(|(found, _)| (found.uid(), found.gid()));
    write(path, &text, owner).and_then(|()| folder.sync_all()).map_err(unwritable)?;
    Ok(read(path)?.current())
}

fn write(path: &Path, text: &str, owner: Option<(u32, u32)>) -> io::Result<()> {
    // A link stays one.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut fresh = path.clone().into_os_string();
    fresh.push(".new");
    // Of an attempt that was broken off.
    if let Err(error) = fs::remove_file(&fresh)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh)?;
    if let Some((user, group)) = owner {
        // Who runs the tool may be another than who runs the service.
        std::os::unix::fs::fchown(&file, Some(user), Some(group))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, &path)
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let shown = path.display();
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => wrong(format!(
            "{shown} is not there: put the key file of this database back, or make one for a new database by \
             `secrets new-key`"
        )),
        _ => wrong(format!("{shown} cannot be read: {error}")),
    };
    let file = File::open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(wrong(format!("{shown} is no file: give a file with one key a line")));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let reason =
            format!("{shown} is open to its group or to others (mode {mode:03o}): chmod 600 {shown}");
        return Err(wrong(reason));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => wrong(format!("{shown} is no text: it has one key a line")),
        _ => unreadable(error),
    })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(wrong(format!("{shown} has more than {MAX_BYTES} bytes: it has one key a line")));
    }
    Ok(text)
}

fn wrong(reason: String) -> ConfigError {
    ConfigError::new(SETTING, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, text: &[u8], mode: u32) {
        let _ = fs::remove_file(path);
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_without_showing_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let key = "5e".repeat(32);
        for (text, mode, says) in [
            (key.as_bytes(), 0o640, "chmod 600"),
            (key.as_bytes(), 0o604, "chmod 600"),
            (key.as_bytes(), 0o620, "chmod 600"),
            (b"", 0o600, "holds no key"),
            (b"\n\n", 0o600, "holds no key"),
            (&key.as_bytes()[1..], 0o600, "line 1 is no key of 64"),
            (key.repeat(2).as_bytes(), 0o600, "line 1 is no key of 64"),
            (format!("{key}\nsecret").as_bytes(), 0o600, "line 2 is no key of 64"),
            (&[0xff; 64], 0o600, "is no text"),
            (&[b'a'; 65_537], 0o600, "more than 65536 bytes"),
        ] {
            put(&path, text, mode);
            let error = read(&path).unwrap_err();
            assert_eq!(error.key, SETTING);
            assert!(error.reason.contains(says), "{says}: {error}");
            assert!(!error.reason.contains("5e5e") && !error.reason.contains("secret\n"), "{error}");
        }
        assert!(read(folder.path()).unwrap_err().reason.contains("is no file"));
        assert!(read(&folder.path().join("none")).unwrap_err().reason.contains("is not there"));
        put(&path, key.as_bytes(), 0o400);
        assert_eq!(read(&path).unwrap().ids().count(), 1);
    }

    #[test]
    fn a_new_key_comes_first_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let first = add_key(&path).unwrap();
        let second = add_key(&path).unwrap();
        assert_eq!(read(&path).unwrap().ids().collect::<Vec<_>>(), [second, first]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        // A file that cannot be used stays as it is.
        put(&path, b"broken\n", 0o600);
        assert!(add_key(&path).unwrap_err().reason.contains("line 1"));
        assert_eq!(fs::read(&path).unwrap(), b"broken\n");
        assert!(add_key(&folder.path().join("none/keys")).unwrap_err().reason.contains("cannot be written"));
    }

    #[test]
    fn keys_that_are_added_at_once_are_all_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let added: Vec<KeyId> = std::thread::scope(|scope| {
            let adding: Vec<_> = (0..8).map(|_| scope.spawn(|| add_key(&path).unwrap())).collect();
            adding.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let held: Vec<KeyId> = read(&path).unwrap().ids().collect();
        assert_eq!(held.len(), 8);
        assert!(added.iter().all(|id| held.contains(id)));
    }
}
