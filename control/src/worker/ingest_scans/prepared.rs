//! Scans of a batch with what follows from them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use ::actions::{
    domain::{
        context::{Agent, read_agent},
        personal::Redaction,
        scan::{self, IMPLICIT_SCANS},
        scan_charges::NotStored,
    },
    store::actions::NewAction,
};
use digital_links::store::serials;
use kernel::error::ServiceError;
use redirects::{domain::redirection::Redirection, store::redirections};
use scan_store::NewScan;
use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    personal_data::PersonalData,
    wire::scan::{ScanBatch, ScanRecord},
};
use statistics::domain::counted_scan::CountedScan;
use tenants::store::tenants;

use crate::state::ApiState;

/// A scan and what follows from it.
#[derive(Debug)]
pub(super) struct Scan {
    /// Its number in the boot of its edge.
    pub(super) seq: u64,
    /// Host of its short domain.
    pub(super) domain: Arc<str>,
    /// Its folded short id.
    pub(super) folded: Arc<str>,
    /// What subscribers and profiles see; none if its short id is unknown, if it is a sum, or if it is above a quota.
    pub(super) action: Option<NewAction>,
    /// The same for the store of scans; taken when it is stored.
    pub(super) row: Option<NewScan>,
    /// Whether the store of scans holds it; what does not fit there is stored as other actions are.
    pub(super) is_scan: bool,
    /// Its position there.
    pub(super) position: Option<i64>,
    pub(super) hits: i64,
    pub(super) is_known: bool,
    /// Whether its account may not store it.
    pub(super) is_above: bool,
    /// What statistics count of it.
    pub(super) counted: Option<CountedScan>,
}

impl Scan {
    /// Leaves out what is not to be stored.
    pub(super) fn apply_decision(&mut self, not_stored: &NotStored) {
        self.is_above = not_stored.above.contains(self.seq);
        let is_unknown = not_stored.unknown.contains(self.seq);
        if self.is_above || is_unknown {
            (self.action, self.row, self.counted, self.is_scan) = (None, None, None, false);
            self.is_known &= !is_unknown;
        }
    }
}

/// Prepares the scans of a batch.
pub(super) async fn read<'a>(app: &ApiState, batch: &'a ScanBatch) -> Result<Vec<Scan>, ServiceError> {
    let known = list_known(app, &batch.records).await?;
    let items = list_items(app, &batch.records, &known).await?;
    let accounts: BTreeSet<AccountId> = known.values().map(|item| item.account).collect();
    let accounts: Vec<AccountId> = accounts.into_iter().collect();
    let kept = tenants::list_personal_data(&mut app.core.db.read().await?, &accounts).await?;
    let scan = |(seq, record): (u64, &'a ScanRecord)| {
        let (agent, locality) = match record.client.as_deref() {
            None => (
                read_agent(&app.actions.agents, record.user_agent.as_deref()),
                app.actions.geo_ip.find(record.ip),
            ),
            Some(client) => {
                let (name, system) = (client.name.as_deref(), client.system.as_deref());
                (Agent { name, system, bot: client.bot }, client.locality())
            }
        };
        let found = known.get(&(record.domain.to_string(), record.folded.to_string()));
        let counted =
            found.map(|item| CountedScan::of_record(&app.statistics.devices, record, item, agent, &locality));
        // A sum of scans is counted in `hits` but creates no action, because its clients are unknown.
        let action = found.filter(|_| record.count.is_none()).map(|item| NewAction {
            id: scan::action_id(&app.core.secrets.scan_id, &batch.edge, batch.boot, seq, record),
            account: item.account,
            kind: IMPLICIT_SCANS.to_owned(),
            // An item without links of its own is found by what its Digital Link said.
            thng: item.redirect.thng_id.or_else(|| items.get(&item_of(record, item)?).copied()),
            product: item.redirect.product_id,
            timestamp: record.at,
            doc: {
                let mut doc =
                    scan::document(record, item.redirect.short_id.as_str(), &item.scopes, agent, &locality);
                // Statistics count the scan as it came. An account that is gone keeps nothing.
                let kept = kept.get(&item.account).copied().unwrap_or(PersonalData::None);
                let devices = Some(app.assessment.devices.of(item.account));
                let redaction = Redaction { kept, agents: &app.actions.agents, devices };
                if let Value::Object(members) = &mut doc {
                    redaction.document(members);
                }
                doc
            },
        });
        let row = action.as_ref().and_then(|action| {
            let about = (action.thng, action.product);
            NewScan::of(action.account, action.id, action.timestamp, about, &action.doc)
        });
        let hits = record.count.map_or(i64::from(!agent.bot), |count| i64::from(count.get()));
        let (is_scan, is_known) = (row.is_some(), found.is_some());
        Scan {
            seq,
            domain: record.domain.clone(),
            folded: record.folded.clone(),
            action,
            row,
            is_scan,
            position: None,
            hits,
            is_known,
            is_above: false,
            counted,
        }
    };
    Ok((batch.first_seq..).zip(&batch.records).map(scan).collect())
}

/// The product and serial of an item whose Digital Link was answered by its product.
fn item_of<'a>(record: &'a ScanRecord, item: &Redirection) -> Option<(ProductId, &'a str)> {
    let serial = record.digital_link.as_deref()?.serial.as_deref()?;
    Some((item.redirect.product_id.filter(|_| item.redirect.thng_id.is_none())?, serial))
}

/// Things by product and serial, of scans that were answered by the product.
async fn list_items<'a>(
    app: &ApiState,
    records: &'a [ScanRecord],
    known: &HashMap<(String, String), Redirection>,
) -> Result<HashMap<(ProductId, &'a str), ThngId>, ServiceError> {
    let mut wanted: BTreeMap<AccountId, BTreeSet<(ProductId, &'a str)>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.digital_link.is_some()) {
        let found = known.get(&(record.domain.to_string(), record.folded.to_string()));
        if let Some((account, one)) = found.and_then(|item| Some((item.account, item_of(record, item)?))) {
            wanted.entry(account).or_default().insert(one);
        }
    }
    let mut items = HashMap::new();
    for (account, wanted) in wanted {
        let wanted: Vec<(ProductId, &str)> = wanted.into_iter().collect();
        let found = serials::list(&mut app.core.db.read().await?, account, &wanted).await?;
        let found: HashMap<(ProductId, String), ThngId> =
            found.into_iter().map(|(product, serial, thng)| ((product, serial), thng)).collect();
        let of = |(product, serial): (ProductId, &'a str)| {
            Some(((product, serial), *found.get(&(product, serial.to_owned()))?))
        };
        items.extend(wanted.into_iter().filter_map(of));
    }
    Ok(items)
}

/// The redirections behind scans, deleted ones too, by domain and folded short id.
async fn list_known(
    app: &ApiState,
    records: &[ScanRecord],
) -> Result<HashMap<(String, String), Redirection>, ServiceError> {
    let mut keys: HashMap<&str, Vec<String>> = HashMap::new();
    for record in records {
        keys.entry(&record.domain).or_default().push(record.folded.to_string());
    }
    let mut conn = app.core.db.read().await?;
    let mut known = HashMap::new();
    for (domain, mut folded) in keys {
        folded.sort_unstable();
        folded.dedup();
        for item in redirections::list_many(&mut conn, domain, &folded).await? {
            let key = item.domain.fold(&item.redirect.short_id).into();
            known.insert((domain.to_owned(), key), item);
        }
    }
    Ok(known)
}

/// Makes scans what they were when they were stored: their links may have changed since. One that was not stored then was
/// of an unknown short id.
pub(super) async fn load_stored(app: &ApiState, scans: Vec<&mut Scan>) -> Result<(), ServiceError> {
    let mut ids: BTreeMap<AccountId, Vec<ActionId>> = BTreeMap::new();
    for action in scans.iter().filter_map(|scan| scan.action.as_ref()) {
        ids.entry(action.account).or_default().push(action.id);
    }
    let mut stored = HashMap::new();
    for (account, ids) in ids {
        let found = app.actions.scans.pool.find_many(account, &ids).await?;
        stored.extend(found.into_iter().map(|action| ((account, action.id), action)));
    }
    for scan in scans {
        let Some(new) = scan.action.take() else { continue };
        let then = stored.remove(&(new.account, new.id));
        scan.is_known = then.is_some();
        scan.position = then.as_ref().map(|then| then.seq);
        scan.action = then.map(|then| NewAction {
            thng: then.thng,
            product: then.product,
            doc: Value::Object(then.members),
            ..new
        });
        scan.counted = scan.action.as_ref().and_then(|then| count_again(app, then, scan.counted.as_ref()));
    }
    Ok(())
}

/// What statistics count of a scan that is stored; the verdict, which is not stored, is that of its link now.
fn count_again(app: &ApiState, then: &NewAction, now: Option<&CountedScan>) -> Option<CountedScan> {
    let devices = &app.statistics.devices;
    let then = CountedScan::of_action(devices, then.account, then.product, then.timestamp, &then.doc)?;
    // What is stored of the client may be less than what came.
    let device = now.and_then(|now| now.device).or(then.device);
    Some(CountedScan { verdict: now.map_or("", |now| now.verdict), device, ..then })
}
