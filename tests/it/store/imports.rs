//! Imports run in steps: other changes run in between, and an interrupted import resumes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use kernel::{service::idempotency::IdempotencyKey, store::Ctx};
use redirects::{
    domain::redirection::Draft,
    service::{
        Readers,
        redirections::{self, DomainChoice, ItemResult},
    },
    store::log,
    writer::Lane,
};
use shared::id::AccountId;
use tests::db::{Engine, TestApp};
use tokio_util::sync::CancellationToken;

use super::redirections::{app_with_product, create, draft};

super::super::on_both_engines!(
    urgent_changes_run_between_import_steps,
    an_interrupted_import_resumes,
    long_lists_are_updated_atomically
);

/// Has each step take the fewest items that one may.
fn slow_down(made: &TestApp) -> usize {
    for _ in 0..40 {
        made.app.redirects.writer.batch_size().took(1, Duration::from_secs(1));
    }
    made.app.redirects.writer.batch_size().step()
}

async fn head(made: &TestApp) -> Result<u64> {
    Ok(log::load_head(&mut made.app.core.db.read().await?).await?.head)
}

async fn until_begun(made: &TestApp) -> Result<()> {
    while head(made).await? == 0 {
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn urgent_changes_run_between_import_steps(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    slow_down(&made);
    let import = tokio::spawn({
        let (app, actor) = (made.app.clone(), made.caller());
        let items = (0..1_000).map(|_| Ok(draft(product, "https://example.com/", None))).collect();
        async move {
            redirections::create_many(&app.redirects, &actor, items, DomainChoice::default(), None, None)
                .await
        }
    });
    until_begun(&made).await?;
    let urgent = create(&made, product, "https://example.com/now", Some("NOW")).await?;
    let done = import.await??;
    assert!(urgent.rev < done.rev, "{} of {}", urgent.rev, done.rev);
    assert_eq!((done.value.len(), done.rev), (1_000, 1_001));
    Ok(())
}

async fn an_interrupted_import_resumes(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let step = slow_down(&made) as u64;
    let total = 300;
    let run = || {
        let (app, actor) = (made.app.clone(), made.caller());
        let items: Vec<Result<Draft, Vec<String>>> = (0..total)
            .map(|n| {
                if n == 7 {
                    Err(vec!["no".to_owned()])
                } else {
                    Ok(draft(product, "https://example.com/", None))
                }
            })
            .collect();
        let key = IdempotencyKey { key: "import-1".to_owned(), request: [1; 32] };
        tokio::spawn(async move {
            redirections::create_many(&app.redirects, &actor, items, DomainChoice::default(), None, Some(key))
                .await
        })
    };
    let first = run();
    until_begun(&made).await?;
    first.abort();
    assert!(first.await.is_err_and(|error| error.is_cancelled()), "it was under way");
    // A step that the writer had begun is finished.
    let begun = head(&made).await?;
    assert!(begun >= step - 1 && begun < total - 1, "{begun}");
    let (second, third) = tokio::join!(run(), run());
    let second = second??;
    assert_eq!(second, third??, "who comes at the same time helps to finish it");
    assert_eq!(second.value.len() as u64, total);
    assert!(matches!(&second.value[7], ItemResult::Refused { status: 400, .. }));
    assert_eq!(head(&made).await?, total - 1, "nothing was created twice");
    assert_eq!(run().await??, second, "and the answer is kept");
    Ok(())
}

async fn long_lists_are_updated_atomically(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let ids: Vec<String> = (0..500).map(|n| format!("LINK{n}")).collect();
    let items = ids.iter().map(|id| Ok(draft(product, "https://example.com/", Some(id)))).collect();
    let (app, actor, any) = (&made.app, made.caller(), DomainChoice::default);
    redirections::create_many(&app.redirects, &actor, items, any(), None, None).await?;
    let writable = super::redirections::writable("https://example.com/new");
    // Named twice and in small letters, it is one all the same.
    let twice: Vec<String> = ids.iter().cloned().chain(["link3".to_owned()]).collect();
    let done = redirections::replace(&app.redirects, &actor, any(), twice.clone(), writable.clone()).await?;
    assert_eq!((done.value.len(), done.rev), (500, 1_000));
    for (at, item) in done.value.iter().enumerate() {
        assert_eq!(
            (item.redirect.short_id.as_str(), item.rev),
            (&*ids[at], 501 + at as u64),
            "in their order"
        );
    }
    let mut absent = twice.clone();
    absent.push("NONE1".to_owned());
    absent.insert(0, "no id!".to_owned());
    let refused = redirections::delete(&app.redirects, &actor, any(), absent).await.unwrap_err();
    let kernel::error::ServiceError::Refused { errors, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(errors, ["no id!", "NONE1"].map(|id| format!("The redirection {id} was not found.")));
    assert_eq!(head(&made).await?, 1_000, "none was deleted");
    let done = redirections::delete(&app.redirects, &actor, any(), twice).await?;
    assert_eq!(done.rev, 1_500);
    for id in ["LINK0", "LINK499"] {
        assert!(redirections::find(&app.redirects, &actor, any(), id).await.is_err());
    }
    let events = log::list_after(&mut app.core.db.read().await?, app.hub.epoch(), 1_000, 1_000).await?;
    assert_eq!(events.len(), 500);
    Ok(())
}

/// Counts groups of the writer that are over.
#[derive(Debug, Default)]
struct Groups(AtomicUsize);

impl Readers for Groups {
    fn wake_events(&self) {}

    fn wake_edges(&self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A group behind one with urgent changes has one step, however many accounts import.
#[tokio::test]
async fn groups_beside_urgent_changes_have_one_step() -> Result<()> {
    let mut made = TestApp::without_tasks(Engine::Sqlite).await?;
    let task = made.writer.take().context("no writer")?;
    let (groups, stop, ctx) = (Arc::<Groups>::default(), CancellationToken::new(), Ctx::default());
    let submit = |n: u8, lane: Lane| {
        let (writer, groups, ctx) = (&made.app.redirects.writer, groups.clone(), &ctx);
        let account = AccountId::new(1, [n; 16]);
        writer.submit(ctx, (account, lane), move |_| Box::pin(async move { Ok(groups.0.load(SeqCst)) }))
    };
    let all = join_all((1..9).map(|n| submit(n, Lane::Bulk)).chain([submit(0, Lane::Urgent)]));
    let work = async {
        let done = all.await;
        stop.cancel();
        done
    };
    let (found, ()) = tokio::join!(work, task.run(made.app.core.db.clone(), groups.clone(), stop.clone()));
    let mut found = found.into_iter().collect::<Result<Vec<usize>, _>>()?;
    ensure!(found.pop() == Some(0), "the urgent change comes first");
    for group in 0..2 {
        ensure!(found.iter().filter(|of| **of == group).count() <= 1, "{found:?}");
    }
    Ok(())
}

/// More urgent changes wait than a group takes, at any time.
#[tokio::test]
async fn steps_go_on_while_urgent_changes_come_all_the_time() -> Result<()> {
    let mut made = TestApp::without_tasks(Engine::Sqlite).await?;
    let task = made.writer.take().context("no writer")?;
    let (stop, ctx, is_done) = (CancellationToken::new(), Ctx::default(), AtomicUsize::new(0));
    let submit = async |n: u8, lane: Lane| {
        let account = AccountId::new(1, [n; 16]);
        let work = made.app.redirects.writer.submit::<(), _>(&ctx, (account, lane), |_| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(3)).await;
                Ok(())
            })
        });
        work.await
    };
    let urgent = async |n: u8| {
        while is_done.load(SeqCst) == 0 {
            submit(n, Lane::Urgent).await?;
        }
        anyhow::Ok(())
    };
    let steps = async {
        for _ in 0..3 {
            submit(100, Lane::Bulk).await?;
        }
        is_done.store(1, SeqCst);
        anyhow::Ok(())
    };
    let work = async {
        let all = async { tokio::join!(join_all((0..20).map(urgent)), steps) };
        let done = tokio::time::timeout(Duration::from_secs(10), all).await;
        stop.cancel();
        done
    };
    let groups = Arc::<Groups>::default();
    let (done, ()) = tokio::join!(work, task.run(made.app.core.db.clone(), groups, stop.clone()));
    let (urgent, steps) = done.context("a step starves")?;
    steps?;
    urgent.into_iter().collect::<Result<Vec<()>>>()?;
    Ok(())
}
