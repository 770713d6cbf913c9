//! Reports of finders: by the page of an item that may be a copy, without a key.

use shared::{
    id::{AccountId, CaseId, ReportId, ThngId},
    redirect::RedirectKey,
    short_id::ShortId,
    short_url::{Scheme, ShortDomain},
    time::UnixMillis,
};
use tracing::instrument;

use super::{AssessmentState, redirections::shown_pages, report_photos};
use crate::{
    domain::{
        event::Event,
        limits::shorten,
        photo::Photo,
        quota::Quota,
        report::{FinderReport, MAX_OF_ACCOUNT, MAX_OF_ITEM, NewReport, Permit},
        resource::Thng,
    },
    error::{AssessmentError, CommonError, ServiceError},
    store::{self, Conn, Ctx, accounts, documents, events, quotas, redirections, reports, withheld},
};

/// The time in which reports are counted.
pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What a form needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Goes with the report.
    pub token: String,
    /// Whether an address may be given.
    pub takes_mail: bool,
    /// Whether a photo may be given.
    pub takes_photo: bool,
}

/// An item about which people may write.
struct Suspected {
    account: AccountId,
    thng: ThngId,
    case: CaseId,
    link: RedirectKey,
    short_url: String,
    takes_mail: bool,
    takes_photo: bool,
}

/// Begins a report about the item of a short URL, whose host the request names.
///
/// # Errors
/// 404, in the same words for an unknown short id as for an item about which nobody may write, or which the platform withholds.
#[instrument(skip_all)]
pub async fn begin(state: &AssessmentState, host: &str, short_id: &str) -> Result<Form, ServiceError> {
    let issued = state.clock.now();
    let found = find(&mut state.db.read().await?, host, short_id, issued).await?;
    let permit = Permit { id: ReportId::new(issued.0, state.random16()?), issued };
    let token = permit.token(&key(state), &found.link);
    Ok(Form { token, takes_mail: found.takes_mail, takes_photo: found.takes_photo })
}

/// Adds a report to the case of the item, and records it as an event; a repeat of the same form changes nothing.
///
/// # Errors
/// As [`begin`]; 400 for a token that is not of a form of this item or over an hour old, for an address if the account keeps no
/// personal data, and for a photo if its pages take none or its storage is full; 429 when the item or the account has had its
/// reports of a day.
#[instrument(skip_all)]
pub async fn send(
    state: &AssessmentState,
    host: &str,
    short_id: &str,
    (new, photo): (NewReport, Option<Photo>),
) -> Result<(), ServiceError> {
    let now = state.clock.now();
    let found = find(&mut state.db.read().await?, host, short_id, now).await?;
    let permit = Permit::read(&new.token, &key(state), &found.link, now);
    let mut faults = Vec::new();
    if permit.is_none() {
        faults.push("token is not of a form of this item, or older than an hour.".to_owned());
    }
    if new.mail.is_some() && !found.takes_mail {
        faults.push("mail: the account keeps no personal data; leave it out.".to_owned());
    }
    if photo.is_some() && !found.takes_photo {
        faults.push("photo: the account takes none; leave it out.".to_owned());
    }
    let Some(permit) = permit.filter(|_| faults.is_empty()) else {
        return Err(CommonError::Faults(faults).into());
    };
    let Suspected { account, thng, case, short_url, .. } = found;
    let stored = match photo {
        None => None,
        Some(photo) => {
            // Nothing is written for what the transaction would not take.
            let mut conn = state.db.read().await?;
            if reports::contains(&mut conn, account, permit.id).await? {
                return Ok(());
            }
            check_limits(&mut conn, account, (thng, permit.id), now).await?;
            drop(conn);
            Some(report_photos::keep(state, account, photo).await?)
        }
    };
    let mut tx = state.db.begin(&Ctx::default()).await?;
    // Serialises the reports about an item, so that the limit holds. It may have been deleted meanwhile.
    let locked: Option<Thng> = documents::find_locked(&mut tx, account, thng).await?;
    if locked.is_none() {
        return Err(absent(short_id));
    }
    check_limits(&mut tx, account, (thng, permit.id), now).await?;
    let NewReport { token: _, text, mail } = new;
    let has_photo = stored.is_some();
    let report = FinderReport { id: permit.id, short_url, text, mail, has_photo, created_at: now };
    if reports::insert(&mut tx, account, (case, thng), &report).await? {
        if let Some(photo) = &stored {
            store::report_photos::insert(&mut tx, account, report.id, photo).await?;
            // There was room when the form came. A stranger is not told the limits of the account.
            quotas::add(&mut tx, account, Quota::StorageBytes, photo.size_bytes, now).await?;
        }
        events::record(&mut tx, now, &[(account, Event::Report(case, thng, report.id))]).await?;
    }
    Ok(tx.commit().await?)
}

/// Refuses another report about an item, or to an account, that had its reports of a day.
async fn check_limits(
    conn: &mut Conn,
    account: AccountId,
    (thng, id): (ThngId, ReportId),
    now: UnixMillis,
) -> Result<(), ServiceError> {
    let since = UnixMillis(now.0 - DAY_MS);
    // A form that comes again, as by a second click, is no other report.
    let (of_item, of_account) = reports::count_others(conn, account, (thng, id), since).await?;
    for (whose, count, most) in
        [("This item", of_item, MAX_OF_ITEM), ("This account", of_account, MAX_OF_ACCOUNT)]
    {
        if count >= most {
            return Err(AssessmentError::TooManyReports { whose, most }.into());
        }
    }
    Ok(())
}

/// Whose item it is about which people may write.
pub(super) async fn find_account(
    state: &AssessmentState,
    host: &str,
    short_id: &str,
) -> Result<AccountId, ServiceError> {
    let now = state.clock.now();
    Ok(find(&mut state.db.read().await?, host, short_id, now).await?.account)
}

/// The key of tokens: replicas share it.
fn key(state: &AssessmentState) -> [u8; 32] {
    blake3::derive_key("waymark 2026-11 reports of finders", &state.secrets.file_url)
}

async fn find(
    conn: &mut Conn,
    host: &str,
    short_id: &str,
    now: UnixMillis,
) -> Result<Suspected, ServiceError> {
    let domain = find_domain(conn, host).await?.ok_or_else(|| absent(short_id))?;
    let id: ShortId = short_id.parse().map_err(|_| absent(short_id))?;
    let folded = domain.fold(&id);
    let found = redirections::find_any(conn, domain.host.as_str(), &folded).await?;
    let found = found.ok_or_else(|| absent(short_id))?;
    let (account, redirect) = (found.account, found.redirect);
    let pages = shown_pages(conn, account, &domain).await?;
    let is_asked = pages.reports && pages.stops(&redirect.standing);
    let thng = redirect.thng_id.filter(|_| is_asked).ok_or_else(|| absent(short_id))?;
    let link = RedirectKey::new(domain.host.as_str(), &folded);
    if is_withheld(conn, account, &link).await? {
        return Err(absent(short_id));
    }
    let case = reports::find_case(conn, account, thng).await?.ok_or_else(|| absent(short_id))?;
    let takes_mail = !domain.omits_personal_data();
    let takes_photo = pages.photos && takes_mail && report_photos::has_room(conn, account, now).await?;
    Ok(Suspected {
        account,
        thng,
        case,
        link,
        short_url: domain.short_url(&redirect.short_id),
        takes_mail,
        takes_photo,
    })
}

/// The short domain that a host names, with or without the port of its scheme.
async fn find_domain(conn: &mut Conn, host: &str) -> Result<Option<ShortDomain>, ServiceError> {
    for scheme in [Scheme::Https, Scheme::Http] {
        let Ok(named) = ShortDomain::new(scheme, host) else { continue };
        let found = accounts::find_domain(conn, named.host.as_str()).await?;
        if let Some(found) = found.filter(|found| found.scheme == scheme) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether the platform operator has suspended the account or taken the link down: its page has no form then.
async fn is_withheld(conn: &mut Conn, account: AccountId, link: &RedirectKey) -> Result<bool, ServiceError> {
    if accounts::is_suspended(conn, account).await? {
        return Ok(true);
    }
    Ok(withheld::take_downs(conn, &[link], &[]).await?.of_link(link).is_some())
}

fn absent(short_id: &str) -> ServiceError {
    ServiceError::not_found("item to report", shorten(short_id))
}
