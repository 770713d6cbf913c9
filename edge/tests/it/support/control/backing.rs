//! What an edge asks of the control plane in memory, and the stream that it follows.

use std::{sync::Arc, time::Duration};

use edge::backing::{Backing, BackingError, Changes};
use shared::{
    redirect::RedirectKey,
    wire::{
        contents,
        limits::LimitReport,
        links::LinksPage,
        scan::ScanReceipt,
        spooled::SpooledScans,
        stream::{Epoch, Events, Fill, HEARTBEAT_MS, Hello, Rev, Start, ToControl, ToEdge, Welcome},
        unknown::UnknownReport,
    },
};
use tokio::{sync::watch, time::Interval};

use super::{Control, down};

/// Links of a page.
const PAGE: usize = 3;

impl Backing for Control {
    type Changes = Stream;

    async fn lookup(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        self.get(key).await
    }

    async fn digital_link(&self, key: &RedirectKey) -> Result<Result<String, String>, BackingError> {
        let found = self.get(key).await?.value;
        Ok(found
            .map(|_| format!("https://{}/01/09506000134352", key.domain))
            .ok_or_else(|| "none".to_owned()))
    }

    async fn get(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        let fill = {
            let mut state = self.state();
            state.reads += 1;
            if state.faults.is_down {
                return Err(down());
            }
            let watermark = state.head().saturating_sub(state.faults.view_lag as Rev);
            let value = state.view(watermark).remove(key);
            Fill { epoch: state.epoch.clone(), complete: true, watermark, value }
        };
        let slow = self.state().faults.slow_reads;
        if !slow.is_zero() {
            tokio::time::sleep(slow).await;
        }
        Ok(fill)
    }

    async fn changes(&self, hello: Hello) -> Result<Stream, BackingError> {
        let changed = self.changed.subscribe();
        let mut state = self.state();
        if state.faults.is_down {
            return Err(down());
        }
        let head = state.head();
        let resumes =
            hello.epoch.as_ref() == Some(&state.epoch) && (state.compacted..=head).contains(&hello.applied);
        let (start, cursor) =
            if resumes { (Start::Resume, hello.applied) } else { (Start::Snapshot { at_rev: head }, head) };
        let now = contents::digests(&state.domains);
        let kept = if state.faults.is_older { Vec::new() } else { contents::same(&hello.contents, &now) };
        let domains = state.domains.iter().map(|domain| {
            let is_kept = kept.contains(&contents::group_of(domain));
            if is_kept { contents::without(domain) } else { domain.clone() }
        });
        let welcome = Welcome {
            epoch: state.epoch.clone(),
            head,
            compacted: state.compacted,
            start,
            domains: domains.collect(),
            rules: state.rules(head),
            withheld: (!state.faults.is_older).then(|| state.withheld(head)),
            kept,
            kept_certificates: (!state.faults.is_older).then(Vec::new),
            certificates: state.certificates(head),
            challenges: state.challenges(head),
        };
        let edge = hello.edge_id.clone();
        state.hellos.push(hello);
        let heartbeat = tokio::time::interval(Duration::from_millis(HEARTBEAT_MS));
        let control = self.clone();
        Ok(Stream {
            control,
            edge,
            epoch: welcome.epoch.clone(),
            welcome: Some(welcome),
            cursor,
            changed,
            heartbeat,
            beats: 0,
            breaks: state.breaks,
        })
    }

    async fn page(&self, domain: &str, after: &str) -> Result<LinksPage, BackingError> {
        let mut state = self.state();
        if state.faults.is_down || state.faults.lost_pages > 0 {
            state.faults.lost_pages = state.faults.lost_pages.saturating_sub(1);
            return Err(down());
        }
        let (at_rev, after) = (state.head(), RedirectKey::new(domain, after));
        let view = state.view(at_rev).into_iter();
        let mut links: Vec<_> = view
            .filter(|(key, _)| *key.domain == *domain && *key > after)
            .map(|(key, (rev, record))| (key.folded, rev, record))
            .collect();
        let more = links.len() > PAGE;
        links.truncate(PAGE);
        Ok(LinksPage { epoch: state.epoch.clone(), at_rev, more, links })
    }

    async fn record_scans(&self, scans: &SpooledScans) -> Result<ScanReceipt, BackingError> {
        self.take_scans(&scans.read().expect("a scan that can be read"))
    }

    async fn record_unknown(&self, report: &UnknownReport) -> Result<(), BackingError> {
        self.take_report(report)
    }

    async fn record_limits(&self, report: &LimitReport) -> Result<(), BackingError> {
        self.take_limits(report)
    }
}

/// One edge's stream.
pub(crate) struct Stream {
    control: Control,
    edge: Arc<str>,
    epoch: Epoch,
    welcome: Option<Welcome>,
    cursor: Rev,
    changed: watch::Receiver<u64>,
    heartbeat: Interval,
    beats: u64,
    breaks: u32,
}

impl Stream {
    fn pending(&mut self) -> Result<Option<ToEdge>, BackingError> {
        let mut state = self.control.state();
        if state.faults.is_down || state.epoch != self.epoch || state.breaks != self.breaks {
            return Err(down());
        }
        let (prev, last) = (self.cursor, state.head());
        if prev == last {
            return Ok(None);
        }
        self.cursor = last;
        if state.faults.lost_events > 0 {
            state.faults.lost_events -= 1;
            return Ok(None);
        }
        let items = state.log[(prev - state.base) as usize..].to_vec();
        Ok(Some(ToEdge::Events(Arc::new(Events { prev, items, last }))))
    }
}

impl Changes for Stream {
    async fn next(&mut self) -> Result<ToEdge, BackingError> {
        if let Some(welcome) = self.welcome.take() {
            return Ok(ToEdge::Welcome(welcome));
        }
        loop {
            self.changed.borrow_and_update();
            if let Some(events) = self.pending()? {
                return Ok(events);
            }
            tokio::select! {
                _ = self.changed.changed() => {}
                _ = self.heartbeat.tick() => {
                    if self.control.state().faults.is_silent {
                        continue;
                    }
                    if let Some(events) = self.pending()? {
                        return Ok(events);
                    }
                    self.beats += 1;
                    return Ok(ToEdge::Heartbeat { seq: self.beats, head: self.cursor });
                }
            }
        }
    }

    async fn send(&mut self, message: ToControl) -> Result<(), BackingError> {
        let mut state = self.control.state();
        match message {
            ToControl::Ack { applied, rejected } => {
                state.acked.insert(self.edge.clone(), applied);
                state.rejected.extend(rejected.iter().map(|item| item.rev));
            }
            ToControl::Hello(hello) => panic!("a hello in process: {hello:?}"),
            ToControl::Resync { applied, .. } => {
                state.resyncs += 1;
                self.cursor = applied;
            }
        }
        drop(state);
        self.control.touch();
        Ok(())
    }
}
