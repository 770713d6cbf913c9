//! Scans whose intake is killed when they are stored, and before they are counted.

use anyhow::Result;
use tests::db::Engine;

use super::*;
use crate::store::scan_steps::take_half;

const QUESTIONS: [(&str, &[&str]); 9] = [
    ("", &[]),
    ("groupBy=city", &["country", "region", "city"]),
    ("groupBy=system", &["system"]),
    ("groupBy=device", &["device"]),
    ("groupBy=language", &["language"]),
    ("groupBy=verdict", &["verdict"]),
    ("groupBy=product,country", &["product", "country"]),
    ("groupBy=link", &["link"]),
    ("interval=hour", &["from"]),
];

fn batch(first_seq: u64, records: &[ScanRecord]) -> ScanBatch {
    ScanBatch { edge: "e1".into(), boot: 1, first_seq, records: records.to_vec() }
}

fn records() -> Vec<ScanRecord> {
    let sum = ScanRecord {
        count: 5.try_into().ok(),
        user_agent: None,
        ip: [0, 0, 0, 0].into(),
        ..scan("ONE", NOW, "0.0.0.0", "")
    };
    let mut all: Vec<_> = (0..150)
        .map(|n| {
            let ip = ["203.0.113.1", "203.0.113.200", "198.51.100.1", "192.0.2.1"][n as usize % 4];
            let agent = [PHONE, ANDROID, ROBOT][n as usize % 3];
            let language = ["de-CH", "en"][n as usize % 2];
            let record = scan(["ONE", "TWO", "THREE"][n as usize / 2 % 3], NOW - n % 5 * HOUR, ip, agent);
            ScanRecord { language: Some(language.into()), ..record }
        })
        .collect();
    all.insert(70, sum);
    all
}

/// Links to two products and to a Thng of the first one; gives the products and the Thng.
async fn links(api: &Api) -> Result<[String; 3]> {
    let (one, two) = (linked(api, "ONE", &[]).await?, linked(api, "TWO", &[]).await?);
    let thng = text(&api.create("/thngs", json!({"name": "t", "product": one})).await?, "id")?;
    link_as(api, &api.key, ("tn.gg", "THREE"), &thng, &[]).await?;
    Ok([one, two, thng])
}

/// The answers to all questions, with the products as names: they have other ids in another database.
async fn answers(api: &Api, [one, two, _]: &[String; 3]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (question, members) in QUESTIONS {
        let range = format!("from={}&to={}&{question}", NOW - 24 * HOUR, NOW + HOUR);
        let members: Vec<&str> = members.iter().copied().chain(["scans", "newDevices", "robots"]).collect();
        let answer = ask(api, &range).await?;
        let mut rows = rows(&answer, &members);
        rows.push(answer["totals"].to_string());
        for (name, id) in [("P1", one), ("P2", two)] {
            rows.iter_mut().for_each(|row| *row = row.replace(id.as_str(), name));
        }
        rows.sort_unstable();
        all.push(format!("{question}: {rows:?}"));
    }
    Ok(all)
}

async fn scans_are_counted_once_when_the_intake_was_killed(engine: Engine) -> Result<()> {
    let (api, records) = (api(engine).await?, records());
    let made = links(&api).await?;
    take_half(&api.made, &batch(0, &records)).await?;
    let nothing = ask(&api, &format!("from={}&to={}", NOW - 24 * HOUR, NOW + HOUR)).await?;
    assert_eq!(nothing["totals"]["scans"], 0, "stored, and not counted yet");
    // Its scans stay those of the product that it had.
    api.call(Method::PUT, &format!("/thngs/{}", made[2]), Some(json!({"product": made[1]})))
        .await?
        .must_be(200)?;
    // In other pieces, some of them twice, with one more kill.
    for (begin, end) in [(0, 60), (30, 130), (0, 151)] {
        take_half(&api.made, &batch(0, &records)).await?;
        take(&api, begin as u64, &records[begin..end]).await?;
    }
    let fresh = super::api(engine).await?;
    let others = links(&fresh).await?;
    take(&fresh, 0, &records).await?;
    assert_eq!(answers(&api, &made).await?, answers(&fresh, &others).await?);
    Ok(())
}

crate::on_both_engines!(scans_are_counted_once_when_the_intake_was_killed);
