//! Many Thngs connect, flap and are cut off without a word: by a line between that goes dead, or, in a network of our
//! own, by its link; at the end every `~connected` equals the truth. `WAYMARK_TEST_FLAPS` says how many.

use std::{process::Command, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::json;
use tests::{
    db::Engine,
    mqtt::{Client, Hello},
    product::{Options, Product},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// Thngs of the short form.
const THNGS: usize = 40;

/// Connections that are made at once.
const AT_ONCE: usize = 32;

/// Keep-alive of connections that will be cut, in seconds.
const KEEP_ALIVE: u64 = 2;

/// Longest wait for the truth: a keep-alive, and what the database needs for so many.
const DEADLINE: Duration = Duration::from_secs(120);

/// Says to the test that it runs in a network of its own.
const INSIDE: &str = "WAYMARK_TEST_IN_NETWORK";

/// What cuts Thngs off.
enum Cut {
    /// A line that they come by, and others do not.
    Line(Line),
    /// The link of this network, for as long as it takes to miss those with a short keep-alive.
    Link,
}

impl Cut {
    /// Where those connect that will be cut off.
    fn address<'a>(&'a self, broker: &'a str) -> &'a str {
        match self {
            Self::Line(line) => &line.address,
            Self::Link => broker,
        }
    }

    async fn cut(&self) -> Result<()> {
        match self {
            Self::Line(line) => drop(line.dead.send_replace(true)),
            Self::Link => {
                set_link("down")?;
                tokio::time::sleep(Duration::from_secs(3 * KEEP_ALIVE)).await;
                set_link("up")?;
            }
        }
        Ok(())
    }
}

fn set_link(state: &str) -> Result<()> {
    ensure!(
        Command::new("ip").args(["link", "set", "lo", state]).status()?.success(),
        "ip link set lo {state}"
    );
    Ok(())
}

/// A link to the broker that can go dead: then nothing passes, and nobody is told.
struct Line {
    address: String,
    dead: watch::Sender<bool>,
}

impl Line {
    async fn new(broker: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (dead, seen) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (broker, mut seen) = (broker.clone(), seen.clone());
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(&broker).await else { return };
                    let cut = async move { seen.wait_for(|dead| *dead).await.is_ok() };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        // Both ends stay open, and hear nothing more.
                        true = cut => std::future::pending::<()>().await,
                    }
                });
            }
        });
        Ok(Self { address, dead })
    }
}

/// What a Thng does before its last state.
#[derive(Debug, Clone, Copy)]
enum Flap {
    Leaves,
    Drops,
    ComesTwice,
}

struct Thng {
    id: String,
    key: String,
}

async fn make(product: &Product) -> Result<Thng> {
    let (_, made) = product.call(Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let id = made["id"].as_str().context("no id")?.to_owned();
    let body = Some(json!({"thngId": id}));
    let (_, made) = product.call(Method::POST, "/auth/evrythng/thngs", body).await?;
    Ok(Thng { id, key: made["thngApiKey"].as_str().context("no key")?.to_owned() })
}

async fn flap(address: &str, thng: &Thng, flap: Flap) -> Result<()> {
    let client = Client::enter(address, &Hello::new("flap", &thng.key)).await?;
    match flap {
        Flap::Leaves => client.leave().await,
        Flap::Drops => Ok(()),
        Flap::ComesTwice => {
            let second = Client::enter(address, &Hello::new("flap", &thng.key)).await?;
            drop(client);
            second.leave().await
        }
    }
}

async fn every_thng_ends_as_it_is(engine: Engine) -> Result<()> {
    let product = Arc::new(Product::start(Options { engine, ..Options::default() }).await?);
    let line = Line::new(product.mqtt.clone()).await?;
    end_as_they_are(product, Cut::Line(line)).await
}

/// The same where packets stop on their way; with SQLite, as Postgres is outside of that network.
#[tokio::test]
async fn every_thng_ends_as_it_is_when_the_link_goes_down() {
    if std::env::var_os(INSIDE).is_some() {
        let product = Product::start(Options { engine: Engine::Sqlite, ..Options::default() }).await.unwrap();
        end_as_they_are(Arc::new(product), Cut::Link).await.unwrap();
        return;
    }
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let may =
        |way: &&&[&str]| Command::new("unshare").args(**way).arg("true").status().is_ok_and(|s| s.success());
    let Some(way) = ways.iter().find(may) else {
        eprintln!("no network of our own here: only the line was cut");
        return;
    };
    let status = Command::new("unshare")
        .args(*way)
        .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "flaps"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "broker::flaps::every_thng_ends_as_it_is_when_the_link_goes_down", "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

async fn end_as_they_are(product: Arc<Product>, cut: Cut) -> Result<()> {
    let cut = Arc::new(cut);
    let count =
        std::env::var("WAYMARK_TEST_FLAPS").ok().map(|text| text.parse()).transpose()?.unwrap_or(THNGS);
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (product, cut, turns) = (product.clone(), cut.clone(), turns.clone());
        tasks.spawn(async move {
            let turn = turns.acquire().await?;
            let thng = make(&product).await?;
            // Each in an order of its own.
            for step in 0..3 {
                let kind = [Flap::Leaves, Flap::Drops, Flap::ComesTwice][(number + step) % 3];
                flap(&product.mqtt, &thng, kind).await.with_context(|| format!("{kind:?}"))?;
            }
            // A third stays, a third will be cut off, a third is gone.
            let last = match number % 3 {
                0 => Some(
                    Client::enter(&product.mqtt, &Hello { keep_alive: 600, ..Hello::new("l", &thng.key) })
                        .await?,
                ),
                1 => Some(
                    Client::enter(
                        cut.address(&product.mqtt),
                        &Hello { keep_alive: KEEP_ALIVE, ..Hello::new("l", &thng.key) },
                    )
                    .await?,
                ),
                _ => None,
            };
            drop(turn);
            Ok::<_, anyhow::Error>((thng, number % 3 == 0, last))
        });
    }
    // Those that will be cut off show that they are there until then.
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.push(done??);
    }
    cut.cut().await?;
    let deadline = tokio::time::Instant::now() + DEADLINE;
    for (thng, is_connected, _) in &all {
        loop {
            let path = format!("/thngs/{}/properties/~connected?perPage=1", thng.id);
            let (_, read) = product.call(Method::GET, &path, None).await?;
            if read[0]["value"] == json!(is_connected) {
                break;
            }
            ensure!(tokio::time::Instant::now() < deadline, "{}: {read} instead of {is_connected}", thng.id);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    // The history alternates, however often it flapped.
    for (thng, _, _) in all.iter().take(THNGS) {
        let path = format!("/thngs/{}/properties/~connected?sortOrder=ASCENDING&perPage=100", thng.id);
        let (_, history) = product.call(Method::GET, &path, None).await?;
        let values: Vec<bool> = history
            .as_array()
            .context("no list")?
            .iter()
            .filter_map(|point| point["value"].as_bool())
            .collect();
        ensure!(values.first() == Some(&true) && values.windows(2).all(|two| two[0] != two[1]), "{values:?}");
    }
    Ok(())
}

crate::on_both_engines!(every_thng_ends_as_it_is);
