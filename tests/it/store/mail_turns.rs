//! Fair scheduling of mails: accounts are served in rotation, however many mails one has.

use std::time::Duration;

use anyhow::Result;
use kernel::store::{Ctx, on_db};
use mail::store::mails::{self, Claimed};
use shared::id::AccountId;
use tenants::store::accounts;
use tests::db::{Engine, TestDb, random16};

const LEASE: Duration = Duration::from_secs(60);

async fn claim(db: &TestDb, limit: u32) -> Result<Vec<Claimed>> {
    let mut tx = db.db.begin(&Ctx::default()).await?;
    let claimed = mails::claim(&mut tx, limit, LEASE, Duration::ZERO).await?;
    tx.commit().await?;
    Ok(claimed)
}

fn ids(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|one| one.id.as_str()).collect()
}

async fn an_account_with_many_mails_delays_no_other(engine: Engine) -> Result<()> {
    let db = TestDb::new(engine).await?;
    let (noisy, quiet) = (AccountId::new(1, random16()?), AccountId::new(2, random16()?));
    let mut tx = db.db.begin(&Ctx::default()).await?;
    for account in [noisy, quiet] {
        accounts::insert(&mut tx, account, "Test", true, 1).await?;
    }
    for n in 0..100 {
        mails::insert(&mut tx, &format!("noisy {n}"), Some(noisy), b"x").await?;
    }
    mails::insert(&mut tx, "quiet 0", Some(quiet), b"x").await?;
    mails::insert(&mut tx, "of nobody", None, b"x").await?;
    mails::insert(&mut tx, "quiet 1", Some(quiet), b"x").await?;
    tx.commit().await?;
    // Behind 100 of the other account, each of these is among the next three.
    let (first, then) = (claim(&db, 3).await?, claim(&db, 4).await?);
    let mut turns = [ids(&first), ids(&then)].concat();
    let of = |turns: &[&str]| {
        let mut turns = turns.to_vec();
        turns.sort_unstable();
        turns.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(&turns[..3]), ["noisy 0", "of nobody", "quiet 0"]);
    assert_eq!(of(&turns[3..]), ["noisy 1", "noisy 2", "noisy 3", "quiet 1"]);
    turns.truncate(0);
    // A mail that is claimed is not claimed again; one that is put off is, once its time has come.
    assert_eq!(claim(&db, 200).await?.len(), 96);
    assert_eq!(claim(&db, 1).await?, []);
    let mut tx = db.db.begin(&Ctx::default()).await?;
    assert!(mails::postpone(&mut tx, &first[0], Duration::ZERO).await?);
    tx.commit().await?;
    let again = claim(&db, 5).await?;
    assert_eq!((ids(&again), again[0].tries), (vec![first[0].id.as_str()], 2));
    Ok(())
}

async fn mails_of_a_release_before_are_found(engine: Engine) -> Result<()> {
    let db = TestDb::new(engine).await?;
    let account = AccountId::new(1, random16()?);
    let mut tx = db.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, account, "Test", true, 1).await?;
    mails::insert(&mut tx, "a", Some(account), b"x").await?;
    on_db!(&mut *tx, |c| sqlx::query("DELETE FROM mail_turns").execute(c).await.map(|_| ()))?;
    tx.commit().await?;
    assert!(mails::is_due(&mut db.db.read().await?, Duration::ZERO).await?);
    assert_eq!(claim(&db, 4).await?, [], "it gets a turn");
    assert_eq!(ids(&claim(&db, 4).await?), ["a"]);
    Ok(())
}

super::super::on_both_engines!(
    an_account_with_many_mails_delays_no_other,
    mails_of_a_release_before_are_found
);
