//! The links of a run: short ids and targets made from a seed, so that a run can be repeated exactly.

use std::{
    collections::HashSet,
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::Result;
use shared::short_id::{GENERATED_LEN, ShortId};

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

    fn id(&mut self) -> Id {
        let (high, low) = (u128::from(self.next()), u128::from(self.next()));
        let text = ShortId::generate((high << 64 | low).to_be_bytes());
        let mut id = Id::default();
        id.copy_from_slice(text.as_str().as_bytes());
        id
    }
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The known links, and as many ids that are not among them.
#[derive(Debug)]
pub(crate) struct Links {
    /// Short ids that lead somewhere; all different.
    pub(crate) known: Vec<Id>,
    /// Short ids that lead nowhere.
    pub(crate) unknown: Vec<Id>,
    seed: u64,
}

impl Links {
    /// `count` links and as many unknown ids.
    pub(crate) fn generate(count: usize, seed: u64) -> Self {
        let (mut rng, mut seen) = (Rng::new(seed), HashSet::with_capacity(count * 2));
        let mut fresh = |count: usize| {
            let mut ids = Vec::with_capacity(count);
            while ids.len() < count {
                let id = rng.id();
                if seen.insert(id) {
                    ids.push(id);
                }
            }
            ids
        };
        let (known, unknown) = (fresh(count), fresh(count));
        Self { known, unknown, seed }
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
            file.write_all(&self.known[index])?;
            write!(file, "\",\"platformId\":\"{platform_id}\",\"defaultRedirectUrl\":\"")?;
            file.write_all(&self.target(index))?;
            file.write_all(b"\"}\n")?;
        }
        Ok(file.flush()?)
    }

    /// Writes all links as an nginx `map`.
    pub(crate) fn write_nginx_map(&self, path: &Path) -> Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for (index, id) in self.known.iter().enumerate() {
            file.write_all(b"/")?;
            file.write_all(id)?;
            file.write_all(b" \"")?;
            file.write_all(&self.target(index))?;
            file.write_all(b"\";\n")?;
        }
        Ok(file.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_links_and_all_are_different() {
        let (one, two) = (Links::generate(5_000, 7), Links::generate(5_000, 7));
        assert_eq!((&one.known, &one.unknown), (&two.known, &two.unknown));
        assert_ne!(one.known, Links::generate(5_000, 8).known);
        let all: HashSet<&Id> = one.known.iter().chain(&one.unknown).collect();
        assert_eq!(all.len(), 10_000);
    }

    #[test]
    fn targets_are_urls_that_the_service_takes() {
        let links = Links::generate(16, 1);
        for index in 0..16 {
            let target = links.target(index);
            let text = std::str::from_utf8(&target).unwrap();
            assert_eq!(shared::target::Target::parse(text).unwrap().as_str(), text);
        }
    }
}
