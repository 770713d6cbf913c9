//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::catalog::service::*;

pub mod action_creation;
pub mod action_types;
pub mod actions;
pub mod lists;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use scan_store::Scans;
use shared::{
    geo::GeoIp,
    id::{AccountId, ProductId, ThngId},
    time::UnixMillis,
};

use crate::{
    domain::action::Action,
    error::ServiceError,
    store::{Conn, StoreError, Tx, actions::NewAction},
};

/// What later subjects do with actions. The composition names them.
pub trait Observers: Send + Sync + 'static {
    /// The scans by edges, which actions are read with.
    fn scans(&self) -> &Scans;

    /// Actions were stored, in this transaction.
    fn recorded<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        created_at: UnixMillis,
        actions: &'a [NewAction],
    ) -> BoxFuture<'a, Result<(), ServiceError>>;

    /// An action was removed, in this transaction.
    fn removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), ServiceError>>;

    /// Adds to actions what is stored elsewhere.
    fn complete<'a>(
        &'a self,
        conn: &'a mut Conn,
        account: AccountId,
        actions: &'a mut [Action],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The one Thng of a product that has an identifier; `None` when none or several are.
    fn find_of_product<'a>(
        &'a self,
        conn: &'a mut Conn,
        account: AccountId,
        identifier: (&'a str, &'a str),
        product: ProductId,
    ) -> BoxFuture<'a, Result<Option<ThngId>, ServiceError>>;
}

/// What the operations on actions need beside the core.
#[derive(Clone)]
pub struct ActionState {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// Geography of addresses.
    pub geo_ip: Arc<dyn GeoIp>,
    /// Reads user agents.
    pub agents: Arc<woothee::parser::Parser>,
    /// The scans by edges.
    pub scans: Scans,
    /// What later subjects do with actions.
    pub observers: Arc<dyn Observers>,
}

kernel::has_core!(ActionState, core);
