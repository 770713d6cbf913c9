//! The frame of a ZIP around files that are packed already (APPNOTE 6.3.10).
//!
//! All files have the date 1980-01-01, so that equal orders give equal bytes. Zip64 where there are 65,535 files or
//! more, or 4 GiB.

use std::io::{self, Read, Write};

use flate2::{Compression, write::DeflateEncoder};

/// 1980-01-01, the first date that a ZIP may have; the time is 0.
const DATE: u16 = 0x0021;
/// The program that unpacks must know 2.0 (deflate) or 4.5 (Zip64).
const VERSION: u16 = 20;
const VERSION_ZIP64: u16 = 45;
/// Sizes stand behind the data.
const DESCRIPTOR: u16 = 8;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Values that say "see the Zip64 record".
const FULL_16: u64 = 0xffff;
const FULL_32: u64 = 0xffff_ffff;

/// A file of a ZIP.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) deflated: bool,
    pub(super) crc: u32,
    /// Bytes as it is packed.
    pub(super) length: u32,
    /// Bytes of the file.
    pub(super) size: u32,
}

/// A ZIP that is being written. Keeps the records of its directory in memory: some 75 bytes a file.
#[derive(Debug, Default)]
pub(super) struct Zip {
    written: u64,
    members: u64,
    directory: Vec<u8>,
}

impl Zip {
    /// Adds a file whose packed bytes come from `body`.
    pub(super) fn add(
        &mut self,
        out: &mut impl Write,
        member: Member<'_>,
        body: &mut impl Read,
    ) -> io::Result<()> {
        let offset = self.written;
        self.local(out, member, 0)?;
        let copied = io::copy(&mut Read::take(body, member.length.into()), out)?;
        if copied != u64::from(member.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.written += copied;
        self.record(member, 0, offset);
        Ok(())
    }

    /// Packs and adds a file whose length is not known before.
    pub(super) fn pack(&mut self, out: &mut impl Write, name: &str, body: impl Read) -> io::Result<()> {
        let offset = self.written;
        let unknown = Member { name, deflated: true, crc: 0, length: 0, size: 0 };
        self.local(out, unknown, DESCRIPTOR)?;
        let mut body = Summed { inner: body, crc: crc32fast::Hasher::new(), bytes: 0 };
        let mut packed = DeflateEncoder::new(Counted { inner: out, bytes: 0 }, Compression::new(6));
        io::copy(&mut body, &mut packed)?;
        let Counted { inner: out, bytes: length } = packed.finish()?;
        let short =
            |bytes: u64| u32::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        let (crc, length, size) = (body.crc.finalize(), short(length)?, short(body.bytes)?);
        let member = Member { crc, length, size, ..unknown };
        self.written += u64::from(length);
        let mut descriptor = Vec::with_capacity(16);
        descriptor.extend(0x0807_4b50_u32.to_le_bytes());
        [crc, length, size].iter().for_each(|value| descriptor.extend(value.to_le_bytes()));
        self.put(out, &descriptor)?;
        self.record(member, DESCRIPTOR, offset);
        Ok(())
    }

    /// Writes the directory. Gives the bytes of the ZIP.
    pub(super) fn finish(mut self, out: &mut impl Write) -> io::Result<u64> {
        let (begin, length, members) = (self.written, self.directory.len() as u64, self.members);
        let directory = std::mem::take(&mut self.directory);
        self.put(out, &directory)?;
        let mut end = Vec::with_capacity(98);
        if members >= FULL_16 || begin >= FULL_32 || length >= FULL_32 {
            let record = self.written;
            end.extend(0x0606_4b50_u32.to_le_bytes());
            end.extend(44_u64.to_le_bytes());
            end.extend(VERSION_ZIP64.to_le_bytes());
            end.extend(VERSION_ZIP64.to_le_bytes());
            end.extend([0_u8; 8]);
            [members, members, length, begin].iter().for_each(|value| end.extend(value.to_le_bytes()));
            end.extend(0x0706_4b50_u32.to_le_bytes());
            end.extend(0_u32.to_le_bytes());
            end.extend(record.to_le_bytes());
            end.extend(1_u32.to_le_bytes());
        }
        end.extend(0x0605_4b50_u32.to_le_bytes());
        end.extend(0_u32.to_le_bytes());
        let members = members.min(FULL_16) as u16;
        end.extend(members.to_le_bytes());
        end.extend(members.to_le_bytes());
        end.extend((length.min(FULL_32) as u32).to_le_bytes());
        end.extend((begin.min(FULL_32) as u32).to_le_bytes());
        end.extend(0_u16.to_le_bytes());
        self.put(out, &end)?;
        Ok(self.written)
    }

    /// The header before the data of a file.
    fn local(&mut self, out: &mut impl Write, member: Member<'_>, flags: u16) -> io::Result<()> {
        let mut header = Vec::with_capacity(30 + member.name.len());
        header.extend(0x0403_4b50_u32.to_le_bytes());
        header.extend(VERSION.to_le_bytes());
        common(&mut header, member, flags);
        header.extend(0_u16.to_le_bytes());
        header.extend(member.name.as_bytes());
        self.put(out, &header)
    }

    /// The record of a file in the directory.
    fn record(&mut self, member: Member<'_>, flags: u16, offset: u64) {
        let is_far = offset >= FULL_32;
        let version = if is_far { VERSION_ZIP64 } else { VERSION };
        let record = &mut self.directory;
        record.extend(0x0201_4b50_u32.to_le_bytes());
        record.extend(version.to_le_bytes());
        record.extend(version.to_le_bytes());
        common(record, member, flags);
        record.extend(if is_far { 12_u16 } else { 0 }.to_le_bytes());
        // No comment, one disk, no attributes.
        record.extend([0_u8; 10]);
        record.extend((offset.min(FULL_32) as u32).to_le_bytes());
        record.extend(member.name.as_bytes());
        if is_far {
            record.extend(1_u16.to_le_bytes());
            record.extend(8_u16.to_le_bytes());
            record.extend(offset.to_le_bytes());
        }
        self.members += 1;
    }

    fn put(&mut self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// What header and record have in common: from the flags to the length of the name.
fn common(header: &mut Vec<u8>, member: Member<'_>, flags: u16) {
    let method = if member.deflated { DEFLATED } else { STORED };
    [flags, method, 0, DATE].iter().for_each(|value| header.extend(value.to_le_bytes()));
    [member.crc, member.length, member.size].iter().for_each(|value| header.extend(value.to_le_bytes()));
    header.extend((member.name.len() as u16).to_le_bytes());
}

/// Counts and sums what is read.
struct Summed<R> {
    inner: R,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.crc.update(buffer.get(..read).unwrap_or_default());
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Counts what is written.
struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn add(zip: &mut Zip, file: &mut Vec<u8>, name: &str, content: &[u8]) {
        let length = content.len() as u32;
        let member = Member { name, deflated: false, crc: crc32fast::hash(content), length, size: length };
        zip.add(file, member, &mut &content[..]).expect("a vector takes all");
    }

    #[test]
    fn more_files_than_a_plain_zip_holds() {
        for count in [3, 65_533, 65_534, 66_000] {
            let (mut zip, mut file) = (Zip::default(), Vec::new());
            for nth in 0..count {
                add(&mut zip, &mut file, &format!("{nth}.txt"), nth.to_string().as_bytes());
            }
            zip.pack(&mut file, "last.csv", &b"a,b\r\n"[..]).expect("a vector takes all");
            let length = zip.finish(&mut file).expect("a vector takes all");
            assert_eq!(length, file.len() as u64);
            let mut archive = zip::ZipArchive::new(Cursor::new(file)).expect("a ZIP");
            assert_eq!(archive.len(), count + 1);
            for (name, content) in [("0.txt", "0".to_owned()), ("last.csv", "a,b\r\n".to_owned())] {
                let mut text = String::new();
                archive.by_name(name).expect(name).read_to_string(&mut text).expect("its sum is right");
                assert_eq!(text, content);
            }
        }
    }

    #[test]
    fn a_file_behind_4_gib_is_found_by_its_zip64_entry() {
        let (mut zip, mut file) = (Zip { written: 5 << 30, ..Zip::default() }, Vec::new());
        add(&mut zip, &mut file, "far.txt", b"far");
        let record = &zip.directory;
        assert_eq!(record[42..46], [0xff; 4]);
        assert_eq!(record[46..53], *b"far.txt");
        assert_eq!(record[53..57], [1, 0, 8, 0]);
        assert_eq!(record[57..], (5_u64 << 30).to_le_bytes());
    }
}
