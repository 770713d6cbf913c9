//! Why a publisher stopped leading.

use redis::RedisError;

use super::super::view::ViewError;
use crate::store::StoreError;

/// Why a publisher stopped leading.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("another publisher has the lease")]
    Deposed,
    #[error(transparent)]
    View(#[from] ViewError),
    #[error("database: {0}")]
    Store(#[from] StoreError),
    #[error("Redis would throw keys away ({0}): set maxmemory-policy to noeviction")]
    Evicts(String),
    #[error("the view does not settle")]
    Unsettled,
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        Self::View(error.into())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::View(error.into())
    }
}
