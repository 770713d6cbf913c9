//! The codes of the lines of an uploaded file.

use std::collections::{BTreeSet, HashMap};

use catalog::domain::resource::{Product, Thng};
use kernel::store::{Conn, documents, identifiers};
use print::PrintSpec;
use redirects::{domain::redirection::Redirection, store::redirections};
use shared::{
    gtin,
    id::{AccountId, ProductId},
    identifier::Identifier,
    short_id::ShortId,
};

use super::codes;
use crate::{
    domain::{code::Code, input::Row},
    error::ServiceError,
};

/// Things that are looked up together.
const SLICE: usize = 1_000;

/// Most Things of one serial that are looked at.
const MAX_OWNERS: usize = 1_000;

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
    (domain, spec): (Option<&str>, &PrintSpec),
    rows: &[Row],
    faults: &mut Vec<(u64, String)>,
) -> Result<Vec<(u64, Code)>, ServiceError> {
    let by_short_id = of_short_ids(conn, account, domain, rows).await?;
    let by_serial = of_serials(conn, account, rows).await?;
    let thngs =
        rows.iter().filter(|row| row.short_id.is_none()).filter_map(|row| owner(&by_serial, row).ok());
    let thngs: Vec<String> = thngs.collect::<BTreeSet<_>>().into_iter().map(str::to_owned).collect();
    let by_thng: HashMap<String, Redirection> = redirections::list_oldest(conn, account, &thngs)
        .await?
        .into_iter()
        .map(|link| (link.redirect.platform_id.to_string(), link))
        .collect();
    let mut links = Vec::new();
    let mut named = Vec::new();
    for row in rows {
        let found = match &row.short_id {
            Some(short_id) => by_short_id
                .get(short_id)
                .ok_or_else(|| format!("{short_id} is no redirection of this domain.")),
            None => owner(&by_serial, row).and_then(|thng| {
                let serial = row.serial.as_deref().unwrap_or_default();
                by_thng
                    .get(thng)
                    .ok_or_else(|| format!("the Thng with the serial {serial} has no redirection."))
            }),
        };
        match found {
            Ok(link) => {
                links.push(link.clone());
                named.push(row);
            }
            Err(fault) => faults.push((row.line, fault)),
        }
    }
    let found = codes::of_links(conn, account, spec, &links).await?;
    let codes = named.into_iter().zip(found).map(|(row, code)| {
        // The text below a Digital Link is what the link says.
        if spec.is_digital_link() {
            return (row.line, code);
        }
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

/// The Things with a serial.
#[derive(Debug, Default)]
struct Owners {
    /// How many there are.
    count: usize,
    /// Their ids, each with the GTIN of its product; none where there are more than [`MAX_OWNERS`].
    found: Vec<(String, Option<String>)>,
}

/// The Things of the serials of some lines that name no short id.
///
/// Any number of Things may have one serial, so memory holds ids and GTINs of them, and a slice of the Things.
async fn of_serials(
    conn: &mut Conn,
    account: AccountId,
    rows: &[Row],
) -> Result<HashMap<String, Owners>, ServiceError> {
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
    let pairs = identifiers::find_many(conn, account, "thng", &wanted).await?;
    let mut owners: HashMap<String, Owners> = HashMap::new();
    for (identifier, _) in &pairs {
        owners.entry(identifier.value.clone()).or_default().count += 1;
    }
    let ids: Vec<String> = pairs
        .into_iter()
        .filter(|(identifier, _)| owners.get(&identifier.value).is_some_and(|one| one.count <= MAX_OWNERS))
        .map(|(_, id)| id)
        .collect();
    for ids in ids.chunks(SLICE) {
        let thngs: Vec<Thng> = documents::find_many(conn, account, ids).await?;
        let products: BTreeSet<String> =
            thngs.iter().filter_map(|thng| thng.product.map(|id| id.to_string())).collect();
        let products: Vec<String> = products.into_iter().collect();
        let products: Vec<Product> = documents::find_many(conn, account, &products).await?;
        let gtins: HashMap<ProductId, String> = products
            .into_iter()
            .filter_map(|product| Some((product.id, codes::identifier(&product.details.common, "gs1:01")?)))
            .collect();
        for thng in thngs {
            let Some(serial) = codes::identifier(&thng.details.common, "gs1:21") else { continue };
            let gtin = thng.product.and_then(|product| gtins.get(&product).cloned());
            owners.entry(serial).or_default().found.push((thng.id.to_string(), gtin));
        }
    }
    Ok(owners)
}

/// The id of the one Thng with the serial of a line, and with its GTIN if it has one.
fn owner<'a>(owners: &'a HashMap<String, Owners>, row: &Row) -> Result<&'a str, String> {
    let (serial, gtin) = (row.serial.as_deref().unwrap_or_default(), row.gtin.as_deref());
    let of = gtin.map(|gtin| format!(" of the product {gtin}")).unwrap_or_default();
    let Some(all) = owners.get(serial) else {
        return Err(format!("{serial} is the serial of no Thng{of}."));
    };
    if all.count > MAX_OWNERS {
        return Err(format!("{} Thngs have the serial {serial}; name the shortId.", all.count));
    }
    // Older releases stored GTINs as they were given.
    let is_of = |stored: &Option<String>| {
        gtin.is_none_or(|gtin| stored.as_deref().is_some_and(|stored| gtin::canonical(stored) == gtin))
    };
    let found: Vec<&str> =
        all.found.iter().filter(|(_, stored)| is_of(stored)).map(|(id, _)| id.as_str()).collect();
    match found.as_slice() {
        [] => Err(format!("{serial} is the serial of no Thng{of}.")),
        [id] => Ok(*id),
        several => Err(format!(
            "{} Thngs{of} have the serial {serial}; name the gtin or the shortId.",
            several.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_names_one_thng() {
        let owners = |all: &[(&str, Option<&str>)]| Owners {
            count: all.len(),
            found: all.iter().map(|(id, gtin)| ((*id).to_owned(), gtin.map(str::to_owned))).collect(),
        };
        let by_serial = HashMap::from([
            ("A".to_owned(), owners(&[("a", None)])),
            // As an older release stored it, and as it is stored now.
            ("B".to_owned(), owners(&[("b", Some("4006381333931")), ("c", Some("09521234543213"))])),
            ("C".to_owned(), Owners { count: MAX_OWNERS + 1, found: Vec::new() }),
        ]);
        for (serial, gtin, expected) in [
            ("A", None, Ok("a")),
            ("A", Some("09521234543213"), Err("A is the serial of no Thng of the product 09521234543213")),
            ("B", Some("04006381333931"), Ok("b")),
            ("B", Some("09521234543213"), Ok("c")),
            ("B", None, Err("2 Thngs have the serial B")),
            ("C", Some("09521234543213"), Err("1001 Thngs have the serial C; name the shortId")),
            ("D", None, Err("D is the serial of no Thng.")),
        ] {
            let (serial, gtin) = (Some(serial.to_owned()), gtin.map(str::to_owned));
            let row = Row { serial, gtin, ..Row::default() };
            match (owner(&by_serial, &row), expected) {
                (Ok(found), Ok(id)) => assert_eq!(found, id, "{row:?}"),
                (Err(found), Err(part)) => assert!(found.starts_with(part), "{found}"),
                (found, _) => panic!("{row:?}: {found:?}"),
            }
        }
    }
}
