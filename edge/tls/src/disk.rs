//! The folder of the certificates from control: a file for each host, which only its user can read.
//!
//! A file `<host>.json` is a [`DomainCertificate`] as JSON, with its key. It is written to `<host>.new`, synced and renamed. A
//! damaged file concerns its own host alone, and is replaced at the next contact with control; one that was left unfinished is removed.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use platform::settings::open_to_others;
use shared::wire::certificates::DomainCertificate;

use crate::received::name_of;

/// The folder of the certificates.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A folder, which is made with its first file.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Reads every file; one that cannot be used is left out, with a line in the log that shows nothing of it.
    pub(crate) fn load(&self) -> Vec<DomainCertificate> {
        let files = match fs::read_dir(&self.0) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                tracing::error!(%error, folder = %self.0.display(), "saved certificates cannot be read");
                return Vec::new();
            }
        };
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        let is = |path: &Path, ending: &str| path.extension().is_some_and(|extension| extension == ending);
        let (saved, others): (Vec<_>, Vec<_>) = paths.partition(|path| is(path, "json"));
        for unfinished in others.iter().filter(|path| is(path, "new")) {
            // It holds a key; one that cannot be removed is written over.
            let _ = fs::remove_file(unfinished);
        }
        saved.iter().filter_map(|path| read(path).inspect_err(|reason| warn(path, reason)).ok()).collect()
    }

    /// Writes the certificate of a host, or removes its file.
    pub(crate) fn put(&self, host: &str, certificate: Option<&DomainCertificate>) -> io::Result<()> {
        let [path, unfinished] = ["json", "new"].map(|ending| self.0.join(format!("{host}.{ending}")));
        match certificate {
            Some(certificate) => {
                DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
                let mut file = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&unfinished)?;
                file.write_all(&serde_json::to_vec(certificate)?)?;
                file.sync_all()?;
                fs::rename(&unfinished, &path)?;
            }
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                removed => removed?,
            },
        }
        File::open(&self.0)?.sync_all()
    }
}

fn warn(path: &Path, reason: &str) {
    tracing::error!(%reason, file = %path.display(), "a saved certificate is ignored");
}

fn read(path: &Path) -> Result<DomainCertificate, String> {
    let failed = |error: io::Error| error.to_string();
    if let Some(reason) = open_to_others(path, fs::metadata(path).map_err(failed)?.mode()) {
        return Err(reason);
    }
    let bytes = fs::read(path).map_err(failed)?;
    // The error of the reader may show a value.
    let certificate: DomainCertificate =
        serde_json::from_slice(&bytes).map_err(|_| "it is damaged".to_owned())?;
    let is_its_own = path.file_stem().is_some_and(|stem| *stem == *name_of(&certificate.host));
    is_its_own.then_some(certificate).ok_or_else(|| "it is the certificate of another host".to_owned())
}
