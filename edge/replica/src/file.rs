//! The replica on disk: written shard by shard while the table changes, read in one pass.
//!
//! The file is `links` in the data folder: a magic number, a block `length | crc32c | count | records` for each shard,
//! a tail `length | crc32c | JSON` (epoch, revisions, seed, shared texts), and the offset of the tail. It is written to
//! a temporary file, synced and renamed. A damaged, truncated or unknown file is skipped with a line in the log.
//!
//! Consistency: `applied` is read before the first shard is copied and `newest` after the last. So the file holds the
//! state of `applied`, with parts of it as of later revisions up to `newest`; events after `applied` bring the rest,
//! and those already contained change nothing. Texts are written last, so none that a record refers to is missing.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::Path,
    time::Instant,
};

use serde::{Deserialize, Serialize};
use shared::{
    redirect::RedirectKey,
    wire::stream::{Epoch, Rev},
};

use super::table::Table;

/// Name of the file.
const NAME: &str = "links";
/// First bytes of the file; the digit is the version of the form.
const MAGIC: &[u8; 8] = b"WMLINK1\n";
/// Last bytes of the file.
const END: &[u8; 8] = b"WMLINKS\n";
/// Most bytes of a block or a tail: the largest shard, and the texts of a full dictionary.
const MOST_BYTES: usize = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Tail<T> {
    epoch: Epoch,
    applied: Rev,
    newest: Rev,
    seed: u64,
    shards: usize,
    links: usize,
    unfit: Vec<RedirectKey>,
    texts: T,
}

/// A table as it was on disk.
#[derive(Debug)]
pub struct Loaded {
    /// The history.
    pub epoch: Epoch,
    /// Everything up to here is in the table.
    pub applied: Rev,
    /// Nothing that is newer is in the table.
    pub newest: Rev,
    /// Keys of links that the table does not hold, so that they are not absent for that.
    pub unfit: Vec<RedirectKey>,
    /// The links.
    pub table: Table,
}

/// Saves a table that is at `applied` of `epoch`. `rest` is called with the number of bytes written and may abort;
/// `last` is called when all links are written and returns a revision at least as new as everything in the file, and
/// the keys of links that the table does not hold.
///
/// Returns links and bytes.
pub fn save(
    folder: &Path,
    table: &Table,
    epoch: &Epoch,
    applied: Rev,
    last: impl FnOnce() -> (Rev, Vec<RedirectKey>),
    mut rest: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<(usize, u64)> {
    let (path, unfinished) = (folder.join(NAME), folder.join("links.new"));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    file.write_all(MAGIC)?;
    let (shards, seed) = table.form();
    let (mut bytes, mut links, mut block) = (MAGIC.len() as u64, 0, Vec::new());
    for number in 0..shards {
        block.clear();
        let count = table.copy_shard(number, &mut block);
        links += count;
        let count = u32::try_from(count).map_err(io::Error::other)?.to_le_bytes();
        let sum = crc32c::crc32c_append(crc32c::crc32c(&count), &block);
        bytes += put(&mut file, sum, &count, &block)?;
        rest(bytes)?;
    }
    let (newest, unfit) = last();
    let tail =
        Tail { epoch: epoch.clone(), applied, newest, seed, shards, links, unfit, texts: table.texts() };
    let (at, tail) = (bytes, serde_json::to_vec(&tail)?);
    bytes += put(&mut file, crc32c::crc32c(&tail), &[], &tail)?;
    file.write_all(&at.to_le_bytes())?;
    file.write_all(END)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&unfinished, &path)?;
    File::open(folder)?.sync_all()?;
    Ok((links, bytes + 16))
}

fn put(file: &mut impl Write, sum: u32, count: &[u8], body: &[u8]) -> io::Result<u64> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&sum.to_le_bytes())?;
    file.write_all(count)?;
    file.write_all(body)?;
    Ok(8 + count.len() as u64 + u64::from(length))
}

/// Reads what an earlier start left.
pub fn load(folder: &Path) -> Option<Loaded> {
    let path = folder.join(NAME);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::error!(%error, "the links on disk cannot be read");
            return None;
        }
    };
    let begun = Instant::now();
    match read(BufReader::with_capacity(1 << 20, file)) {
        Ok((loaded, links)) => {
            tracing::info!(applied = loaded.applied, links, took = ?begun.elapsed(), "all links are read from disk");
            Some(loaded)
        }
        Err(error) => {
            tracing::error!(%error, file = %path.display(), "the links on disk are damaged and passed over");
            None
        }
    }
}

fn read(mut file: impl Read + Seek) -> io::Result<(Loaded, usize)> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    if &take::<8>(&mut file)? != MAGIC {
        return Err(wrong("another form"));
    }
    let end = file.seek(SeekFrom::End(-16))?;
    let at = u64::from_le_bytes(take(&mut file)?);
    if &take::<8>(&mut file)? != END {
        return Err(wrong("the end is missing"));
    }
    file.seek(SeekFrom::Start(at))?;
    let tail = take_body(&mut file, &[])?;
    if at.checked_add(8 + tail.len() as u64) != Some(end) {
        return Err(wrong("the tail has another length"));
    }
    let Tail { epoch, applied, newest, seed, shards, links, unfit, texts } = serde_json::from_slice(&tail)?;
    drop(tail);
    let bits = if shards.is_power_of_two() { shards.trailing_zeros() } else { u32::MAX };
    let mut table = Table::restore(bits, seed, &texts).ok_or_else(|| wrong("another form of table"))?;
    file.seek(SeekFrom::Start(MAGIC.len() as u64))?;
    let mut found = 0;
    for number in 0..shards {
        let (count, records) = take_block(&mut file)?;
        found += count;
        table.restore_shard(number, records, count).ok_or_else(|| wrong("records do not fit their shard"))?;
    }
    if found != links || file.stream_position()? != at || applied > newest {
        return Err(wrong("another number of links"));
    }
    Ok((Loaded { epoch, applied, newest, unfit, table }, links))
}

fn take_block(file: &mut impl Read) -> io::Result<(usize, Vec<u8>)> {
    let header: [u8; 8] = take(file)?;
    let count: [u8; 4] = take(file)?;
    let body = take_body(&mut header.as_slice().chain(file), &count)?;
    // As wide as a pointer at least.
    Ok((u32::from_le_bytes(count) as usize, body))
}

/// Takes `length | crc32c | body`, where the sum covers `before` too.
fn take_body(file: &mut impl Read, before: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::from_le_bytes(take(file)?) as usize;
    let sum = u32::from_le_bytes(take(file)?);
    if length > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a block is too long"));
    }
    let mut body = Vec::new();
    file.take(length as u64).read_to_end(&mut body)?;
    if body.len() != length || crc32c::crc32c_append(crc32c::crc32c(before), &body) != sum {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a checksum does not fit"));
    }
    Ok(body)
}

fn take<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::{
        super::table::tests::{key, link},
        *,
    };

    fn table(keys: impl IntoIterator<Item = u32>) -> Table {
        let table = Table::with_shards(2);
        for n in keys {
            table.put(&key("tn.gg", n), u64::from(n) + 1, &link("tn.gg", n, n)).unwrap();
        }
        table
    }

    fn written(folder: &Path, table: &Table) -> Vec<u8> {
        save(folder, table, &"E".into(), 7, || (9, vec![key("tn.gg", 9_999)]), |_| Ok(())).unwrap();
        fs::read(folder.join(NAME)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn a_saved_table_is_loaded_and_can_be_changed(
            keys in prop::collection::btree_set(0..3_000_u32, 0..400),
            gone in prop::collection::btree_set(0..3_000_u32, 0..400),
            more in prop::collection::btree_set(0..3_000_u32, 0..400),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let before = table(keys.iter().copied());
            gone.iter().for_each(|n| before.remove(&key("tn.gg", *n), u64::MAX));
            let _ = written(folder.path(), &before);
            let Loaded { epoch, applied, newest, unfit, table } = load(folder.path()).unwrap();
            prop_assert_eq!((&*epoch, applied, newest, unfit), ("E", 7, 9, vec![key("tn.gg", 9_999)]));
            prop_assert_eq!(table.count(), before.count());
            for n in more.iter().copied() {
                for each in [&before, &table] {
                    each.put(&key("tn.gg", n), u64::from(n) + 5_000, &link("tn.gg", n, n + 1)).unwrap();
                }
            }
            for n in 0..3_000 {
                let folded = &key("tn.gg", n).folded;
                prop_assert_eq!(table.find("tn.gg", folded), before.find("tn.gg", folded));
            }
        }
    }

    #[test]
    fn a_damaged_file_is_refused_wherever_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let whole = written(folder.path(), &table(0..12));
        assert!(read(Cursor::new(&whole)).is_ok());
        for cut in 0..whole.len() {
            assert!(read(Cursor::new(&whole[..cut])).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(read(Cursor::new(&damaged)).is_err(), "damaged at {at}");
        }
        assert!(read(Cursor::new([&whole[..], b"x"].concat())).is_err(), "something behind");
        assert!(load(&folder.path().join("none")).is_none());
    }

    #[test]
    fn changes_during_a_save_are_covered_by_later_events() {
        let folder = tempfile::tempdir().unwrap();
        let before = table(0..1_000);
        let mut step = 0;
        // Between two shards: a change, a deletion and a link of a new template each.
        let rest = |_| {
            step += 1;
            before.put(&key("tn.gg", step), 2_000 + u64::from(step), &link("tn.gg", step, 5)).unwrap();
            before.remove(&key("tn.gg", 500 + step), 3_000);
            let target = format!("https://new{step}.example/");
            let new = shared::redirect::Redirect { target: target.into(), ..link("tn.gg", 5_000 + step, 0) };
            before.put(&key("tn.gg", 5_000 + step), 4_000, &new).unwrap();
            Ok(())
        };
        save(folder.path(), &before, &"E".into(), 1_000, || (4_000, Vec::new()), rest).unwrap();
        let loaded = load(folder.path()).unwrap();
        for step in 1..=4_u32 {
            loaded.table.put(&key("tn.gg", step), 2_000 + u64::from(step), &link("tn.gg", step, 5)).unwrap();
            loaded.table.remove(&key("tn.gg", 500 + step), 3_000);
            let (rev, new) = before.find("tn.gg", &key("tn.gg", 5_000 + step).folded).unwrap();
            loaded.table.put(&key("tn.gg", 5_000 + step), rev, &new).unwrap();
        }
        for n in 0..6_000 {
            let RedirectKey { domain, folded } = key("tn.gg", n);
            assert_eq!(loaded.table.find(&domain, &folded), before.find(&domain, &folded), "{n}");
        }
    }
}
