//! The file that keeps counts: one JSON object, replaced as a whole.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Write as _},
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use shared::wire::limits::LimitedScans;

use super::counts::Counts;

#[derive(Serialize, Deserialize)]
struct Saved {
    /// Name of the edge: counts of another one are reported under that name.
    edge: Arc<str>,
    counts: Vec<LimitedScans>,
}

/// What an earlier start of this edge counted.
///
/// # Errors
/// There is no file, it is damaged, or another edge wrote it.
pub(super) fn load(path: &Path, edge: &Arc<str>) -> io::Result<Counts> {
    let saved: Saved =
        serde_json::from_reader(BufReader::new(File::open(path)?)).map_err(io::Error::other)?;
    if saved.edge != *edge {
        return Err(io::Error::other(format!("it is of the edge {}", saved.edge)));
    }
    Ok(Counts::restore(saved.counts))
}

/// Replaces the file.
///
/// # Errors
/// It cannot be written; the former one stays.
pub(super) fn save(path: &Path, edge: &Arc<str>, counts: Vec<LimitedScans>) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut out = BufWriter::new(File::create(&unfinished)?);
    serde_json::to_writer(&mut out, &Saved { edge: edge.clone(), counts })?;
    out.flush()?;
    out.get_ref().sync_all()?;
    fs::rename(&unfinished, path)
}
