//! The body of a reprint from flags.

use serde_json::{Value, json};

use crate::config::ConfigError;

/// Which codes of an order are printed again.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Again {
    /// Print codes of this order again, as it was; needs --codes, --range or --sheets
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "order"])]
    reprint: Option<String>,
    /// Those with these short ids or serials
    #[arg(long, value_name = "ID,…", value_delimiter = ',', requires = "reprint")]
    codes: Vec<String>,
    /// Those from one place of the manifest to another, such as 11-20
    #[arg(long, value_name = "FROM-TO", requires = "reprint")]
    range: Option<String>,
    /// Those of these sheets, from 1
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "reprint")]
    sheets: Vec<u64>,
    /// First free label of the first sheet [default: 1]
    #[arg(long, value_name = "N", requires = "reprint")]
    start_label: Option<u64>,
}

impl Again {
    /// The order whose codes are printed again.
    pub(super) fn order(&self) -> Option<&str> {
        self.reprint.as_deref()
    }

    /// The body.
    ///
    /// # Errors
    /// There is not exactly one selection, or the range is none.
    pub(super) fn body(&self, name: Option<&str>) -> Result<Value, ConfigError> {
        let mut body = json!({});
        let mut ways = 0;
        if !self.codes.is_empty() {
            ways += 1;
            body["codes"] = json!(self.codes);
        }
        if let Some(range) = &self.range {
            ways += 1;
            let bounds = range.split_once('-').and_then(|(from, to)| {
                Some((from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?))
            });
            let Some((from, to)) = bounds else {
                return Err(ConfigError::new("--range", format!("{range:?} is no range such as 11-20")));
            };
            (body["from"], body["to"]) = (json!(from), json!(to));
        }
        if !self.sheets.is_empty() {
            ways += 1;
            body["sheets"] = json!(self.sheets);
        }
        if ways != 1 {
            return Err(ConfigError::new("--reprint", "give exactly one of --codes, --range and --sheets"));
        }
        if let Some(start) = self.start_label {
            body["start"] = json!(start);
        }
        if let Some(name) = name {
            body["name"] = json!(name);
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_the_members_of_a_reprint() {
        let again = Again {
            reprint: Some("O".to_owned()),
            range: Some("11-20".to_owned()),
            start_label: Some(3),
            ..Again::default()
        };
        assert_eq!(again.order(), Some("O"));
        assert_eq!(again.body(None).unwrap(), json!({"from": 11, "to": 20, "start": 3}));
        let two = Again { sheets: vec![1], ..again };
        assert!(two.body(None).is_err(), "two selections");
        let codes = Again { codes: vec!["A".to_owned()], ..Again::default() };
        assert_eq!(codes.body(Some("Again")).unwrap(), json!({"codes": ["A"], "name": "Again"}));
        assert!(Again::default().body(None).is_err());
        for range in ["11", "a-b", "1-2-3"] {
            assert!(
                Again { range: Some(range.to_owned()), ..Again::default() }.body(None).is_err(),
                "{range}"
            );
        }
    }
}
