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
    assessment::{
        history,
        observe::{self, ScanSources},
    },
};
use crate::{
    domain::{action::Action, device::DeviceKey},
    error::ServiceError,
    store::{Conn, StoreError, Tx, actions::NewAction, assessment_contexts, commissions},
};

/// What assessments do with actions.
#[derive(Debug, Clone)]
pub struct Assessments {
    /// The scans by edges.
    pub scans: Scans,
    /// What tells the devices of scans apart; `None` in a command that reads actions and changes none.
    pub devices: Option<DeviceKey>,
}

impl Assessments {
    fn sources(&self) -> Result<ScanSources<'_>, ServiceError> {
        let unchanged = || ServiceError::Internal("a command that reads actions changed one".to_owned());
        let devices = self.devices.as_ref().ok_or_else(unchanged)?;
        Ok(ScanSources { scans: &*self.scans.reserved, devices })
    }
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
            observe::record(self.sources()?, tx, (account, created_at), actions, &none).await
        })
    }

    fn removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), ServiceError>> {
        Box::pin(async move { history::forget(self.sources()?, tx, account, action).await })
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
