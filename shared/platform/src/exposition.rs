//! The text of `/metrics`: metrics of the process itself, and the two formats that scrapers ask for.
//!
//! Metrics are written in the OpenMetrics format. A client whose `Accept` does not name it gets the older Prometheus
//! text format, which `promtool check metrics` and most other readers know.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// Media type of the OpenMetrics form.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Media type of the text form of Prometheus.
pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Last line of the OpenMetrics form.
const END: &str = "# EOF\n";

/// Clock ticks per second in `/proc`: `USER_HZ`, which is 100 on every Linux, independent of the kernel's own rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// Media type and text for a scraper with this `Accept`.
#[must_use]
pub fn answer(accept: Option<&str>, openmetrics: String) -> (&'static str, String) {
    if accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
        (OPENMETRICS, openmetrics)
    } else {
        (TEXT, to_text(&openmetrics))
    }
}

/// The text form of Prometheus of an OpenMetrics text: counters and infos have the names of their samples there.
#[must_use]
pub fn to_text(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut help: Option<(&str, &str)> = None;
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (ending, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take().filter(|(described, _)| *described == name) {
                // Writing into a `String` does not fail.
                let _ = writeln!(text, "# HELP {name}{ending} {help}");
            }
            let _ = writeln!(text, "# TYPE {name}{ending} {kind}");
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Puts `more` before the end of an OpenMetrics text.
#[must_use]
pub fn with(openmetrics: &str, more: &str) -> String {
    let body = openmetrics.strip_suffix(END).unwrap_or(openmetrics);
    [body, more, END].concat()
}

/// Metrics of this process, which started then, as OpenMetrics without an end.
#[must_use]
pub fn of_process(started: SystemTime) -> String {
    let read = |name: &str| fs::read_to_string(Path::new("/proc/self").join(name)).unwrap_or_default();
    let process = Process {
        stat: &read("stat"),
        status: &read("status"),
        limits: &read("limits"),
        open_fds: fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count() as u64),
        started_at_seconds: started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
    };
    process.metrics()
}

/// Metrics of the process itself, from the files of `/proc/self`.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    /// `stat`.
    pub stat: &'a str,
    /// `status`.
    pub status: &'a str,
    /// `limits`.
    pub limits: &'a str,
    /// Entries of `fd`.
    pub open_fds: Option<u64>,
    /// When it started, in seconds since 1970.
    pub started_at_seconds: f64,
}

impl Process<'_> {
    /// The metrics that client libraries of Prometheus name so, as OpenMetrics without an end.
    #[must_use]
    pub fn metrics(&self) -> String {
        // Behind the name in parentheses, which may hold anything: user and system time are fields 14 and 15.
        let fields = self.stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks: Option<f64> =
            fields.split(' ').skip(11).take(2).map(|field| field.parse::<f64>().ok()).sum::<Option<f64>>();
        let cpu_seconds = ticks.filter(|_| !fields.is_empty()).map(|ticks| ticks / TICKS_PER_SECOND);
        let kib = |name: &str| -> Option<f64> {
            let line = self.status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kib| kib * 1_024.0)
        };
        let most = self.limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let most = most.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        let mut text = String::new();
        for (name, kind, help, value) in [
            ("process_cpu_seconds", "counter", "Time that the process used processors", cpu_seconds),
            ("process_resident_memory_bytes", "gauge", "Memory that the process has in use", kib("VmRSS")),
            ("process_virtual_memory_bytes", "gauge", "Addresses that the process has mapped", kib("VmSize")),
            ("process_open_fds", "gauge", "Open file descriptors", self.open_fds.map(|fds| fds as f64)),
            ("process_max_fds", "gauge", "File descriptors that may be open", most),
            (
                "process_start_time_seconds",
                "gauge",
                "When the process started, since 1970",
                Some(self.started_at_seconds),
            ),
        ] {
            let Some(value) = value else { continue };
            let ending = if kind == "counter" { "_total" } else { "" };
            // Writing into a `String` does not fail.
            let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name}{ending} {value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "# HELP a_requests Requests.\n# TYPE a_requests counter\na_requests_total{x=\"# y\"} 1\n\
        # HELP a_size_bytes Size.\n# TYPE a_size_bytes gauge\n# UNIT a_size_bytes bytes\na_size_bytes 2\n\
        # HELP a_build Build.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n# EOF\n";

    #[test]
    fn scrapers_get_the_format_they_ask_for() {
        let text = "# HELP a_requests_total Requests.\n# TYPE a_requests_total counter\n\
            a_requests_total{x=\"# y\"} 1\n# HELP a_size_bytes Size.\n# TYPE a_size_bytes gauge\na_size_bytes 2\n\
            # HELP a_build_info Build.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n";
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5";
        for (accept, expected) in [
            (None, (TEXT, text)),
            (Some("*/*"), (TEXT, text)),
            (Some("text/plain"), (TEXT, text)),
            (Some(prometheus), (OPENMETRICS, OPEN)),
        ] {
            let (kind, body) = answer(accept, OPEN.to_owned());
            assert_eq!((kind, body.as_str()), expected, "{accept:?}");
        }
    }

    #[test]
    fn process_metrics_match_proc() {
        let process = Process {
            stat: "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 4711 1 1",
            status: "Name:\tedge\nVmSize:\t    2048 kB\nVmRSS:\t     512 kB\n",
            limits: "Limit                     Soft Limit           Hard Limit           Units     \n\
                Max open files            1024                 4096                 files     \n",
            open_fds: Some(12),
            started_at_seconds: 1_767_225_600.5,
        };
        let text = with("x 1\n# EOF\n", &process.metrics());
        assert!(text.starts_with("x 1\n") && text.ends_with("\n# EOF\n"), "{text}");
        for line in [
            "process_cpu_seconds_total 2",
            "process_resident_memory_bytes 524288",
            "process_virtual_memory_bytes 2097152",
            "process_open_fds 12",
            "process_max_fds 1024",
            "process_start_time_seconds 1767225600.5",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is missing in {text}");
        }
        let unknown = Process { stat: "", status: "", limits: "unlimited", open_fds: None, ..process };
        assert_eq!(unknown.metrics().lines().count(), 3, "what is not known is not shown");
    }
}
