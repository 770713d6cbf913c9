//! The codes of the lines of an uploaded file.

use std::collections::{BTreeSet, HashMap};

use catalog::domain::resource::{Product, Thng};
use kernel::store::{Conn, documents, identifiers};
use redirects::{domain::redirection::Redirection, store::redirections};
use shared::{
    id::{AccountId, ProductId},
    identifier::Identifier,
    short_id::ShortId,
};

use super::codes;
use crate::{
    domain::{code::Code, input::Row},
    error::ServiceError,
};

/// The codes of some lines, each with the number of its line, in their order. What names none is a fault.
///
/// A short id is looked up on `domain`; serial and GTIN beside it are what texts and names have. A serial alone is that of
/// a Thng, of the product with the GTIN if there is one, whose oldest redirection is meant.
///
/// # Errors
/// The domain is none of the account's.
pub(super) async fn resolve(
    conn: &mut Conn,
    account: AccountId,
    domain: Option<&str>,
    rows: &[Row],
    faults: &mut Vec<(u64, String)>,
) -> Result<Vec<(u64, Code)>, ServiceError> {
    let by_short_id = of_short_ids(conn, account, domain, rows).await?;
    let by_serial = of_serials(conn, account, rows).await?;
    let mut links = Vec::new();
    let mut named = Vec::new();
    for row in rows {
        let found = match (&row.short_id, &row.serial) {
            (Some(short_id), _) => by_short_id
                .get(short_id)
                .ok_or_else(|| format!("{short_id} is no redirection of this domain.")),
            (None, serial) => by_thng(&by_serial, serial.as_deref().unwrap_or_default(), row.gtin.as_deref()),
        };
        match found {
            Ok(link) => {
                links.push(link.clone());
                named.push(row);
            }
            Err(fault) => faults.push((row.line, fault)),
        }
    }
    let found = codes::of_links(conn, account, &links).await?;
    let codes = named.into_iter().zip(found).map(|(row, code)| {
        let serial = row.serial.clone().or(code.serial);
        let gtin = row.gtin.clone().or(code.gtin);
        (row.line, Code { serial, gtin, ..code })
    });
    Ok(codes.collect())
}

/// The redirections of the short ids of some lines, by the short id as it is written there.
async fn of_short_ids(
    conn: &mut Conn,
    account: AccountId,
    domain: Option<&str>,
    rows: &[Row],
) -> Result<HashMap<String, Redirection>, ServiceError> {
    let texts: BTreeSet<&str> = rows.iter().filter_map(|row| row.short_id.as_deref()).collect();
    if texts.is_empty() {
        return Ok(HashMap::new());
    }
    let domain = codes::domain(conn, account, domain, "source.file.shortDomain").await?;
    let folded = |id: &ShortId| domain.fold(id).into_string();
    let ids: Vec<(&str, String)> =
        texts.into_iter().filter_map(|text| Some((text, folded(&text.parse().ok()?)))).collect();
    let wanted: Vec<String> = ids.iter().map(|(_, folded)| folded.clone()).collect();
    let links = redirections::find_many(conn, domain.host.as_str(), &wanted, account).await?;
    let links: HashMap<String, Redirection> =
        links.into_iter().map(|link| (folded(&link.redirect.short_id), link)).collect();
    let found =
        ids.into_iter().filter_map(|(text, folded)| Some((text.to_owned(), links.get(&folded)?.clone())));
    Ok(found.collect())
}

/// A Thng with a serial.
struct Owner {
    gtin: Option<String>,
    /// Its oldest redirection.
    link: Option<Redirection>,
}

/// The Thngs of the serials of some lines that name no short id.
async fn of_serials(
    conn: &mut Conn,
    account: AccountId,
    rows: &[Row],
) -> Result<HashMap<String, Vec<Owner>>, ServiceError> {
    let serials: BTreeSet<&str> =
        rows.iter().filter(|row| row.short_id.is_none()).filter_map(|row| row.serial.as_deref()).collect();
    if serials.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted: Vec<Identifier> = serials
        .into_iter()
        .map(|serial| Identifier { key: "gs1:21".to_owned(), value: serial.to_owned() })
        .collect();
    let wanted: Vec<&Identifier> = wanted.iter().collect();
    let ids: BTreeSet<String> =
        identifiers::find_many(conn, account, "thng", &wanted).await?.into_iter().map(|(_, id)| id).collect();
    let ids: Vec<String> = ids.into_iter().collect();
    let thngs: Vec<Thng> = documents::find_many(conn, account, &ids).await?;
    let products: BTreeSet<String> =
        thngs.iter().filter_map(|thng| thng.product.map(|id| id.to_string())).collect();
    let products: Vec<String> = products.into_iter().collect();
    let products: Vec<Product> = documents::find_many(conn, account, &products).await?;
    let gtins: HashMap<ProductId, String> = products
        .into_iter()
        .filter_map(|product| Some((product.id, codes::identifier(&product.details.common, "gs1:01")?)))
        .collect();
    let links = redirections::list_oldest(conn, account, &ids).await?;
    let mut links: HashMap<String, Redirection> =
        links.into_iter().map(|link| (link.redirect.platform_id.to_string(), link)).collect();
    let mut found: HashMap<String, Vec<Owner>> = HashMap::new();
    for thng in thngs {
        let Some(serial) = codes::identifier(&thng.details.common, "gs1:21") else { continue };
        let gtin = thng.product.and_then(|product| gtins.get(&product).cloned());
        let link = links.remove(&thng.id.to_string());
        found.entry(serial).or_default().push(Owner { gtin, link });
    }
    Ok(found)
}

/// The redirection of the one Thng with a serial, and with a GTIN if one is named.
fn by_thng<'a>(
    owners: &'a HashMap<String, Vec<Owner>>,
    serial: &str,
    gtin: Option<&str>,
) -> Result<&'a Redirection, String> {
    let with_gtin = |owner: &&Owner| gtin.is_none_or(|gtin| owner.gtin.as_deref() == Some(gtin));
    let found: Vec<&Owner> = owners.get(serial).into_iter().flatten().filter(with_gtin).collect();
    let of = gtin.map(|gtin| format!(" of the product {gtin}")).unwrap_or_default();
    match found.as_slice() {
        [] => Err(format!("{serial} is the serial of no Thng{of}.")),
        [owner] => owner
            .link
            .as_ref()
            .ok_or_else(|| format!("the Thng with the serial {serial} has no redirection.")),
        several => Err(format!(
            "{} Thngs{of} have the serial {serial}; name the gtin or the shortId.",
            several.len()
        )),
    }
}
