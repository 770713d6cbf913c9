//! Paging with concurrent writes: no row appears twice, and no row that existed all the time is missed.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use catalog::domain::resource::{Thng, ThngDetails};
use kernel::{
    domain::{
        filter::Filter,
        grant::Limit,
        listing::{ListRequest, THNGS},
        page::{PageRequest, SortOrder},
    },
    store::{Ctx, Db, documents, listing::Selection},
};
use shared::{
    id::{AccountId, ThngId},
    time::UnixMillis,
};
use tests::db::{Engine, TestApp, random16};
use tokio_util::sync::CancellationToken;

super::super::on_both_engines!(writers_between_pages, writers_beside_pages);

/// A stream of small numbers from a seed: a failed case repeats itself.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// Adds a Thng, every second one with a tag, at one of few moments: many rows share one.
async fn insert(db: &Db, account: AccountId, at: i64, tagged: bool) -> Result<ThngId> {
    let id = ThngId::new(at, random16()?);
    let mut details = ThngDetails::default();
    details.common.tags = tagged.then(|| vec!["red".to_owned()]);
    let mut tx = db.begin(&Ctx::default()).await?;
    let thng = Thng::new(id, "t".to_owned(), None, details, UnixMillis(at));
    documents::insert(&mut tx, account, thng).await?;
    tx.commit().await?;
    Ok(id)
}

async fn delete(db: &Db, account: AccountId, id: ThngId) -> Result<()> {
    let mut tx = db.begin(&Ctx::default()).await?;
    documents::delete::<Thng>(&mut tx, account, id).await?;
    Ok(tx.commit().await?)
}

/// Reads a list to its end; `between` is called after each page.
async fn walk(
    made: &TestApp,
    mut request: ListRequest,
    mut between: impl AsyncFnMut(&[ThngId]) -> Result<()>,
) -> Result<Vec<ThngId>> {
    let mut seen = Vec::new();
    loop {
        let selection =
            Selection { account: made.account, limit: &Limit::Account, request: &request, within: &[] };
        let page = documents::list::<Thng>(&mut made.app.core.db.read().await?, &selection).await?;
        ensure!(page.items.len() <= request.page.per_page as usize, "a page too long");
        seen.extend(page.items.iter().map(|thng| thng.id));
        ensure!(seen.len() < 10_000, "no end");
        let Some(next) = page.next else { return Ok(seen) };
        request.page.after = Some(next);
        between(&seen).await?;
    }
}

fn check(seen: &[ThngId], old: &[ThngId], gone: &HashSet<ThngId>, what: &str) {
    let once: HashSet<ThngId> = seen.iter().copied().collect();
    assert_eq!(once.len(), seen.len(), "{what}: a row came twice");
    for id in old.iter().filter(|id| !gone.contains(id)) {
        assert!(once.contains(id), "{what}: {id} was there all the time and did not come");
    }
}

async fn writers_between_pages(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let (db, account) = (&made.app.core.db, made.account);
    for seed in 1..=6_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let sort = if seed % 2 == 0 { SortOrder::Ascending } else { SortOrder::Descending };
        let filtered = seed > 3;
        let (mut all, mut old) = (Vec::new(), Vec::new());
        for n in 0..20 {
            let tagged = n % 2 == 0;
            let id = insert(db, account, 1_000 + dice.roll(4) as i64, tagged).await?;
            all.push(id);
            old.extend((tagged || !filtered).then_some(id));
        }
        let filter = filtered.then(|| Filter::parse("tags=red", THNGS.fields)).transpose();
        let filter = filter.map_err(anyhow::Error::msg)?;
        let per_page = 1 + dice.roll(4) as u32;
        let page = PageRequest { per_page, sort, ..PageRequest::default() };
        let mut gone = HashSet::new();
        let seen = walk(&made, ListRequest { page, filter, ..ListRequest::default() }, async |seen| {
            for _ in 0..dice.roll(3) {
                // Before, at and behind the place where the reader stands; the row that it stands on too.
                let id = if dice.roll(3) == 0 {
                    *seen.last().context("a page before")?
                } else {
                    all[dice.roll(all.len())]
                };
                delete(db, account, id).await?;
                gone.insert(id);
                if all.len() < 60 {
                    all.push(insert(db, account, 998 + dice.roll(8) as i64, true).await?);
                }
            }
            Ok(())
        })
        .await?;
        check(&seen, &old, &gone, &format!("seed {seed}, {per_page} a page"));
        for id in all {
            delete(db, account, id).await?;
        }
    }
    Ok(())
}

async fn writers_beside_pages(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let (db, account) = (made.app.core.db.clone(), made.account);
    let mut old = Vec::new();
    for n in 0..30 {
        old.push(insert(&db, account, 1_000 + n / 5, false).await?);
    }
    for sort in [SortOrder::Ascending, SortOrder::Descending] {
        let done = CancellationToken::new();
        let (stop, db) = (done.clone(), db.clone());
        let writer = tokio::spawn(async move {
            let mut own = Vec::new();
            for n in 0..200 {
                if stop.is_cancelled() {
                    break;
                }
                own.push(insert(&db, account, 1_000 + n % 7, false).await?);
                if own.len() > 5 {
                    delete(&db, account, own.remove(own.len() / 2)).await?;
                }
            }
            for id in own {
                delete(&db, account, id).await?;
            }
            anyhow::Ok(())
        });
        for per_page in [1, 3, 7] {
            let page = PageRequest { per_page, sort, ..PageRequest::default() };
            let request = ListRequest { page, ..ListRequest::default() };
            let seen = walk(&made, request, async |_| Ok(())).await?;
            check(&seen, &old, &HashSet::new(), &format!("{sort:?}, {per_page} a page"));
        }
        done.cancel();
        writer.await??;
    }
    Ok(())
}
