//! Webhooks against the npm package `standardwebhooks`: a table of signatures, and the real product under repeated
//! kills, with an unreliable receiver that verifies signatures with it.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use events::domain::webhook::{shown, sign};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    killed::Killed,
    kills::expire_leases,
    product::{Options, Product, root},
};

use crate::jobs::submit_file;

/// Longest wait without anything new: on Postgres what a dead worker held is free when its lease has run out.
const DEADLINE: Duration = Duration::from_secs(120);

/// Actions of the job, how often the product is killed meanwhile, and how often the receiver hangs, each of which
/// takes 15 s.
const GATE: (usize, usize, usize) = (1_200, 3, 0);

/// The same with `WAYMARK_TEST_WEBHOOK_ACTIONS`, which is the number of actions.
const MANY: (usize, usize) = (10, 3);

/// How long the receiver is down.
const DOWN: Duration = Duration::from_secs(2);

/// What is signed in the table.
const BODY: &str = r#"{"type":"action.scans","timestamp":1,"data":{"name":"ä €"}}"#;

fn clients() -> Result<PathBuf> {
    let folder = root().join("tests/clients");
    ensure!(
        folder.join("node_modules/standardwebhooks").is_dir(),
        "tests/clients/node_modules is missing: run the tests by tests/run, or `npm ci` in tests/clients"
    );
    Ok(folder)
}

/// What the reference library says of our signatures, of those of rotated secrets, and of what is old or altered.
#[test]
fn the_reference_library_verifies() -> Result<()> {
    let now = i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs())?;
    let (one, two, other) = ([1; 32], [2; 32], [3; 32]);
    let (none, old, new) =
        ("No matching signature found", "Message timestamp too old", "Message timestamp too new");
    let (id, body) = ("UKXAGyEf8SQ5eTDmVgGpHqAa", BODY);
    // Signed by these, as this event, at this time; verified with this secret, as this event, body and time.
    let row = |by: &[[u8; 32]], signed_at: i64, with: [u8; 32], id: &str, body: &str, at: i64| {
        let signature = sign(by, "UKXAGyEf8SQ5eTDmVgGpHqAa", signed_at, BODY.as_bytes());
        json!({"secret": shown(&with), "body": body, "headers": {"webhook-id": id,
            "webhook-timestamp": at.to_string(), "webhook-signature": signature}})
    };
    let table = [
        ("one secret", row(&[one], now, one, id, body, now), "ok"),
        ("the newer of two", row(&[two, one], now, two, id, body, now), "ok"),
        ("the older of two, while it signs", row(&[two, one], now, one, id, body, now), "ok"),
        ("the older, when it has run out", row(&[two], now, one, id, body, now), none),
        ("five, of which it is the last", row(&[other, other, two, two, one], now, one, id, body, now), "ok"),
        ("a secret that never signed", row(&[two, one], now, other, id, body, now), none),
        ("another event's id", row(&[one], now, one, "UKXAGyEf8SQ5eTDmVgGpHqAb", body, now), none),
        ("another body", row(&[one], now, one, id, "{}", now), none),
        ("another time than was signed", row(&[one], now, one, id, body, now - 60), none),
        ("within the window", row(&[one], now - 280, one, id, body, now - 280), "ok"),
        ("replayed later", row(&[one], now - 310, one, id, body, now - 310), old),
        ("from a clock that is ahead", row(&[one], now + 280, one, id, body, now + 280), "ok"),
        ("from too far ahead", row(&[one], now + 330, one, id, body, now + 330), new),
        ("no secret signs", row(&[], now, one, id, body, now), "Missing required headers"),
    ];
    let mut node = Command::new("node")
        .arg("webhook-verify.mjs")
        .current_dir(clients()?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let rows: Vec<&Value> = table.iter().map(|(_, row, _)| row).collect();
    node.stdin.take().context("stdin")?.write_all(serde_json::to_string(&rows)?.as_bytes())?;
    let output = node.wait_with_output()?;
    ensure!(output.status.success(), "{output:?}");
    let said: Vec<String> = serde_json::from_slice(&output.stdout)?;
    ensure!(said.len() == table.len(), "{said:?}");
    for ((what, _, expected), said) in table.iter().zip(&said) {
        ensure!(said == expected, "{what}: {said}");
    }
    Ok(())
}

/// The receiver; it ends with this.
struct Receiver {
    _child: Killed,
    port: u16,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    scans: BTreeSet<String>,
    /// What it could not verify, or should not have come.
    wrong: Vec<String>,
}

impl Receiver {
    /// Starts it; it leaves the first try of some events without any answer.
    fn start(hangs: usize) -> Result<Self> {
        let mut child = Command::new("node")
            .args(["webhook.mjs", &hangs.to_string()])
            .current_dir(clients()?)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stdout.take().context("stdout")?);
        let mut first = String::new();
        said.read_line(&mut first)?;
        let port = first.trim().strip_prefix("listening ").context("listening")?.parse()?;
        let taken: Arc<Mutex<Taken>> = Arc::default();
        let kept = taken.clone();
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                let Ok(mut kept) = kept.lock() else { return };
                let scan = line.strip_prefix("took ").and_then(|rest| rest.strip_suffix(" action.scans"));
                match scan {
                    Some(id) => {
                        kept.scans.insert(id.to_owned());
                    }
                    None => kept.wrong.push(line),
                }
            }
        });
        Ok(Self { _child: Killed(child), port, taken })
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// How many different scans it took; fails when it could not verify one.
    fn count(&self) -> Result<usize> {
        let taken = self.taken.lock().map_err(|_| anyhow::anyhow!("the reader of its lines failed"))?;
        ensure!(taken.wrong.is_empty(), "{:?}", taken.wrong.first());
        Ok(taken.scans.len())
    }

    /// Waits until it has so many.
    async fn wait(&self, count: usize) -> Result<()> {
        let (mut since, mut last) = (Instant::now(), 0);
        loop {
            let now = self.count()?;
            if now >= count {
                return Ok(());
            }
            if now > last {
                (since, last) = (Instant::now(), now);
            }
            ensure!(since.elapsed() < DEADLINE, "{now} of {count} came, and no more");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn webhook(product: &Product, url: String) -> Result<String> {
    let body = json!({"name": "w", "url": url, "types": ["action"]});
    let webhook = product.must_answer(201, Method::POST, "/webhooks", Some(body)).await?;
    Ok(webhook["id"].as_str().context("id")?.to_owned())
}

/// "Gets every event of a 100,000-action job at least once and none that the options exclude; a receiver that is
/// down for a while, answers 500, hangs, answers slowly or closes early loses nothing and delays nobody else; control
/// is killed with -9 ten times meanwhile."
async fn every_event_of_a_job_arrives_after_any_crash(engine: Engine) -> Result<()> {
    let many = std::env::var("WAYMARK_TEST_WEBHOOK_ACTIONS").ok();
    let is_gate = many.is_none();
    let (count, kills, hangs) = match many {
        Some(text) => (text.parse()?, MANY.0, MANY.1),
        None => GATE,
    };
    let receiver = Receiver::start(hangs)?;
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let id = webhook(&product, receiver.url("/hook")).await?;
    // It gets the same, and never answers.
    let never = webhook(&product, receiver.url("/never")).await?;
    let (_, secrets) = product.call(Method::GET, &format!("/webhooks/{id}/secrets"), None).await?;
    let secret = secrets[0]["secret"].as_str().context("secret")?.to_owned();
    product.http.post(receiver.url("/secret")).body(secret).send().await?.error_for_status()?;

    let (_, thng) = product.call(Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let thng = thng["id"].as_str().context("thng")?.to_owned();
    let quiet = json!({"payload": {"type": "checkins"}, "target": "THNGS",
        "options": [{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}],
        "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": vec![thng.as_str(); 100]}});
    product.must_answer(202, Method::POST, "/jobs/actions", Some(quiet)).await?;
    let lines = format!("thng\r\n{}", format!("{thng}\r\n").repeat(count));
    submit_file(&product, "CSV", lines.into_bytes()).await?;
    for kill in 1..=kills {
        // At some point of the way, each time another.
        receiver.wait(count * kill / (kills + 2)).await?;
        if kill == kills / 2 {
            let down = product.http.post(receiver.url("/down")).body(DOWN.as_millis().to_string());
            down.send().await?.error_for_status()?;
        }
        product.kill()?;
        // On Postgres what was held is free only when its lease has run out.
        if is_gate {
            expire_leases(&product).await?;
        }
        product.start_again()?;
    }
    receiver.wait(count).await?;
    // All is settled, and nothing was given up.
    for status in ["pending", "dead"] {
        let begun = Instant::now();
        let path = format!("/webhooks/{id}/deliveries?perPage=1&filter=status%3D{status}");
        while product.call(Method::GET, &path, None).await?.1 != json!([]) {
            ensure!(begun.elapsed() < DEADLINE, "some are {status}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for webhook in [&id, &never] {
        let (_, read) = product.call(Method::GET, &format!("/webhooks/{webhook}"), None).await?;
        ensure!(read["dropped"] == 0 && read["status"] == "active", "{read}");
    }
    let checkins = product.list("/actions/checkins?perPage=100").await?;
    ensure!(checkins.len() == 100, "{} actions of which nobody hears", checkins.len());
    let scans = product.list("/actions/scans?perPage=100").await?;
    let made: BTreeSet<String> =
        scans.iter().filter_map(|scan| scan["id"].as_str().map(str::to_owned)).collect();
    ensure!(made.len() == count && receiver.count()? == count, "{} of {count} were made", made.len());
    let taken = receiver.taken.lock().map_err(|_| anyhow::anyhow!("lines"))?;
    ensure!(taken.scans == made, "what came is what was made");
    Ok(())
}

crate::on_both_engines!(every_event_of_a_job_arrives_after_any_crash);
