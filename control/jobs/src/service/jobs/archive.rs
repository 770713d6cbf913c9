//! Reads the CSV files in a ZIP archive one after the other, with limits on everything.
//!
//! Nothing is unpacked to disk: entries are read, lines parsed, ids extracted. The central directory is checked here
//! before the archive is opened, so false sizes in it cannot allocate memory.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    rc::Rc,
};

use zip::ZipArchive;

use crate::domain::job_lines::{Entry, Lines};

/// Most files in an archive.
const MAX_FILES: usize = 100;

/// Most bytes of all files together, unpacked: some 20 million ids.
const MAX_UNPACKED: u64 = 500 << 20;

/// Most unpacked bytes for each packed one.
const MAX_RATIO: u64 = 100;

/// Unpacked bytes below which the ratio does not matter.
const FREE_BYTES: u64 = 1 << 20;

/// Longest name of a file in the archive, in bytes.
const MAX_NAME: usize = 255;

/// Bytes per unpacking step.
const STEP: usize = 64 * 1024;

const END: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
const MAX_COMMENT: u64 = 65_535;
/// The end of an archive of which a number does not fit into the other end, and its mark behind it.
const END64: [u8; 4] = *b"PK\x06\x06";
const END64_BYTES: usize = 56;
const MARK64: [u8; 4] = *b"PK\x06\x07";
const MARK64_BYTES: usize = 20;
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const ENCRYPTED: u16 = 1;

/// Why an archive is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    /// It is not as it must be; a sentence about the archive, without its subject.
    #[error("{0}")]
    Unfit(String),
    /// The disk failed.
    #[error(transparent)]
    Io(io::Error),
    /// The receiver stopped.
    #[error("nobody wants the rest")]
    Stopped,
}

fn unfit(text: impl Into<String>) -> ArchiveError {
    ArchiveError::Unfit(text.into())
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                unfit("is damaged or cut off")
            }
            _ => Self::Io(error),
        }
    }
}

impl From<zip::result::ZipError> for ArchiveError {
    fn from(error: zip::result::ZipError) -> Self {
        match error {
            zip::result::ZipError::Io(error) => error.into(),
            error => unfit(format!("cannot be read: {error}")),
        }
    }
}

/// Passes the entries of every file of an archive to `send`, which returns whether it wants more.
pub(super) fn read(
    mut file: File,
    key: Option<&str>,
    mut send: impl FnMut(Vec<Entry>) -> bool,
) -> Result<(), ArchiveError> {
    let size = file.seek(SeekFrom::End(0))?;
    let begin = check_directory(&mut file, size)?;
    file.rewind()?;
    let veil = Rc::new(Cell::new(begin));
    let mut archive = ZipArchive::new(Veiled { file, at: 0, veil: veil.clone() })?;
    veil.set(0);
    if archive.len() > MAX_FILES {
        return Err(too_many());
    }
    // The checked directory must be the one that is read.
    if archive.central_directory_start() != begin {
        return Err(unfit("is damaged or cut off"));
    }
    let (mut unpacked, mut files) = (0, 0);
    for index in 0..archive.len() {
        let mut inner = archive.by_index(index)?;
        let name = inner.name().to_owned();
        if inner.is_dir() || is_of_a_system(&name) {
            continue;
        }
        files += 1;
        let (shown, packed) = (shown(&name), inner.compressed_size());
        let mut lines = Lines::new(&shown, key);
        let (mut buffer, mut own) = (vec![0; STEP], 0_u64);
        loop {
            let count = inner.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            own += count as u64;
            unpacked += count as u64;
            let bound = |packed: u64| packed.saturating_mul(MAX_RATIO).max(FREE_BYTES);
            if own > bound(packed) || unpacked > bound(size) {
                return Err(unfit(format!(
                    "holds {shown}, which unpacks to more than {MAX_RATIO} times its size"
                )));
            }
            if unpacked > MAX_UNPACKED {
                return Err(unfit(format!("unpacks to more than {} MiB", MAX_UNPACKED >> 20)));
            }
            let mut entries = Vec::new();
            let part = buffer.get(..count).unwrap_or_default();
            lines.feed(part, &mut entries).map_err(|kind| unfit(format!("holds {shown}, which {kind}")))?;
            if !send(entries) {
                return Err(ArchiveError::Stopped);
            }
        }
        let mut entries = Vec::new();
        lines.finish(&mut entries).map_err(|kind| unfit(format!("holds {shown}, which {kind}")))?;
        if !send(entries) {
            return Err(ArchiveError::Stopped);
        }
    }
    if files == 0 { Err(unfit("holds no CSV file")) } else { Ok(()) }
}

/// Walks the directory: how many files, their names, and whether one is encrypted. Gives where it begins.
fn check_directory(file: &mut File, size: u64) -> Result<u64, ArchiveError> {
    let tail_size = size.min(MAX_COMMENT + END_BYTES as u64);
    file.seek(SeekFrom::Start(size - tail_size))?;
    let mut tail = Vec::new();
    file.take(tail_size).read_to_end(&mut tail)?;
    let no_zip = || unfit("is no ZIP archive, or is cut off");
    let at = tail.windows(END.len()).rposition(|window| window == END).ok_or_else(no_zip)?;
    let end = tail.get(at..at + END_BYTES).ok_or_else(no_zip)?;
    // The last end in the file is the end of the file: no other one is looked for then.
    if at + END_BYTES + usize::from(short(end, 20)) != tail.len() {
        return Err(no_zip());
    }
    let end_at = size - tail_size + at as u64;
    let Directory { count, bytes, begin, end_at } = match find_zip64(file, end, end_at)? {
        Some(directory) => directory,
        None => Directory {
            count: short(end, 10).into(),
            bytes: long(end, 12).into(),
            begin: long(end, 16).into(),
            end_at,
        },
    };
    if count > MAX_FILES as u64 {
        return Err(too_many());
    }
    let most = (MAX_FILES * (ENTRY_BYTES + 3 * usize::from(u16::MAX))) as u64;
    if bytes > most || begin.saturating_add(bytes) > end_at {
        return Err(unfit("is damaged or cut off"));
    }
    // Bytes before the archive move all of it.
    let begin = end_at - bytes;
    file.seek(SeekFrom::Start(begin))?;
    let mut directory = Vec::new();
    file.take(bytes).read_to_end(&mut directory)?;
    let damaged = || unfit("is damaged or cut off");
    // The library takes it for one, should the right one not please it.
    if directory.windows(END.len()).any(|window| window == END) {
        return Err(damaged());
    }
    let mut rest = directory.as_slice();
    for _ in 0..count {
        let (head, behind) = rest.split_at_checked(ENTRY_BYTES).ok_or_else(damaged)?;
        if !head.starts_with(&ENTRY) {
            return Err(damaged());
        }
        let name_size = usize::from(short(head, 28));
        let more = usize::from(short(head, 30)) + usize::from(short(head, 32));
        let (name, behind) = behind.split_at_checked(name_size).ok_or_else(damaged)?;
        rest = behind.get(more..).ok_or_else(damaged)?;
        check_name(&String::from_utf8_lossy(name))?;
        if short(head, 8) & ENCRYPTED != 0 {
            return Err(unfit("is encrypted"));
        }
    }
    Ok(begin)
}

/// A file whose bytes before an offset are hidden, so that the archive is opened by the directory that was checked
/// and not by one inside its entries.
struct Veiled {
    file: File,
    at: u64,
    veil: Rc<Cell<u64>>,
}

impl Read for Veiled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let hidden = self.veil.get().saturating_sub(self.at);
        let count = if hidden == 0 {
            self.file.read(buffer)?
        } else {
            let count = usize::try_from(hidden).unwrap_or(usize::MAX).min(buffer.len());
            buffer[..count].fill(0);
            self.file.seek(SeekFrom::Start(self.at + count as u64))?;
            count
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Veiled {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}

/// The position and size of an archive's central directory.
struct Directory {
    /// Its entries.
    count: u64,
    /// Its length.
    bytes: u64,
    /// Where it begins in the archive.
    begin: u64,
    /// Where it must be over in the file.
    end_at: u64,
}

/// Reads the ZIP64 end record, if the end record at `end_at` has a number that did not fit and a ZIP64 locator before
/// it.
fn find_zip64(file: &mut File, end: &[u8], end_at: u64) -> Result<Option<Directory>, ArchiveError> {
    let is_full = short(end, 10) == u16::MAX || long(end, 12) == u32::MAX || long(end, 16) == u32::MAX;
    let Some(begin) = end_at.checked_sub((END64_BYTES + MARK64_BYTES) as u64).filter(|_| is_full) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(begin))?;
    let mut both = Vec::new();
    file.take((END64_BYTES + MARK64_BYTES) as u64).read_to_end(&mut both)?;
    let damaged = || unfit("is damaged or cut off");
    let (end, mark) = both.split_at_checked(END64_BYTES).ok_or_else(damaged)?;
    if !mark.starts_with(&MARK64) {
        return Ok(None);
    }
    // It must be directly before its locator and have no extension, so that no other record can take its place.
    // Therefore an archive of this kind may not have bytes before it.
    let is_plain = end.starts_with(&END64) && longest(end, 4) == END64_BYTES as u64 - 12;
    let (bytes, directory) = (longest(end, 40), longest(end, 48));
    if !is_plain || longest(mark, 8) != begin || directory.checked_add(bytes) != Some(begin) {
        return Err(damaged());
    }
    Ok(Some(Directory { count: longest(end, 32), bytes, begin: directory, end_at: begin }))
}

/// Refuses names that could lead anywhere, and files that are no lists of ids.
fn check_name(name: &str) -> Result<(), ArchiveError> {
    if name.len() > MAX_NAME {
        return Err(unfit(format!("holds a name of more than {MAX_NAME} bytes")));
    }
    let leads_out = name.starts_with(['/', '\\'])
        || name.contains(['\0', ':'])
        || name.split(['/', '\\']).any(|part| part == "..");
    if leads_out {
        return Err(unfit(format!("holds {}, a name that leads out of it", shown(name))));
    }
    let folded = name.to_ascii_lowercase();
    let is_list = name.ends_with('/') || folded.ends_with(".csv") || folded.ends_with(".txt");
    if is_list || is_of_a_system(name) {
        return Ok(());
    }
    Err(unfit(format!("holds {}, which is no CSV file", shown(name))))
}

/// What systems put into archives by themselves.
fn is_of_a_system(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    name.starts_with("__MACOSX/") || matches!(file, ".DS_Store" | "Thumbs.db" | "desktop.ini")
}

/// A name as people may read it.
fn shown(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(64).collect()
}

fn too_many() -> ArchiveError {
    unfit(format!("holds more than {MAX_FILES} files"))
}

/// A little-endian number of two bytes.
fn short(bytes: &[u8], at: usize) -> u16 {
    let found = bytes.get(at..at + 2).and_then(|two| two.try_into().ok());
    found.map_or(0, u16::from_le_bytes)
}

/// A little-endian number of four bytes.
fn long(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    found.map_or(0, u32::from_le_bytes)
}

/// A little-endian number of eight bytes.
fn longest(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    found.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
