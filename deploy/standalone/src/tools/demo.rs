//! `waymark demo`: fills an account with a brand to look at, and takes it away again.
//!
//! Everything follows from a seed, goes through the public API, and carries a mark: it is scoped to a project of its own
//! and has a tag. Each step looks at what is there and makes the rest, so that a run that was cut short goes on.

use std::{process::ExitCode, time::SystemTime};

use serde_json::Value;
use shared::target::{InvalidTarget, Target};

use self::{
    fill::Filling,
    mark::{Demo, Mark, State},
    shown::{Shown, note},
    verdicts::{PROMISED, Verdicts},
};
use super::{
    client::{ApiArgs, Client, RequestError},
    shown::say,
};
use crate::failure::Failure;

mod background;
mod brand;
mod counts;
mod fill;
mod items;
mod mark;
mod random;
mod remove;
mod shown;
mod verdicts;
mod world;

/// The end of the time that is shown is a whole minute.
const MINUTE_MS: i64 = 60 * 1_000;

/// Arguments of `waymark demo`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    api: ApiArgs,
    /// Items with a short link each, 50 to 50,000
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(50..=50_000))]
    items: u32,
    /// What names, places and times follow from: the same number tells the same stories
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,
    /// Where the links lead
    #[arg(long, value_name = "URL", default_value = "https://example.com/welcome?code={shortId}", value_parser = valid_target)]
    target: String,
    /// Requests under way at once, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
    /// Take the demo away, and nothing else
    #[arg(long, conflicts_with_all = ["items", "seed", "target"])]
    remove: bool,
}

/// Runs the command: 0 when the demo is there, or away; 1 when nothing was done, 2 when it is not finished.
///
/// # Errors
/// The API refuses or does not answer, or a demo of other arguments is there.
pub async fn run(args: Args) -> Result<ExitCode, Failure> {
    let client = Client::new(&args.api)?;
    let shown = Shown::new(args.parallel);
    let refused = |error: RequestError| Failure::failed("demo", error);
    let found = mark::find(&client).await.map_err(refused)?;
    if args.remove {
        return remove(&client, found, &shown).await;
    }
    if found.len() > 1 {
        let text = format!("{} demos are there; remove them first (--remove)", found.len());
        return Err(Failure::failed("demo", text));
    }
    let demo = match found.into_iter().next() {
        None => {
            check_account(&client).await.map_err(refused)?;
            let mark = Mark {
                seed: args.seed,
                items: args.items,
                target: args.target.clone(),
                end: now_ms() / MINUTE_MS * MINUTE_MS,
                state: State::Filling,
            };
            begin(&client, mark).await.map_err(refused)?
        }
        Some(demo) => {
            check(&demo, &args)?;
            if demo.mark.state == State::Complete {
                say(&format!("{} It was there already; nothing was changed.", described(&demo)));
                return Ok(ExitCode::SUCCESS);
            }
            note("going on with a demo that was cut short");
            demo
        }
    };
    // The application's client: the same API with another key.
    let unfinished = |error: RequestError| {
        let is_refused =
            matches!(&error, RequestError::Refused { status, .. } if matches!(status.as_u16(), 400 | 403));
        let next = if is_refused {
            "take it away with --remove"
        } else {
            "run it once more to go on, or with --remove"
        };
        Failure::unfinished("demo", format!("{error} ({next})"))
    };
    let key = brand::secret_key(&client, &demo).await.map_err(unfinished)?;
    let application = Client::new(&ApiArgs { key: Some(key), ..args.api.clone() })?;
    let filled = fill(&client, &application, demo, &shown).await.map_err(unfinished)?;
    for line in filled {
        say(&line);
    }
    Ok(ExitCode::SUCCESS)
}

/// A target as links may have it.
fn valid_target(text: &str) -> Result<String, InvalidTarget> {
    Target::parse(text).map(|target| target.as_str().to_owned())
}

/// Refuses an account whose demo could not be finished: one without enterprise features or without a short domain.
async fn check_account(client: &Client) -> Result<(), RequestError> {
    // It asks for nothing, and is refused without enterprise features.
    let url = client.url(&["thngs", "commissionStateList"], []);
    let key = format!("demo-{:016x}", mark::random()?);
    let _: Vec<Value> = client.post_once(&url, &key, "[]".into()).await?;
    let accounts: Vec<Value> = client.read(&client.url(&["accounts"], [])).await?;
    for account in &accounts {
        let path = ["accounts", mark::text(account, "id"), "shortDomains"];
        let domains: Vec<String> = client.read(&client.url(&path, [])).await?;
        if !domains.is_empty() {
            return Ok(());
        }
    }
    Err(RequestError::Unreachable("the account has no short domain, and a demo needs one".to_owned()))
}

/// Begins a demo, unless another run did so at the same time.
async fn begin(client: &Client, mark: Mark) -> Result<Demo, RequestError> {
    let demo = mark::create(client, mark).await?;
    let oldest = mark::find(client).await?.into_iter().next();
    if oldest.is_none_or(|oldest| oldest.project == demo.project) {
        return Ok(demo);
    }
    client.remove(&client.url(&["projects", &demo.project], [])).await?;
    Err(RequestError::Unreachable("another run has begun a demo at the same time".to_owned()))
}

/// Makes what is missing; gives what there is, in lines for people.
async fn fill(
    client: &Client,
    application: &Client,
    mut demo: Demo,
    shown: &Shown,
) -> Result<Vec<String>, RequestError> {
    let items = items::items(demo.mark.seed, demo.mark.items, demo.mark.end);
    let brand = brand::make(client, &demo).await?;
    let filling = Filling { client, application, demo: &demo, brand: &brand, shown, items: &items };
    let things = filling.things().await?;
    filling.links(&things).await?;
    filling.commissions(&things).await?;
    let scans = filling.scans(&things).await?;
    let jobs = background::run(&filling, &things).await?;
    let judged_items = verdicts::ask(&filling, &things, &scans).await?;
    let counted = counts::count(&filling, &things, &judged_items).await?;
    demo.note(client, State::Complete).await?;
    Ok(vec![
        described(&demo),
        format!(
            "{} products, {} items with a link each, {} scans, {jobs} jobs, a webhook that is switched off.",
            brand.products.len(),
            things.len(),
            scans.len()
        ),
        judged(&verdicts::counted(&judged_items)),
        match counted {
            Some(count) => format!(
                "The scans were reported by an application, not by edges: they are in lists, on maps of items and in verdicts, \
                 {count} of them in statistics, and none in hits."
            ),
            None => "The scans are not in the statistics: the key is of no owner or admin, or the service is of an older release."
                .to_owned(),
        },
        "Take it away again: waymark demo --remove".to_owned(),
    ])
}

async fn remove(client: &Client, found: Vec<Demo>, shown: &Shown) -> Result<ExitCode, Failure> {
    if found.is_empty() {
        say("There is no demo; nothing was changed.");
        return Ok(ExitCode::SUCCESS);
    }
    for demo in &found {
        let foreign = remove::foreign_application(client, demo).await;
        if let Some(name) = foreign.map_err(|error| Failure::failed("demo", error))? {
            let text = format!(
                "the project {} has the application {name:?}, which is not the demo's and would go with it; delete it first",
                demo.project
            );
            return Err(Failure::failed("demo", text));
        }
    }
    let unfinished = |error: RequestError| {
        Failure::unfinished("demo", format!("{error} (run `waymark demo --remove` once more to go on)"))
    };
    for mut demo in found {
        // Before anything is gone: a demo of which a part is missing is not there.
        demo.note(client, State::Removing).await.map_err(unfinished)?;
        remove::run(client, &demo, shown).await.map_err(unfinished)?;
    }
    say("The demo is removed. The audit trail and the log of events keep what happened, for their time.");
    Ok(ExitCode::SUCCESS)
}

/// Refuses to go on with a demo of other arguments, or with one that is half removed.
fn check(demo: &Demo, args: &Args) -> Result<(), Failure> {
    let Mark { seed, items, target, state, .. } = &demo.mark;
    if *state == State::Removing {
        let text = "a removal was cut short; run `waymark demo --remove` once more";
        return Err(Failure::failed("demo", text));
    }
    if (*seed, *items, target) == (args.seed, args.items, &args.target) {
        return Ok(());
    }
    let text = format!(
        "another demo is there, of --seed {seed} --items {items} --target {target:?}; remove it first (--remove)"
    );
    Err(Failure::failed("demo", text))
}

fn described(demo: &Demo) -> String {
    let Mark { seed, items, .. } = demo.mark;
    format!("The demo of {} is there: seed {seed}, {items} items, project {}.", world::BRAND, demo.project)
}

/// The verdicts in a line; names those that the demo should have and has not.
fn judged(verdicts: &Verdicts) -> String {
    let counts: Vec<String> = verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let missing: Vec<&str> =
        PROMISED.into_iter().filter(|verdict| !verdicts.contains_key(*verdict)).collect();
    let mut text = format!("Verdicts: {}.", counts.join(", "));
    if !missing.is_empty() {
        let missing = missing.join(", ");
        text.push_str(&format!(
            " None is {missing}: settings of assessment or of personal data decide that."
        ));
    }
    text
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
