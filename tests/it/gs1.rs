//! GS1 Digital Link: our verdicts are those of GS1's engine.
//!
//! The engine is a library in C that no package has. Its verdicts on the first URIs are recorded in a fixture. With
//! `WAYMARK_TEST_GS1_ENGINE`, the folder of a checkout of <https://github.com/gs1/gs1-syntax-engine>, it is compiled and
//! asked; `WAYMARK_REFRESH_GS1=1` records its verdicts anew. `tests/run --long` needs it.

mod uris;

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    iter,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result, bail, ensure};
use digital_link::{DigitalLink, DigitalLinkError};

use self::uris::Random;

const ENGINE: &str = "WAYMARK_TEST_GS1_ENGINE";

/// URIs whose verdicts are recorded.
const RECORDED: usize = 5_000;

const SEED: u64 = 0x0952_8765;

/// What the engine says of a URI. Details are there only if it was asked, not in the fixture.
struct Verdict {
    taken: bool,
    details: Option<Details>,
}

enum Details {
    Taken { elements: String, uri: String },
    Refused { why: String },
}

#[test]
fn verdicts_are_those_that_the_engine_had() -> Result<()> {
    if is_refresh() {
        // The other test writes them.
        return Ok(());
    }
    let targets = targets(RECORDED);
    let text = fs::read_to_string(fixture())?;
    let mut lines = text.lines().skip_while(|line| line.starts_with('#'));
    let fingerprint = lines.next().context("no fingerprint")?;
    ensure!(
        fingerprint == fingerprint_of(&targets),
        "other URIs than those of the fixture: record them anew"
    );
    let bits: String = lines.collect();
    let verdicts = bits.chars().flat_map(|digit| {
        let nibble = digit.to_digit(16).expect("a hexadecimal digit");
        (0..4).rev().map(move |bit| Verdict { taken: nibble >> bit & 1 == 1, details: None })
    });
    compare(&targets, verdicts.collect())
}

#[test]
fn verdicts_are_those_of_the_engine() -> Result<()> {
    let Some(folder) = std::env::var_os(ENGINE) else {
        ensure!(!tests::is_long(), "{ENGINE} must be the folder of a checkout of GS1's engine");
        eprintln!("not run: {ENGINE} is not set, so only the verdicts that are recorded count");
        return Ok(());
    };
    let scratch = tempfile::tempdir()?;
    let program = compile(Path::new(&folder), scratch.path())?;
    let targets = targets(tests::repetitions(RECORDED, 200_000));
    let verdicts = ask(&program, &targets)?;
    if is_refresh() {
        record(&targets, &verdicts)?;
    }
    compare(&targets, verdicts)
}

fn is_refresh() -> bool {
    std::env::var_os("WAYMARK_REFRESH_GS1").is_some()
}

/// Paths with queries, the same in each run.
fn targets(count: usize) -> Vec<String> {
    let mut random = Random::new(SEED);
    iter::repeat_with(|| uris::uri(&mut random)).take(count).collect()
}

fn compare(targets: &[String], verdicts: Vec<Verdict>) -> Result<()> {
    ensure!(targets.len() == verdicts.len(), "{} verdicts on {} URIs", verdicts.len(), targets.len());
    let mut faults = Vec::new();
    let (mut taken, mut refused) = (0, 0);
    for (target, verdict) in targets.iter().zip(&verdicts) {
        let (path, query) = split(target);
        let ours = DigitalLink::parse(path, query);
        taken += usize::from(ours.is_ok());
        refused += usize::from(ours.is_err());
        if !agree(&ours, verdict) {
            let theirs = match &verdict.details {
                None if verdict.taken => "taken",
                None => "refused",
                Some(Details::Taken { uri, .. }) => uri,
                Some(Details::Refused { why }) => why,
            };
            faults.push(format!("{target}: {ours:?}; the engine: {theirs}"));
        }
    }
    // Else the comparison says little.
    ensure!(taken > targets.len() / 4 && refused > targets.len() / 4, "{taken} taken, {refused} refused");
    ensure!(faults.is_empty(), "{} verdicts differ:\n{}", faults.len(), faults.join("\n"));
    Ok(())
}

/// Whether we and the engine say the same, but for what the README of the crate lists.
fn agree(ours: &Result<DigitalLink<'_>, DigitalLinkError>, verdict: &Verdict) -> bool {
    match (ours, &verdict.details) {
        (Ok(link), Some(Details::Taken { elements, uri })) => {
            let canonical = link.uri("id.example");
            // Attributes follow the qualifiers in both.
            elements.replace("\\(", "(").starts_with(&link.human_readable())
                && uri.strip_prefix(&canonical).is_some_and(|rest| rest.is_empty() || rest.starts_with('?'))
        }
        (Ok(_), _) => verdict.taken,
        // Another key.
        (Err(DigitalLinkError::NoKey), Some(Details::Taken { elements, .. })) => {
            !elements.starts_with("(01)")
        }
        (Err(DigitalLinkError::NoKey | DigitalLinkError::Prefix), _) => true,
        (Err(_), _) => !verdict.taken,
    }
}

fn split(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

/// Compiles our program with the C library of the engine.
fn compile(folder: &Path, scratch: &Path) -> Result<PathBuf> {
    let library = folder.join("src/c-lib");
    let program = scratch.join("verdicts");
    let mut sources = Vec::new();
    for folder in [library.clone(), library.join("syntax")] {
        for entry in fs::read_dir(&folder).with_context(|| format!("no engine in {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            let part = !["test", "fuzzer", "app", "example"].iter().any(|other| name.contains(other));
            if part && path.extension().is_some_and(|ending| ending == "c") {
                sources.push(path);
            }
        }
    }
    let output = Command::new("cc")
        .args(["-O1", "-w", "-DGS1_LINTER_ERR_STR_EN", "-I"])
        .arg(&library)
        .arg("-o")
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/gs1/verdicts.c"))
        .args(sources)
        .output()?;
    if !output.status.success() {
        bail!("cc: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(program)
}

fn ask(program: &Path, targets: &[String]) -> Result<Vec<Verdict>> {
    let mut input = String::new();
    for target in targets {
        let (path, query) = split(target);
        // One `/` at the end is tolerated here, not by the engine.
        let path = path.strip_suffix('/').unwrap_or(path);
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        input += &format!("https://id.example{path}{query}\n");
    }
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no input")?;
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("the writer does not panic")?;
    ensure!(output.status.success(), "the engine ended with {}", output.status);
    String::from_utf8(output.stdout)?.lines().map(verdict).collect()
}

fn verdict(line: &str) -> Result<Verdict> {
    let mut fields = line.split('\t').map(str::to_owned);
    let (kind, first) = (fields.next(), fields.next());
    match (kind.as_deref(), first, fields.next()) {
        (Some("+"), Some(elements), Some(uri)) => {
            Ok(Verdict { taken: true, details: Some(Details::Taken { elements, uri }) })
        }
        (Some("-"), Some(why), None) => Ok(Verdict { taken: false, details: Some(Details::Refused { why }) }),
        _ => bail!("the engine says {line:?}"),
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/gs1_verdicts.txt")
}

fn fingerprint_of(targets: &[String]) -> String {
    blake3::hash(targets.join("\n").as_bytes()).to_hex().to_string()
}

fn record(targets: &[String], verdicts: &[Verdict]) -> Result<()> {
    let (targets, verdicts) = (&targets[..RECORDED], &verdicts[..RECORDED]);
    let mut text = "# Verdicts of GS1's engine on the URIs of tests/it/gs1/uris.rs: BLAKE3 of the URIs, then a bit each, 1 is taken.\n\
        # Written by WAYMARK_REFRESH_GS1=1 WAYMARK_TEST_GS1_ENGINE=FOLDER cargo nextest run --workspace -E 'test(gs1::)'\n"
        .to_owned();
    text += &fingerprint_of(targets);
    for line in verdicts.chunks(400) {
        text.push('\n');
        for nibble in line.chunks(4) {
            let value = nibble.iter().fold(0, |value, verdict| value << 1 | u32::from(verdict.taken));
            text.push(char::from_digit(value, 16).expect("four bits"));
        }
    }
    text.push('\n');
    Ok(fs::write(fixture(), text)?)
}
