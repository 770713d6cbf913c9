//! Scan intake: each scan once, whatever is repeated, lost or out of order.

use std::sync::atomic::Ordering;

use anyhow::Result;
use control::worker::ingest_scans::ingest;
use redirects::service::redirections::{self, DomainChoice};
use shared::{
    time::UnixMillis,
    wire::scan::{ScanBatch, ScanRecord},
};
use tests::db::{Engine, TestApp};

use super::redirections::{app_with_product, create};

pub(super) const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";

pub(crate) fn record(folded: &str, user_agent: &str, at: i64) -> ScanRecord {
    ScanRecord {
        at: UnixMillis(at),
        domain: "tn.gg".into(),
        folded: folded.into(),
        ip: "192.0.2.7".parse().unwrap(),
        user_agent: Some(user_agent.into()),
        referer: None,
        language: None,
        entry_url: format!("https://tn.gg/{folded}").into(),
        rule: None,
        count: None,
        client: None,
        digital_link: None,
    }
}

pub(crate) fn batch(boot: u64, first_seq: u64, records: &[ScanRecord]) -> ScanBatch {
    ScanBatch { edge: "e1".into(), boot, first_seq, records: records.to_vec() }
}

super::super::on_all_scan_stores!(
    each_scan_counts_once,
    a_large_batch_is_taken_in_parts,
    two_boots_do_not_mix,
    a_gap_is_counted
);

async fn hits(made: &TestApp, id: &str) -> Result<i64> {
    Ok(redirections::find(&made.app.redirects, &made.caller(), DomainChoice::default(), id).await?.hits)
}

async fn each_scan_counts_once(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    create(&made, product, "https://example.com/", Some("B")).await?;
    let records = [
        record("A", PHONE, 1_000),
        record("A", "Googlebot/2.1", 1_000),
        record("B", PHONE, 1_001),
        record("UNKNOWN", PHONE, 1_002),
        record("A", PHONE, 1_003),
    ];
    let first = batch(1, 0, &records[..3]);
    assert_eq!(ingest(&made.app, &first).await?.next_seq, 3);
    assert_eq!(ingest(&made.app, &first).await?.next_seq, 3, "the same batch again");
    assert_eq!(ingest(&made.app, &batch(1, 1, &records[1..])).await?.next_seq, 5, "an overlap");
    assert_eq!((hits(&made, "A").await?, hits(&made, "B").await?), (2, 1), "robots and repeats do not count");
    let intake = &made.app.intake;
    assert_eq!(intake.stored.load(Ordering::Relaxed), 4, "robots are stored");
    assert_eq!(intake.unknown.load(Ordering::Relaxed), 1);
    assert_eq!(intake.repeated.load(Ordering::Relaxed), 5);
    assert_eq!(intake.missing.load(Ordering::Relaxed), 0);
    Ok(())
}

async fn a_large_batch_is_taken_in_parts(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let records: Vec<ScanRecord> = (0..350).map(|at| record("A", PHONE, 1_000 + at)).collect();
    // What is known ends amid a part, then amid another batch's part; the last one is known whole.
    for (first, end, repeated) in [(0, 150, 0), (0, 320, 150), (20, 350, 450), (0, 350, 800)] {
        let receipt = ingest(&made.app, &batch(1, first, &records[first as usize..end as usize])).await?;
        assert_eq!(receipt.next_seq, end, "{first}..{end}");
        let intake = &made.app.intake;
        assert_eq!(intake.repeated.load(Ordering::Relaxed), repeated, "{first}..{end}");
        assert_eq!(intake.stored.load(Ordering::Relaxed), end, "{first}..{end}");
        assert_eq!(intake.missing.load(Ordering::Relaxed), 0, "{first}..{end}");
        assert_eq!(hits(&made, "A").await?, end as i64, "{first}..{end}");
    }
    Ok(())
}

async fn two_boots_do_not_mix(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let records = [record("A", PHONE, 1_000)];
    ingest(&made.app, &batch(1, 0, &records)).await?;
    ingest(&made.app, &batch(2, 0, &records)).await?;
    assert_eq!(hits(&made, "A").await?, 2);
    Ok(())
}

async fn a_gap_is_counted(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let receipt = ingest(&made.app, &batch(1, 7, &[record("A", PHONE, 1_000)])).await?;
    assert_eq!(receipt.next_seq, 8);
    assert_eq!(made.app.intake.missing.load(Ordering::Relaxed), 7);
    assert_eq!(hits(&made, "A").await?, 1);
    Ok(())
}
