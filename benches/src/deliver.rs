//! From the commit of an action to a webhook's receiver on this machine, and what the log of events adds to
//! `POST /actions`. On the Postgres that `WAYMARK_TEST_DATABASE_URL` names, with the `waymark` that is built beside
//! this program.

mod cost;

use std::{
    collections::HashMap,
    io::{Write, stdout},
    time::{Duration, Instant},
};

use actions::{
    domain::action_draft::ActionDraft,
    service::{
        action_creation::{self, Circumstances},
        actions::Scope,
    },
};
use anyhow::{Context, Result, ensure};
use control::worker;
use events::{domain::webhook::WebhookChange, service::webhooks};
use kernel::{domain::body::Purpose, service::access::Caller};
use serde_json::json;
use tests::{
    db::{Engine, TestApp},
    receiver::Receiver,
};
use tokio_util::sync::CancellationToken;

/// Longest wait for what is on its way.
const DEADLINE: Duration = Duration::from_secs(120);

/// How much is measured.
struct Form {
    /// Actions one by one, and the pause between two.
    single: usize,
    pause: Duration,
    /// Actions at once, and of these in one request.
    bulk: usize,
    step: usize,
    /// What the log adds.
    cost: cost::Form,
}

const PLAIN: Form = Form {
    single: 1_000,
    pause: Duration::from_millis(10),
    bulk: 20_000,
    step: 1_000,
    cost: cost::Form {
        clients: 16,
        rounds: 21,
        settle: Duration::from_millis(500),
        round: Duration::from_secs(3),
    },
};
const SMOKE: Form = Form {
    single: 20,
    pause: Duration::ZERO,
    bulk: 400,
    step: 100,
    cost: cost::Form {
        clients: 4,
        rounds: 1,
        settle: Duration::from_millis(50),
        round: Duration::from_millis(250),
    },
};

/// Measures the way of events to a webhook's receiver.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Leave out what the log of events adds to POST /actions
    #[arg(long)]
    delivery: bool,
}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// Something could not be started, or an event did not come.
pub(crate) fn run(args: &Args, is_smoke: bool) -> Result<bool> {
    let form = if is_smoke { SMOKE } else { PLAIN };
    // It has a runtime of its own, which must begin and end outside of this one.
    let receiver = Receiver::start(Duration::ZERO)?;
    tokio::runtime::Runtime::new()?.block_on(measure(&form, !args.delivery, &receiver))?;
    Ok(true)
}

async fn measure(form: &Form, has_cost: bool, receiver: &Receiver) -> Result<()> {
    // Before anything is delivered: nobody reads the log meanwhile but to see its end.
    if has_cost {
        for line in cost::measure(&form.cost).await? {
            writeln!(stdout(), "{line}")?;
        }
    }
    let made = TestApp::new(Engine::Postgres).await?;
    let caller = made.caller();
    let body = json!({"name": "deliver", "url": receiver.quick(), "types": ["action"]});
    let change =
        WebhookChange::parse(&body, Purpose::Create, true).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    webhooks::create(&made.app.events, &caller, change, None).await?;
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    tokio::spawn(worker::webhooks::run(made.app.events.clone(), stop));

    let mut committed = HashMap::new();
    for _ in 0..form.single {
        for id in create(&made, &caller, 1).await? {
            committed.insert(id, Instant::now());
        }
        tokio::time::sleep(form.pause).await;
    }
    wait(receiver, form.single)?;
    let came = receiver.came();
    let mut delays: Vec<Duration> =
        committed.iter().filter_map(|(id, at)| Some(came.get(id)?.saturating_duration_since(*at))).collect();
    ensure!(delays.len() == form.single, "{} of {} came", delays.len(), form.single);
    delays.sort_unstable();

    let begun = Instant::now();
    let mut left = form.bulk;
    while left > 0 {
        left -= create(&made, &caller, form.step.min(left)).await?.len();
    }
    let written = begun.elapsed();
    wait(receiver, form.single + form.bulk)?;
    let delivered = begun.elapsed();

    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    let rate = |took: Duration| form.bulk as f64 / took.as_secs_f64();
    let mut out = stdout().lock();
    writeln!(
        out,
        "commit to receiver: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )?;
    writeln!(
        out,
        "{} at once: written {:.0}/s, delivered {:.0}/s",
        form.bulk,
        rate(written),
        rate(delivered)
    )?;
    Ok(())
}

async fn create(made: &TestApp, caller: &Caller, count: usize) -> Result<Vec<String>> {
    let drafts = vec![ActionDraft::default(); count];
    let around = Circumstances::default();
    let new =
        action_creation::create(&made.app.actions, caller, Scope::Account, "scans", &drafts, around).await?;
    Ok(new.into_iter().map(|action| action.id.to_string()).collect())
}

/// Waits until so many different events came.
fn wait(receiver: &Receiver, count: usize) -> Result<()> {
    let waited = tokio::task::block_in_place(|| receiver.wait(count, DEADLINE));
    waited.map(|_| ()).context("not all events came")
}
