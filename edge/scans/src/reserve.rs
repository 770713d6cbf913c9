//! The reserve: a preallocated file that is overwritten in place, for data that must be kept while the disk is full.
//!
//! Two halves are written alternately, each with a number and a checksum, so a torn write leaves the other half valid.
//! The content is that of the valid half with the greater number.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use super::spool::sync_folder;

/// Bytes of a half: some 10,000 sums with short names.
const HALF: usize = 1 << 20;
/// Bytes before the content of a half: number, length, checksum.
const HEADER: usize = 16;

/// The file.
#[derive(Debug)]
pub(super) struct Reserve {
    file: File,
    /// Number of the newest content.
    number: u64,
}

impl Reserve {
    /// Bytes that it can hold.
    pub(super) const ROOM: usize = HALF - HEADER;

    /// Opens the file or creates it in its full size; returns its content.
    ///
    /// # Errors
    /// The file cannot be used, or there is no space for it yet.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Vec<u8>)> {
        let path = folder.join("sums");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = Vec::with_capacity(2 * HALF);
        (&file).take(2 * HALF as u64).read_to_end(&mut bytes)?;
        if bytes.len() < 2 * HALF {
            // Written, not only extended: from here on no byte of it needs new space.
            file.seek(SeekFrom::Start(bytes.len() as u64))?;
            if let Err(error) = file.write_all(&vec![0; 2 * HALF - bytes.len()]) {
                // The remaining space is for the scans themselves.
                file.set_len(bytes.len() as u64)?;
                return Err(error);
            }
            file.sync_all()?;
            sync_folder(folder)?;
            bytes.resize(2 * HALF, 0);
        }
        let newest = bytes.chunks(HALF).filter_map(parse).max_by_key(|(number, _)| *number);
        let (number, content) = newest.map_or((0, Vec::new()), |(number, part)| (number, part.to_vec()));
        Ok((Self { file, number }, content))
    }

    /// Replaces the content, durably.
    ///
    /// # Errors
    /// It does not fit, or the disk failed; the previous content stays.
    pub(super) fn keep(&mut self, content: &[u8]) -> io::Result<()> {
        if content.len() > Self::ROOM {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let number = self.number + 1;
        let mut bytes = number.to_le_bytes().to_vec();
        // At most a half.
        bytes.extend(u32::try_from(content.len()).unwrap_or_default().to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes), content);
        bytes.extend(sum.to_le_bytes());
        bytes.extend(content);
        self.file.seek(SeekFrom::Start(number % 2 * HALF as u64))?;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.number = number;
        Ok(())
    }
}

fn parse(half: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = half.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let content = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let known = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(number), length), content);
    (known == u32::from_le_bytes(*sum)).then(|| (u64::from_le_bytes(*number), content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_half_leaves_the_previous_content() {
        let folder = tempfile::tempdir().unwrap();
        let (mut reserve, content) = Reserve::open(folder.path()).unwrap();
        assert_eq!(content, b"");
        for text in ["one", "two", "", "three"] {
            reserve.keep(text.as_bytes()).unwrap();
            assert_eq!(Reserve::open(folder.path()).unwrap().1, text.as_bytes());
        }
        assert!(reserve.keep(&vec![7; Reserve::ROOM + 1]).is_err());
        reserve.keep(&vec![7; Reserve::ROOM]).unwrap();
        let path = folder.path().join("sums");
        let mut bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 2 * HALF, "it never grows");
        // The fifth is in the second half.
        bytes[HALF + HEADER] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Reserve::open(folder.path()).unwrap().1, b"three");
        std::fs::write(&path, "short").unwrap();
        assert_eq!(Reserve::open(folder.path()).unwrap().1, b"");
    }
}
