//! The content of the event log after requests and jobs.

use anyhow::{Context, Result, ensure};
use kernel::{
    domain::event::{Event, Position, Quiet, RedirectionChange},
    store::{event_log, events},
};
use serde_json::{Value, json};
use tests::{db::Engine, product::DEADLINE};

use super::{
    Api,
    jobs::{UNKNOWN, all, check, list, submit, thng, work},
};

/// The rows of the log that name an action, each with what is kept from it.
async fn told(api: &Api, action: &str) -> Result<Vec<Quiet>> {
    let mut conn = api.made.app.core.db.read().await?;
    let rows = events::list_after(&mut conn, 0, &[], u32::MAX).await?;
    let of = |event: &Event| match event {
        Event::Action(made) => made.id.as_str() == action,
        Event::Actions { ids, .. } => ids.iter().any(|id| id.as_str() == action),
        Event::Properties { .. }
        | Event::Redirections { .. }
        | Event::Job { .. }
        | Event::PrintOrder { .. }
        | Event::ShortDomain(..)
        | Event::Certificate(..)
        | Event::LinkChange { .. }
        | Event::Report(..) => false,
    };
    let rows = rows.into_iter().filter_map(|(_, recorded)| recorded);
    Ok(rows.filter(|row| of(&row.event)).map(|row| row.quiet).collect())
}

pub(super) async fn options_exclude_subscribers_of_actions(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    let id = thng(&api, json!({"name": "t"})).await?;
    let quiet = |notifications, reactions| Quiet { notifications, reactions };
    for (options, expected) in [
        (json!(null), quiet(false, false)),
        (json!([{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}]), quiet(true, false)),
        (json!([{"type": "SINGLE_RESOURCE_REACTIONS", "enabled": true}]), quiet(false, true)),
        (json!([{"type": "SINGLE_RESOURCE_REACTIONS", "enabled": false}]), quiet(false, false)),
        (
            json!([{"type": "SINGLE_RESOURCE_REACTIONS", "enabled": true},
                {"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}]),
            quiet(true, true),
        ),
    ] {
        let mut body = list("PLATFORM_IDS", &[&id, UNKNOWN, &id]);
        body["payload"] = json!({"type": "checkins"});
        body["options"] = options.clone();
        let before: Vec<Value> = all(&api, "/actions/checkins").await?;
        let path = submit(&api, body).await?;
        let job = check(&api, &path, "COMPLETED_WITH_FAILURES", 3, 1).await?;
        ensure!(options.is_null() && job["options"] == json!([]) || job["options"] == options, "{job}");
        let made: Vec<Value> = all(&api, "/actions/checkins").await?;
        let new: Vec<&str> = made
            .iter()
            .filter(|action| !before.contains(action))
            .filter_map(|action| action["id"].as_str())
            .collect();
        ensure!(new.len() == 2, "{new:?}");
        // Each action is in one row, which says who is not told of it.
        for action in new {
            let told = told(&api, action).await?;
            ensure!(told == [expected], "{options}: {action} in {told:?}");
        }
        // The end of the job is told whatever its options say.
        let rows = api.fingerprint().await?.remove("events").context("events")?;
        let of_job = job["id"].as_str().context("id")?;
        let ends = rows.iter().filter(|row| row.contains(of_job) && row.contains("COMPLETED_WITH_FAILURES"));
        ensure!(ends.count() == 1, "{rows:?}");
    }
    // An action by itself is told of by the same log.
    let made = api.create("/actions/scans", json!({"thng": id})).await?;
    ensure!(told(&api, made["id"].as_str().context("id")?).await? == [quiet(false, false)]);
    Ok(())
}

/// "Every redirection change": one row for each request, in the settled log once it is committed.
pub(super) async fn changes_of_redirections_are_recorded(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    let short_id = "OF-LOG";
    let body = json!({"platformId": id, "shortId": short_id, "defaultRedirectUrl": "https://example.com/1"});
    // The answer is an image unless JSON is asked for.
    ensure!(api.post("/redirections", body).await?.status == 200);
    let path = format!("/redirections/{short_id}");
    let body = json!({"defaultRedirectUrl": "https://example.com/2"});
    ensure!(api.put(&path, body).await?.status == 200);
    ensure!(api.delete(&path).await?.status == 200);
    let begun = std::time::Instant::now();
    let told = loop {
        let mut conn = api.made.app.core.db.read().await?;
        let account = Some(api.made.account);
        let rows = event_log::list_after(&mut conn, Position::START, account, 1_000).await?;
        let told: Vec<(RedirectionChange, Option<String>)> = rows
            .into_iter()
            .filter_map(|(_, recorded)| recorded)
            .filter_map(|recorded| match recorded.event {
                Event::Redirections { change, items } => {
                    let item = items.into_iter().find(|item| item.short_id == short_id)?;
                    Some((change, item.target))
                }
                Event::Properties { .. }
                | Event::Action(_)
                | Event::Actions { .. }
                | Event::Job { .. }
                | Event::PrintOrder { .. }
                | Event::ShortDomain(..)
                | Event::Certificate(..)
                | Event::LinkChange { .. }
                | Event::Report(..) => None,
            })
            .collect();
        // Transactions of other tests may hold up what is settled.
        if told.len() >= 3 {
            break told;
        }
        ensure!(begun.elapsed() < DEADLINE, "{told:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    let target = |n: u32| Some(format!("https://example.com/{n}"));
    ensure!(
        told == [
            (RedirectionChange::Created, target(1)),
            (RedirectionChange::Updated, target(2)),
            (RedirectionChange::Deleted, target(2)),
        ],
        "{told:?}"
    );
    // Nothing of it is the other account's.
    let mut conn = api.made.app.core.db.read().await?;
    let rows = event_log::list_after(&mut conn, Position::START, Some(api.other_account), 1_000).await?;
    ensure!(rows.iter().all(|(_, recorded)| recorded.is_none()), "{rows:?}");
    Ok(())
}

crate::on_both_engines!(options_exclude_subscribers_of_actions, changes_of_redirections_are_recorded);
