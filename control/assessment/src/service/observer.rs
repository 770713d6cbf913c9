//! What assessments do with actions that are stored, removed and read.

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use scan_store::Scans;
use shared::{
    id::{AccountId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{
    Observers,
    assessment::{history, observe},
};
use crate::{
    domain::action::Action,
    error::ServiceError,
    store::{Conn, StoreError, Tx, actions::NewAction, assessment_contexts, commissions},
};

/// What assessments do with actions.
#[derive(Debug, Clone)]
pub struct Assessments {
    /// The scans by edges.
    pub scans: Scans,
}

impl Observers for Assessments {
    fn scans(&self) -> &Scans {
        &self.scans
    }

    fn recorded<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        created_at: UnixMillis,
        actions: &'a [NewAction],
    ) -> BoxFuture<'a, Result<(), ServiceError>> {
        Box::pin(async move {
            let none = HashMap::new();
            observe::record(&*self.scans.reserved, tx, (account, created_at), actions, &none).await
        })
    }

    fn removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), ServiceError>> {
        Box::pin(history::forget(&*self.scans.reserved, tx, account, action))
    }

    fn complete<'a>(
        &'a self,
        conn: &'a mut Conn,
        account: AccountId,
        actions: &'a mut [Action],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(assessment_contexts::complete(&*self.scans.reserved, conn, account, actions))
    }

    fn find_of_product<'a>(
        &'a self,
        conn: &'a mut Conn,
        account: AccountId,
        identifier: (&'a str, &'a str),
        product: ProductId,
    ) -> BoxFuture<'a, Result<Option<ThngId>, ServiceError>> {
        Box::pin(async move { Ok(commissions::find_of_product(conn, account, identifier, product).await?) })
    }
}
