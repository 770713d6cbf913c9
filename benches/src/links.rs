//! The links of a run: short ids and targets made from a seed, so that a run can be repeated exactly.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::Result;
use shared::{
    id,
    redirect::{Redirect, RedirectKey},
    short_id::{GENERATED_ALPHABET, GENERATED_LEN},
    time::UnixMillis,
};

/// A short id as the service would generate it.
pub(crate) type Id = [u8; GENERATED_LEN];

/// Length of every target in bytes: what a shop's deep link has.
pub(crate) const TARGET_LEN: usize = 60;

/// The shared beginnings of the targets; digits fill the rest.
const TEMPLATES: [&[u8]; 4] = [
    b"https://shop.example.com/products/view?item=",
    b"https://www.example.org/recycling/instructions/",
    b"https://passport.example.net/p/textile/",
    b"https://example.com/en/warranty/register#s=",
];

/// A small generator of random numbers (splitmix64): fast, seeded, good enough to pick links.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator that always gives the same numbers for `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        ((self.next() as u128 * bound as u128) >> 64) as usize
    }
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The short domain of the links, where it is not the address of the server.
pub(crate) const HOST: &str = "tn.gg";

/// When the links were made, in milliseconds since 1970.
const MADE_AT: UnixMillis = UnixMillis(1_790_000_000_000);

/// The known links, and as many ids that are not among them; computed, so that a hundred million take no memory.
///
/// All short ids are cut into as many ranges as there are links. In the lower half of each one id is known, in
/// the upper half one is not: both look random behind their first letters, and the known ones are in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    count: usize,
    seed: u64,
}

impl Links {
    /// `count` links (1 to 10^12) and as many unknown ids.
    pub(crate) fn generate(count: usize, seed: u64) -> Self {
        Self { count: count.max(1), seed }
    }

    /// How many links there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// A short id that leads somewhere; all are different, and in order.
    pub(crate) fn known(&self, index: usize) -> Id {
        self.id(index, 0)
    }

    /// A short id that leads nowhere; all are different.
    pub(crate) fn unknown(&self, index: usize) -> Id {
        self.id(index, 1)
    }

    /// In the range of which link a short id lies, read as a number.
    pub(crate) fn place(&self, number: u64) -> usize {
        (number / self.range()) as usize
    }

    const fn range(&self) -> u64 {
        (GENERATED_ALPHABET.len() as u64).pow(GENERATED_LEN as u32) / self.count as u64
    }

    fn id(&self, index: usize, half: u64) -> Id {
        let (letters, range) = (GENERATED_ALPHABET.len() as u64, self.range());
        let within = mix(self.seed.wrapping_mul(2).wrapping_add(half) ^ mix(index as u64)) % (range / 2);
        let mut rest = range * index as u64 + range / 2 * half + within;
        let mut id = Id::default();
        for letter in id.iter_mut().rev() {
            *letter = GENERATED_ALPHABET[(rest % letters) as usize];
            rest /= letters;
        }
        id
    }

    /// The key of a known link, as an edge has it.
    pub(crate) fn key(&self, index: usize) -> RedirectKey {
        RedirectKey::new(HOST, &text(&self.known(index)))
    }

    /// The record of a known link, as control has it; `target` leads elsewhere.
    pub(crate) fn record(&self, index: usize, target: Option<String>) -> Result<Redirect> {
        self.record_of(&self.known(index), target.unwrap_or_else(|| text(&self.target(index))))
    }

    /// A record of any short id.
    pub(crate) fn record_of(&self, id: &Id, target: String) -> Result<Redirect> {
        let mut random = [0; 16];
        for (at, letter) in id.iter().enumerate() {
            random[at] = letter ^ self.seed.to_le_bytes()[at % 8];
        }
        let thng = text(&id::compose(MADE_AT.0, random));
        Ok(Redirect {
            thng_id: Some(thng.parse()?),
            ..Redirect::plain(HOST.parse()?, text(id).parse()?, thng.parse()?, target, MADE_AT)
        })
    }

    /// Where the known link at `index` leads.
    pub(crate) fn target(&self, index: usize) -> [u8; TARGET_LEN] {
        let mut target = [b'0'; TARGET_LEN];
        let template = TEMPLATES[index % TEMPLATES.len()];
        target[..template.len()].copy_from_slice(template);
        let mut rest = mix(self.seed ^ index as u64);
        for digit in target[template.len()..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        target
    }

    /// Writes the links of `range` as the import reads them: one JSON object a line.
    pub(crate) fn write_ndjson(
        &self,
        path: &Path,
        range: std::ops::Range<usize>,
        platform_id: &str,
    ) -> Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for index in range {
            file.write_all(b"{\"shortId\":\"")?;
            file.write_all(&self.known(index))?;
            write!(file, "\",\"platformId\":\"{platform_id}\",\"defaultRedirectUrl\":\"")?;
            file.write_all(&self.target(index))?;
            file.write_all(b"\"}\n")?;
        }
        Ok(file.flush()?)
    }

    /// Writes a line for each link: `/ID`, what stands between, the target, and an end.
    pub(crate) fn write_map(&self, path: &Path, between: &[u8], end: &[u8]) -> Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for index in 0..self.count {
            file.write_all(b"/")?;
            file.write_all(&self.known(index))?;
            file.write_all(between)?;
            file.write_all(&self.target(index))?;
            file.write_all(end)?;
        }
        Ok(file.flush()?)
    }
}

/// ASCII as text.
pub(crate) fn text(ascii: &[u8]) -> String {
    String::from_utf8_lossy(ascii).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_seed_gives_the_same_links_and_all_are_different() {
        let ids = |links: &Links| {
            (0..5_000).flat_map(|at| [links.known(at), links.unknown(at)]).collect::<Vec<_>>()
        };
        let (one, two) = (Links::generate(5_000, 7), Links::generate(5_000, 7));
        assert_eq!(ids(&one), ids(&two));
        assert_ne!(ids(&one), ids(&Links::generate(5_000, 8)));
        assert_eq!(ids(&one).iter().collect::<HashSet<_>>().len(), 10_000);
        assert!((1..5_000).all(|at| one.known(at - 1) < one.known(at)), "pages are read in this order");
    }

    #[test]
    fn a_hundred_million_links_are_as_different() {
        let links = Links::generate(100_000_000, 1);
        let last = links.count() - 1;
        let some = [0, 1, 2, last / 2, last - 1, last];
        let ids: HashSet<Id> = some.iter().flat_map(|at| [links.known(*at), links.unknown(*at)]).collect();
        assert_eq!(ids.len(), 12);
        assert!(links.known(last) < links.unknown(last));
    }

    #[test]
    fn targets_and_records_are_such_as_the_service_takes() {
        let links = Links::generate(16, 1);
        for index in 0..16 {
            let target = text(&links.target(index));
            assert_eq!(shared::target::Target::parse(&target).unwrap().as_str(), target);
            let record = links.record(index, None).unwrap();
            assert_eq!((record.short_id.as_str(), &*record.target), (&*text(&links.known(index)), &*target));
            assert_eq!(*links.key(index).folded, *record.short_id.as_str());
        }
    }
}
