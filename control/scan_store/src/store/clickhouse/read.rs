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

// Positions of what may be next, in the order of the table's key: it reads as far as it must. With `FINAL` it would read all that
// is left of a month. Each version of a scan counts, also one that is not the last.
const POSITIONS: &str = "SELECT created_at, seq FROM scans WHERE account = {account:String} AND month = {month:Int32} \
    AND version < 4294967295 AND ";
// Those of last versions only.
const LAST_POSITIONS: &str = "SELECT created_at, seq FROM scans FINAL WHERE account = {account:String} \
    AND month = {month:Int32} AND version < 4294967295 AND ";
const BY_POSITIONS: &str = "SELECT created_at, seq, version, thng, timestamp, key, shape, agent, place, referer, language, \
    rule, ip, short_id, entry, redirect_url FROM scans FINAL WHERE account = {account:String} AND month = {month:Int32} \
    AND version < 4294967295 AND (created_at, seq) IN (SELECT k.1, k.2 FROM (SELECT arrayJoin(arrayZip( \
    {times:Array(Int64)}, {seqs:Array(Int64)})) AS k)) AND ";
const IN_ORDER: &str = " ORDER BY created_at, seq";
const AFTER: &str = " AND created_at >= {at:Int64} AND (created_at, seq) > ({at:Int64}, {seq:Int64})";
const BEFORE: &str = " AND created_at <= {at:Int64} AND (created_at, seq) < ({at:Int64}, {seq:Int64})";
const ASCENDING: &str = " ORDER BY created_at, seq LIMIT {most:UInt64}";
const DESCENDING: &str = " ORDER BY created_at DESC, seq DESC LIMIT {most:UInt64}";
const BY_IDS: &str = "SELECT created_at, seq, version, thng, timestamp, key, shape, agent, place, referer, language, rule, ip, \
    short_id, entry, redirect_url FROM scans FINAL WHERE account = {account:String} AND month = {month:Int32} \
    AND version < 4294967295 AND key IN (SELECT toFixedString(unhex(arrayJoin({keys:Array(String)})), 12)) \
    ORDER BY created_at, seq";
const COUNT: &str = "SELECT intDiv(created_at - {from:Int64}, {piece:Int64}) AS number, toUInt64(count()) \
    FROM scans FINAL WHERE account = {account:String} AND month = {month:Int32} AND version < 4294967295 \
    AND created_at >= {from:Int64} AND created_at < {to:Int64} GROUP BY number ORDER BY number";
const SOME: &str = "SELECT toUInt64(count()) FROM (SELECT 1 FROM scans FINAL WHERE account = {account:String} \
    AND month = {month:Int32} AND version < 4294967295 AND created_at >= {since:Int64} LIMIT {most:UInt64})";

/// Looks for positions of any version before only those of last versions are looked for.
const ROUNDS: u32 = 5;

/// Which scans of an account are read, and in which order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) account: AccountId,
    /// Conditions on a scan, and their parameters.
    pub(super) conditions: &'a str,
    pub(super) given: &'a Params,
    pub(super) is_ascending: bool,
    /// Whether only positions of last versions are looked for.
    pub(super) is_final: bool,
}

impl Walk<'_> {
    fn params(&self, month: Month) -> Params {
        let mut params = self.given.clone();
        params.text("account", self.account.as_str()).whole("month", i64::from(month.number()));
        params
    }
}

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
        let walk = Walk {
            account: selection.account,
            conditions: &conditions.text,
            given: &given,
            is_ascending: page.is_ascending(),
            is_final: false,
        };
        let after = page.after.map(|after| (after.at.0, after.seq));
        let mut months = self.months().await?;
        months.retain(|month| may_hold(*month, page));
        if !page.is_ascending() {
            months.reverse();
        }
        let (most, mut found) = (page.limit() as usize, Vec::new());
        for month in months {
            let rows = self.walk(walk, month, after, most - found.len(), ends).await?;
            found.extend(rows::actions(rows)?);
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }

    /// The next scans of a month behind a position, in order. A scan that is changed or deleted meanwhile is given as it is then
    /// or not at all, and the next one takes its place.
    async fn walk(
        &self,
        mut walk: Walk<'_>,
        month: Month,
        mut after: Option<(i64, i64)>,
        most: usize,
        ends: Instant,
    ) -> Result<Vec<rows::Row>, StoreError> {
        let (mut found, mut limit, mut rounds) = (Vec::new(), most, 0);
        while found.len() < most {
            let positions = self.positions(walk, month, after, (limit, ends)).await?;
            if positions.is_empty() {
                break;
            }
            after = positions.last().copied();
            let mut rows = self.at_positions(walk, month, &positions, ends).await?;
            if !walk.is_ascending {
                rows.reverse();
            }
            found.append(&mut rows);
            if positions.len() < limit {
                break;
            }
            // Many were deleted, or changed and not merged yet. Where that goes on, to read the rest of the month once takes less
            // than to ask for one step of them after the other.
            rounds += 1;
            walk.is_final = rounds >= ROUNDS && limit >= STEP;
            limit = (limit * 2).min(STEP.max(most));
        }
        found.truncate(most);
        Ok(found)
    }

    /// Where the next versions of scans are that meet the conditions. Those of one scan have one position.
    pub(super) async fn positions(
        &self,
        walk: Walk<'_>,
        month: Month,
        after: Option<(i64, i64)>,
        (limit, ends): (usize, Instant),
    ) -> Result<Vec<(i64, i64)>, StoreError> {
        let mut params = walk.params(month);
        params.whole("most", i64::try_from(limit).unwrap_or(i64::MAX));
        let mut behind = "";
        if let Some((at, seq)) = after {
            behind = if walk.is_ascending { AFTER } else { BEFORE };
            params.whole("at", at).whole("seq", seq);
        }
        let order = if walk.is_ascending { ASCENDING } else { DESCENDING };
        let positions = if walk.is_final { LAST_POSITIONS } else { POSITIONS };
        let sql = format!("{positions}{}{behind}{order}", walk.conditions);
        let answer = self.client.query(&sql, &params, left(ends)?).await?;
        let (mut reader, mut found) = (Reader::new(&answer), Vec::with_capacity(limit));
        while reader.is_more() {
            found.push((reader.int64()?, reader.int64()?));
        }
        Ok(found)
    }

    /// The scans at some positions that meet the conditions by their last version, the oldest first.
    pub(super) async fn at_positions(
        &self,
        walk: Walk<'_>,
        month: Month,
        positions: &[(i64, i64)],
        ends: Instant,
    ) -> Result<Vec<rows::Row>, StoreError> {
        let mut params = walk.params(month);
        params.wholes("times", positions.iter().map(|(at, _)| *at));
        params.wholes("seqs", positions.iter().map(|(_, seq)| *seq));
        let sql = format!("{BY_POSITIONS}{}{IN_ORDER}", walk.conditions);
        rows::read(&self.client.query(&sql, &params, left(ends)?).await?)
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
        let given = Params::default();
        let walk = Walk { account, conditions: "1", given: &given, is_ascending: true, is_final: false };
        let after = Some((since.0.saturating_sub(1), i64::MAX));
        for month in self.months().await?.into_iter().filter(|month| month.end() > since) {
            let rows = self.walk(walk, month, after, 1, Instant::now() + STATEMENT_TIMEOUT).await?;
            if let Some(first) = rows.first() {
                return Ok(Some(UnixMillis(first.position().at)));
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
