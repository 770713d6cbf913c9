//! Rows of `scans`, and the actions that they are.

use std::collections::HashMap;

use bytes::Bytes;
use kernel::{domain::action::Action, store::StoreError};
use shared::{
    id::{AccountId, ActionId, ThngId},
    time::UnixMillis,
};

use super::super::rows::KIND;
use super::{
    client::failed,
    row_binary::{Reader, put_bytes, put_optional, put_texts},
};
use crate::{
    NewScan, ScanPosition, Seen,
    domain::{
        columns::{Columns, Kind},
        ids,
        month::Month,
    },
};

/// Stores rows; the columns are those of [`Rows::push`].
pub(super) const INSERT: &str = "INSERT INTO scans (month, account, thng, created_at, seq, timestamp, key, version, \
    shape, agent, place, referer, language, rule, ip, short_id, entry, redirect_url, shape_facets, place_facets) \
    FORMAT RowBinary";

/// The version of a scan that was deleted. No version is above it: what is stored of the scan later, by a rewrite or a batch
/// that is sent again, stays deleted. Reads leave it out by `version < 4294967295`.
pub(super) const DELETED: u32 = u32::MAX;

/// Where a row is, and which version of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) created_at: UnixMillis,
    pub(super) seq: i64,
    /// The packed id of the Thng; empty where there is none.
    pub(super) thng: &'a [u8],
    pub(super) timestamp: UnixMillis,
    pub(super) key: &'a [u8; 12],
    pub(super) version: u32,
}

impl<'a> Place<'a> {
    /// The first version of a scan.
    pub(super) fn of(scan: &'a NewScan, created_at: UnixMillis, seq: i64) -> Self {
        let (timestamp, key) = (scan.timestamp, &scan.key);
        Self { created_at, seq, thng: scan.thng.as_deref().unwrap_or_default(), timestamp, key, version: 0 }
    }
}

/// Rows as they are stored. Scans share their texts, so each is looked through for facets once.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    pub(super) bytes: Vec<u8>,
    facets: HashMap<(Kind, &'a str), Vec<String>>,
}

impl<'a> Rows<'a> {
    pub(super) fn push(&mut self, account: AccountId, place: &Place<'_>, columns: &'a Columns) {
        let out = &mut self.bytes;
        out.extend_from_slice(&Month::of(place.created_at).number().to_le_bytes());
        put_bytes(out, account.as_str().as_bytes());
        put_bytes(out, place.thng);
        for number in [place.created_at.0, place.seq, place.timestamp.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(place.key);
        out.extend_from_slice(&place.version.to_le_bytes());
        put_bytes(out, columns.shape.as_bytes());
        let texts = [&columns.agent, &columns.place, &columns.referer, &columns.language, &columns.rule];
        texts.into_iter().for_each(|text| put_optional(out, text.as_deref()));
        put_bytes(out, columns.ip.as_deref().unwrap_or_default());
        let texts = [&columns.short_id, &columns.entry, &columns.redirect_url];
        texts.into_iter().for_each(|text| put_optional(out, text.as_deref()));
        let texts =
            [(Kind::Shape, columns.shape.as_str()), (Kind::Place, columns.place.as_deref().unwrap_or(""))];
        for (kind, text) in texts {
            put_texts(out, self.facets.entry((kind, text)).or_insert_with(|| kind.facets(text)));
        }
    }
}

/// A row as it is read.
#[derive(Debug)]
pub(super) struct Row {
    created_at: UnixMillis,
    seq: i64,
    version: u32,
    thng: Vec<u8>,
    timestamp: UnixMillis,
    key: [u8; 12],
    columns: Columns,
}

impl Row {
    pub(super) fn position(&self) -> ScanPosition {
        ScanPosition { month: Month::of(self.created_at).number(), at: self.created_at.0, seq: self.seq }
    }

    fn seen(&self) -> Seen {
        Seen { position: self.position(), version: self.version }
    }

    /// The place of a version of it.
    pub(super) fn place(&self, version: u32) -> Place<'_> {
        let Self { created_at, seq, version: _, thng, timestamp, key, columns: _ } = self;
        Place { created_at: *created_at, seq: *seq, thng, timestamp: *timestamp, key, version }
    }

    /// Its id; `None` for what is none.
    pub(super) fn id(&self) -> Option<ActionId> {
        ids::join(self.timestamp, &self.key)
    }

    pub(super) fn action(self) -> Result<Action, StoreError> {
        let broken = |what: &str| StoreError::Row(format!("scan {}: {what}", self.seq));
        let id = self.id().ok_or_else(|| broken("key"))?;
        let thng: Option<ThngId> = match self.thng.as_slice() {
            [] => None,
            bytes => Some(ids::unpack(bytes).ok_or_else(|| broken("thng"))?),
        };
        let (product, members) =
            self.columns.document().ok_or_else(|| broken("its columns are no document"))?;
        Ok(Action {
            id,
            seq: self.seq,
            created_at: self.created_at,
            timestamp: self.timestamp,
            kind: KIND.to_owned(),
            thng,
            product,
            members,
        })
    }
}

/// The rows of a statement that selects their columns in this order.
pub(super) fn read(bytes: &Bytes) -> Result<Vec<Row>, StoreError> {
    let (mut reader, mut rows) = (Reader::new(bytes), Vec::new());
    while reader.is_more() {
        let (created_at, seq) = (UnixMillis(reader.int64()?), reader.int64()?);
        let version = reader.uint32()?;
        let (thng, timestamp) = (reader.bytes()?.to_vec(), UnixMillis(reader.int64()?));
        let key = reader.fixed()?;
        let columns = Columns {
            shape: reader.text()?,
            agent: reader.optional()?,
            place: reader.optional()?,
            referer: reader.optional()?,
            language: reader.optional()?,
            rule: reader.optional()?,
            ip: Some(reader.bytes()?.to_vec()).filter(|ip| !ip.is_empty()),
            short_id: reader.optional()?,
            entry: reader.optional()?,
            redirect_url: reader.optional()?,
        };
        rows.push(Row { created_at, seq, version, thng, timestamp, key, columns });
    }
    Ok(rows)
}

/// The actions of rows, in their order.
pub(super) fn actions(rows: Vec<Row>) -> Result<Vec<Action>, StoreError> {
    rows.into_iter().map(Row::action).collect()
}

/// The same without those that cannot be read: they are logged.
pub(super) fn readable(rows: Vec<Row>) -> Vec<(Seen, Action)> {
    let read = |row: Row| {
        let seen = row.seen();
        match row.action() {
            Ok(action) => Some((seen, action)),
            Err(error) => {
                tracing::warn!(%error, month = seen.position.month, "a scan that cannot be read is passed over");
                None
            }
        }
    };
    rows.into_iter().filter_map(read).collect()
}

/// The one number that a statement counts.
pub(super) fn count(bytes: &Bytes) -> Result<u64, StoreError> {
    let mut reader = Reader::new(bytes);
    if reader.is_more() { reader.uint64() } else { Err(failed("ClickHouse counted nothing")) }
}
