//! The item status that edges use. It follows the newest scan, and people's decisions and tags.

use shared::{
    id::{AccountId, ThngId},
    standing::Risk,
    time::UnixMillis,
};

use super::{
    Subject, displays,
    facts::{Gathered, of_thng},
    groups::Waiting,
    observe::ScanSources,
    replay::nothing,
};
use crate::{
    domain::{
        assessment::{
            Assessment, RULES_VERSION, assess,
            peak::{self, ByScan, Judgement, Peak, Stood},
            rules::Match,
            standing::JudgedScan,
        },
        case::{Case, CaseKind, CaseState, Evidence},
        resource::Thng,
        scan_source::Source,
    },
    error::ServiceError,
    store::{
        Tx, assessments, cases, display_places, documents,
        item_standings::{self, Kept},
        reports, scan_profiles,
    },
};

/// Updates the status of an item after its newest scan, keeps its greatest points and opens its cases; returns
/// whether edges must learn of it.
pub(super) async fn advance(
    tx: &mut Tx,
    waiting: &Waiting,
    thng: &Subject,
    found: &Assessment,
    kept: &Kept,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let Waiting { caller: actor, request, gathered, .. } = waiting;
    let account = actor.account;
    let at = gathered.trigger.at;
    let is_public = gathered.source == Source::Public;
    let by = ByScan { scan: request.id, at };
    let peak = Peak::raised(kept.peak, Peak::of_scan(found.points, found.level, by, found.since));
    let next = peak::advanced(kept.stood, judgement(gathered, found));
    let stood = next.or(kept.stood);
    let scanned_at = stood.and_then(|stood| stood.at);
    let own = next.filter(|_| !is_public).map(|_| JudgedScan {
        kind: request.kind,
        trigger: gathered.trigger.clone(),
        countries: gathered.countries.clone(),
        evidence: gathered.evidence.clone(),
        rules_version: RULES_VERSION,
        points: found.points,
    });
    let judged = own.as_ref().or(kept.judged.as_ref());
    let is_kept = kept.peak == Some(peak)
        && kept.stood.and_then(|stood| stood.at) == scanned_at
        && judged == kept.judged.as_ref();
    if !is_kept {
        item_standings::put(tx, account, thng.id, scanned_at, judged, &peak).await?;
    }
    // A scan from before the last commissioning does not describe the present item.
    if !is_public && found.since >= peak.since {
        note_cases(tx, waiting, thng, kept, by, found, &peak, now).await?;
    }
    match next {
        // What stands is known: it is locked.
        Some(next) if kept.stood.is_some_and(|stood| stood.verdict == next.verdict) => Ok(false),
        Some(next) => Ok(assessments::put_verdict(tx, account, thng.id, next.verdict).await?),
        None => Ok(false),
    }
}

/// What an assessment may do to the standing.
fn judgement(gathered: &Gathered, found: &Assessment) -> Judgement {
    Judgement {
        verdict: found.verdict,
        at: gathered.trigger.at,
        // A confirmed case counts without a country.
        has_country: gathered.countries.len() == 1 || gathered.decided.is_market_confirmed(),
        is_public: gathered.source == Source::Public,
    }
}

/// Opens the cases that an assessment asks for, or adds to their evidence.
#[expect(clippy::too_many_arguments, reason = "what the evidence is made of")]
async fn note_cases(
    tx: &mut Tx,
    waiting: &Waiting,
    thng: &Subject,
    kept: &Kept,
    by: ByScan,
    found: &Assessment,
    peak: &Peak,
    now: UnixMillis,
) -> Result<(), ServiceError> {
    let account = waiting.caller.account;
    let [copy, diversion] = waiting.cases;
    let peak = Some(peak).filter(|peak| peak.is_since(found.since));
    for (kind, id, case, risk) in [
        (CaseKind::Counterfeit, copy, &kept.counterfeit, found.verdict.counterfeit),
        (CaseKind::GrayMarket, diversion, &kept.gray_market, found.verdict.gray_market),
    ] {
        if risk < Risk::Suspected {
            continue;
        }
        let evidence = Evidence {
            scan: by.scan,
            at: by.at,
            points: peak.map_or(found.points, |peak| peak.points.max(found.points)),
            level: peak.map_or(found.level, |peak| peak.level.max(found.level)),
            signs: found.signs.iter().cloned().collect(),
            countries: found.outside.iter().map(ToString::to_string).collect(),
            reason: reason(kind, found),
            since: found.since,
        };
        match case {
            Some(case) => {
                if let Some(next) = case.clone().meets(kind, evidence, now) {
                    cases::update(tx, account, &next, case.version, now).await?;
                }
            }
            None => {
                let case = Case {
                    state: CaseState::open(id, evidence),
                    seq: 0,
                    project: thng.projects.first().and_then(|id| id.parse().ok()),
                    thng: thng.id,
                    product: thng.product,
                    kind,
                    created_at: now,
                    updated_at: now,
                    reports: 0,
                };
                cases::insert(tx, account, &case).await?;
            }
        }
    }
    Ok(())
}

/// The reason of the assessment for a kind of case.
fn reason(kind: CaseKind, found: &Assessment) -> String {
    let is_of = |name: &str| match kind {
        CaseKind::Counterfeit => name != "diversionChecks" && name != "invalidChecks",
        CaseKind::GrayMarket => name == "diversionChecks",
    };
    let reasons = found.checks.iter().filter(|(name, finding)| {
        is_of(name) && (finding.matched == Match::True || *name == "duplicateChecks")
    });
    let reasons: Vec<&str> = reasons.map(|(_, finding)| finding.reason.as_str()).collect();
    reasons.join(" ")
}

/// Takes a change of tags into account: where display pieces are, and the verdict; returns whether it changed.
pub async fn marked(
    sources: ScanSources<'_>,
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let found: Option<Thng> = documents::find(tx, account, thng).await?;
    let Some(thng) = found else { return Ok(false) };
    displays::learn(sources, tx, account, &thng).await?;
    judge_again(sources, tx, account, &thng, now).await
}

/// Deletes what is kept of a Thng that is deleted.
pub async fn forget(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), ServiceError> {
    scan_profiles::delete(tx, thng).await?;
    item_standings::delete(tx, account, thng).await?;
    display_places::delete(tx, account, thng).await?;
    reports::delete_of_thng(tx, account, thng).await?;
    Ok(cases::delete_of_thng(tx, account, thng).await?)
}

/// Assesses an item again by the scan that set its status, with its present members and cases; returns whether the
/// verdict changed, so that edges must learn of it. An item that was never assessed stays so.
pub(crate) async fn judge_again(
    sources: ScanSources<'_>,
    tx: &mut Tx,
    account: AccountId,
    thng: &Thng,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    let mut kept = item_standings::lock_one(tx, account, thng.id).await?;
    kept.judged = kept.judged.map(|scan| scan.with_device(sources.devices.of(account)));
    let Some(mut stood) = kept.stood else { return Ok(false) };
    let at = stood.at.unwrap_or(now);
    // An older release did not keep the scan: without it the country stays as it was.
    let scan = kept.judged.clone().unwrap_or_else(|| JudgedScan::at(at));
    let own = Gathered {
        trigger: scan.trigger.clone(),
        countries: scan.countries.clone(),
        evidence: scan.evidence.clone(),
        ..nothing()
    };
    let gathered = of_thng(sources, tx, account, thng, own).await?;
    let found = assess(&gathered.facts(scan.kind));
    if gathered.decided.is_market_dismissed() && stood.verdict.gray_market > Risk::Unknown {
        // The newest scan may have no country: what stands comes of an earlier one, which was dismissed.
        stood.verdict.gray_market = Risk::None;
    }
    let next = peak::advanced(Some(Stood { at: Some(at), ..stood }), judgement(&gathered, &found));
    let Some(next) = next else { return Ok(false) };
    if let (Some(scan), Some(peak)) = (kept.judged, kept.peak) {
        let scan = JudgedScan { rules_version: RULES_VERSION, points: found.points, ..scan };
        item_standings::put(tx, account, thng.id, stood.at, Some(&scan), &peak).await?;
    }
    Ok(assessments::put_verdict(tx, account, thng.id, next.verdict).await?)
}
