//! Hostile inputs in a worker of its own: the reported faults, memory use, and files left on disk.

use std::{
    fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::Value;
use tests::{
    db::Engine,
    product::{Options, Product},
};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{
    DEADLINE, DONE, Expected, OPEN, Worker, count, execute, number, submit_file, thngs, until, wait_for,
};

/// What the reading of an input may take beyond what an honest one took, however large it claims to be: parts of
/// the four inputs that are read at once, their buffers, and what the allocator keeps of them.
const GROWTH_KB: u64 = 64 << 10;

const ENCRYPTED: &[u8] = include_bytes!("../../fixtures/jobs/encrypted.zip");
const ZIP64: &[u8] = include_bytes!("../../fixtures/jobs/zip64.zip");

fn zip(files: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default())?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

/// An archive of one file with a line of so many MiB between two others, packed some thirty to one.
fn long_line(mebibytes: usize) -> Result<Vec<u8>> {
    let mut state = 1_u64;
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a.csv", SimpleFileOptions::default())?;
    writer.write_all(b"UKXAGyEf8SQ5eTDmVgGpHqAa\n")?;
    let mut part = vec![b'x'; 1 << 20];
    for _ in 0..mebibytes {
        // Letters that do not repeat, between runs that do.
        for letters in part.chunks_mut(4_096) {
            for letter in &mut letters[..200] {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *letter = b'a' + state.to_le_bytes()[7] % 26;
            }
        }
        writer.write_all(&part)?;
    }
    writer.write_all(b"\nUKXAGyEf8SQ5eTDmVgGpHqAa\n")?;
    Ok(writer.finish()?.into_inner())
}

/// Most memory that a process has had, in KiB.
fn peak_kb(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Every file below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Jobs that nobody may take: they wait for the worker of the test.
async fn hold_back(product: &Product) -> Result<()> {
    let sql = "CREATE FUNCTION hold_back() RETURNS trigger LANGUAGE plpgsql AS $$ \
        BEGIN NEW.lease_until := 9000000000000000; RETURN NEW; END $$; \
        CREATE TRIGGER hold_back BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION hold_back()";
    execute(&product.location(), sql).await
}

async fn set_free(product: &Product, path: &str) -> Result<()> {
    let id = path.rsplit('/').next().context("id")?;
    execute(&product.location(), &format!("UPDATE jobs SET lease_until = 0 WHERE id = '{id}'")).await
}

async fn until_none_is_open(product: &Product) -> Result<()> {
    let sql = format!("{OPEN} AND lease_until < 9000000000000000");
    let begun = Instant::now();
    while count(&product.location(), &sql).await? > 0 {
        ensure!(begun.elapsed() < DEADLINE, "a job does not end");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_inputs_use_no_memory_and_leave_no_file() -> Result<()> {
    let mut product = Product::start(Options { engine: Engine::Postgres, ..Options::default() }).await?;
    let id = thngs(&product).await?.swap_remove(0);
    hold_back(&product).await?;
    let good = format!("{id}\n");
    let many: Vec<String> = (0..10_000).map(|n| format!("{n}.csv")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), b"x".as_slice())).collect();
    let honest = zip(&[("a.csv", good.repeat(3_000).as_bytes()), ("b.csv", good.repeat(3_000).as_bytes())])?;
    let bomb = zip(&[("a.csv", good.as_bytes()), ("b.csv", &vec![b'\n'; 128 << 20])])?;
    let up = zip(&[("a.csv", good.as_bytes()), ("../../../evil.csv", good.as_bytes())])?;
    let nested = zip(&[("a.csv", good.as_bytes()), ("b.csv", &honest)])?;
    let refused = [
        ("ZIP", bomb, "more than 100 times its size"),
        ("ZIP", up, "leads out of it"),
        ("ZIP", nested, "which is a ZIP archive"),
        ("ZIP", zip(&many)?, "more than 100 files"),
        ("ZIP", ENCRYPTED.to_vec(), "is encrypted"),
        ("ZIP", honest[..honest.len() / 2].to_vec(), "is cut off"),
        ("ZIP", honest[..honest.len() - 1].to_vec(), "is cut off"),
        ("CSV", honest.clone(), "is a ZIP archive"),
    ];
    let first = submit_file(&product, "ZIP", honest).await?;
    let mut waiting = Vec::new();
    for (format, content, part) in refused {
        waiting.push((submit_file(&product, format, content).await?, part));
    }
    let long = submit_file(&product, "ZIP", long_line(70)?).await?;
    let large = submit_file(&product, "ZIP", ZIP64.to_vec()).await?;
    // A file of a million lines: at the ratio of the others it would take more than all of them.
    let lines = submit_file(&product, "CSV", good.repeat(1_000_000).into_bytes()).await?;
    ensure!(product.stop()?.success());

    let temporary = tempfile::tempdir()?;
    let variables = [("TMPDIR", temporary.path().to_str().context("path")?)];
    let mut worker = Worker::start(&product, &variables)?;
    let around = product.data.parent().context("folder")?.to_owned();
    set_free(&product, &first).await?;
    until_none_is_open(&product).await?;
    let (before, written) = (peak_kb(worker.child.id())?, files(&around)?);
    for (path, _) in &waiting {
        set_free(&product, path).await?;
    }
    set_free(&product, &long).await?;
    set_free(&product, &large).await?;
    until_none_is_open(&product).await?;
    let hostile = peak_kb(worker.child.id())?;
    set_free(&product, &lines).await?;
    let read = "SELECT COUNT(*) FROM jobs WHERE requested = 1000000";
    until(&product.location(), "the reading of a million lines", read, 1).await?;
    let all = peak_kb(worker.child.id())?;
    ensure!(hostile < before + GROWTH_KB && all < before + GROWTH_KB, "{before}, {hostile}, {all} KiB");
    ensure!(files(&around)? == written, "{:?}", files(&around)?);
    ensure!(files(temporary.path())?.is_empty(), "{:?}", files(temporary.path())?);
    ensure!(!Path::new("/evil.csv").exists());
    product.start_again()?;

    // Its second half, or whatever is left of it, is nobody's.
    let million = Expected { path: lines, entries: 1_000_000, bad: 0 };
    wait_for(&product, &million, 1).await?;
    let (status, body) = product.call(Method::POST, &format!("{}/cancel", million.path), None).await?;
    ensure!(status == 202, "{status}: {body}");
    worker.stop()?;
    for (path, part) in waiting {
        let (_, job) = product.call(Method::GET, &path, None).await?;
        ensure!(job["status"] == "FAILED" && number(&job, DONE) == 0, "{part}: {job}");
        ensure!(job["message"].as_str().is_some_and(|text| text.contains(part)), "{part}: {job}");
    }
    for (path, status, done) in [
        (&first, "COMPLETED", 6_000),
        (&long, "COMPLETED_WITH_FAILURES", 3),
        (&large, "COMPLETED_WITH_FAILURES", 1),
    ] {
        let (_, job) = product.call(Method::GET, path, None).await?;
        ensure!(job["status"] == status && number(&job, DONE) == done, "{job}");
    }
    let (_, logs) = product.call(Method::GET, &format!("{long}/logs"), None).await?;
    let told: Vec<&Value> = logs.as_array().context("logs")?.iter().map(|log| &log["message"]).collect();
    let is_told = told.iter().any(|text| text.as_str() == Some("a.csv, line 2: is longer than 65536 bytes."));
    ensure!(told.len() == 3 && is_told, "{told:?}");
    let ended = wait_for(&product, &million, u64::MAX).await?;
    ensure!(ended["status"] == "CANCELLED" && number(&ended, DONE) < 1_000_000, "{ended}");
    let location = product.location();
    for (counters, rows) in [("done - failed", "actions"), ("failed", "job_logs")] {
        let counted = count(&location, &format!("SELECT CAST(SUM({counters}) AS BIGINT) FROM jobs")).await?;
        let stored = count(&location, &format!("SELECT COUNT(*) FROM {rows}")).await?;
        ensure!(counted == stored, "{stored} {rows}, the counters say {counted}");
    }
    Ok(())
}
