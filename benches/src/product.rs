//! A product in the database of a run, for links to belong to.

use anyhow::Result;
use catalog::domain::resource::{Product, ProductDetails};
use kernel::{
    domain::common::Stamp,
    store::{Ctx, documents},
};
use shared::{id::ProductId, time::UnixMillis};
use tests::db::{TestApp, random16};

/// Adds a product to the account.
pub(crate) async fn insert(made: &TestApp) -> Result<ProductId> {
    let product = Product {
        id: ProductId::new(1, random16()?),
        stamp: Stamp::new(UnixMillis(1)),
        name: "Bag".to_owned(),
        details: ProductDetails::default(),
        properties: std::collections::BTreeMap::new(),
    };
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    let id = documents::insert(&mut tx, made.account, product).await?.id;
    tx.commit().await?;
    Ok(id)
}
