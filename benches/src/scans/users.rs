//! How long it takes to delete an application with many users, and to do the erasures that follow.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use applications::{
    domain::{
        app_user::{UserDetails, UserStatus},
        application::ApplicationChange,
        project::ProjectChange,
    },
    service::{applications as service, projects, removal},
    store::{
        app_users::{self, NewRow},
        keys, removed_applications,
    },
};
use kernel::{
    domain::{
        access::{Actor, ActorKind},
        body::Purpose,
    },
    store::Ctx,
};
use serde_json::json;
use shared::id::UserId;
use tests::db::{Engine, TestApp};
use tokio_util::sync::CancellationToken;

use super::print;
use crate::process;

/// Users that one transaction makes.
const CHUNK: usize = 1_000;

pub(super) async fn run(engine: Engine, users: usize) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let (core, caller, account) = (&*made.app.core, made.caller(), made.account);
    let body = json!({"name": "a"});
    let faults = |faults: Vec<String>| anyhow!("{faults:?}");
    let change = ProjectChange::parse(&body, Purpose::Create).map_err(faults)?;
    let project = projects::create(core, &caller, change).await?.id;
    let change = ApplicationChange::parse(&body, Purpose::Create).map_err(faults)?;
    let app = service::create(core, &caller, project.as_str(), change).await?.id;
    for from in (0..users).step_by(CHUNK) {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        for number in from..users.min(from + CHUNK) {
            let bytes = (number as u128).to_be_bytes();
            let id = UserId::new(core.clock.now().0, bytes);
            let row = NewRow {
                account,
                id,
                project,
                app,
                status: UserStatus::Anonymous,
                folded: None,
                password: None,
                activation: None,
                details: &UserDetails::default(),
            };
            app_users::insert(&mut tx, row, core.clock.now()).await?;
            let mut hash = [7; 32];
            hash[..16].copy_from_slice(&bytes);
            let owner = Actor {
                kind: ActorKind::User,
                id: id.to_string(),
                project: Some(project),
                app: Some(app),
                ..caller.actor.clone()
            };
            keys::insert_of(&mut tx, &hash, &owner, None, core.clock.now().0).await?;
        }
        tx.commit().await?;
    }
    let memory = || Ok::<_, anyhow::Error>(process::memory(std::process::id())?.rss >> 20);
    let before = memory()?;
    let begun = Instant::now();
    service::delete(core, &caller, project.as_str(), app.as_str()).await?;
    let deletion = begun.elapsed();
    let (mut steps, mut most) = (Vec::new(), before);
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let claimed = removed_applications::claim(&mut tx).await?;
    tx.commit().await?;
    if let Some(claimed) = claimed {
        let mut stepped = removal::Stepped::Moved;
        while stepped == removal::Stepped::Moved {
            let begun = Instant::now();
            stepped = removal::step(core, &claimed).await?;
            steps.push(begun.elapsed());
            most = most.max(memory()?);
        }
    }
    let removed = begun.elapsed();
    let mut conn = core.db.read().await?;
    ensure!(!app_users::are_left_of_app(&mut conn, account, app).await?, "users are left");
    drop(conn);
    let (begun, stop) = (Instant::now(), CancellationToken::new());
    let (mut count, mut longest) = (0, Duration::ZERO);
    loop {
        let begun = Instant::now();
        if !privacy::worker::work(&made.app.privacy, 1, &stop).await? {
            break;
        }
        (count, longest) = (count + 1, longest.max(begun.elapsed()));
        most = most.max(memory()?);
    }
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let of_steps = |count: usize, longest: Duration, all: Duration| {
        format!("{count}, the longest {}, {:.1} s in all", ms(longest), all.as_secs_f64())
    };
    let longest_step = steps.iter().max().copied().unwrap_or_default();
    print(
        engine,
        vec![
            ("deletion of an application with users", format!("{users}: {}", ms(deletion))),
            ("steps that remove the others", of_steps(steps.len(), longest_step, removed)),
            ("steps of their erasures", of_steps(count, longest, begun.elapsed())),
            ("memory before and the most meanwhile", format!("{before}, {most} MiB")),
        ],
    )
}
