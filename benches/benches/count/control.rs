//! A control plane in memory, with a fixed set of links.

use std::{collections::HashMap, sync::Arc, time::Duration};

use edge::backing::{Backing, BackingError, Changes};
use shared::{
    digital_link::{LinkSet, SerialMode, TypedLink},
    redirect::{Redirect, RedirectKey},
    short_url::{Scheme, ShortDomain},
    time::UnixMillis,
    wire::{
        links::LinksPage,
        scan::ScanReceipt,
        spooled::SpooledScans,
        stream::{Epoch, Fill, HEARTBEAT_MS, Hello, Rev, Start, ToControl, ToEdge, Welcome},
    },
};
use tokio::time::{Interval, interval};

/// The one short domain.
pub(crate) const HOST: &str = "tn.gg";
/// Where the log stands.
const HEAD: Rev = 1;

/// The short id of a product, to which the Digital Links of all its items lead.
pub(crate) const PRODUCT: &str = "01/09528765123457";

/// The short id of a link.
pub(crate) fn known(n: usize) -> String {
    format!("K7Q2M{n:05}")
}

/// Control and view in one.
pub(crate) struct Control {
    epoch: Epoch,
    links: HashMap<RedirectKey, Arc<Redirect>>,
    domain: Option<ShortDomain>,
}

impl Control {
    /// Holds so many links.
    pub(crate) fn new(links: usize) -> Self {
        let mut links: HashMap<_, _> =
            (0..links).filter_map(|n| Some((RedirectKey::new(HOST, &known(n)), record(n)?))).collect();
        links.extend(product().map(|product| (RedirectKey::new(HOST, PRODUCT), product)));
        // As every domain of a tenant: its account may have rules, though this one has none.
        let account = "U0000000000000000000000a".parse().ok();
        let domain = ShortDomain::new(Scheme::Https, HOST).ok().map(|domain| ShortDomain {
            account,
            digital_links: true,
            ..domain
        });
        Self { epoch: "count".into(), links, domain }
    }
}

fn record(n: usize) -> Option<Arc<Redirect>> {
    Some(Arc::new(Redirect {
        thng_id: Some("U5Gq8sKVBfgRtKRaagBefgwk".parse().ok()?),
        ..Redirect::plain(
            HOST.parse().ok()?,
            known(n).parse().ok()?,
            "U5Gq8sKVBfgRtKRaagBefgwk".parse().ok()?,
            format!("https://shop.example.com/products/view?item=47110000{n:08}"),
            UnixMillis(0),
        )
    }))
}

/// A product with a link in two languages, whose items have none of their own.
fn product() -> Option<Arc<Redirect>> {
    let link = |language: &str, default| TypedLink {
        link_type: "gs1:pip".into(),
        href: format!("https://shop.example.com/{language}/products/view?item={{01}}{{21}}").into(),
        title: "Product information".into(),
        media_type: Some("text/html".into()),
        hreflang: vec![language.into()],
        context: Vec::new(),
        from: None,
        to: None,
        default,
    };
    let links = vec![link("en", true), link("de", false)];
    let set = LinkSet { description: "Canvas bag".into(), serial_mode: SerialMode::Template, links };
    let record = Arc::unwrap_or_clone(record(0)?);
    let digital_link = Some(Box::new(set));
    Some(Arc::new(Redirect { short_id: PRODUCT.parse().ok()?, thng_id: None, digital_link, ..record }))
}

impl Backing for Control {
    type Changes = Stream;

    async fn get(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        let value = self.links.get(key).map(|record| (HEAD, record.clone()));
        Ok(Fill { epoch: self.epoch.clone(), complete: true, watermark: HEAD, value })
    }

    async fn lookup(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        self.get(key).await
    }

    async fn changes(&self, _: Hello) -> Result<Stream, BackingError> {
        let welcome = Welcome {
            epoch: self.epoch.clone(),
            head: HEAD,
            compacted: 0,
            start: Start::Snapshot { at_rev: HEAD },
            domains: self.domain.iter().cloned().collect(),
            rules: Vec::new(),
            withheld: Some(Vec::new()),
            kept: Vec::new(),
            kept_certificates: None,
            certificates: Vec::new(),
            challenges: Vec::new(),
        };
        Ok(Stream { welcome: Some(welcome), beat: interval(Duration::from_millis(HEARTBEAT_MS)), seq: 0 })
    }

    async fn page(&self, domain: &str, _: &str) -> Result<LinksPage, BackingError> {
        let mine = self.links.iter().filter(|(key, _)| *key.domain == *domain);
        let links = mine.map(|(key, record)| (key.folded.clone(), HEAD, record.clone())).collect();
        Ok(LinksPage { epoch: self.epoch.clone(), at_rev: HEAD, more: false, links })
    }

    async fn record_scans(&self, scans: &SpooledScans) -> Result<ScanReceipt, BackingError> {
        Ok(ScanReceipt { next_seq: scans.first_seq + scans.count as u64 })
    }
}

/// A welcome, then heartbeats.
pub(crate) struct Stream {
    welcome: Option<Welcome>,
    beat: Interval,
    seq: u64,
}

impl Changes for Stream {
    async fn next(&mut self) -> Result<ToEdge, BackingError> {
        if let Some(welcome) = self.welcome.take() {
            return Ok(ToEdge::Welcome(welcome));
        }
        self.beat.tick().await;
        self.seq += 1;
        Ok(ToEdge::Heartbeat { seq: self.seq, head: HEAD })
    }

    async fn send(&mut self, _: ToControl) -> Result<(), BackingError> {
        Ok(())
    }
}
