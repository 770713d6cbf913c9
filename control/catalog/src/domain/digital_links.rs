//! The typed links of a GS1 Digital Link, as members of products and Thngs.
//!
//! A product has those of its GTIN (`links`), of lots and variants (`levels`) and of its former GTINs; a Thng has those of its
//! serial. What the service makes of them is said in the crate `digital_links`.

mod href;
mod link;

use digital_link::{DigitalLink, Qualifier};
pub use digital_link::{Tags, expand};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::{
    digital_link::{SerialMode, TypedLink},
    gtin,
    short_id::ShortId,
    short_url::ShortDomain,
};

use super::{body, members::Members};

/// Most links of one level.
pub const MAX_LINKS: usize = 64;
/// Most levels of a product below its GTIN.
pub const MAX_LEVELS: usize = 100;
/// Most former GTINs of a product: each has records of its own for every level.
pub const MAX_ALIASES: usize = 10;
/// Most records that a product has on each short domain: they are written in one transaction, for which all changes of links wait. It is
/// room for all levels with the GTIN and a former one, and for 26 levels with ten.
pub const MAX_RECORDS: usize = 300;
/// Most bytes of the links of a product or Thng together, as JSON: as many as its custom fields may have.
pub const MAX_LINKS_BYTES: usize = 64 * 1024;

/// Longest description of a level in characters.
pub const MAX_LEVEL_DESCRIPTION: usize = 256;

const LINKS: &str = "links";
const LEVELS: &str = "levels";
const ALIASES: &str = "gtinAliases";

/// The members of a product.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProductLinks {
    /// Links of the GTIN.
    pub links: Option<Vec<TypedLink>>,
    /// Lots and variants with links of their own.
    pub levels: Option<Vec<LinkLevel>>,
    /// What its serials are.
    pub serial_mode: Option<SerialMode>,
    /// Former GTINs that still lead to it, 14 digits each.
    pub gtin_aliases: Option<Vec<String>>,
}

/// Links of some of the items of a GTIN: a variant, a lot, a lot of a variant, or a third party's extension.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkLevel {
    /// 22: the consumer product variant.
    pub variant: Option<String>,
    /// 10: the batch or lot.
    pub lot: Option<String>,
    /// 235: an extension that a third party controls, which stands alone.
    pub tpx: Option<String>,
    /// What the level is called; without it, the product's name.
    pub description: Option<String>,
    /// Its links.
    pub links: Vec<TypedLink>,
}

impl ProductLinks {
    /// Reads `links`, `levels`, `serialMode` and `gtinAliases`.
    pub fn read(members: &mut Members<'_>) -> Self {
        let links = read_links(members);
        let levels = read_levels(members);
        let expected = "none, template, overrides or known";
        let serial_mode = members.typed("serialMode", expected, |value| value.as_str()?.parse().ok());
        let gtin_aliases = read_aliases(members);
        let sizes = [LINKS, LEVELS].map(|name| members.raw(name).map_or(0, size_bytes));
        check_size(members, sizes.iter().sum(), "links and levels");
        Self { links, levels, serial_mode, gtin_aliases }
    }

    /// The members after a change.
    #[must_use]
    pub fn merge(self, change: Self) -> Self {
        Self {
            links: change.links.or(self.links),
            levels: change.levels.or(self.levels),
            serial_mode: change.serial_mode.or(self.serial_mode),
            gtin_aliases: change.gtin_aliases.or(self.gtin_aliases),
        }
    }

    /// Whether it has links.
    #[must_use]
    pub fn has_links(&self) -> bool {
        !self.of_gtin().is_empty() || !self.of_levels().is_empty()
    }

    /// Whether a Digital Link may lead somewhere: by these links, or by those of an item.
    #[must_use]
    pub fn may_lead(&self) -> bool {
        self.has_links() || self.serial_mode.unwrap_or_default().has_items()
    }

    /// Links of the GTIN.
    #[must_use]
    pub fn of_gtin(&self) -> &[TypedLink] {
        self.links.as_deref().unwrap_or_default()
    }

    /// Links of lots and variants.
    #[must_use]
    pub fn of_levels(&self) -> &[LinkLevel] {
        self.levels.as_deref().unwrap_or_default()
    }

    /// How many records it has on each short domain: one for each GTIN, former ones too, at each level with links.
    #[must_use]
    pub fn count_records(&self) -> usize {
        let levels = usize::from(!self.of_gtin().is_empty()) + self.of_levels().len();
        levels * (1 + self.aliases().len())
    }

    /// Former GTINs.
    #[must_use]
    pub fn aliases(&self) -> &[String] {
        self.gtin_aliases.as_deref().unwrap_or_default()
    }
}

impl LinkLevel {
    /// The path of the level below a GTIN.
    #[must_use]
    pub fn path<'a>(&'a self, gtin: DigitalLink<'a>) -> Option<DigitalLink<'a>> {
        self.qualifiers().try_fold(gtin, |link, (qualifier, value)| link.with(qualifier, value).ok())
    }

    fn qualifiers(&self) -> impl Iterator<Item = (Qualifier, &str)> {
        let all = [
            (Qualifier::Variant, &self.variant),
            (Qualifier::Lot, &self.lot),
            (Qualifier::ThirdParty, &self.tpx),
        ];
        all.into_iter().filter_map(|(qualifier, value)| Some((qualifier, value.as_deref()?)))
    }
}

/// Reads the links of a Thng.
pub fn read_thng_links(members: &mut Members<'_>) -> Option<Vec<TypedLink>> {
    let links = read_links(members);
    let size = members.raw(LINKS).map_or(0, size_bytes);
    check_size(members, size, LINKS);
    links
}

/// A GTIN as a Digital Link says it: 14 digits; shorter ones are filled up with zeros.
///
/// # Errors
/// What is wrong with it: its length, its check digit or its GS1 prefix.
pub fn read_gtin(text: &str) -> Result<String, &'static str> {
    if !gtin::is_valid(text) {
        return Err("must be a GTIN of 8, 12, 13 or 14 digits with its check digit");
    }
    let kept = gtin::canonical(text);
    if DigitalLink::new(kept.as_str()).is_err() {
        return Err("must not have the GS1 prefix 0000000, which nobody owns");
    }
    Ok(kept)
}

/// The URL that the code of a short id says where it is to be a Digital Link. `serial` is there for the link of a Thng, whether or
/// not the Thng has one.
///
/// # Errors
/// Why there is none.
pub fn url_in_code(
    domain: &ShortDomain,
    short_id: &ShortId,
    gtin: Option<&str>,
    serial: Option<Option<&str>>,
) -> Result<String, &'static str> {
    if short_id.is_digital_link() {
        return Ok(domain.short_url(short_id));
    }
    if !domain.digital_links {
        return Err("its short domain does not have digitalLinks");
    }
    let gtin = gtin.ok_or("it has no product with a GTIN")?;
    let mut link = DigitalLink::new(gtin::canonical(gtin)).map_err(|_| "its GTIN is of nobody")?;
    if let Some(serial) = serial {
        let serial = serial.ok_or("its Thng has no gs1:21")?;
        link = link.with(Qualifier::Serial, serial).map_err(|_| "the gs1:21 of its Thng fits in none")?;
    }
    Ok(format!("{}://{}{}", domain.scheme.as_str(), domain.host, link.path()))
}

fn read_aliases(members: &mut Members<'_>) -> Option<Vec<String>> {
    let given = members.texts(ALIASES)?;
    if given.len() > MAX_ALIASES {
        members.fault(format!("{ALIASES} must have at most {MAX_ALIASES} items, not {}.", given.len()));
        return None;
    }
    let mut kept: Vec<String> = Vec::with_capacity(given.len());
    for (index, text) in given.into_iter().enumerate() {
        match read_gtin(text) {
            Ok(one) if kept.contains(&one) => {}
            Ok(one) => kept.push(one),
            Err(fault) => members.fault(format!("{ALIASES}[{index}] {fault}.")),
        }
    }
    Some(kept)
}

fn read_links(members: &mut Members<'_>) -> Option<Vec<TypedLink>> {
    let items = members.typed(LINKS, "an array of objects", Value::as_array)?;
    let path = members.path(LINKS);
    link::read_all(items, &path).map_err(|faults| faults.into_iter().for_each(|one| members.fault(one))).ok()
}

fn read_levels(members: &mut Members<'_>) -> Option<Vec<LinkLevel>> {
    let items = members.typed(LEVELS, "an array of objects", Value::as_array)?;
    if items.len() > MAX_LEVELS {
        members.fault(format!("{LEVELS} must have at most {MAX_LEVELS} items, not {}.", items.len()));
        return None;
    }
    let mut levels: Vec<LinkLevel> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match read_level(item, &format!("{LEVELS}[{index}]")) {
            Ok(level) if levels.iter().any(|other| other.qualifiers().eq(level.qualifiers())) => {
                members.fault(format!("{LEVELS}[{index}] is there twice."));
            }
            Ok(level) => levels.push(level),
            Err(faults) => faults.into_iter().for_each(|fault| members.fault(fault)),
        }
    }
    Some(levels)
}

fn read_level(item: &Value, path: &str) -> Result<LinkLevel, Vec<String>> {
    let mut members = Members::within(item, path)?;
    let level = LinkLevel {
        variant: read_qualifier(&mut members, "variant", Qualifier::Variant),
        lot: read_qualifier(&mut members, "lot", Qualifier::Lot),
        tpx: read_qualifier(&mut members, "tpx", Qualifier::ThirdParty),
        description: body::text(&mut members, "description", 1, MAX_LEVEL_DESCRIPTION),
        links: read_links(&mut members).unwrap_or_default(),
    };
    let [variant, lot, tpx] = ["variant", "lot", "tpx"].map(|name| members.raw(name).is_some());
    if !variant && !lot && !tpx {
        members.fault(format!("{path} must have a variant, a lot or a tpx."));
    } else if tpx && (variant || lot) {
        members.fault(format!("{path}.tpx must stand alone."));
    }
    if members.raw(LINKS).and_then(Value::as_array).is_none_or(Vec::is_empty) {
        members.fault(format!("{path}.links must have a link."));
    }
    members.finish(Some(level))
}

/// The value of a qualifier: its length and characters.
fn read_qualifier(members: &mut Members<'_>, name: &str, qualifier: Qualifier) -> Option<String> {
    let text = members.text(name)?;
    match qualifier.check(text) {
        Ok(()) => Some(text.to_owned()),
        Err(fault) => {
            members.fault(format!("{}: {fault}.", members.path(name)));
            None
        }
    }
}

fn size_bytes(value: &Value) -> usize {
    value.to_string().len()
}

fn check_size(members: &mut Members<'_>, size: usize, what: &str) {
    if size > MAX_LINKS_BYTES {
        members.fault(format!("{what} must have at most {MAX_LINKS_BYTES} bytes, not {size}."));
    }
}

#[cfg(test)]
mod tests;
