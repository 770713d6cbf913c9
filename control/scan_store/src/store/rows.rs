//! Rows of scans, and the actions that they are.

use std::collections::{BTreeSet, HashMap};

use kernel::{
    domain::action::Action,
    store::{Conn, StoreError},
};
use shared::time::UnixMillis;

use super::texts;
use crate::domain::{columns::Columns, ids, month::Month};

/// The type of every scan by an edge.
pub(super) const KIND: &str = "implicitScans";

/// A row as it is read.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Row {
    seq: i64,
    created_at: i64,
    timestamp: i64,
    shape: i32,
    agent: Option<i32>,
    place: Option<i32>,
    referer: Option<i32>,
    language: Option<i32>,
    rule: Option<i32>,
    key: Vec<u8>,
    thng: Option<Vec<u8>>,
    ip: Option<Vec<u8>>,
    short_id: Option<String>,
    entry: Option<String>,
    redirect_url: Option<String>,
}

impl Row {
    /// When it was created, and its number.
    pub(super) const fn position(&self) -> (i64, i64) {
        (self.created_at, self.seq)
    }

    fn texts(&self) -> impl Iterator<Item = i32> {
        let optional = [self.agent, self.place, self.referer, self.language, self.rule];
        std::iter::once(self.shape).chain(optional.into_iter().flatten())
    }

    fn action(self, texts: &HashMap<i32, String>) -> Result<Action, StoreError> {
        let broken = |what: &str| StoreError::Row(format!("scan {}: {what}", self.seq));
        let text = |id: i32| texts.get(&id).cloned().ok_or_else(|| broken("a text is missing"));
        let optional = |id: Option<i32>| id.map(text).transpose();
        let id = ids::join(UnixMillis(self.timestamp), &self.key).ok_or_else(|| broken("key"))?;
        let thng = match &self.thng {
            Some(bytes) => Some(ids::unpack(bytes).ok_or_else(|| broken("thng"))?),
            None => None,
        };
        let columns = Columns {
            shape: text(self.shape)?,
            agent: optional(self.agent)?,
            place: optional(self.place)?,
            referer: optional(self.referer)?,
            language: optional(self.language)?,
            rule: optional(self.rule)?,
            ip: self.ip.clone(),
            short_id: self.short_id.clone(),
            entry: self.entry.clone(),
            redirect_url: self.redirect_url.clone(),
        };
        let (product, members) = columns.document().ok_or_else(|| broken("its columns are no document"))?;
        Ok(Action {
            id,
            seq: self.seq,
            created_at: UnixMillis(self.created_at),
            timestamp: UnixMillis(self.timestamp),
            kind: KIND.to_owned(),
            thng,
            product,
            members,
        })
    }
}

/// The actions of rows of a month, in their order.
pub(super) async fn actions(
    conn: &mut Conn,
    month: Month,
    rows: Vec<Row>,
) -> Result<Vec<Action>, StoreError> {
    let texts = load_texts(conn, month, &rows).await?;
    rows.into_iter().map(|row| row.action(&texts)).collect()
}

/// The same without those that cannot be read: they are logged.
pub(super) async fn readable(
    conn: &mut Conn,
    month: Month,
    rows: Vec<Row>,
) -> Result<Vec<Action>, StoreError> {
    let texts = load_texts(conn, month, &rows).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        match row.action(&texts) {
            Ok(action) => found.push(action),
            Err(error) => {
                tracing::warn!(%error, month = month.number(), "a scan that cannot be read is passed over");
            }
        }
    }
    Ok(found)
}

async fn load_texts(conn: &mut Conn, month: Month, rows: &[Row]) -> Result<HashMap<i32, String>, StoreError> {
    let ids: BTreeSet<i32> = rows.iter().flat_map(Row::texts).collect();
    let ids: Vec<i32> = ids.into_iter().collect();
    texts::load(conn, month, &ids).await
}
