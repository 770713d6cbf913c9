//! Runs each region below callgrind, and compares with what is checked in.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{Write as _, stdout},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use crate::regions::{ALL, Region};

/// Allowed difference with the compiler of the checked-in counts, in percent.
const TOLERANCE: f64 = 3.0;
/// The same with another one, which lays code out in another way.
const OTHER_COMPILER: f64 = 15.0;

/// What is checked in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    /// Compiler and target, as the build knew them.
    compiler: String,
    /// Instructions for doing each thing once.
    instructions: BTreeMap<String, u64>,
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.json")
}

/// Counts everything; fails when something takes more than is checked in.
///
/// # Errors
/// valgrind is missing, a region fails, or a count is off by more than the tolerance in either direction: one
/// that fell is checked in too, or it could rise again unseen.
pub(crate) fn run(is_refresh: bool) -> Result<()> {
    let now = Counts { compiler: compiler()?, instructions: count_all()? };
    let mut out = stdout();
    if is_refresh {
        for (name, count) in &now.instructions {
            writeln!(out, "{name}: {count}")?;
        }
        fs::write(file(), serde_json::to_string_pretty(&now)? + "\n")?;
        return Ok(());
    }
    let text = fs::read_to_string(file()).context("counts.json")?;
    let then: Counts = serde_json::from_str(&text).context("counts.json")?;
    let tolerance = if then.compiler == now.compiler {
        TOLERANCE
    } else {
        writeln!(out, "counted with {}, checked in with {}", now.compiler, then.compiler)?;
        OTHER_COMPILER
    };
    let mut off = Vec::new();
    for region in &ALL {
        let name = region.name;
        let before = *then.instructions.get(name).with_context(|| format!("counts.json has no {name:?}"))?;
        let change = |count: u64| (count as f64 / before as f64 - 1.0) * 100.0;
        let mut counted = now.instructions.get(name).copied().unwrap_or_default();
        // On a machine that does other work the writer of scans takes a buffer more often, and each exchange adds.
        if change(counted) > tolerance {
            counted = counted.min(count(region)?);
        }
        let change = change(counted);
        writeln!(out, "{name}: {counted} instructions, {change:+.2} % of {before}")?;
        if change.abs() > tolerance {
            off.push(format!("{name} {change:+.1} %"));
        }
    }
    ensure!(
        off.is_empty(),
        "more than {tolerance} % away from benches/counts.json: {}; if that is intended, refresh it with \
         `cargo bench --profile count -p benches --no-default-features --bench count -- --refresh`",
        off.join(", ")
    );
    Ok(())
}

/// Counts every region, as many at a time as there are cores.
fn count_all() -> Result<BTreeMap<String, u64>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(String, u64)>> {
        let mut counted = Vec::new();
        while let Some(region) = ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            counted.push((region.name.to_owned(), count(region)?));
        }
        Ok(counted)
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all = BTreeMap::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow!("a thread that counted panicked"))??);
        }
        Ok(all)
    })
}

/// Instructions for doing the region's thing once.
fn count(region: &Region) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("callgrind.out");
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--toggle-collect=*counted_region*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe()?)
        .args(["--region", region.name])
        .output()
        .context("valgrind cannot be run: install the package of this name")?;
    ensure!(ran.status.success(), "{}: {}", region.name, String::from_utf8_lossy(&ran.stderr));
    let text = fs::read_to_string(&out)?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")))
        .and_then(|total| total.trim().parse::<u64>().ok())
        .context("callgrind gave no total")?;
    let each = total / region.times as u64;
    ensure!(each > 100, "{}: {total} instructions in all: the region was not found", region.name);
    Ok(each)
}

fn compiler() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let told = Command::new(rustc).arg("-vV").output().context("rustc cannot be run")?;
    let text = String::from_utf8_lossy(&told.stdout);
    let line =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown").to_owned();
    Ok(format!("rustc {} {}", line("release: "), line("host: ")))
}
