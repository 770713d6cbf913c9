//! What the audit trail costs a change of a redirection. On SQLite, or with `WAYMARK_TEST_DATABASE_URL` on Postgres.

use std::{
    io::{Write, stdout},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};
use futures_util::future::try_join_all;
use kernel::{
    service::access::Caller,
    store::{Ctx, audit::Principal},
};
use redirects::{
    domain::redirection::{Draft, Writable},
    service::redirections::{self, DomainChoice},
};
use serde_json::json;
use shared::time::UnixMillis;
use tenants::service::audit::chain_new;
use tests::db::{Engine, POSTGRES_URL, TestApp};

use crate::{args::Length, product, stats::Spread};

/// The bound of the ratio of times.
const MOST: f64 = 1.05;

/// Measures changes of redirections with an entry in the audit trail against changes without, alternated.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("rounds", |arg| arg.default_value("9")), mut_arg("seconds", |arg| arg.default_value("3")))]
pub(crate) struct Args {
    /// Redirections, each of which is changed by one caller at a time
    #[arg(long, default_value_t = 8)]
    callers: usize,
    #[command(flatten)]
    length: Length,
}

/// Runs the comparison and prints it; `false` when the ratio is above the bound.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        args.length = Length { rounds: 1, seconds: 0.2 };
    }
    ensure!((1..=64).contains(&args.callers) && args.length.rounds >= 1, "sizes are out of range");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ratio = runtime.block_on(compare(&args))?;
    Ok(is_smoke || ratio <= MOST)
}

async fn compare(args: &Args) -> Result<f64> {
    let engine = if std::env::var_os(POSTGRES_URL).is_some() { Engine::Postgres } else { Engine::Sqlite };
    let made = TestApp::new(engine).await?;
    let short_ids = create(&made, args.callers).await?;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=args.length.rounds {
        // Which one comes first changes each round.
        for is_noted in [round % 2 == 0, round % 2 != 0] {
            let micros = one_round(&made, &short_ids, is_noted, args.length.seconds).await?;
            // The first round warms up.
            if round > 0 {
                times[usize::from(is_noted)].push(micros);
            }
        }
    }
    let ratios: Vec<f64> = times[1].iter().zip(&times[0]).map(|(with, without)| with / without).collect();
    let [without, with] = times.map(|times| Spread::of(&times));
    let ratio = Spread::of(&ratios);
    writeln!(
        stdout(),
        "{engine:?}, {} callers: µs a change without an entry {}, with one and its place in the chain {}; ratio {} \
         (bound {MOST})",
        args.callers,
        without.text(1),
        with.text(1),
        ratio.text(3),
    )?;
    Ok(ratio.median)
}

async fn create(made: &TestApp, count: usize) -> Result<Vec<String>> {
    let product = product::insert(made).await?;
    let mut short_ids = Vec::with_capacity(count);
    for _ in 0..count {
        let body = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/0"});
        let draft = Draft::parse(&body, None).map_err(|faults| anyhow!("{faults:?}"))?;
        let caller = made.caller();
        let new =
            redirections::create(&made.app.redirects, &caller, draft, DomainChoice::default(), None, None);
        short_ids.push(new.await?.value.redirect.short_id.to_string());
    }
    Ok(short_ids)
}

/// Changes each redirection again and again; returns the microseconds that a change took.
async fn one_round(made: &TestApp, short_ids: &[String], is_noted: bool, seconds: f64) -> Result<f64> {
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(seconds);
    let changes = short_ids.iter().map(async |short_id| {
        let mut count = 0_u32;
        while Instant::now() < end {
            count += 1;
            let body = json!({"defaultRedirectUrl": format!("https://example.com/{count}")});
            let writable = Writable::parse(&body).map_err(|faults| anyhow!("{faults:?}"))?;
            let choice = DomainChoice::default();
            let caller = caller(made, is_noted);
            let ids = vec![short_id.clone()];
            redirections::replace(&made.app.redirects, &caller, choice, ids, writable).await?;
        }
        anyhow::Ok(count)
    });
    let count: u32 = try_join_all(changes).await?.into_iter().sum();
    let mut chained = 0;
    loop {
        let step = chain_new(&made.app.core).await?;
        if step == 0 {
            break;
        }
        chained += step;
    }
    ensure!(chained == if is_noted { count as usize } else { 0 }, "{chained} entries of {count} changes");
    Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

fn caller(made: &TestApp, is_noted: bool) -> Caller {
    let caller = made.caller();
    if !is_noted {
        return caller;
    }
    let principal = Principal {
        request: Some("UKXAGyEf8SQ5eTDmVgGpHqAa".to_owned()),
        ..Principal::of(
            &caller.actor,
            &[7; 32],
            Some([192, 0, 2, 1].into()),
            "PUT /redirections/{shortId}".to_owned(),
            UnixMillis(1),
        )
        .unwrap_or_else(|| unreachable!("operators are noted"))
    };
    Caller { ctx: Ctx::default().with_principal(principal), ..caller }
}
