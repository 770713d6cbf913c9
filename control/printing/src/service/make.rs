//! The first stages: codes of a filter are noted, or Things and links are made.

use std::{collections::BTreeMap, sync::Arc};

use catalog::{
    domain::resource::{Product, ThngChange, ThngDetails},
    service::thngs,
};
use futures_util::FutureExt;
use kernel::{
    domain::{access::Actor, common::Common, page::Position, quota::Quota, scopes::Scopes},
    store::{Ctx, Tx, documents, quotas},
};
use redirects::{
    domain::{
        availability::{AvailabilityChange, Patch},
        link_details::Described,
        redirection::{Draft, Writable},
    },
    service::redirections,
    writer::Lane,
};
use shared::{id::ThngId, redirect::ResourceType, target::Target, time::UnixMillis};

use super::{PrintState, accept, codes as links, steps::Stepped};
use crate::{
    domain::{
        code::Code,
        order::{Order, Stage},
        serials::{Form, Serials},
        source::Source,
    },
    error::{CommonError, PrintingError, ServiceError},
    store::{
        codes,
        leases::{self, Claimed},
    },
};

/// Things of one step: some 50 ms of the only writer on SQLite.
const MADE: u64 = 25;

/// Links of one step.
const COLLECTED: u32 = 500;

/// Notes the next codes of a filter.
///
/// # Errors
/// There are too many codes, or none, or one lacks what the drawing needs.
pub(super) async fn collect(state: &PrintState, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let mut next = claimed.item.clone();
    let (account, seq, first) = (next.account, next.stamp.seq, next.details.made);
    let most = state.limits.max_codes;
    let source = Source::parse(&next.details.source, most);
    let Ok(Source::Filter(filter)) = source else {
        return Err(PrintingError::UnreadableSource.into());
    };
    let spec = super::render::spec(&next)?;
    let after = next.details.after.map(|(at, seq)| Position { at: UnixMillis(at), seq });
    let mut conn = state.db.read().await?;
    let mut page = links::by_filter(&mut conn, account, &filter, (after, COLLECTED, false)).await?;
    // Links that came later are last: the order is about those that there were.
    let asked = next.stamp.created_at;
    let found = page.items.len();
    page.items.retain(|link| link.redirect.created_at <= asked);
    let is_over = page.next.is_none() || page.items.len() < found;
    let found = links::of_links(&mut conn, account, &spec, &page.items).await?;
    drop(conn);
    let errors = links::lacks(&spec, &found);
    if !errors.is_empty() {
        return Err(CommonError::Faults(errors).into());
    }
    let made = first + found.len() as u64;
    if is_over || made > most {
        accept::check_count("source.filter", made, most)?;
    }
    next.details.made = made;
    next.details.codes = if is_over { made } else { next.details.codes.max(made) };
    next.details.after = page.next.filter(|_| !is_over).map(|position| (position.at.0, position.seq));
    let next = next.at(if is_over { Stage::Render } else { Stage::Collect }, state.clock.now());
    let mut tx = state.db.begin(&Ctx::default()).await?;
    // First the order: another holder may have noted these codes.
    if !leases::hold(&mut tx, claimed).await? {
        return Ok(Stepped::Lost);
    }
    codes::insert(&mut tx, seq, first, &found).await?;
    super::steps::finish(tx, claimed, next).await
}

/// Makes the next Things and links.
///
/// # Errors
/// A serial is taken, a quota is used up, the product or the domain is gone.
pub(super) async fn make(state: &Arc<PrintState>, claimed: &mut Claimed) -> Result<Stepped, ServiceError> {
    let made = state
        .redirects
        .writer
        .submit(&Ctx::default(), (claimed.item.account, Lane::Bulk), {
            let (state, claimed) = (state.clone(), claimed.clone());
            move |tx| async move { make_in(&state, tx, &claimed).await }.boxed()
        })
        .await?;
    let Some(order) = made else { return Ok(Stepped::Lost) };
    state.metrics.made.inc_by(order.details.made.saturating_sub(claimed.item.details.made));
    claimed.item = order;
    Ok(Stepped::Moved)
}

/// One step in a transaction of the writer; `None`, and nothing is changed, when another worker holds the order.
async fn make_in(state: &PrintState, tx: &mut Tx, claimed: &Claimed) -> Result<Option<Order>, ServiceError> {
    if !leases::hold(tx, claimed).await? {
        return Ok(None);
    }
    let mut next = claimed.item.clone();
    let account = next.account;
    let Some(serials) = next.details.serials.clone() else {
        return Err(ServiceError::Internal("an order of serials without them".to_owned()));
    };
    let first = next.details.made;
    let count = next.details.codes.saturating_sub(first).min(MADE);
    // This transaction holds the order of changes, and with it the writes of all accounts: it does not wait for long for
    // another request of this account. It is tried again.
    quotas::lock_soon(tx, account, &[Quota::Things, Quota::Links]).await?;
    let domain = links::domain(tx, account, serials.short_domain.as_deref(), "shortDomain").await?;
    let product: Option<Product> = documents::find(tx, account, serials.product).await?;
    let gtin = product.and_then(|product| links::identifier(&product.details.common, "gs1:01"));
    let actor = Actor::operator(next.account, next.details.operator.clone());
    let mut drafts = Vec::new();
    let mut made = Vec::new();
    for at in first..first + count {
        let serial = serial(state, &serials, at)?;
        let thng = thngs::create_in(state, tx, &actor, thng(&serials, &serial), None).await?;
        let scopes = thng.details.common.scopes.clone().unwrap_or_default();
        drafts.push(draft(&serials, domain.host.as_str(), thng.id, scopes)?);
        made.push(serial);
    }
    let now = state.clock.now();
    let spec = super::render::spec(&next)?;
    let made_links = create_links(state, tx, &actor, drafts, now).await?;
    let found: Vec<Code> = made_links
        .iter()
        .zip(made)
        .map(|(link, serial)| links::code(&spec, &domain, &link.short_id, (gtin.clone(), Some(Some(serial)))))
        .collect();
    // The domain or the product may be another one than when the order was accepted.
    let errors = links::lacks(&spec, &found);
    if !errors.is_empty() {
        return Err(CommonError::Faults(errors).into());
    }
    codes::insert(tx, next.stamp.seq, first, &found).await?;
    next.details.made = first + count;
    let is_over = next.details.made >= next.details.codes;
    let next = next.at(if is_over { Stage::Render } else { Stage::Make }, now);
    Ok(leases::save(tx, claimed, &next, false).await?.then_some(next))
}

async fn create_links(
    state: &PrintState,
    tx: &mut Tx,
    actor: &Actor,
    drafts: Vec<Draft>,
    now: UnixMillis,
) -> Result<Vec<shared::redirect::Redirect>, ServiceError> {
    if drafts.is_empty() {
        return Ok(Vec::new());
    }
    // One to spare: at 10^9 links a million new ones meet a short id that was given out.
    let candidates = (0..=drafts.len()).map(|_| state.random16()).collect::<Result<Vec<_>, _>>()?;
    redirections::create_in(tx, actor, drafts, candidates, now).await
}

/// The serial at a place of the order.
fn serial(state: &PrintState, serials: &Serials, at: u64) -> Result<String, ServiceError> {
    match serials.form {
        Form::Numbered { start, digits } => {
            Ok(serials.numbered(start.unwrap_or(1).saturating_add(at), digits))
        }
        Form::Random { length } => {
            let mut pool = Vec::new();
            serials.random(length, || {
                if pool.is_empty() {
                    pool.extend(state.random16()?);
                }
                Ok(pool.pop().unwrap_or_default())
            })
        }
    }
}

fn thng(serials: &Serials, serial: &str) -> ThngChange {
    let common = Common {
        identifiers: Some(BTreeMap::from([("gs1:21".to_owned(), serial.to_owned())])),
        tags: (!serials.tags.is_empty()).then(|| serials.tags.clone()),
        ..Common::default()
    };
    ThngChange {
        name: Some(serial.to_owned()),
        product: Some(serials.product),
        details: ThngDetails { common, ..ThngDetails::default() },
        ..ThngChange::default()
    }
}

fn draft(serials: &Serials, host: &str, thng: ThngId, scopes: Scopes) -> Result<Draft, ServiceError> {
    let target = Target::parse(&serials.target)
        .map_err(|error| ServiceError::Internal(format!("the target of an order: {error}")))?;
    Ok(Draft {
        platform_id: thng.into(),
        resource_type: Some(ResourceType::Thng),
        short_id: None,
        short_domain: Some(host.to_owned()),
        writable: Writable {
            target,
            forward_query: false,
            status_code: Patch::Keep,
            availability: AvailabilityChange::default(),
            scopes,
            described: Described::default(),
        },
    })
}
