//! A reprint: some codes of an order once more, with its layout, links and settings.

use std::ops::Range;

use kernel::domain::members::Members;
use print::{PrintFormat, PrintSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::id::JobId;

use super::{
    order_draft,
    serials::{refuse_others, whole},
    source::MAX_LISTED,
};

/// Most sheets that a request lists.
pub const MAX_SHEETS: usize = 5_000;

/// Sheets that are named when the order has none such.
const MAX_FAULTS: usize = 20;

/// The ways to name codes.
const WAYS: [&str; 3] = ["codes", "from", "sheets"];

/// Which codes of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those with these short ids or serials.
    Codes(Vec<String>),
    /// From one place to another one, as the manifest counts them: from 1, both belong to it.
    Places(u64, u64),
    /// Those of these sheets, from 1.
    Sheets(Vec<u64>),
}

/// A reprint as a request asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReprintDraft {
    /// What people call it; may be empty.
    pub name: String,
    /// Which codes.
    pub selection: Selection,
    /// The first free label of the first sheet.
    pub start: Option<u64>,
    /// The selection as it was sent.
    pub sent: Value,
}

/// What a reprint is of; stored with its order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reprint {
    /// The order whose codes are printed again.
    pub of: JobId,
    /// The selection as it was sent.
    pub sent: Value,
    /// Short ids or serials; none where places are named.
    #[serde(default)]
    pub codes: Vec<String>,
    /// Places of codes from 0, in order; the end of each does not belong to it.
    #[serde(default)]
    pub places: Vec<(u64, u64)>,
}

impl Reprint {
    /// Whether the code at a place, from 0, belongs to it.
    #[must_use]
    pub fn has(&self, place: u64) -> bool {
        // It is asked of every line of a manifest, and there may be thousands of places.
        let at = self.places.partition_point(|(_, to)| *to <= place);
        self.places.get(at).is_some_and(|(from, _)| *from <= place)
    }

    /// Behind its last place.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.places.last().map_or(0, |(_, to)| *to)
    }

    /// How many codes it names.
    #[must_use]
    pub fn count(&self) -> u64 {
        let places: u64 = self.places.iter().map(|(from, to)| to.saturating_sub(*from)).sum();
        places.saturating_add(self.codes.len() as u64)
    }
}

impl ReprintDraft {
    /// Reads the body of `POST /jobs/qr/:id/reprint`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        refuse_others(&mut members, &["name", "codes", "from", "to", "sheets", "start"]);
        let name = order_draft::name(&mut members);
        let start = whole(&mut members, "start", 1..=1_000);
        let named: Vec<&str> = WAYS.into_iter().filter(|way| members.raw(way).is_some()).collect();
        let has_to = members.raw("to").is_some();
        let selection = match named.as_slice() {
            ["codes"] if !has_to => codes(&mut members).map(Selection::Codes),
            ["from"] if has_to => places(&mut members),
            ["sheets"] if !has_to => sheets(&mut members).map(Selection::Sheets),
            _ => {
                members.fault("Give exactly one of codes, from with to, and sheets.");
                None
            }
        };
        if members.raw("sheets").is_some() && members.raw("start").is_some() {
            members.fault("start is not for sheets: their labels stay where they were.");
        }
        let sent: Map<String, Value> = ["codes", "from", "to", "sheets"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), members.raw(name)?.clone())))
            .collect();
        let whole = name.zip(selection);
        let sent = Value::Object(sent);
        members.finish(whole.map(|(name, selection)| Self { name, selection, start, sent }))
    }

    /// What is printed again of an order of `total` codes, and how.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn of(
        &self,
        order: JobId,
        spec: &PrintSpec,
        total: u64,
    ) -> Result<(Reprint, PrintSpec), Vec<String>> {
        let mut reprint =
            Reprint { of: order, sent: self.sent.clone(), codes: Vec::new(), places: Vec::new() };
        let is_sheets = spec.format() == PrintFormat::PdfSheets;
        let mut faults = Vec::new();
        if self.start.is_some() && !is_sheets {
            faults.push("start is for orders of the format pdf-sheets.".to_owned());
        }
        let mut keeps_start = false;
        match &self.selection {
            Selection::Codes(codes) => reprint.codes.clone_from(codes),
            Selection::Places(from, to) if *to <= total => reprint.places.push((from - 1, *to)),
            Selection::Places(..) => {
                faults.push(format!("to must be at most {total}, the codes of the order."))
            }
            Selection::Sheets(_) if !is_sheets => {
                faults.push("sheets is for orders of the format pdf-sheets.".to_owned());
            }
            Selection::Sheets(sheets) => {
                keeps_start = sheets.contains(&1);
                let mut sheets = sheets.clone();
                sheets.sort_unstable();
                sheets.dedup();
                for sheet in sheets {
                    let Range { start, end } = spec.codes_of_page(sheet - 1, total);
                    if start == end && faults.len() < MAX_FAULTS {
                        faults.push(format!("sheets: the order has no sheet {sheet}."));
                    }
                    reprint.places.push((start, end));
                }
            }
        }
        let mut members = spec.to_json();
        if let Some(layout) = members.get_mut("layout").filter(|_| is_sheets && !keeps_start) {
            layout["start"] = json!(self.start.unwrap_or(1));
        }
        match PrintSpec::parse(&members) {
            Ok(spec) if faults.is_empty() => Ok((reprint, spec)),
            Ok(_) => Err(faults),
            Err(others) => Err(faults.into_iter().chain(others).collect()),
        }
    }
}

fn codes(members: &mut Members<'_>) -> Option<Vec<String>> {
    let texts = members.texts("codes")?;
    let mut found: Vec<String> = Vec::new();
    let fits = |text: &&str| (1..=100).contains(&text.chars().count()) && !text.contains('\0');
    if texts.is_empty() || texts.len() > MAX_LISTED || !texts.iter().all(fits) {
        members.fault(format!("codes must have 1 to {MAX_LISTED} short ids or serials."));
        return None;
    }
    let mut seen = std::collections::HashSet::new();
    found.extend(texts.into_iter().filter(|text| seen.insert(*text)).map(str::to_owned));
    Some(found)
}

fn places(members: &mut Members<'_>) -> Option<Selection> {
    let (from, to) =
        (whole(members, "from", 1..=print::MAX_CODES)?, whole(members, "to", 1..=print::MAX_CODES)?);
    if from > to {
        members.fault("from must not be greater than to.");
        return None;
    }
    Some(Selection::Places(from, to))
}

fn sheets(members: &mut Members<'_>) -> Option<Vec<u64>> {
    let number = |value: &Value| value.as_u64().filter(|number| (1..=print::MAX_CODES).contains(number));
    let found: Option<Vec<u64>> = members.typed("sheets", "an array of numbers from 1", |value| {
        value.as_array()?.iter().map(number).collect()
    });
    let found = found?;
    if found.is_empty() || found.len() > MAX_SHEETS {
        members.fault(format!("sheets must have 1 to {MAX_SHEETS} numbers."));
        return None;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;

    use super::*;

    fn spec(members: Value) -> PrintSpec {
        PrintSpec::parse(members.as_object().unwrap()).unwrap()
    }

    #[test]
    fn each_fault_is_named() {
        for (body, expected) in [
            (json!({"codes": ["A", "B", "A"]}), vec![]),
            (json!({"from": 1, "to": 2, "name": "Again", "start": 3}), vec![]),
            (json!({"sheets": [2, 1]}), vec![]),
            (json!([]), vec!["must be a JSON object"]),
            (json!({}), vec!["exactly one of codes"]),
            (json!({"from": 1}), vec!["exactly one of codes"]),
            (json!({"codes": ["A"], "to": 3}), vec!["exactly one of codes"]),
            (json!({"codes": [], "colour": 1}), vec!["colour is not a member", "codes must have 1 to"]),
            (json!({"from": 2, "to": 1}), vec!["from must not be"]),
            (json!({"from": 0, "to": 1}), vec!["from must be a whole number"]),
            (json!({"sheets": [0]}), vec!["sheets must be an array of numbers"]),
            (json!({"sheets": [1], "start": 2, "name": ""}), vec!["name must", "start is not for sheets"]),
        ] {
            assert_faults(&body, ReprintDraft::parse, &expected);
        }
    }

    #[test]
    fn places_are_those_of_the_order() {
        let sheets = spec(json!({"format": "pdf-sheets", "layout": {"size": "a4-63.5x38.1", "start": 3}}));
        let rolls = spec(json!({"format": "zpl"}));
        let order = JobId::new(1, [1; 16]);
        let of = |body: Value, spec: &PrintSpec| ReprintDraft::parse(&body).unwrap().of(order, spec, 50);
        // 21 labels a sheet, of which the first sheet lacks two.
        let (reprint, again) = of(json!({"sheets": [3, 1, 3]}), &sheets).unwrap();
        assert_eq!(
            (reprint.places.clone(), reprint.count(), reprint.end()),
            (vec![(0, 19), (40, 50)], 29, 50)
        );
        let places: Vec<u64> = (0..60).filter(|place| reprint.has(*place)).collect();
        assert_eq!(places, (0..19).chain(40..50).collect::<Vec<u64>>());
        assert_eq!(
            again.to_json()["layout"]["start"],
            3,
            "the labels of the first sheet stay where they were"
        );
        let (reprint, again) = of(json!({"sheets": [2]}), &sheets).unwrap();
        assert_eq!((reprint.places, again.to_json()["layout"]["start"].clone()), (vec![(19, 40)], json!(1)));
        let (reprint, again) = of(json!({"from": 2, "to": 4, "start": 7}), &sheets).unwrap();
        assert_eq!((reprint.places, again.to_json()["layout"]["start"].clone()), (vec![(1, 4)], json!(7)));
        let (reprint, again) = of(json!({"codes": ["A", "B", "A"]}), &rolls).unwrap();
        assert_eq!((reprint.count(), again), (2, rolls.clone()));
        for (body, spec, part) in [
            (json!({"from": 1, "to": 51}), &rolls, "to must be at most 50"),
            (json!({"sheets": [1]}), &rolls, "sheets is for orders"),
            (json!({"sheets": [4]}), &sheets, "has no sheet 4"),
            (json!({"codes": ["A"], "start": 2}), &rolls, "start is for orders"),
            (json!({"codes": ["A"], "start": 22}), &sheets, "layout.start"),
        ] {
            let faults = of(body, spec).unwrap_err();
            assert!(faults.len() == 1 && faults[0].contains(part), "{faults:?}");
        }
        let none: Vec<u64> = (100..1_000).collect();
        assert_eq!(of(json!({"sheets": none}), &sheets).unwrap_err().len(), MAX_FAULTS);
    }
}
