//! What a link takes in memory, and what a look-up takes.
//!
//! The replica's table beside a `HashMap` (hashbrown) and moka, each in a process of its own, with the same links:
//! ids of ten characters, targets of 60 characters over ten templates. Memory is what the process grew by.

use std::{
    collections::HashMap,
    env, fs,
    hint::black_box,
    io::{Write as _, stdout},
    process::Command,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use foldhash::quality::RandomState;
use replica::Table;
use shared::{
    redirect::{Redirect, RedirectKey},
    time::UnixMillis,
};

const HOST: &str = "tn.gg";
const FORMS: [&str; 3] = ["table", "hashmap", "moka"];
const LOOKUPS: u64 = 2_000_000;

/// Measures the replica's table beside a HashMap and moka, each in a process of its own.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Links that each of them holds
    #[arg(default_value = "1000000", value_parser = number)]
    links: u64,
    /// The one that this process measures; not for people
    #[arg(hide = true)]
    form: Option<String>,
}

/// A number, in groups of digits if somebody likes that.
fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.replace('_', "").parse()
}

/// Runs the benchmark and prints a table.
///
/// # Errors
/// A known link was not found, or an unknown one was.
pub(crate) fn run(args: &Args, is_smoke: bool) -> Result<bool> {
    let (links, lookups) = if is_smoke { (1_000, 10_000) } else { (args.links, LOOKUPS) };
    if let Some(form) = &args.form {
        measure(form, links, lookups)?;
        return Ok(true);
    }
    writeln!(
        stdout(),
        "| structure | links | bytes/link | put ns | look-up ns | absent ns |\n|---|---|---|---|---|---|"
    )?;
    for form in FORMS {
        let mut command = Command::new(env::current_exe()?);
        command.args(["table", &links.to_string(), form]).args(is_smoke.then_some("--smoke"));
        ensure!(command.status()?.success(), "{form} failed");
    }
    Ok(true)
}

/// A number that looks like chance, one to one.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

fn short_id(n: u64) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mixed = mixed(n);
    // Ten letters of five bits: below the length of the list.
    (0..10).map(|at| char::from(LETTERS[(mixed >> (5 * at) & 31) as usize])).collect()
}

fn link(n: u64) -> Result<(RedirectKey, Redirect)> {
    let short_id = short_id(n);
    let mut random = [0; 16];
    random[..8].copy_from_slice(&mixed(n + 1).to_le_bytes());
    random[8..].copy_from_slice(&mixed(n + 2).to_le_bytes());
    let platform_id = String::from_utf8(shared::id::compose(1_790_000_000_000, random).to_vec())?;
    let record = Redirect {
        thng_id: Some(platform_id.parse()?),
        ..Redirect::plain(
            HOST.parse()?,
            short_id.parse()?,
            platform_id.parse()?,
            format!("https://shop{}.example.com/products/view?item=47110{n:010}", n % 10),
            UnixMillis(1_790_000_000_000),
        )
    };
    Ok((RedirectKey::new(HOST, &short_id), record))
}

fn resident_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

/// One of the structures, with what is asked of it; the maps hold key and target alone, not the whole record.
trait Form {
    fn put(&mut self, n: u64, key: RedirectKey, link: Redirect) -> Result<()>;
    fn target(&self, short_id: &str) -> Option<usize>;
}

struct Replica(Table);

impl Form for Replica {
    fn put(&mut self, n: u64, key: RedirectKey, link: Redirect) -> Result<()> {
        if self.0.put(&key, n + 1, &link).is_err() {
            bail!("no room for a link");
        }
        Ok(())
    }

    fn target(&self, short_id: &str) -> Option<usize> {
        self.0.find(HOST, short_id).map(|(_, link)| link.target.len())
    }
}

struct Map(HashMap<Box<str>, Box<str>, RandomState>);

impl Form for Map {
    fn put(&mut self, _: u64, key: RedirectKey, link: Redirect) -> Result<()> {
        self.0.insert((&*key.folded).into(), link.target);
        Ok(())
    }

    fn target(&self, short_id: &str) -> Option<usize> {
        self.0.get(short_id).map(|target| target.len())
    }
}

struct Moka(moka::sync::Cache<Arc<str>, Arc<str>, RandomState>);

impl Form for Moka {
    fn put(&mut self, _: u64, key: RedirectKey, link: Redirect) -> Result<()> {
        self.0.insert(key.folded, link.target.into());
        Ok(())
    }

    fn target(&self, short_id: &str) -> Option<usize> {
        self.0.get(short_id).map(|target| target.len())
    }
}

fn measure(form: &str, links: u64, lookups: u64) -> Result<()> {
    let before = resident_bytes()?;
    let mut held: Box<dyn Form> = match form {
        "table" => Box::new(Replica(Table::default())),
        "hashmap" => Box::new(Map(HashMap::default())),
        "moka" => {
            let cache = moka::sync::Cache::builder().max_capacity(u64::MAX);
            Box::new(Moka(cache.build_with_hasher(RandomState::default())))
        }
        other => bail!("{other} is none of {FORMS:?}"),
    };
    let begun = Instant::now();
    for n in 0..links {
        let (key, link) = link(n)?;
        held.put(n, key, link)?;
    }
    // With what it takes to make the link.
    let put = begun.elapsed().as_nanos() as f64 / links as f64;
    let bytes = resident_bytes()?.saturating_sub(before) as f64 / links as f64;
    let look = |first: u64| {
        let ids: Vec<String> = (0..lookups).map(|n| short_id(first + mixed(n) % links)).collect();
        let begun = Instant::now();
        let found = ids.iter().filter(|id| black_box(held.target(id)).is_some()).count() as u64;
        (begun.elapsed().as_nanos() as f64 / lookups as f64, found)
    };
    let ((known, found), (absent, none)) = (look(0), look(links));
    ensure!(found == lookups && none == 0, "{found} of {lookups} were found, and {none} that are not there");
    writeln!(stdout(), "| {form} | {links} | {bytes:.0} | {put:.0} | {known:.0} | {absent:.0} |")?;
    Ok(())
}
