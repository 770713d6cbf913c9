//! Accounts, operators and keys that tests write straight into a database; each fails when the database does.

use anyhow::Result;
use kernel::{
    domain::access::{ActorKind, hash_key},
    store::{Ctx, Db, keys},
};
use shared::{
    id::{AccountId, OperatorId},
    short_url::{Scheme, ShortDomain},
};
use tenants::store::accounts;

use crate::db::{TestApp, random16};

/// Adds another account with an operator, and a short domain if one is given; `now` is in milliseconds since 1970.
pub async fn add(db: &Db, now: i64, email: &str, domain: Option<&str>) -> Result<(AccountId, OperatorId)> {
    let (account, operator) = (AccountId::new(now, random16()?), OperatorId::new(now, random16()?));
    let mut tx = db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, account, "Other", true, now).await?;
    accounts::insert_operator(&mut tx, operator, account, email, ("X", "Y"), now).await?;
    if let Some(domain) = domain {
        accounts::insert_domain(&mut tx, account, &ShortDomain::new(Scheme::Https, domain)?).await?;
    }
    tx.commit().await?;
    Ok((account, operator))
}

/// Gives an operator a key of 80 characters.
pub async fn add_key(
    db: &Db,
    now: i64,
    key: &str,
    (account, operator): (AccountId, OperatorId),
) -> Result<()> {
    let mut tx = db.begin(&Ctx::default()).await?;
    keys::insert(&mut tx, &hash_key(key), account, ActorKind::Operator, operator.as_str(), now).await?;
    Ok(tx.commit().await?)
}

impl TestApp {
    /// Gives its operator a key of 80 characters, made at the beginning of time.
    pub async fn add_key(&self, key: &str) -> Result<()> {
        add_key(&self.app.core.db, 1, key, (self.account, self.operator)).await
    }
}
