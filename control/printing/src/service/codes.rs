//! The codes of links: what is printed, and the identifiers beside it.

use std::collections::{BTreeSet, HashMap};

use catalog::domain::{
    digital_links::url_in_code,
    resource::{Product, Thng},
};
use kernel::{
    domain::{
        common::Common,
        filter::Filter,
        grant::Limit,
        limits::shorten,
        listing::ListRequest,
        page::{Page, PageRequest, Position, SortOrder},
    },
    store::{Conn, StoreError, documents, listing::Selection},
};
use print::{Names, PrintItem, PrintSpec};
use redirects::{
    domain::{redirection::Redirection, words::WordQuery},
    store::{redirection_lists, redirections},
};
use shared::{
    id::{AccountId, ProductId, ThngId},
    short_id::ShortId,
    short_url::ShortDomain,
};
use tenants::store::accounts;

use crate::{
    domain::code::Code,
    error::{CommonError, PrintingError, ServiceError},
};

/// Links that are looked up together.
const SLICE: usize = 1_000;

/// Faults that are named at most.
const MAX_FAULTS: usize = 20;

/// The code of each of some links, in their order.
pub(super) async fn of_links(
    conn: &mut Conn,
    account: AccountId,
    spec: &PrintSpec,
    links: &[Redirection],
) -> Result<Vec<Code>, StoreError> {
    let ids = |id: &dyn Fn(&Redirection) -> Option<String>| -> Vec<String> {
        links.iter().filter_map(id).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let thngs = ids(&|link| link.redirect.thng_id.map(|id| id.to_string()));
    let thngs: Vec<Thng> = documents::find_many(conn, account, &thngs).await?;
    let serials: HashMap<ThngId, String> = thngs
        .into_iter()
        .filter_map(|thng| Some((thng.id, identifier(&thng.details.common, "gs1:21")?)))
        .collect();
    let products = ids(&|link| link.redirect.product_id.map(|id| id.to_string()));
    let products: Vec<Product> = documents::find_many(conn, account, &products).await?;
    let gtins: HashMap<ProductId, String> = products
        .into_iter()
        .filter_map(|product| Some((product.id, identifier(&product.details.common, "gs1:01")?)))
        .collect();
    let code = |link: &Redirection| {
        let serial = link.redirect.thng_id.map(|id| serials.get(&id).cloned());
        let gtin = link.redirect.product_id.and_then(|id| gtins.get(&id).cloned());
        code(spec, &link.domain, &link.redirect.short_id, (gtin, serial))
    };
    Ok(links.iter().map(code).collect())
}

/// The code of a link; `serial` is there for the link of a Thng, whether or not the Thng has one. Where there is no Digital Link to
/// be said, it says nothing, which [`lacks`] refuses.
pub(super) fn code(
    spec: &PrintSpec,
    domain: &ShortDomain,
    short_id: &ShortId,
    (gtin, serial): (Option<String>, Option<Option<String>>),
) -> Code {
    let payload = if spec.is_digital_link() {
        let serial = serial.as_ref().map(Option::as_deref);
        url_in_code(domain, short_id, gtin.as_deref(), serial).unwrap_or_default()
    } else {
        domain.qr_payload(short_id)
    };
    Code { short_id: short_id.to_string(), payload, serial: serial.flatten(), gtin }
}

/// An identifier of a resource.
pub(super) fn identifier(common: &Common, key: &str) -> Option<String> {
    common.identifiers.as_ref()?.get(key).cloned()
}

/// What of some codes a specification needs and they lack; the first ones.
pub(super) fn lacks(spec: &PrintSpec, codes: &[Code]) -> Vec<String> {
    let (needs_serial, needs_gtin) = (spec.needs_serial(), spec.needs_gtin());
    codes.iter().filter_map(|code| code.lack(needs_serial, needs_gtin)).take(MAX_FAULTS).collect()
}

/// The first of some codes that would be files of the name of an earlier one; `first` is the place of the first code.
pub(super) fn twins(names: &mut Names<'_>, first: u64, codes: &[Code]) -> Vec<String> {
    let items = codes.iter().map(|code| PrintItem::from(code.clone()));
    (first..).zip(items).filter_map(|(index, item)| names.add(index, &item)).take(MAX_FAULTS).collect()
}

/// A short domain of the account: the named one, or the first.
///
/// # Errors
/// 400 that names the member `member`.
pub(super) async fn domain(
    conn: &mut Conn,
    account: AccountId,
    named: Option<&str>,
    member: &'static str,
) -> Result<ShortDomain, ServiceError> {
    let domains = accounts::list_domains(conn, account).await?;
    let found = match named {
        None => domains.into_iter().next(),
        Some(host) => domains.into_iter().find(|domain| domain.host.as_str() == host),
    };
    found.ok_or_else(|| {
        let error = match named {
            None => PrintingError::NoShortDomain { member },
            Some(host) => PrintingError::ForeignDomain { member, host: shorten(host).to_owned() },
        };
        error.into()
    })
}

/// The links of short ids, in their order.
///
/// # Errors
/// 400 that names the first absent ones.
pub(super) async fn by_short_ids(
    conn: &mut Conn,
    account: AccountId,
    domain: &ShortDomain,
    ids: &[ShortId],
) -> Result<Vec<Redirection>, ServiceError> {
    let folded: Vec<String> = ids.iter().map(|id| domain.fold(id).into_string()).collect();
    let mut found: HashMap<String, Redirection> = HashMap::new();
    for slice in folded.chunks(SLICE) {
        let links = redirections::find_many(conn, domain.host.as_str(), slice, account).await?;
        found
            .extend(links.into_iter().map(|link| (domain.fold(&link.redirect.short_id).into_string(), link)));
    }
    let links = folded.iter().map(|folded| found.get(folded).cloned()).collect();
    all(links, "source.list.shortIds", "names no redirection of this domain")
}

/// The oldest link of each of some Thngs, in their order.
///
/// # Errors
/// 400 that names the first ones without.
pub(super) async fn by_thngs(
    conn: &mut Conn,
    account: AccountId,
    thngs: &[ThngId],
) -> Result<Vec<Redirection>, ServiceError> {
    let ids: Vec<String> = thngs.iter().map(ToString::to_string).collect();
    let mut found: HashMap<String, Redirection> = HashMap::new();
    for slice in ids.chunks(SLICE) {
        let links = redirections::list_oldest(conn, account, slice).await?;
        found.extend(links.into_iter().map(|link| (link.redirect.platform_id.to_string(), link)));
    }
    let links = ids.iter().map(|id| found.get(id).cloned()).collect();
    all(links, "source.list.thngs", "names no Thng of this account with a redirection")
}

/// The links that meet a filter, oldest first.
///
/// # Errors
/// [`StoreError::Timeout`] when too many rows had to be read.
pub(super) async fn by_filter(
    conn: &mut Conn,
    account: AccountId,
    filter: &Filter,
    (after, per_page, counted): (Option<Position>, u32, bool),
) -> Result<Page<Redirection>, StoreError> {
    let page = PageRequest { per_page, sort: SortOrder::Ascending, after, number: 1 };
    let request = ListRequest { page, filter: Some(filter.clone()), counted, ..ListRequest::default() };
    let selection = Selection { account, limit: &Limit::Account, request: &request, within: &[] };
    redirection_lists::list(conn, WordQuery::default(), &selection).await
}

fn all(links: Vec<Option<Redirection>>, member: &str, not: &str) -> Result<Vec<Redirection>, ServiceError> {
    let absent = links.iter().enumerate().filter(|(_, link)| link.is_none()).take(MAX_FAULTS);
    let errors: Vec<String> = absent.map(|(at, _)| format!("{member}[{at}] {not}.")).collect();
    if errors.is_empty() {
        Ok(links.into_iter().flatten().collect())
    } else {
        Err(CommonError::Faults(errors).into())
    }
}
