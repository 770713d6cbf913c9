//! A request for a Digital Link of a product that nobody made, as the request for a preview describes it.

use catalog::domain::{digital_links::read_gtin, limits::check_text, members::Members};
use digital_link::{DigitalLink, DigitalLinkError, Qualifier};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use redirects::domain::assumed_scan::{AssumedScan, MAX_HEADER};
use serde_json::Value;

/// Longest `linkType`, in characters: as long as that of a link.
pub const MAX_LINK_TYPE: usize = 256;
/// Longest `context`, in characters: as long as that of a link.
pub const MAX_CONTEXT: usize = 64;

/// The members that a scan of another link has not.
const MEMBERS: [&str; 8] = ["accept", "context", "gtin", "linkType", "lot", "serial", "tpx", "variant"];
/// Curies and URIs stay readable in a query.
const PARAMETER: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'/');

/// A request for a Digital Link of a product that nobody made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssumedRequest {
    /// 14 digits; `None`: the GTIN that the product has now.
    pub gtin: Option<String>,
    /// 22.
    pub variant: Option<String>,
    /// 10.
    pub lot: Option<String>,
    /// 21.
    pub serial: Option<String>,
    /// 235, which stands alone.
    pub tpx: Option<String>,
    /// The type of link that is asked for.
    pub link_type: Option<String>,
    /// The context that is asked for.
    pub context: Option<String>,
    /// `Accept` as a browser sends it.
    pub accept: Option<String>,
    /// What else is known of the scan.
    pub scan: AssumedScan,
}

impl AssumedRequest {
    /// Reads a body. Unknown members are faults, as in [`AssumedScan::parse`].
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(value: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(value)?;
        let gtin = members.text("gtin").and_then(|text| match read_gtin(text) {
            Ok(gtin) => Some(gtin),
            Err(fault) => {
                members.fault(format!("gtin {fault}."));
                None
            }
        });
        let variant = qualifier(&mut members, "variant", Qualifier::Variant);
        let lot = qualifier(&mut members, "lot", Qualifier::Lot);
        let serial = qualifier(&mut members, "serial", Qualifier::Serial);
        let tpx = qualifier(&mut members, "tpx", Qualifier::ThirdParty);
        if tpx.is_some() && (variant.is_some() || lot.is_some() || serial.is_some()) {
            members.fault("tpx must stand alone, without variant, lot and serial.");
        }
        let link_type = text(&mut members, "linkType", MAX_LINK_TYPE);
        let context = text(&mut members, "context", MAX_CONTEXT);
        let expected = format!("printable ASCII of at most {MAX_HEADER} characters");
        let accept = members.typed("accept", &expected, |value| {
            let text = value.as_str().filter(|text| text.len() <= MAX_HEADER)?;
            text.bytes().all(|byte| matches!(byte, b' '..=b'~')).then(|| text.trim_matches(' ').to_owned())
        });
        let mut of_scan = value.clone();
        if let Value::Object(object) = &mut of_scan {
            object.retain(|name, _| !MEMBERS.contains(&name.as_str()));
        }
        let scan = AssumedScan::parse(&of_scan).unwrap_or_else(|faults| {
            faults.into_iter().for_each(|fault| members.fault(fault));
            AssumedScan::default()
        });
        members.finish(Some(Self { gtin, variant, lot, serial, tpx, link_type, context, accept, scan }))
    }

    /// The canonical path of the Digital Link with a GTIN.
    ///
    /// # Errors
    /// What is wrong with the GTIN.
    pub fn path(&self, gtin: &str) -> Result<String, DigitalLinkError> {
        let qualifiers = [
            (Qualifier::Variant, &self.variant),
            (Qualifier::Lot, &self.lot),
            (Qualifier::Serial, &self.serial),
            (Qualifier::ThirdParty, &self.tpx),
        ];
        let mut link = DigitalLink::new(gtin)?;
        for (qualifier, value) in qualifiers {
            if let Some(value) = value {
                link = link.with(qualifier, value.as_str())?;
            }
        }
        Ok(link.path())
    }

    /// The query of the request: `linkType` and `context`, then the rest of it.
    #[must_use]
    pub fn query(&self) -> Option<String> {
        let own = [("linkType", &self.link_type), ("context", &self.context)];
        let own = own.into_iter().filter_map(|(name, value)| {
            Some(format!("{name}={}", utf8_percent_encode(value.as_deref()?, PARAMETER)))
        });
        let rest = self.scan.query.clone().filter(|query| !query.is_empty());
        let parts: Vec<String> = own.chain(rest).collect();
        (!parts.is_empty()).then(|| parts.join("&"))
    }
}

fn qualifier(members: &mut Members<'_>, name: &str, of: Qualifier) -> Option<String> {
    let text = members.text(name)?;
    match of.check(text) {
        Ok(()) => Some(text.to_owned()),
        Err(fault) => {
            members.fault(format!("{name}: {fault}."));
            None
        }
    }
}

fn text(members: &mut Members<'_>, name: &str, longest: usize) -> Option<String> {
    let text = members.text(name)?;
    match check_text(text, 1, longest) {
        Ok(()) => Some(text.to_owned()),
        Err(fault) => {
            members.fault(format!("{name} {fault}."));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fault_is_named() {
        let long = "x".repeat(257);
        for (body, expected) in [
            (json!({}), &[][..]),
            (json!({"gtin": null, "lot": null, "tpx": "X", "accept": "", "country": "de"}), &[]),
            (json!({"gtin": "9506000134352", "variant": "V", "lot": "L", "serial": "A/1", "time": 0}), &[]),
            (json!("01"), &["The body must be a JSON object."]),
            (
                json!({"gtin": "9506000134353", "lot": "", "serial": "ä", "tpx": 7, "linktype": "gs1:pip"}),
                &[
                    "gtin must be a GTIN of 8, 12, 13 or 14 digits with its check digit.",
                    "lot: (10) has no value.",
                    "serial: (21) has a character that this identifier does not allow.",
                    "tpx must be a string.",
                    "linktype is not a member of this operation.",
                ],
            ),
            (
                json!({"tpx": "X", "lot": "L", "linkType": long, "context": "", "accept": "é", "query": "#"}),
                &[
                    "tpx must stand alone, without variant, lot and serial.",
                    "linkType must have at most 256 characters, not 257.",
                    "context must not be empty.",
                    "accept must be printable ASCII of at most 1024 characters.",
                    "query must have the characters of a URL's query: printable ASCII without # < > and spaces.",
                ],
            ),
        ] {
            let faults = AssumedRequest::parse(&body).err().unwrap_or_default();
            assert_eq!(faults, expected, "{body}");
        }
    }

    #[test]
    fn path_and_query_are_those_of_the_request() {
        let gtin = "09506000134352";
        for (body, path, query) in [
            (json!({}), "/01/09506000134352", None),
            (json!({"query": ""}), "/01/09506000134352", None),
            (
                json!({"serial": "A/1", "lot": "L", "variant": "V", "query": "17=261231"}),
                "/01/09506000134352/22/V/10/L/21/A%2F1",
                Some("17=261231"),
            ),
            (
                json!({"tpx": "X", "linkType": "gs1:pip", "context": "a&b=c", "query": "x=1"}),
                "/01/09506000134352/235/X",
                Some("linkType=gs1:pip&context=a%26b%3Dc&x=1"),
            ),
        ] {
            let request = AssumedRequest::parse(&body).unwrap();
            assert_eq!(
                (request.path(gtin).as_deref(), request.query().as_deref()),
                (Ok(path), query),
                "{body}"
            );
        }
    }
}
