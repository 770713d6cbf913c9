//! The request of a replay: which Thngs, and under which settings.

use serde_json::Value;
use shared::id::{ProductId, ThngId};

use crate::domain::{assessment::settings::Overrides, members::Members, reference::Reference};

/// Most Thngs of one replay.
pub const MAX_THNGS: usize = 100;

/// Most Thngs of one replay that is applied.
pub const MAX_APPLIED: usize = 10;

/// Which Thngs a replay is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Which {
    /// One.
    Thng(Reference<ThngId>),
    /// Up to [`MAX_THNGS`].
    Thngs(Vec<Reference<ThngId>>),
    /// The newest of a product, up to [`MAX_THNGS`].
    Product(Reference<ProductId>),
}

/// The request of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The Thngs.
    pub which: Which,
    /// What to set over their settings.
    pub settings: Overrides,
    /// Whether verdicts and greatest points are replaced by what the stored scans say now.
    pub is_applied: bool,
}

impl Replay {
    /// Reads the body of `POST /authentication/replay`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let named = ["thng", "thngs", "product"].map(|name| members.raw(name).is_some());
        match named {
            [false, false, false] => members.fault("thng is required, or thngs or product instead of it."),
            [true, false, false] | [false, true, false] | [false, false, true] => {}
            [..] => members.fault("thng: give one of thng, thngs and product."),
        }
        let thng = members.parsed("thng").map(Which::Thng);
        let product = members.parsed("product").map(Which::Product);
        let thngs =
            members.texts("thngs").and_then(|texts| parse_thngs(&texts, &mut members)).map(Which::Thngs);
        let settings = match members.raw("settings").map(|value| Overrides::within(value, "settings")) {
            None => Some(Overrides::default()),
            Some(Ok(settings)) => Some(settings),
            Some(Err(faults)) => {
                faults.into_iter().for_each(|fault| members.fault(fault));
                None
            }
        };
        let is_applied = members.boolean("apply").unwrap_or_default();
        if is_applied && members.raw("settings").is_some() {
            members.fault(
                "apply: settings are not applied by a replay; set them with PUT /authentication/settings first.",
            );
        }
        if let Some(Which::Thngs(thngs)) = thngs.as_ref().filter(|_| is_applied)
            && thngs.len() > MAX_APPLIED
        {
            let count = thngs.len();
            members.fault(format!(
                "thngs must have 1 to {MAX_APPLIED} items where they are applied, not {count}."
            ));
        }
        let which = thng.or(thngs).or(product);
        members.finish(which.zip(settings).map(|(which, settings)| Self { which, settings, is_applied }))
    }
}

fn parse_thngs(texts: &[&str], members: &mut Members<'_>) -> Option<Vec<Reference<ThngId>>> {
    if texts.is_empty() || texts.len() > MAX_THNGS {
        members.fault(format!("thngs must have 1 to {MAX_THNGS} items, not {}.", texts.len()));
        return None;
    }
    let mut found = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match text.parse() {
            Ok(reference) => found.push(reference),
            Err(error) => members.fault(format!("thngs[{index}]: {error}.")),
        }
    }
    Some(found)
}
