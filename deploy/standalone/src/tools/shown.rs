//! What tools show: lines, and on a terminal a bar of how far they are.

use std::io::{self, IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar, if stderr is a terminal; the length may be unknown.
pub(super) fn bar(length: Option<u64>, template: &str) -> Option<ProgressBar> {
    io::stderr().is_terminal().then(|| {
        let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    })
}

/// Takes a bar away.
pub(super) fn end(bar: Option<&ProgressBar>) {
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Prints a line; gives whether anybody still reads.
pub(super) fn say(line: &str) -> bool {
    writeln!(io::stdout().lock(), "{line}").is_ok()
}

/// Says something about the work of a tool, on stderr.
pub(super) fn note(tool: &str, text: &str) {
    // A closed pipe is no fault.
    let _ = writeln!(io::stderr().lock(), "{tool}: {text}");
}
