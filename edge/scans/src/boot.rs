//! The boot number: new at each start, never used before in this folder or known to control.
//!
//! It overwrites the last but one in place, which needs no free space, so an edge starts on a full disk. If a power
//! loss tears the write, the previous number is still there.

use std::{
    fs::OpenOptions,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use shared::time::UnixMillis;

use super::spool::sync_folder;

/// Bytes of a place: no two share a sector.
const PLACE: usize = 512;

/// Writes a boot number to disk that no earlier boot of this edge had, even if the folder was lost.
///
/// The clock is only a lower bound: it keeps a wiped folder from reusing numbers that control knows.
pub(super) fn next(folder: &Path, now: UnixMillis) -> io::Result<u64> {
    let path = folder.join("boot");
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    let is_new = content.is_empty();
    // A file of one number without a place is that of an older release.
    let older = std::str::from_utf8(&content).ok().and_then(|text| Some((text.trim().parse().ok()?, 0)));
    let places = content.chunks(PLACE).zip(0_u64..);
    let found = places.filter_map(|(place, index)| Some((parse(place)?, index))).chain(older);
    let last = found.max_by_key(|(boot, _)| *boot);
    if last.is_none() && !is_new {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file boot holds no number"));
    }
    let (last, index) = last.unwrap_or((0, 1));
    let boot = (last + 1).max(u64::try_from(now.0).unwrap_or_default());
    let other = (index + 1) % 2;
    if content.len() < 2 * PLACE {
        // Allocates both slots at once, so that the next start needs no space.
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("{}{}", place(last), place(last)).as_bytes())?;
    }
    file.seek(SeekFrom::Start(other * PLACE as u64))?;
    file.write_all(place(boot).as_bytes())?;
    file.sync_all()?;
    if is_new {
        sync_folder(folder)?;
    }
    Ok(boot)
}

/// A number, its checksum, and blanks up to the next place.
fn place(boot: u64) -> String {
    let number = format!("{boot:020}");
    let sum = crc32c::crc32c(number.as_bytes());
    format!("{number} {sum:08x}{:blank$}\n", "", blank = PLACE - 30)
}

fn parse(place: &[u8]) -> Option<u64> {
    let (number, sum) = std::str::from_utf8(place).ok()?.trim_end().split_once(' ')?;
    let is_whole = u32::from_str_radix(sum, 16).ok()? == crc32c::crc32c(number.as_bytes());
    is_whole.then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn boot_numbers_grow_after_any_torn_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boot");
        let next = |at| next(folder.path(), UnixMillis(at)).unwrap();
        assert_eq!(next(1_000), 1_000);
        // The clock went back.
        assert_eq!((next(5), next(5), next(5)), (1_001, 1_002, 1_003));
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len(), 2 * PLACE);
        // The next one was torn: it was never used.
        let other = if parse(&whole[..PLACE]) == Some(1_003) { PLACE } else { 0 };
        for torn in 0..29 {
            let mut bytes = whole.clone();
            bytes[other..other + torn].copy_from_slice(&place(1_004).as_bytes()[..torn]);
            fs::write(&path, bytes).unwrap();
            assert_eq!(next(5), 1_004, "{torn}");
        }
        // A release before wrote the number alone.
        fs::write(&path, "2000").unwrap();
        assert_eq!((next(5), next(5)), (2_001, 2_002));
    }

    #[test]
    fn an_invalid_boot_file_is_not_treated_as_a_new_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("boot"), "seven").unwrap();
        assert!(next(folder.path(), UnixMillis(5)).is_err());
    }
}
