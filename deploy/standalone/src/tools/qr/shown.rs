//! How far a run is: a bar on a terminal, a plain line now and then elsewhere, and a summary.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;

use super::list::{Entry, NAME};
use crate::tools::shown::{bar, end, note};

/// Time between two plain lines.
const PERIOD: Duration = Duration::from_secs(5);

/// Counts codes and shows how far it is, on stderr.
pub(super) struct Shown {
    bar: Option<ProgressBar>,
    total: Option<u64>,
    said: Instant,
    written: u64,
    before: u64,
    /// Short ids without a code.
    pub(super) missing: u64,
    /// Smallest and greatest side of a module in millimetres.
    x_mm: Option<(f64, f64)>,
}

impl Shown {
    /// Begins to count; the total is unknown for what is read from a pipe.
    pub(super) fn start(total: Option<u64>) -> Self {
        let template = if total.is_some() { "{bar:30} {pos}/{len} {msg} {eta} left" } else { "{pos} {msg}" };
        Self {
            bar: bar(total, template),
            total,
            said: Instant::now(),
            written: 0,
            before: 0,
            missing: 0,
            x_mm: None,
        }
    }

    /// Counts a code whose file is there.
    pub(super) fn count(&mut self, entry: &Entry, is_from_before: bool) {
        self.written += 1;
        self.before += u64::from(is_from_before);
        if let Ok(x_mm) = entry.x_dimension_mm.parse::<f64>() {
            let (least, most) = self.x_mm.unwrap_or((x_mm, x_mm));
            self.x_mm = Some((least.min(x_mm), most.max(x_mm)));
        }
        self.show();
    }

    /// Counts a short id without a code, and says why.
    pub(super) fn missing(&mut self, id: &str, reason: &str) {
        self.missing += 1;
        match &self.bar {
            Some(bar) => bar.println(format!("qr: {id}: {reason}")),
            None => note("qr", &format!("{id}: {reason}")),
        }
        self.show();
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        end(self.bar.as_ref());
    }

    /// What there is now, in one line.
    pub(super) fn summary(&self, folder: &Path) -> String {
        let mut text = format!("{} files in {}", self.written, folder.display());
        if self.before > 0 {
            text.push_str(&format!(" ({} from before)", self.before));
        }
        text.push_str(&format!(", {} missing", self.missing));
        match self.x_mm {
            Some((least, most)) if least == most => text.push_str(&format!("; X-dimension {least} mm")),
            Some((least, most)) => text.push_str(&format!("; X-dimension {least} to {most} mm")),
            None => {}
        }
        text.push_str(&format!("; listed in {NAME}"));
        text
    }

    fn show(&mut self) {
        let done = self.written + self.missing;
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(format!("{} missing", self.missing));
        } else if self.said.elapsed() >= PERIOD {
            self.said = Instant::now();
            let of = self.total.map(|total| format!(" of {total}")).unwrap_or_default();
            note("qr", &format!("{done}{of}, {} missing", self.missing));
        }
    }
}
