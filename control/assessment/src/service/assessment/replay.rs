//! Assesses a Thng's past scans again: under other settings, which stores nothing, or to apply the present rules.

mod request;

use std::collections::HashSet;

use serde_json::json;
use shared::{
    id::{ActionId, ThngId},
    standing::Verdict,
    time::UnixMillis,
};
use tracing::instrument;

pub use self::request::{MAX_APPLIED, MAX_THNGS, Replay, Which};
use super::{
    facts::{Gathered, of_thng},
    history::History,
    observe::{self, ScanSources},
    recount,
    settings::effective,
    standing,
};
use crate::{
    domain::{
        access::Actor,
        action::Action,
        action_names::TriggerType,
        assessment::{
            assess,
            decided::Decided,
            document::Context,
            locate,
            profile::Profile,
            rules::Item,
            settings::{Overrides, Settings},
            spread::Trigger,
            standing::JudgedScan,
        },
        device::AccountDevices,
        grant::{Grant, Limit},
        listing::ListRequest,
        page::PageRequest,
        permission::{Subject::AssessmentSettings, Verb},
        resource::{Product, Thng},
        scan_source::Source,
    },
    error::ServiceError,
    service::{
        AssessmentState,
        access::{Caller, require, require_enterprise},
        named,
        redirections::follow_thng,
    },
    store::{Conn, documents, item_standings, listing::Selection, scan_profiles},
};

/// Most scans of each type that are read: ten pages.
const MAX_SCANS: usize = 1_000;
/// Most of the last scans that are assessed again.
const MAX_JUDGED: usize = 50;

/// For several Thngs: most scans of each type that are read, and most that are assessed again, for each.
const OF_MANY: (usize, usize) = (100, 5);

/// One scan, judged twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The scan.
    pub action: ActionId,
    /// When it happened.
    pub at: UnixMillis,
    /// By the settings as they are, with the points.
    pub current: (Verdict, u32),
    /// By those that were asked about, with the points.
    pub proposed: (Verdict, u32),
    /// The reasons of the checks under those settings.
    pub reasons: Vec<String>,
}

/// The verdict that edges use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The verdict.
    pub verdict: Verdict,
    /// When the scan happened that wrote it, if one did that is believed.
    pub at: Option<UnixMillis>,
    /// The points that its assessment found, and the version of its rules; unknown where an older release wrote it.
    pub points: Option<(u32, u32)>,
}

/// The replay of one Thng.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The Thng.
    pub thng: ThngId,
    /// Scans that were read.
    pub scans: usize,
    /// Whether the stored profile is what these scans make; unknown when there are more.
    pub profile_matches: Option<bool>,
    /// Its stored verdict; `None` before the first assessment.
    pub stored: Option<Standing>,
    /// The last scans, the newest first.
    pub judged: Vec<Judged>,
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Of the one Thng that was asked about.
    One(Box<Replayed>),
    /// Of several.
    Many {
        /// Each of them.
        thngs: Vec<Replayed>,
        /// Whether the product has more.
        more: bool,
    },
}

/// Assesses the last scans of Thngs again, by their settings and by others; with `apply`, each Thng gets the verdict and
/// the greatest points of now first, in a transaction of its own.
///
/// # Errors
/// The account or the key lacks the permission, or a Thng or the product does not exist.
#[instrument(skip_all)]
pub async fn replay(
    state: &AssessmentState,
    caller: &Caller,
    asked: &Replay,
) -> Result<Answer, ServiceError> {
    let verb = if asked.is_applied { Verb::Update } else { Verb::Read };
    let grant = require(caller, verb, AssessmentSettings)?;
    require_enterprise(caller, "Assessment")?;
    let mut conn = state.db.read().await?;
    let most = if asked.is_applied { MAX_APPLIED } else { MAX_THNGS };
    let (mut found, more) = find(&mut conn, caller, &grant, &asked.which, most).await?;
    drop(conn);
    if asked.is_applied {
        let mut done = HashSet::new();
        found.retain(|thng| done.insert(thng.id));
        for thng in &found {
            apply(state, caller, thng.id).await?;
        }
    }
    let mut conn = state.db.read().await?;
    let is_one = matches!(asked.which, Which::Thng(_));
    let bounds = if is_one { (MAX_SCANS, MAX_JUDGED) } else { OF_MANY };
    let mut thngs = Vec::with_capacity(found.len());
    for thng in &found {
        thngs.push(of_one(state.sources(), &mut conn, caller, &grant, thng, &asked.settings, bounds).await?);
    }
    Ok(match thngs.pop_if(|_| is_one) {
        Some(one) => Answer::One(Box::new(one)),
        None => Answer::Many { thngs, more },
    })
}

/// The Thngs that a replay is about, and whether the product has more.
async fn find(
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    which: &Which,
    most: usize,
) -> Result<(Vec<Thng>, bool), ServiceError> {
    let mut found = Vec::new();
    match which {
        Which::Thng(reference) => {
            found.push(named::find::<Thng>(conn, actor, grant, &reference.to_string()).await?);
        }
        Which::Thngs(references) => {
            for reference in references {
                found.push(named::find::<Thng>(conn, actor, grant, &reference.to_string()).await?);
            }
        }
        Which::Product(reference) => {
            let product: Product = named::find(conn, actor, grant, &reference.to_string()).await?;
            let id = product.id.to_string();
            let page = PageRequest { per_page: most as u32, ..PageRequest::default() };
            let request = ListRequest { page, ..ListRequest::default() };
            let within = [("product", id.as_str())];
            let selection = Selection {
                account: actor.account,
                limit: grant.limit(),
                request: &request,
                within: &within,
            };
            let page = documents::list::<Thng>(conn, &selection).await?;
            return Ok((page.items, page.next.is_some()));
        }
    }
    Ok((found, false))
}

/// Rebuilds the profile of a Thng, counts its greatest points again, and judges it by the scan that set its verdict.
async fn apply(state: &AssessmentState, caller: &Caller, thng: ThngId) -> Result<(), ServiceError> {
    let (sources, account) = (state.sources(), caller.account);
    let (_place, mut tx) = state.begin_write(caller).await?;
    let found: Option<Thng> = documents::find_locked(&mut tx, account, thng).await?;
    let Some(thng) = found else { return Ok(()) };
    let kept = item_standings::lock_one(&mut tx, account, thng.id).await?;
    if scan_profiles::lock(&mut tx, thng.id).await?.is_some() {
        let history = History::read(sources, &mut tx, account, &Limit::Account, thng.id, MAX_SCANS).await?;
        if history.is_whole {
            let settings = effective(&mut tx, account, &[], None).await?;
            scan_profiles::put(&mut tx, thng.id, &history.profile(&settings), history.read_to()).await?;
        }
        recount::peak(sources, &mut tx, account, thng.id, kept, history).await?;
    }
    let now = state.clock.now();
    let is_new = standing::judge_again(sources, &mut tx, account, &thng, now).await?;
    let is_followed = is_new && follow_thng(&mut tx, account, thng.id, thng.product, true, now).await?;
    tx.note(account, ("verdict", thng.id.as_str()), || (None, Some(json!({"isNew": is_new}))));
    tx.commit().await?;
    if is_followed {
        state.readers.wake_edges();
    }
    Ok(())
}

async fn of_one(
    sources: ScanSources<'_>,
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    thng: &Thng,
    overrides: &Overrides,
    (most_scans, most_judged): (usize, usize),
) -> Result<Replayed, ServiceError> {
    let account = actor.account;
    let mut history = History::read(sources, conn, account, grant.limit(), thng.id, most_scans).await?;
    history.scans.sort_by_key(|action| std::cmp::Reverse((action.timestamp, action.id)));
    let stored = scan_profiles::load(conn, account, thng.id).await?;
    let kept = item_standings::load(conn, account, thng.id).await?;
    // Peaks from earlier assessments are not part of a replay.
    let gathered = Gathered { peak: None, ..of_thng(sources, conn, account, thng, nothing()).await? };
    let proposed = gathered.settings.clone().with(overrides);
    // Which scans are in the profile depends on the account's lists, not on the product.
    let of_account = effective(conn, account, &[], None).await?;
    let profile = history.profile(&of_account);
    let other = history.profile(&of_account.with(overrides));
    let judged = history.scans.iter().take(most_judged).filter_map(|scan| {
        let kind: TriggerType = scan.kind.parse().ok()?;
        let by = |profile: &Profile, settings: &Settings| {
            let (trigger, countries) = trigger_of(scan, history.devices);
            let again = Gathered {
                trigger,
                countries,
                source: Source::of_members(&scan.members),
                profile: profile.clone(),
                settings: settings.clone(),
                ..gathered.clone()
            };
            assess(&again.facts(kind))
        };
        let (current, proposed) = (by(&profile, &gathered.settings), by(&other, &proposed));
        Some(Judged {
            action: scan.id,
            at: scan.timestamp,
            current: (current.verdict, current.points),
            proposed: (proposed.verdict, proposed.points),
            reasons: proposed
                .checks
                .iter()
                .map(|(name, found)| format!("{name}: {}", found.reason))
                .collect(),
        })
    });
    let judged = judged.collect();
    let scan = kept.judged.as_ref();
    Ok(Replayed {
        thng: thng.id,
        scans: history.scans.len(),
        profile_matches: history.is_whole.then_some(profile == stored.profile),
        stored: kept.stood.map(|stood| Standing {
            verdict: stood.verdict,
            at: stood.at,
            points: scan.map(|scan| (scan.points, scan.rules_version)),
        }),
        judged,
    })
}

pub(super) fn trigger_of(scan: &Action, devices: AccountDevices) -> (Trigger, Vec<countries::CountryCode>) {
    let spot = match Source::of_members(&scan.members) {
        Source::Edge | Source::Server => observe::place_of(&scan.members).1,
        Source::Public => observe::network_of_scan(&scan.members).1,
    };
    let (at, agent) = observe::device_of(&scan.members, (scan.timestamp, scan.created_at), devices);
    let sensor = spot.located().filter(|(_, radius_km)| *radius_km < 2.0).map(|(at, _)| at);
    let (spot, countries) = locate(sensor, spot);
    let (network, language) = observe::client_of(&scan.members);
    let is_counted = scan.kind == TriggerType::ImplicitScans.as_str();
    let trigger = Trigger { at, agent, network, language, spot, is_counted };
    (trigger, countries)
}

pub(super) fn nothing() -> Gathered {
    let JudgedScan { trigger, countries, evidence, .. } = JudgedScan::at(UnixMillis(0));
    Gathered {
        thng: None,
        item: Item::NotGiven,
        trigger,
        countries,
        evidence,
        profile: Profile::default(),
        settings: Settings::default(),
        context: Context::default(),
        markets: Vec::new(),
        source: Source::Server,
        peak: None,
        decided: Decided::default(),
        scan: None,
    }
}
