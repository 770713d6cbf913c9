//! What a Thng's scans say under other settings: nothing is stored.

use serde_json::{Map, Value};
use shared::{
    id::{ActionId, ThngId},
    standing::Verdict,
    time::UnixMillis,
};
use tracing::instrument;

use super::{
    facts::{Gathered, of_thng},
    history::History,
    observe,
    settings::effective,
};
use crate::{
    domain::{
        access::Actor,
        action::Action,
        assessment::{
            assess,
            document::Context,
            locate,
            profile::Profile,
            rules::{Evidence, Item},
            settings::{Overrides, Settings},
            source::Source,
            spread::Trigger,
            trigger::TriggerType,
        },
        members::Members,
        permission::{Subject::AssessmentSettings, Verb},
        reference::Reference,
        resource::Thng,
    },
    error::ServiceError,
    service::{
        App,
        access::{require, require_enterprise},
        named,
    },
    store::scan_profiles,
};

/// Most scans of each type that are looked at: ten pages.
const MAX_SCANS: usize = 1_000;
/// Most of the last scans that are assessed again.
const MAX_JUDGED: usize = 50;

/// What a replay is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The Thng.
    pub thng: Reference<ThngId>,
    /// What to set over its settings.
    pub settings: Overrides,
}

impl Replay {
    /// Reads the body of `POST /authentication/replay`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        if members.raw("thng").is_none() {
            members.fault("thng is required.");
        }
        let thng = members.parsed("thng");
        let settings = match members.raw("settings").map(|value| Overrides::within(value, "settings")) {
            None => Some(Overrides::default()),
            Some(Ok(settings)) => Some(settings),
            Some(Err(faults)) => {
                faults.into_iter().for_each(|fault| members.fault(fault));
                None
            }
        };
        members.finish(thng.zip(settings).map(|(thng, settings)| Self { thng, settings }))
    }
}

/// One scan, judged twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The scan.
    pub action: ActionId,
    /// When it happened.
    pub at: UnixMillis,
    /// By the settings as they are.
    pub current: Verdict,
    /// By those that were asked about.
    pub proposed: Verdict,
    /// What the rules found with those.
    pub reasons: Vec<String>,
}

/// What a replay found.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The Thng.
    pub thng: ThngId,
    /// Scans that were read.
    pub scans: usize,
    /// Whether the stored profile is what these scans make; unknown when there are more.
    pub profile_matches: Option<bool>,
    /// The last scans, the newest first.
    pub judged: Vec<Judged>,
}

/// Assesses the last scans of a Thng again, by its settings and by others.
///
/// # Errors
/// The account or the key may not, the Thng is not there, or the database failed.
#[instrument(skip_all)]
pub async fn replay(app: &App, actor: &Actor, asked: &Replay) -> Result<Replayed, ServiceError> {
    let grant = require(actor, Verb::Read, AssessmentSettings)?;
    require_enterprise(actor, "Assessment")?;
    let mut conn = app.db.read().await?;
    let thng: Thng = named::find(&mut conn, actor, &grant, &asked.thng.to_string()).await?;
    let mut history = History::read(&mut conn, actor.account, grant.limit(), thng.id, MAX_SCANS).await?;
    history.scans.sort_by_key(|action| std::cmp::Reverse((action.timestamp, action.id)));
    let stored = scan_profiles::load(&mut conn, actor.account, thng.id).await?;
    // What is kept of before is no part of a replay.
    let gathered = Gathered { peak: None, ..of_thng(&mut conn, actor, &thng, nothing()).await? };
    let proposed = gathered.settings.clone().with(&asked.settings);
    // Which scans are in the profile goes by the account's lists, whatever the Thng is an instance of.
    let of_account = effective(&mut conn, actor.account, &[], None).await?;
    let profile = history.profile(&of_account);
    let other = history.profile(&of_account.with(&asked.settings));
    let judged = history.scans.iter().take(MAX_JUDGED).filter_map(|scan| {
        let kind: TriggerType = scan.kind.parse().ok()?;
        let by = |profile: &Profile, settings: &Settings| {
            let (trigger, countries) = trigger_of(scan);
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
            current: current.verdict,
            proposed: proposed.verdict,
            reasons: proposed
                .checks
                .iter()
                .map(|(name, found)| format!("{name}: {}", found.reason))
                .collect(),
        })
    });
    let judged = judged.collect();
    Ok(Replayed {
        thng: thng.id,
        scans: history.scans.len(),
        profile_matches: history.is_whole.then_some(profile == stored.profile),
        judged,
    })
}

fn trigger_of(scan: &Action) -> (Trigger, Vec<crate::domain::assessment::spot::CountryCode>) {
    let spot = match Source::of_members(&scan.members) {
        Source::Edge | Source::Server => observe::place_of(&scan.members).1,
        Source::Public => observe::network_of_scan(&scan.members).1,
    };
    let (at, agent) = observe::device_of(&scan.members, (scan.timestamp, scan.created_at));
    let sensor = spot.located().filter(|(_, radius_km)| *radius_km < 2.0).map(|(at, _)| at);
    let (spot, countries) = locate(sensor, spot);
    let trigger = Trigger { at, agent, spot, is_counted: scan.kind == TriggerType::ImplicitScans.as_str() };
    (trigger, countries)
}

fn nothing() -> Gathered {
    let empty = Action {
        id: ActionId::new(0, [0; 16]),
        seq: 0,
        created_at: UnixMillis(0),
        timestamp: UnixMillis(0),
        kind: String::new(),
        thng: None,
        product: None,
        members: Map::new(),
    };
    let (trigger, countries) = trigger_of(&empty);
    Gathered {
        thng: None,
        item: Item::NotGiven,
        trigger,
        countries,
        evidence: Evidence::default(),
        profile: Profile::default(),
        settings: Settings::default(),
        context: Context::default(),
        markets: Vec::new(),
        source: Source::Server,
        peak: None,
        scan: None,
    }
}
