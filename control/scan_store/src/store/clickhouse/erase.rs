//! Looks for scans, writes them again with less in them, and removes single ones.

use std::{collections::BTreeMap, time::Instant};

use kernel::store::{STATEMENT_TIMEOUT, StoreError};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};

use super::super::seek::{bytes, ranges};
use super::{
    ClickHouseScans,
    append::STEP,
    client::away,
    params::{Params, hex},
    read::Walk,
    row_binary::Reader,
    rows::{self, DELETED, INSERT, Place, Rows},
};
use crate::{
    NewScan, ScanPosition, Seen, Sighted, Sought,
    domain::{columns::Columns, ids, month::Month},
};

const THNG: &str = "thng = unhex({thng:String})";
const CREATED: &str = "created_at >= {from:Int64} AND created_at < {to:Int64}";
const NETWORK: &str = "timestamp >= {from:Int64} AND timestamp < {to:Int64} \
    AND ((length(ip) = {bytes:UInt64} AND ip >= unhex({first:String}) AND ip <= unhex({last:String})) \
    OR (length(ip) = {mapped_bytes:UInt64} AND ip >= unhex({mapped_first:String}) AND ip <= unhex({mapped_last:String})))";
const VERSIONS: &str = "SELECT created_at, seq, thng, timestamp, key, version FROM scans FINAL \
    WHERE account = {account:String} AND month = {month:Int32} AND version < 4294967295 \
    AND (created_at, seq) IN (SELECT k.1, k.2 FROM (SELECT arrayJoin(arrayZip({times:Array(Int64)}, {seqs:Array(Int64)})) AS k))";

impl ClickHouseScans {
    pub(super) async fn seek_some(
        &self,
        account: AccountId,
        sought: &Sought,
        after: Option<ScanPosition>,
    ) -> Result<Sighted, StoreError> {
        let condition = match sought {
            Sought::Thng(_) => THNG,
            Sought::Created { .. } => CREATED,
            Sought::Network { .. } => NETWORK,
        };
        let mut given = Params::default();
        add_sought(&mut given, sought);
        let walk =
            Walk { account, conditions: condition, given: &given, is_ascending: true, is_final: false };
        for month in self.months().await? {
            let after = match after {
                Some(after) if after.month > month.number() => continue,
                Some(after) if after.month == month.number() => Some((after.at, after.seq)),
                Some(_) | None => None,
            };
            let ends = Instant::now() + 2 * STATEMENT_TIMEOUT;
            let positions = self.positions(walk, month, after, (STEP, ends)).await?;
            if let Some((at, seq)) = positions.last().copied() {
                let rows = self.at_positions(walk, month, &positions, ends).await?;
                let end = Some(ScanPosition { month: month.number(), at, seq });
                return Ok(Sighted { found: rows::readable(rows), end });
            }
        }
        Ok(Sighted::default())
    }

    /// Stores the next version of scans that are still there. One that is deleted in between stays so, and one of which another
    /// version was stored since it was seen is left as it is: what was seen may hold what was taken out of that.
    pub(super) async fn rewrite_all(&self, scans: &[(Seen, NewScan)]) -> Result<(), StoreError> {
        let mut groups: BTreeMap<(AccountId, i32), Vec<&(Seen, NewScan)>> = BTreeMap::new();
        for scan in scans {
            groups.entry((scan.1.account, scan.0.position.month)).or_default().push(scan);
        }
        for ((account, number), scans) in groups {
            let Some(month) = Month::stored(number) else { continue };
            for scans in scans.chunks(STEP) {
                self.rewrite_some(account, month, scans).await?;
            }
        }
        Ok(())
    }

    async fn rewrite_some(
        &self,
        account: AccountId,
        month: Month,
        scans: &[&(Seen, NewScan)],
    ) -> Result<(), StoreError> {
        let by_place: BTreeMap<(i64, i64), (u32, &NewScan)> = scans
            .iter()
            .map(|(seen, scan)| ((seen.position.at, seen.position.seq), (seen.version, scan)))
            .collect();
        let mut params = Params::of(account, month);
        params.wholes("times", by_place.keys().map(|(at, _)| *at));
        params.wholes("seqs", by_place.keys().map(|(_, seq)| *seq));
        let answer = self.client.query(VERSIONS, &params, STATEMENT_TIMEOUT).await?;
        let (mut reader, mut rows, mut changed) = (Reader::new(&answer), Rows::default(), 0_usize);
        while reader.is_more() {
            let (created_at, seq) = (UnixMillis(reader.int64()?), reader.int64()?);
            let (thng, timestamp) = (reader.bytes()?, UnixMillis(reader.int64()?));
            let (key, version) = (reader.fixed()?, reader.uint32()?);
            match by_place.get(&(created_at.0, seq)) {
                Some((seen, scan)) if *seen == version => {
                    let version = version.saturating_add(1);
                    let place = Place { created_at, seq, thng, timestamp, key: &key, version };
                    rows.push(account, &place, &scan.columns);
                }
                Some(_) => changed += 1,
                None => {}
            }
        }
        if !rows.bytes.is_empty() {
            self.client.insert(INSERT, None, rows.bytes, STATEMENT_TIMEOUT).await?;
        }
        if changed > 0 {
            return Err(away(format!(
                "{changed} scans were changed since they were read; they are read again"
            )));
        }
        Ok(())
    }

    /// Stores a last version of scans, without their documents. It stays until retention, so that no scan comes back.
    pub(super) async fn delete_all(&self, account: AccountId, ids: &[ActionId]) -> Result<u64, StoreError> {
        let (nothing, mut gone) = (Columns::default(), 0_u64);
        for month in self.months().await? {
            for some in ids.chunks(STEP) {
                let stored = self.read_ids(account, month, some).await?;
                let mut rows = Rows::default();
                // A key may fit to the time of another id.
                for row in stored.iter().filter(|row| row.id().is_some_and(|id| some.contains(&id))) {
                    rows.push(account, &row.place(DELETED), &nothing);
                    gone += 1;
                }
                if !rows.bytes.is_empty() {
                    self.client.insert(INSERT, None, rows.bytes, STATEMENT_TIMEOUT).await?;
                }
            }
        }
        Ok(gone)
    }
}

fn add_sought(params: &mut Params, sought: &Sought) {
    match *sought {
        Sought::Thng(thng) => {
            params.text("thng", &hex(&ids::pack(&thng)));
        }
        Sought::Created { from, to } => {
            params.time("from", from).time("to", to);
        }
        Sought::Network { first, last, from, to } => {
            let [own, mapped] = ranges(first, last);
            params.time("from", from).time("to", to);
            params.whole("bytes", i64::from(bytes(&own.0)));
            params.text("first", &hex(&own.0)).text("last", &hex(&own.1));
            params.whole("mapped_bytes", i64::from(bytes(&mapped.0)));
            params.text("mapped_first", &hex(&mapped.0)).text("mapped_last", &hex(&mapped.1));
        }
    }
}
