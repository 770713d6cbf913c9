//! One code of an order.

use print::PrintItem;
use serde::{Deserialize, Serialize};

/// One code of an order, as it is noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Code {
    /// The short id, as it was given out.
    pub short_id: String,
    /// What the code says.
    pub payload: String,
    /// `gs1:21` of the Thng.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// `gs1:01` of the product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtin: Option<String>,
}

impl Code {
    /// What is missing of it for a specification that needs a serial or a GTIN.
    #[must_use]
    pub fn lack(&self, needs_serial: bool, needs_gtin: bool) -> Option<String> {
        let what = match (needs_serial && self.serial.is_none(), needs_gtin && self.gtin.is_none()) {
            (true, _) => "no serial: its Thng has no identifier gs1:21",
            (false, true) => "no GTIN: its product has no identifier gs1:01",
            (false, false) if self.payload.is_empty() => {
                "no Digital Link: its short domain must have digitalLinks, its product a GTIN, and its Thng a serial that fits"
            }
            (false, false) => return None,
        };
        Some(format!("The redirection {} has {what}.", self.short_id))
    }
}

impl From<Code> for PrintItem {
    fn from(code: Code) -> Self {
        let Code { short_id, payload, serial, gtin } = code;
        Self { serial, short_id, url: payload, gtin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let code = |serial: Option<&str>, gtin: Option<&str>| Code {
            short_id: "K7Q2".to_owned(),
            payload: "HTTPS://TN.GG/K7Q2".to_owned(),
            serial: serial.map(str::to_owned),
            gtin: gtin.map(str::to_owned),
        };
        for (code, needs, expected) in [
            (code(None, None), (false, false), None),
            (code(None, None), (true, true), Some("gs1:21")),
            (code(Some("1"), None), (true, true), Some("gs1:01")),
            (code(Some("1"), Some("9")), (true, true), None),
            (Code { payload: String::new(), ..code(None, None) }, (false, false), Some("digitalLinks")),
        ] {
            let lack = code.lack(needs.0, needs.1);
            assert_eq!(lack.is_some(), expected.is_some(), "{code:?}");
            if let (Some(lack), Some(expected)) = (lack, expected) {
                assert!(lack.contains(expected) && lack.contains("K7Q2"), "{lack}");
            }
        }
    }
}
