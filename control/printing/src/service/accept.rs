//! What is decided while the caller of an order waits: its codes, or that they can be made.

use catalog::domain::{
    file::File,
    resource::{Product, Thng},
};
use jobs::domain::job_file::file_of;
use kernel::{
    domain::{
        quota::{Exceeded, Quota},
        subject::{
            Subject::{Files, Redirections, Thngs},
            Verb,
        },
    },
    service::access::{Caller, require},
    store::{Conn, StoreError, Tx, documents, identifiers, quotas},
};
use print::{Names, PrintItem, PrintSpec};
use shared::{id::AccountId, identifier::Identifier, short_id::ShortId, time::UnixMillis};

use super::{PrintState, codes, render};
use crate::{
    domain::{
        code::Code,
        input::Input,
        order::Stage,
        order_draft::OrderDraft,
        serials::{Form, MAX_NUMBER, MAX_SERIAL, Serials},
        source::{FileSource, Source},
    },
    error::{CommonError, PrintingError, ServiceError},
    store::serial_numbers,
};

/// Serials that are looked up before an order of numbered ones is accepted.
const LOOKED_UP: u64 = 1_000;

/// What an accepted order begins with.
#[derive(Debug)]
pub(super) struct Begin {
    /// The first stage.
    pub stage: Stage,
    /// How many codes.
    pub count: u64,
    /// The codes, where they were named one by one.
    pub codes: Vec<Code>,
    /// What is made, with the first number.
    pub serials: Option<Serials>,
    /// The file that names the codes.
    pub input: Option<Input>,
}

/// Whether the caller may print these codes, and make what is to be made.
///
/// # Errors
/// It may not.
pub(super) fn allow(caller: &Caller, source: &Source) -> Result<(), ServiceError> {
    match source {
        Source::ShortIds { .. } | Source::Thngs(_) | Source::Filter(_) | Source::File(_) => {
            let _ = require(caller, Verb::List, Redirections)?;
        }
        // The order acts for the whole account.
        Source::Serials(_) => {
            let _ = require(caller, Verb::Create, Thngs)?;
            let _ = require(caller, Verb::Create, Redirections)?;
        }
    }
    Ok(())
}

/// Finds the codes of an order, without a transaction. Lines of a file are read later.
///
/// # Errors
/// 400 for codes that are not there, or lack what the drawing needs; 403 where a quota has no room; 422 where the first code
/// cannot be drawn as asked.
pub(super) async fn look_up(
    state: &PrintState,
    caller: &Caller,
    draft: &OrderDraft,
    base: &str,
) -> Result<Begin, ServiceError> {
    let account = caller.account;
    let mut conn = state.db.read().await?;
    // How large its files get is known when they are there; what is full has room for none.
    quotas::require_room(&mut conn, account, Quota::StorageBytes, state.clock.now()).await?;
    let links = match &draft.source {
        Source::ShortIds { ids, domain } => {
            let member = "source.list.shortDomain";
            let domain = codes::domain(&mut conn, account, domain.as_deref(), member).await?;
            codes::by_short_ids(&mut conn, account, &domain, ids).await?
        }
        Source::Thngs(thngs) => codes::by_thngs(&mut conn, account, thngs).await?,
        Source::Filter(filter) => {
            let page = codes::by_filter(&mut conn, account, filter, (None, 1, true)).await?;
            let count = page.total.unwrap_or_default();
            check_count("source.filter", count, state.limits.max_codes)?;
            check_first(&draft.spec, &codes::of_links(&mut conn, account, &draft.spec, &page.items).await?)
                .await?;
            return Ok(Begin { stage: Stage::Collect, count, codes: Vec::new(), serials: None, input: None });
        }
        Source::File(file) => {
            let input = Some(find_file(&mut conn, caller, file, base).await?);
            return Ok(Begin { stage: Stage::Read, count: 0, codes: Vec::new(), serials: None, input });
        }
        Source::Serials(serials) => {
            check_serials(state, &mut conn, account, draft, serials).await?;
            let (count, serials) = (serials.count, Some(serials.clone()));
            return Ok(Begin { stage: Stage::Make, count, codes: Vec::new(), serials, input: None });
        }
    };
    let codes = codes::of_links(&mut conn, account, &draft.spec, &links).await?;
    check_first(&draft.spec, &codes).await?;
    Ok(Begin { stage: Stage::Render, count: codes.len() as u64, codes, serials: None, input: None })
}

/// The file that a source names: bad lines show what is in it, so the caller must be one who may read it.
///
/// # Errors
/// 400 that says why it cannot be one; 403 without the permission.
async fn find_file(
    conn: &mut Conn,
    caller: &Caller,
    source: &FileSource,
    base: &str,
) -> Result<Input, ServiceError> {
    let grant = require(caller, Verb::Read, Files)?;
    let refused = |what: String| CommonError::Faults(vec![format!("source.file.location {what}.")]);
    let id = file_of(&source.location, base).map_err(refused)?;
    let found: Option<File> = documents::find(conn, caller.account, id).await?;
    let found = found.filter(|file| grant.admits(id.as_str(), file.details.common.scopes.as_ref()));
    let content = match found.map(|file| file.content) {
        None => return Err(refused(format!("names the file {id}, which was not found")).into()),
        Some(None) => return Err(refused(format!("names the file {id}, which has no content yet")).into()),
        Some(Some(content)) => content,
    };
    if content.size_bytes == 0 {
        return Err(refused(format!("names the file {id}, which is empty")).into());
    }
    let member = "source.file.shortDomain";
    let short_domain = match &source.short_domain {
        Some(host) => Some(codes::domain(conn, caller.account, Some(host), member).await?),
        // Lines with serials alone need none.
        None => match codes::domain(conn, caller.account, None, member).await {
            Ok(domain) => Some(domain),
            Err(ServiceError::Refused { .. }) => None,
            Err(error) => return Err(error),
        },
    };
    let host = short_domain.map(|domain| domain.host.as_str().to_owned());
    Ok(Input::new(content.blob, content.size_bytes, source.form, host))
}

/// Refuses codes that lack something or would be files of one name, and a first one that cannot be drawn as asked. The others
/// are found when they are drawn, most often the same.
async fn check_first(spec: &PrintSpec, codes: &[Code]) -> Result<(), ServiceError> {
    let mut errors = codes::lacks(spec, codes);
    errors.extend(codes::twins(&mut Names::new(spec), 0, codes));
    if !errors.is_empty() {
        return Err(CommonError::Faults(errors).into());
    }
    let Some(first) = codes.first() else { return Ok(()) };
    let (spec, item) = (spec.clone(), PrintItem::from(first.clone()));
    let checked = tokio::task::spawn_blocking(move || print::check_item(&spec, &item)).await;
    let checked =
        checked.map_err(|error| ServiceError::Internal(format!("a code was not placed: {error}")))?;
    checked.map_err(render::refused)
}

/// Refuses no codes, and too many.
pub(super) fn check_count(member: &'static str, count: u64, most: u64) -> Result<(), PrintingError> {
    match count {
        0 => Err(PrintingError::NothingFound { member }),
        _ if count > most => Err(PrintingError::TooManyCodes { member, count, most }),
        _ => Ok(()),
    }
}

async fn check_serials(
    state: &PrintState,
    conn: &mut Conn,
    account: AccountId,
    draft: &OrderDraft,
    serials: &Serials,
) -> Result<(), ServiceError> {
    let member = "source.serials.shortDomain";
    let domain = codes::domain(conn, account, serials.short_domain.as_deref(), member).await?;
    let product: Option<Product> = documents::find(conn, account, serials.product).await?;
    let Some(product) = product else {
        return Err(PrintingError::NoProduct(serials.product).into());
    };
    let gtin = codes::identifier(&product.details.common, "gs1:01");
    if draft.spec.needs_gtin() && gtin.is_none() {
        return Err(PrintingError::NoGtin.into());
    }
    // As large as those that will be made.
    let short_id = ShortId::generate([0; 16]);
    let example = codes::code(&draft.spec, &domain, &short_id, (gtin, Some(Some(serials.example()))));
    check_first(&draft.spec, &[example]).await?;
    // Nothing is made of an order that does not fit as a whole. Two that were accepted side by side may still not fit: then
    // the second one fails where the room ends.
    for quota in [Quota::Things, Quota::Links] {
        require_room(conn, account, quota, serials.count, state.clock.now()).await?;
    }
    Ok(())
}

async fn require_room(
    conn: &mut Conn,
    account: AccountId,
    quota: Quota,
    wanted: u64,
    now: UnixMillis,
) -> Result<(), StoreError> {
    match quotas::find(conn, account, quota, now).await? {
        Some(found) if found.is_counted && found.limit.saturating_sub(found.used) < wanted => {
            let (limit, used) = (found.limit, found.used);
            Err(StoreError::Exceeded(Exceeded { quota, limit, used, wanted }))
        }
        Some(_) | None => Ok(()),
    }
}

/// Takes the numbers of an order in the transaction that accepts it; random serials need none.
///
/// # Errors
/// 409 where they were given out, or a Thng of the product has one of the first or the last.
pub(super) async fn take_numbers(
    tx: &mut Tx,
    account: AccountId,
    mut serials: Serials,
) -> Result<Serials, ServiceError> {
    let Form::Numbered { start, digits } = serials.form else { return Ok(serials) };
    let of = (serials.product, serials.prefix.as_str());
    let first = match serial_numbers::take(tx, account, of, (start, serials.count)).await? {
        Ok(first) => first,
        Err(next) => {
            return Err(PrintingError::NumbersTaken { next }.into());
        }
    };
    let last = first.saturating_add(serials.count - 1);
    if last > MAX_NUMBER || serials.numbered(last, digits).len() > MAX_SERIAL {
        return Err(PrintingError::NumberTooLong { last }.into());
    }
    let looked_up = (first..=last).take(usize::try_from(LOOKED_UP).unwrap_or(usize::MAX)).chain([last]);
    let wanted: Vec<Identifier> = looked_up
        .map(|number| Identifier { key: "gs1:21".to_owned(), value: serials.numbered(number, digits) })
        .collect();
    let mut wanted: Vec<&Identifier> = wanted.iter().collect();
    wanted.dedup();
    let taken = identifiers::find_many(tx, account, "thng", &wanted).await?;
    let ids: Vec<String> = taken.iter().map(|(_, id)| id.clone()).collect();
    let thngs: Vec<Thng> = documents::find_many(tx, account, &ids).await?;
    if let Some(thng) = thngs.iter().find(|thng| thng.product == Some(serials.product)) {
        let serial = codes::identifier(&thng.details.common, "gs1:21").unwrap_or_default();
        return Err(PrintingError::SerialTaken { thng: thng.id, serial: serial.to_owned() }.into());
    }
    serials.form = Form::Numbered { start: Some(first), digits };
    Ok(serials)
}
