//! Codes a second of print orders, and what each step takes: encode, draw, read back, pack.
//!
//! In this process, on one thread. The steps are measured one after the other, each with those before it, and the
//! differences are shown: what is left of a whole chunk is packing, the index and the manifest.

use std::{
    io::{Write as _, sink, stdout},
    ops::Range,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};
use print::{
    Assembly, BenchStep, Chunk, MANIFEST_HEADER, OrderFacts, PrintItem, PrintSpec, bench_codes, render_chunk,
};
use serde_json::{Value, json};

/// Measures print orders, format by format, on one thread.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Codes of each order
    #[arg(default_value_t = 5_000)]
    codes: u64,
}

/// Runs of each step, of which the fastest counts: the others were disturbed.
const ROUNDS: u32 = 3;

/// Runs the benchmark and prints a table.
///
/// # Errors
/// A code was not drawn or not read back, or a joined order has not all codes.
pub(crate) fn run(args: &Args, is_smoke: bool) -> Result<bool> {
    let (codes, rounds) = if is_smoke { (50, 1) } else { (args.codes.max(1), ROUNDS) };
    let items: Vec<PrintItem> = (1..=codes).map(item).collect();
    writeln!(
        stdout(),
        "| order | codes/s | encode | draw | read back | pack | joined codes/s | bytes/code |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    for (name, members) in orders() {
        let members = members.as_object().cloned().unwrap_or_default();
        let spec = PrintSpec::parse(&members).map_err(|faults| anyhow!("{name}: {}", faults.join("; ")))?;
        let step = |step: BenchStep| fastest(rounds, || Ok(bench_codes(&spec, &items, step)?));
        let (encode, _) = step(BenchStep::Encode)?;
        let (drawn, _) = step(BenchStep::Draw)?;
        let (read, _) = step(BenchStep::Read)?;
        let (whole, chunks) = fastest(rounds, || draw(&spec, &items))?;
        let (joined, bytes) = fastest(rounds, || join(&spec, codes, &chunks))?;
        let share = |part: Duration| format!("{:.0} %", 100.0 * part.as_secs_f64() / whole.as_secs_f64());
        // Labels of a sheet are drawn together, so that single codes say nothing of them.
        let shares = match name {
            "pdf-sheets" => ["", "", "", ""].map(str::to_owned),
            _ => [
                share(encode),
                share(drawn.saturating_sub(encode)),
                share(read.saturating_sub(drawn)),
                share(whole.saturating_sub(read)),
            ],
        };
        writeln!(
            stdout(),
            "| {name} | {:.0} | {} | {:.0} | {} |",
            rate(codes, whole),
            shares.join(" | "),
            rate(codes, joined),
            bytes / codes
        )?;
    }
    Ok(true)
}

fn rate(codes: u64, time: Duration) -> f64 {
    codes as f64 / time.as_secs_f64()
}

/// Usual orders of each format.
fn orders() -> [(&'static str, Value); 8] {
    let text = json!({"text": "shortId"});
    [
        ("png", json!({"format": "png", "hri": text})),
        ("svg", json!({"format": "svg", "hri": text})),
        ("pdf", json!({"format": "pdf", "hri": text})),
        ("eps", json!({"format": "eps", "hri": text})),
        ("tiff", json!({"format": "tiff", "hri": text})),
        ("pdf-pages", json!({"format": "pdf-pages", "hri": text})),
        ("pdf-sheets", json!({"format": "pdf-sheets", "hri": text, "layout": {"size": "a4-38.1x21.2"}})),
        ("zpl", json!({"format": "zpl", "hri": text, "layout": {"size": "roll-50x25"}})),
    ]
}

fn item(nth: u64) -> PrintItem {
    const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mixed = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let short_id: String = (0..10).map(|at| char::from(LETTERS[(mixed >> (5 * at) & 31) as usize])).collect();
    PrintItem { serial: None, url: format!("HTTPS://TN.GG/{short_id}"), short_id, gtin: None }
}

fn fastest<T>(rounds: u32, mut work: impl FnMut() -> Result<T>) -> Result<(Duration, T)> {
    let mut best: Option<(Duration, T)> = None;
    for _ in 0..rounds.max(1) {
        let begin = Instant::now();
        let result = work()?;
        let time = begin.elapsed();
        if best.as_ref().is_none_or(|(shortest, _)| time < *shortest) {
            best = Some((time, result));
        }
    }
    best.ok_or_else(|| anyhow!("nothing was measured"))
}

fn draw(spec: &PrintSpec, items: &[PrintItem]) -> Result<Vec<Chunk>> {
    let chunk = |range: Range<u64>| -> Result<Chunk> {
        Ok(render_chunk(spec, range.start, &items[range.start as usize..range.end as usize])?)
    };
    spec.chunks(items.len() as u64).map(chunk).collect()
}

fn join(spec: &PrintSpec, codes: u64, chunks: &[Chunk]) -> Result<u64> {
    let mut assembly = Assembly::new(spec, 0..codes, &OrderFacts::default(), sink())?;
    let mut manifest = MANIFEST_HEADER.to_owned();
    for chunk in chunks {
        assembly.add(&chunk.body[..], &chunk.index)?;
        manifest.push_str(&chunk.manifest);
    }
    let finished = assembly.finish(manifest.as_bytes())?;
    let totals = finished.totals;
    ensure!(totals.codes == codes && totals.decoded == codes, "{totals:?}");
    Ok(finished.bytes)
}
