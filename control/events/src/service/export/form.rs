//! The forms of an export, and what turns actions into their bytes.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use action_files::Writer;
use bytes::Bytes;
use serde_json::Value;
use shared::id::AccountId;

use crate::{
    error::{EventsError, ServiceError},
    store::StoreError,
};

/// Exports of a process that may hold a row group in memory: 8 MiB of values each, and as much again as pages on their way
/// to the client.
const MOST_GROUPS: usize = 4;

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line of JSON for each action.
    Ndjson,
    /// One Parquet file.
    Parquet,
}

impl Form {
    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// Its name in the audit trail.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }
}

/// Which accounts have an export that holds a row group.
#[derive(Debug, Default)]
pub(in crate::service) struct Groups(Mutex<HashSet<AccountId>>);

/// Leave to hold a row group, given back on drop. An account has one at a time.
#[derive(Debug)]
pub(super) struct Group {
    groups: Arc<Groups>,
    account: AccountId,
}

impl Group {
    /// Takes one where the form needs it.
    ///
    /// # Errors
    /// The account has one (429), or all are taken ([`ServiceError::Full`]).
    pub(super) fn take(
        groups: &Arc<Groups>,
        form: Form,
        account: AccountId,
    ) -> Result<Option<Self>, ServiceError> {
        match form {
            Form::Ndjson => Ok(None),
            Form::Parquet => {
                let mut taken = groups.0.lock().unwrap_or_else(PoisonError::into_inner);
                if taken.contains(&account) {
                    return Err(EventsError::ParquetUnderWay.into());
                }
                if taken.len() >= MOST_GROUPS {
                    return Err(ServiceError::Full("exports as Parquet"));
                }
                taken.insert(account);
                Ok(Some(Self { groups: groups.clone(), account }))
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.groups.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.account);
    }
}

/// Turns documents of actions into bytes.
#[derive(Debug)]
pub(super) enum Encoder {
    Ndjson,
    /// `None` when the file has ended, or its writer failed.
    Parquet(Option<Box<Writer>>),
}

impl Encoder {
    pub(super) fn new(form: Form) -> Result<Self, StoreError> {
        Ok(match form {
            Form::Ndjson => Self::Ndjson,
            Form::Parquet => Self::Parquet(Some(Box::new(Writer::new().map_err(fault)?))),
        })
    }

    /// The bytes of some actions, as far as they are written already; the last call gives the rest.
    pub(super) async fn encode(&mut self, documents: Vec<Value>, is_last: bool) -> Result<Bytes, StoreError> {
        match self {
            Self::Ndjson => lines(&documents),
            Self::Parquet(writer) => {
                let mut own = writer.take().ok_or_else(|| fault("its file has ended"))?;
                // A row group takes some 100 ms.
                let encoded = tokio::task::spawn_blocking(move || {
                    let mut bytes = Vec::new();
                    for document in documents {
                        own.push(document)?;
                        bytes.append(&mut own.write_full()?);
                    }
                    if is_last {
                        bytes.append(&mut own.finish()?);
                        return Ok((None, bytes));
                    }
                    Ok::<_, action_files::Error>((Some(own), bytes))
                });
                let (own, bytes) = encoded.await.map_err(fault)?.map_err(fault)?;
                *writer = own;
                Ok(bytes.into())
            }
        }
    }
}

fn lines(documents: &[Value]) -> Result<Bytes, StoreError> {
    let mut lines = Vec::new();
    for document in documents {
        serde_json::to_writer(&mut lines, document).map_err(fault)?;
        lines.push(b'\n');
    }
    Ok(lines.into())
}

fn fault(error: impl std::fmt::Display) -> StoreError {
    StoreError::Row(format!("an action of an export: {error}"))
}

#[cfg(test)]
mod tests {
    use shared::problem::Code;

    use super::*;

    #[test]
    fn an_account_has_one_row_group_and_a_process_few() {
        let groups = Arc::new(Groups::default());
        let account = |n: u8| AccountId::new(1, [n; 16]);
        let take = |n: u8| Group::take(&groups, Form::Parquet, account(n));
        let first = take(0).unwrap().unwrap();
        assert_eq!(take(0).unwrap_err().code(), Code::TooManyRequests, "the account has one");
        assert!(Group::take(&groups, Form::Ndjson, account(0)).unwrap().is_none());
        let others: Vec<_> = (1..4).map(|n| take(n).unwrap()).collect();
        assert!(matches!(take(9), Err(ServiceError::Full(_))), "all are taken");
        drop(first);
        assert!(take(0).is_ok(), "what is given back is free");
        assert_eq!(others.len(), MOST_GROUPS - 1);
    }
}
