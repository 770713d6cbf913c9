//! Reads scans: pages, single ones by their ids, and counts. Months are read one by one, as in the other stores.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use bytes::Bytes;
use kernel::{
    domain::action::Action,
    store::{STATEMENT_TIMEOUT, StoreError, listing::Selection},
};
use shared::{
    filter::write::FilterWriter,
    id::{AccountId, ActionId},
    time::UnixMillis,
};

use super::super::{
    filter::{Conditions, whole},
    find::by_nearness,
    list::may_hold,
};
use super::{ClickHouseScans, append::STEP, params::Params, row_binary::Reader, rows};
use crate::{
    Count,
    domain::{ids, month::Month},
};

// The keys of a page come first: of the other columns only those of its scans are read.
const KEYS: &str = "SELECT thng, created_at, seq FROM scans FINAL WHERE account = {account:String} \
    AND month = {month:Int32} AND version < 4294967295 AND ";
const BY_KEYS: &str = "SELECT created_at, seq, version, thng, timestamp, key, shape, agent, place, referer, language, rule, ip, \
    short_id, entry, redirect_url FROM scans FINAL WHERE account = {account:String} AND month = {month:Int32} \
    AND version < 4294967295 AND (thng, created_at, seq) IN (SELECT unhex(k.1), k.2, k.3 FROM (SELECT arrayJoin(arrayZip( \
    {thngs:Array(String)}, {times:Array(Int64)}, {seqs:Array(Int64)})) AS k)) ORDER BY created_at, seq";
const BY_IDS: &str = "SELECT created_at, seq, version, thng, timestamp, key, shape, agent, place, referer, language, rule, ip, \
    short_id, entry, redirect_url FROM scans FINAL WHERE account = {account:String} AND month = {month:Int32} \
    AND version < 4294967295 AND key IN (SELECT toFixedString(unhex(arrayJoin({keys:Array(String)})), 12)) \
    ORDER BY created_at, seq";
const FIRST_SINCE: &str = "SELECT toUInt64(count()), min(created_at) FROM scans FINAL WHERE account = {account:String} \
    AND month = {month:Int32} AND version < 4294967295 AND created_at >= {since:Int64}";
const COUNT: &str = "SELECT intDiv(created_at - {from:Int64}, {piece:Int64}) AS number, toUInt64(count()) \
    FROM scans FINAL WHERE account = {account:String} AND month = {month:Int32} AND version < 4294967295 \
    AND created_at >= {from:Int64} AND created_at < {to:Int64} GROUP BY number ORDER BY number";
const SOME: &str = "SELECT toUInt64(count()) FROM (SELECT 1 FROM scans FINAL WHERE account = {account:String} \
    AND month = {month:Int32} AND version < 4294967295 AND created_at >= {since:Int64} LIMIT {most:UInt64})";

/// How often a page is read again of which scans were removed between both statements.
const TRIES: usize = 5;

impl ClickHouseScans {
    pub(super) async fn list(&self, selection: &Selection<'_>) -> Result<Vec<Action>, StoreError> {
        let (page, ends) = (selection.request.page, Instant::now() + STATEMENT_TIMEOUT);
        let mut conditions = Conditions::in_clickhouse();
        conditions.condition(&whole(selection))?;
        let mut given = Params::default();
        given.binds(&conditions.binds);
        if let Some(ids) = &selection.request.ids {
            add_ids(
                (&mut conditions, &mut given),
                &ids.iter().filter_map(|id| id.parse().ok()).collect::<Vec<_>>(),
            );
        }
        if let Some(after) = page.after {
            conditions.push(if page.is_ascending() {
                " AND created_at >= {after:Int64} AND (created_at, seq) > ({after:Int64}, {seq:Int64})"
            } else {
                " AND created_at <= {after:Int64} AND (created_at, seq) < ({after:Int64}, {seq:Int64})"
            });
            given.time("after", after.at).whole("seq", after.seq);
        }
        conditions.push(if page.is_ascending() {
            " ORDER BY created_at, seq LIMIT {most:UInt64}"
        } else {
            " ORDER BY created_at DESC, seq DESC LIMIT {most:UInt64}"
        });
        let sql = format!("{KEYS}{}", conditions.text);
        let mut months = self.months().await?;
        months.retain(|month| may_hold(*month, page));
        if !page.is_ascending() {
            months.reverse();
        }
        let (most, mut found) = (page.limit() as usize, Vec::new());
        for month in months {
            let mut params = given.clone();
            params.text("account", selection.account.as_str());
            params.whole("month", i64::from(month.number()));
            params.whole("most", i64::try_from(most - found.len()).unwrap_or(i64::MAX));
            let mut actions = self.read_page(selection.account, month, (&sql, &params), ends).await?;
            if !page.is_ascending() {
                actions.reverse();
            }
            found.extend(actions);
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }

    /// The scans of a statement that gives keys, the oldest first.
    async fn read_page(
        &self,
        account: AccountId,
        month: Month,
        (sql, params): (&str, &Params),
        ends: Instant,
    ) -> Result<Vec<Action>, StoreError> {
        for _ in 0..TRIES {
            let keys = self.client.query(sql, params, left(ends)?).await?;
            let (mut reader, mut thngs, mut times, mut seqs) =
                (Reader::new(&keys), Vec::new(), Vec::new(), Vec::new());
            while reader.is_more() {
                thngs.push(reader.bytes()?);
                times.push(reader.int64()?);
                seqs.push(reader.int64()?);
            }
            if seqs.is_empty() {
                return Ok(Vec::new());
            }
            let (count, mut params) = (seqs.len(), Params::of(account, month));
            params.bytes("thngs", thngs.into_iter());
            params.wholes("times", times.into_iter()).wholes("seqs", seqs.into_iter());
            let rows = rows::read(&self.client.query(BY_KEYS, &params, left(ends)?).await?)?;
            // A page with fewer would look like the last one.
            if rows.len() == count {
                return rows::actions(rows);
            }
        }
        Err(StoreError::Timeout)
    }

    pub(super) async fn find_all(
        &self,
        account: AccountId,
        ids: &[ActionId],
    ) -> Result<Vec<Action>, StoreError> {
        let mut missing: HashSet<ActionId> = ids.iter().copied().collect();
        let Some(oldest) = ids.iter().map(|id| ids::split(id).0).min() else { return Ok(Vec::new()) };
        // Most scans are created in the month in which they happened: that is known without a list of months.
        let first = Month::of(oldest);
        let (mut months, mut is_listed, mut found) = (vec![first], false, Vec::new());
        while !missing.is_empty() {
            for month in std::mem::take(&mut months) {
                let wanted: Vec<ActionId> = missing.iter().copied().collect();
                for some in wanted.chunks(STEP) {
                    let actions = rows::actions(self.read_ids(account, month, some).await?)?;
                    // A key may fit to the time of another id.
                    found.extend(actions.into_iter().filter(|action| missing.remove(&action.id)));
                }
                if missing.is_empty() {
                    break;
                }
            }
            if is_listed {
                break;
            }
            is_listed = true;
            months = by_nearness(self.months().await?, oldest);
            months.retain(|month| *month != first);
        }
        found.sort_unstable_by_key(Action::position);
        Ok(found)
    }

    /// The scans of a month with the keys of some ids.
    pub(super) async fn read_ids(
        &self,
        account: AccountId,
        month: Month,
        ids: &[ActionId],
    ) -> Result<Vec<rows::Row>, StoreError> {
        let keys: Vec<[u8; 12]> = ids.iter().map(|id| ids::split(id).1).collect();
        let mut params = Params::of(account, month);
        params.bytes("keys", keys.iter().map(<[u8; 12]>::as_slice));
        rows::read(&self.client.query(BY_IDS, &params, STATEMENT_TIMEOUT).await?)
    }

    pub(super) async fn first_since(
        &self,
        account: AccountId,
        since: UnixMillis,
    ) -> Result<Option<UnixMillis>, StoreError> {
        for month in self.months().await?.into_iter().filter(|month| month.end() > since) {
            let mut params = Params::of(account, month);
            params.time("since", since);
            let answer = self.client.query(FIRST_SINCE, &params, STATEMENT_TIMEOUT).await?;
            let mut reader = Reader::new(&answer);
            if reader.is_more() && reader.uint64()? > 0 {
                return Ok(Some(UnixMillis(reader.int64()?)));
            }
        }
        Ok(None)
    }

    pub(super) async fn count_pieces(&self, count: &Count) -> Result<Vec<(UnixMillis, u64)>, StoreError> {
        let (piece, mut found) = (count.piece_ms.max(1), Vec::<(UnixMillis, u64)>::new());
        for month in self.months().await? {
            if month.start() >= count.to || month.end() <= count.from {
                continue;
            }
            let mut params = Params::of(count.account, month);
            params.time("from", count.from).time("to", count.to).whole("piece", piece);
            let answer = self.client.query(COUNT, &params, STATEMENT_TIMEOUT).await?;
            let mut reader = Reader::new(&answer);
            while reader.is_more() {
                let at = reader.int64()?.saturating_mul(piece).saturating_add(count.from.0);
                let (at, scans) = (UnixMillis(at), reader.uint64()?);
                match found.last_mut().filter(|(last, _)| *last == at) {
                    // A piece that two months share.
                    Some((_, sum)) => *sum += scans,
                    None => found.push((at, scans)),
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn count_some(
        &self,
        account: AccountId,
        since: UnixMillis,
        most: u64,
    ) -> Result<u64, StoreError> {
        let mut found = 0;
        for month in self.months().await?.into_iter().filter(|month| month.end() > since) {
            let mut params = Params::of(account, month);
            params.time("since", since).text("most", &(most - found).to_string());
            let answer: Bytes = self.client.query(SOME, &params, STATEMENT_TIMEOUT).await?;
            found += rows::count(&answer)?;
            if found >= most {
                break;
            }
        }
        Ok(found)
    }
}

/// Limits a list to these ids.
fn add_ids((conditions, params): (&mut Conditions<'_>, &mut Params), ids: &[ActionId]) {
    let parts: Vec<(i64, [u8; 12])> = ids.iter().map(ids::split).map(|(at, key)| (at.0, key)).collect();
    conditions.push(
        " AND (timestamp, key) IN (SELECT k.1, toFixedString(unhex(k.2), 12) FROM (SELECT arrayJoin(arrayZip( \
         {id_times:Array(Int64)}, {id_keys:Array(String)})) AS k))",
    );
    params.wholes("id_times", parts.iter().map(|(at, _)| *at));
    params.bytes("id_keys", parts.iter().map(|(_, key)| key.as_slice()));
}

/// What is left of a time.
fn left(ends: Instant) -> Result<Duration, StoreError> {
    ends.checked_duration_since(Instant::now()).ok_or(StoreError::Timeout)
}
