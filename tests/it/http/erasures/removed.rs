//! Users who are removed: by one, by many, and with their application.

use std::collections::BTreeSet;

use ::privacy::{
    domain::erasure::MAX_USERS, service::erasures::users_removed, store::erasures, worker::work,
};
use anyhow::{Context, Result, ensure};
use applications::{
    domain::app_user::{UserDetails, UserStatus},
    service::removal,
    store::{
        app_users::{self, NewRow},
        removed_applications,
    },
    worker,
};
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::id::{ApplicationId, ProjectId, UserId};
use tests::db::{Engine, TestApp, random16};
use tokio_util::sync::CancellationToken;

use super::{
    Api, IP, MARKS, Scanned,
    asked::{acting_user, application, project},
    found, post, work_all,
};
use crate::store::schema::run;

crate::on_both_engines!(
    users_who_are_deleted_share_an_erasure,
    users_are_looked_for_in_portions,
    users_of_a_deleted_application_are_erased,
    many_users_of_a_deleted_application_are_removed_in_steps,
);

/// All erasures of the account, newest first, and how many users each has.
async fn listed(api: &Api) -> Result<(Vec<Value>, Vec<usize>)> {
    let all: Vec<Value> = serde_json::from_value(api.get("/privacy/erasures").await?.json())?;
    let count = |one: &Value| one["users"].as_array().map_or(1, Vec::len);
    let counts = all.iter().map(count).collect();
    Ok((all, counts))
}

async fn actions_of(api: &Api, user: &str) -> Result<Vec<Value>> {
    let uri = format!("/actions/checkins?filter=user={user}&context=true");
    serde_json::from_value(api.get(&uri).await?.json()).context("actions")
}

/// Removes so many users of whom nothing is stored, in one transaction.
async fn remove(api: &Api, count: usize) -> Result<()> {
    let users: Vec<UserId> =
        (0..count).map(|number| Ok(UserId::new(number as i64, random16()?))).collect::<Result<_>>()?;
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let at = (api.made.app.core.clock.now(), random16()?);
    users_removed(&mut tx, api.made.account, users, at).await?;
    Ok(tx.commit().await?)
}

async fn users_who_are_deleted_share_an_erasure(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let (api, thng) = (&scanned.api, &scanned.brand_thngs[0]);
    let project = project(api, thng).await?;
    let (_, public) = application(api, &project).await?;
    let mut users = Vec::new();
    for _ in 0..5 {
        users.push(acting_user(api, &public, thng).await?.0);
    }
    let delete = async |user: &String| -> Result<()> {
        let answer = api.delete(&format!("/users/{user}")).await?;
        ensure!(answer.status.is_success(), "{answer:?}");
        Ok(())
    };
    for user in &users[..3] {
        delete(user).await?;
    }
    let (all, counts) = listed(api).await?;
    ensure!(counts == [3] && all[0]["users"] == json!(users[..3]), "{all:?}");
    ensure!(all[0]["status"] == "ENQUEUED" && all[0].get("requestedBy").is_none(), "{all:?}");

    // One that was begun, or that somebody asked for, takes no more.
    work(&api.made.app.privacy, 1, &CancellationToken::new()).await?;
    super::ask(api, json!({"user": users[4]})).await?;
    delete(&users[3]).await?;
    let (all, counts) = listed(api).await?;
    ensure!(counts == [1, 1, 3] && all[0]["user"] == users[3].as_str(), "{all:?}");
    ensure!(all[2]["status"] == "EXECUTING" && all[2]["users"] == json!(users[..3]), "{all:?}");

    // There is a bound.
    remove(api, MAX_USERS - 1).await?;
    ensure!(listed(api).await?.1 == [MAX_USERS, 1, 3]);
    remove(api, 2).await?;
    ensure!(listed(api).await?.1 == [2, MAX_USERS, 1, 3]);
    remove(api, 2 * MAX_USERS + 200).await?;
    let (_, mut counts) = listed(api).await?;
    counts.sort_unstable();
    ensure!(counts == [1, 3, 202, MAX_USERS, MAX_USERS, MAX_USERS], "{counts:?}");

    work_all(api).await?;
    let (all, _) = listed(api).await?;
    ensure!(all.iter().all(|one| one["status"] == "COMPLETED"), "{all:?}");
    let changed: u64 = all.iter().filter_map(|one| one["rows"]["actions"].as_u64()).sum();
    ensure!(changed == 5, "each action is counted once: {all:?}");
    for user in &users {
        ensure!(actions_of(api, user).await?.is_empty(), "{user}");
    }
    let left = found(api, &MARKS).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

/// Their actions are older than those of users before them.
async fn users_are_looked_for_in_portions(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let (api, thng) = (&scanned.api, &scanned.brand_thngs[0]);
    let project = project(api, thng).await?;
    let (_, public) = application(api, &project).await?;
    let mut users = Vec::new();
    for _ in 0..3 {
        users.push(acting_user(api, &public, thng).await?.0);
    }
    for user in users.iter().rev() {
        let answer = api.delete(&format!("/users/{user}")).await?;
        ensure!(answer.status.is_success(), "{answer:?}");
        remove(api, 60).await?;
    }
    ensure!(listed(api).await?.1 == [183]);
    work_all(api).await?;
    let (all, _) = listed(api).await?;
    ensure!(all[0]["status"] == "COMPLETED" && all[0]["rows"]["actions"] == 3, "{all:?}");
    for user in &users {
        ensure!(actions_of(api, user).await?.is_empty(), "{user}");
    }
    Ok(())
}

async fn users_of_a_deleted_application_are_erased(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let (api, thng) = (&scanned.api, &scanned.brand_thngs[0]);
    let project = project(api, thng).await?;
    let (path, public) = application(api, &project).await?;
    let (_, others_public) = application(api, &project).await?;
    let mut users = BTreeSet::new();
    for _ in 0..2 {
        users.insert(acting_user(api, &public, thng).await?.0);
    }
    let (other, _) = acting_user(api, &others_public, thng).await?;
    let deleted = api.delete(&path).await?;
    ensure!(deleted.status.is_success(), "{deleted:?}");
    work_all(api).await?;
    let (all, counts) = listed(api).await?;
    let named: BTreeSet<String> = serde_json::from_value(all[0]["users"].clone())?;
    ensure!(counts == [2] && named == users, "{all:?}");
    ensure!(all[0]["status"] == "COMPLETED" && all[0]["rows"]["actions"] == 2, "{all:?}");
    let kept = actions_of(api, &other).await?;
    ensure!(kept.len() == 1 && kept[0]["context"]["ipAddress"] == IP, "{kept:?}");

    // An application goes with its project, too.
    let deleted = api.delete(&format!("/projects/{project}")).await?;
    ensure!(deleted.status.is_success(), "{deleted:?}");
    work_all(api).await?;
    let (all, counts) = listed(api).await?;
    ensure!(counts == [1, 2] && all[0]["user"] == other.as_str(), "{all:?}");
    let left = found(api, &MARKS).await?;
    ensure!(left.is_empty(), "{left:?}");
    // One without users asks for nothing.
    let (path, _) = application(api, &self::project(api, thng).await?).await?;
    ensure!(api.delete(&path).await?.status.is_success());
    ensure!(listed(api).await?.1 == [1, 2]);
    Ok(())
}

/// The deletion removes a step of them and hides the others, which a worker removes.
async fn many_users_of_a_deleted_application_are_removed_in_steps(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let (api, thng) = (&scanned.api, &scanned.brand_thngs[0]);
    let core = &*api.made.app.core;
    let project = project(api, thng).await?;
    let (path, public) = application(api, &project).await?;
    let (other, _) = acting_user(api, &application(api, &project).await?.1, thng).await?;
    let app: ApplicationId = path.rsplit('/').next().context("an id")?.parse()?;
    // With the user below two more than two steps hold.
    let count = 2 * usize::try_from(removal::STEP)? + 1;
    let in_project: ProjectId = project.parse()?;
    let details = UserDetails::default();
    let row = |number: usize, folded: Option<String>| -> Result<NewRow<'_>> {
        Ok(NewRow {
            account: api.made.account,
            id: UserId::new(number as i64, random16()?),
            project: in_project,
            app,
            status: UserStatus::Anonymous,
            folded,
            password: None,
            activation: None,
            details: &details,
        })
    };
    let address = "a@example.com";
    let mut tx = core.db.begin(&Ctx::default()).await?;
    for number in 1..count {
        app_users::insert(&mut tx, row(number, None)?, core.clock.now()).await?;
    }
    app_users::insert(&mut tx, row(0, Some(address.to_owned()))?, core.clock.now()).await?;
    tx.commit().await?;
    acting_user(api, &public, thng).await?;
    let deleted = api.delete(&path).await?;
    ensure!(deleted.status.is_success(), "{deleted:?}");
    let shown = api.get("/users").await?.json();
    ensure!(shown.as_array().map(Vec::len) == Some(1) && shown[0]["id"] == other.as_str(), "{shown}");
    let refused =
        post(api, &public, "/auth/evrythng/users?anonymous=true", &json!({"anonymous": true})).await;
    ensure!(refused.is_err(), "its key works: {refused:?}");
    ensure!(listed(api).await?.1 == [MAX_USERS, MAX_USERS]);
    // The address of one who is still to be removed is nobody's, and free.
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let found = app_users::find_by_address_locked(&mut tx, in_project, address).await?;
    ensure!(found.is_none(), "{found:?}");
    app_users::insert(&mut tx, row(count, Some(address.to_owned()))?, core.clock.now()).await?;
    drop(tx);

    // Whichever process is there then.
    while worker::work(&api.made.app.core, &api.made.app.privacy.metrics.removals_given_up).await? {}
    let (_, counts) = listed(api).await?;
    ensure!(counts.iter().sum::<usize>() == count + 1, "each user is in one erasure: {counts:?}");
    let shown = api.get("/users").await?.json();
    ensure!(shown[0]["id"] == other.as_str(), "{shown}");
    Ok(())
}

/// It is tried again after a pause that grows, and at last left for an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_fails_is_in_nobodys_way() -> Result<()> {
    let made = TestApp::new(Engine::Sqlite).await?;
    let (core, given_up) = (&made.app.core, &made.app.privacy.metrics.removals_given_up);
    let [stuck, other] = [1, 2].map(|at| ApplicationId::new(at, [0; 16]));
    let mut tx = core.db.begin(&Ctx::default()).await?;
    for app in [stuck, other] {
        removed_applications::insert(&mut tx, made.account, app, 0, core.clock.now()).await?;
    }
    tx.commit().await?;
    let behind = async |sql: String| run(&made.db.location, &[sql]).await;
    behind(format!(
        "CREATE TRIGGER stuck BEFORE DELETE ON removed_applications WHEN OLD.app_id = '{stuck}' \
         BEGIN SELECT RAISE(ABORT, 'stuck'); END"
    ))
    .await?;
    let left = async || anyhow::Ok(erasures::standing(&mut core.db.read().await?).await?.0);
    for _ in 0..2 {
        ensure!(worker::work(core, given_up).await?, "both are due");
    }
    ensure!((left().await?, given_up.get()) == (1, 0), "the other one is removed");

    behind("UPDATE removed_applications SET failures = 25, lease_until = 0".to_owned()).await?;
    ensure!(worker::work(core, given_up).await? && given_up.get() == 1);
    ensure!(!worker::work(core, given_up).await?, "it rests");
    behind("DROP TRIGGER stuck".to_owned()).await?;
    behind("UPDATE removed_applications SET lease_until = 0".to_owned()).await?;
    ensure!(worker::work(core, given_up).await?);
    ensure!((left().await?, given_up.get()) == (0, 1), "it begins anew");
    Ok(())
}
