//! The performance bars that this command can measure: each a ratio of medians in one run.

use serde::Serialize;

use super::{
    peers::{HYPER, MOKA, NGINX_MAP, REPLICA},
    report::Report,
    rounds::{Case, Protocol, Sample, Scenario},
};

/// Most bytes of a link in all, in a table of at least ten million.
const LINK_BYTES: f64 = 90.0;
/// Longest restart from disk in seconds, whatever the size.
const RESTART_SECONDS: f64 = 60.0;

/// One bar and what was reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bar {
    /// Its number.
    pub(crate) number: u8,
    /// What is compared.
    pub(crate) what: String,
    /// The figure.
    pub(crate) reached: f64,
    /// Its bound.
    pub(crate) bound: f64,
    /// Whether the figure must not be below the bound, rather than not above.
    pub(crate) is_least: bool,
}

impl Bar {
    /// Whether it holds.
    pub(crate) fn holds(&self) -> bool {
        if self.is_least { self.reached >= self.bound } else { self.reached <= self.bound }
    }
}

const KNOWN: Case = Case { protocol: Protocol::Http1, scenario: Scenario::Known };

/// Every bar that the run has figures for.
pub(crate) fn bars(report: &Report) -> Vec<Bar> {
    let mut bars = Vec::new();
    let cpu: fn(&Sample) -> f64 = |sample| sample.cpu.total_us();
    let p99: fn(&Sample) -> f64 = |sample| sample.p99_us;
    let at = |protocol, scenario| Case { protocol, scenario };
    let unknown = at(Protocol::Http1, Scenario::Unknown);
    let (h2, tls) = (at(Protocol::Http2, Scenario::Known), at(Protocol::Tls, Scenario::Known));
    let ratios = [
        (1, "CPU/request, replica to nginx map", (KNOWN, REPLICA), (KNOWN, NGINX_MAP), cpu, 0.85),
        (1, "CPU/request, replica to hyper fixed", (KNOWN, REPLICA), (KNOWN, HYPER), cpu, 1.05),
        (1, "CPU/request, moka over Redis to nginx map", (KNOWN, MOKA), (KNOWN, NGINX_MAP), cpu, 0.95),
        (1, "CPU/request over HTTP/2, replica to nginx map", (h2, REPLICA), (h2, NGINX_MAP), cpu, 0.5),
        (1, "CPU/request of the replica, unknown to known", (unknown, REPLICA), (KNOWN, REPLICA), cpu, 1.0),
        (1, "p99, replica to nginx map", (KNOWN, REPLICA), (KNOWN, NGINX_MAP), p99, 1.0),
        (1, "p99, moka over Redis to nginx map", (KNOWN, MOKA), (KNOWN, NGINX_MAP), p99, 1.0),
        (
            6,
            "CPU of a new TLS 1.3 connection, replica to nginx map",
            (tls, REPLICA),
            (tls, NGINX_MAP),
            cpu,
            0.55,
        ),
    ];
    for (number, what, (case, peer), (other_case, other), value, bound) in ratios {
        let both = (report.of(case, peer, value), report.of(other_case, other, value));
        if let (Some(ours), Some(theirs)) = both {
            let reached = ours.median / theirs.median;
            bars.push(Bar { number, what: what.to_owned(), reached, bound, is_least: false });
        }
    }
    of_sizes(report, &mut bars);
    bars
}

fn of_sizes(report: &Report, bars: &mut Vec<Bar>) {
    let Some(least) = report.sizes.iter().map(|size| size.links).min() else { return };
    let rate = |links| report.of_size(KNOWN, links, |sample| sample.per_second);
    for size in &report.sizes {
        let links = size.links;
        if links >= 10_000_000 {
            let (what, reached) = (format!("bytes/link of {links} links in all"), size.table_bytes);
            bars.push(Bar { number: 2, what, reached, bound: LINK_BYTES, is_least: false });
        }
        if let (true, Some(small), Some(large)) = (links > least, rate(least), rate(links)) {
            let what = format!("requests/s with {links} links to those with {least}");
            let reached = large.median / small.median;
            bars.push(Bar { number: 2, what, reached, bound: 0.95, is_least: true });
        }
    }
    for start in report.starts.iter().filter(|start| start.peer == REPLICA) {
        let what = format!("seconds from a restart to the first redirect with {} links", start.links);
        let (reached, bound) = (start.seconds.median, RESTART_SECONDS);
        bars.push(Bar { number: 2, what, reached, bound, is_least: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_a_bound_in_its_direction() {
        let bar = |reached, is_least| Bar { number: 1, what: String::new(), reached, bound: 1.0, is_least };
        assert!(bar(1.0, false).holds() && bar(0.9, false).holds() && !bar(1.1, false).holds());
        assert!(bar(1.0, true).holds() && !bar(0.9, true).holds() && bar(1.1, true).holds());
        assert!(!bar(f64::NAN, true).holds() && !bar(f64::NAN, false).holds(), "no figure is no success");
    }

    #[test]
    fn a_run_without_figures_has_no_bars() {
        assert_eq!(bars(&Report::default()), []);
    }
}
