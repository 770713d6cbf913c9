//! Many Thngs connect, flap and are cut off silently: by a proxy that stops forwarding or, in a network namespace of
//! our own, by its link. At the end every `~connected` matches reality. `WAYMARK_TEST_FLAPS` sets how many.

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

/// Keep-alive of connections that will be cut, in seconds; they give a sign of life each second.
const KEEP_ALIVE: u64 = 4;

/// Longest wait for the truth: a keep-alive, and what the database needs for so many.
const DEADLINE: Duration = Duration::from_secs(120);

/// Says to the test that it runs in a network of its own, and which one it came from.
const INSIDE: &str = "WAYMARK_TEST_OUTER_NETWORK";

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

/// What becomes of a Thng.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stays,
    CutOff,
    Gone,
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

async fn connected_matches_reality_after_flapping(engine: Engine) -> Result<()> {
    let product = Arc::new(Product::start(Options { engine, ..Options::default() }).await?);
    let line = Line::new(product.mqtt.clone()).await?;
    end_as_they_are(product, Cut::Line(line)).await
}

/// The same where packets stop on their way; with SQLite, as Postgres is outside of that network.
#[tokio::test]
async fn connected_matches_reality_when_the_network_goes_down() {
    const NAME: &str = "broker::flaps::connected_matches_reality_when_the_network_goes_down";
    let network = std::fs::read_link("/proc/self/ns/net").unwrap();
    if let Some(outer) = std::env::var_os(INSIDE) {
        assert_ne!(network, outer, "the machine's own link stays up");
        let product = Product::start(Options { engine: Engine::Sqlite, ..Options::default() }).await.unwrap();
        end_as_they_are(Arc::new(product), Cut::Link).await.unwrap();
        return;
    }
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let up = ["ip", "link", "set", "lo", "up"];
    let may =
        |way: &&&[&str]| Command::new("unshare").args(**way).args(up).status().is_ok_and(|s| s.success());
    let Some(way) = ways.iter().find(may) else {
        eprintln!("no network of our own here: only the line was cut");
        return;
    };
    let output = Command::new("unshare")
        .args(*way)
        .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "flaps"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(INSIDE, network)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let is_done = output.status.success() && said.contains("1 passed");
    assert!(is_done, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until each `~connected` says what is.
async fn tell_the_truth(
    product: &Product,
    all: &[(Thng, End)],
    is_connected: impl Fn(End) -> bool,
) -> Result<()> {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    for (thng, end) in all {
        let expected = is_connected(*end);
        loop {
            let path = format!("/thngs/{}/properties/~connected?perPage=1", thng.id);
            let (_, read) = product.call(Method::GET, &path, None).await?;
            if read[0]["value"] == json!(expected) {
                break;
            }
            ensure!(tokio::time::Instant::now() < deadline, "{}: {read} instead of {expected}", thng.id);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

async fn end_as_they_are(product: Arc<Product>, cut: Cut) -> Result<()> {
    let cut = Arc::new(cut);
    let count =
        std::env::var("WAYMARK_TEST_FLAPS").ok().map(|text| text.parse()).transpose()?.unwrap_or(THNGS);
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (product, cut, permits) = (product.clone(), cut.clone(), permits.clone());
        tasks.spawn(async move {
            let permit = permits.acquire().await?;
            let thng = make(&product).await?;
            // Each in an order of its own.
            for step in 0..3 {
                let kind = [Flap::Leaves, Flap::Drops, Flap::ComesTwice][(number + step) % 3];
                flap(&product.mqtt, &thng, kind).await.with_context(|| format!("{kind:?}"))?;
            }
            let end = [End::Stays, End::CutOff, End::Gone][number % 3];
            let last = match end {
                End::Stays => Some((product.mqtt.as_str(), 600)),
                End::CutOff => Some((cut.address(&product.mqtt), KEEP_ALIVE)),
                End::Gone => None,
            };
            let client = match last {
                Some((address, keep_alive)) => {
                    let hello = Hello { keep_alive, ..Hello::new("last", &thng.key) };
                    Some(Client::enter(address, &hello).await?)
                }
                None => None,
            };
            drop(permit);
            Ok::<_, anyhow::Error>((thng, end, client))
        });
    }
    let (mut all, mut clients) = (Vec::new(), JoinSet::new());
    while let Some(done) = tasks.join_next().await {
        let (thng, end, client) = done??;
        if let Some(mut client) = client {
            clients.spawn(async move {
                // Those that will be cut off show that they are there, until then and on.
                while end == End::CutOff && client.ping().await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                std::future::pending::<()>().await;
                drop(client);
            });
        }
        all.push((thng, end));
    }
    tell_the_truth(&product, &all, |end| end != End::Gone).await.context("before the cut")?;
    cut.cut().await?;
    tell_the_truth(&product, &all, |end| end == End::Stays).await?;
    // The history alternates, however often it flapped.
    for (thng, _) in all.iter().take(THNGS) {
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

crate::on_both_engines!(connected_matches_reality_after_flapping);
