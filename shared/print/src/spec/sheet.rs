//! Where labels lie on a sheet; a roll is a sheet of one label.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::{
    PrintFormat,
    members::{Faults, Object, millimetres},
    sizes::{self, Size},
};

/// Width and height of a label in nanometres: what holds the smallest symbol, up to a metre.
const LABEL_RANGE: RangeInclusive<u32> = 5_000_000..=1_000_000_000;
/// Width and height of a sheet in nanometres: up to A0.
const SHEET_RANGE: RangeInclusive<u32> = 5_000_000..=1_200_000_000;
/// Margins and gaps in nanometres.
const GAP_RANGE: RangeInclusive<u32> = 0..=500_000_000;
/// Rows and columns.
const COUNT_RANGE: RangeInclusive<u32> = 1..=100;
/// Labels of a sheet: more than the finest sheets have, and a sheet is drawn in memory as a whole.
const MAX_LABELS: u32 = 1_000;

/// The members of `layout`.
const MEMBERS: [&str; 13] = [
    "size",
    "sheetWidthMm",
    "sheetHeightMm",
    "rows",
    "columns",
    "labelWidthMm",
    "labelHeightMm",
    "marginLeftMm",
    "marginTopMm",
    "gapXMm",
    "gapYMm",
    "start",
    "cutMarks",
];
/// Those that a known size sets.
const MEASURES: std::ops::Range<usize> = 1..11;

/// A sheet, lengths in nanometres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sheet {
    name: Option<&'static str>,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) label_width: u32,
    pub(crate) label_height: u32,
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) gap_x: u32,
    pub(crate) gap_y: u32,
    /// The first free label of the first sheet, from 1.
    pub(crate) start: u32,
    pub(crate) cut_marks: bool,
}

impl Sheet {
    /// A sheet of the table.
    pub(super) fn known(size: &Size) -> Self {
        Self {
            name: Some(size.name),
            width: size.sheet[0],
            height: size.sheet[1],
            rows: size.rows,
            columns: size.columns,
            label_width: size.label[0],
            label_height: size.label[1],
            left: size.margin[0],
            top: size.margin[1],
            gap_x: size.gap[0],
            gap_y: size.gap[1],
            start: 1,
            cut_marks: false,
        }
    }

    /// `None` where a fault was added.
    pub(super) fn parse(
        faults: &mut Faults,
        object: Object<'_>,
        format: Option<PrintFormat>,
    ) -> Option<Self> {
        let before = faults.0.len();
        faults.unknown(object, &MEMBERS);
        let sheet = match object.has("size") {
            true => Self::parse_known(faults, object),
            false => Self::parse_own(faults, object),
        };
        let labels = sheet.as_ref().map_or(MAX_LABELS, |sheet| sheet.rows * sheet.columns);
        let start = faults.whole(object, "start", &(1..=labels));
        let cut_marks = faults.flag(object, "cutMarks");
        if format.is_some_and(|format| format != PrintFormat::PdfSheets) {
            for name in ["start", "cutMarks"].into_iter().filter(|name| object.has(name)) {
                faults.add(format!("layout.{name} is for pdf-sheets only"));
            }
            if sheet.as_ref().is_some_and(|sheet| sheet.rows * sheet.columns > 1) {
                faults.add(
                    "layout has several labels on a sheet, which needs the format pdf-sheets".to_owned(),
                );
            }
        }
        let sheet = sheet.filter(|_| faults.0.len() == before)?;
        Some(Self { start: start.unwrap_or(1), cut_marks: cut_marks.unwrap_or(false), ..sheet })
    }

    fn parse_known(faults: &mut Faults, object: Object<'_>) -> Option<Self> {
        for name in MEMBERS[MEASURES].iter().filter(|name| object.has(name)) {
            faults.add(format!("layout.{name} cannot be combined with layout.size, which sets it"));
        }
        let name = faults.text(object, "size")?;
        let size = sizes::ALL.iter().find(|size| size.name == name);
        if size.is_none() {
            let names: Vec<&str> = sizes::ALL.iter().map(|size| size.name).collect();
            faults.add(format!("layout.size must be one of {}", names.join(", ")));
        }
        size.map(Self::known)
    }

    fn parse_own(faults: &mut Faults, object: Object<'_>) -> Option<Self> {
        for name in ["labelWidthMm", "labelHeightMm"].into_iter().filter(|name| !object.has(name)) {
            faults.add(format!("layout.{name} is missing: give the label's measures, or layout.size"));
        }
        if object.has("sheetWidthMm") != object.has("sheetHeightMm") {
            faults.add("layout.sheetWidthMm and layout.sheetHeightMm need each other".to_owned());
        }
        let label_width = faults.length(object, "labelWidthMm", &LABEL_RANGE);
        let label_height = faults.length(object, "labelHeightMm", &LABEL_RANGE);
        let width = faults.length(object, "sheetWidthMm", &SHEET_RANGE);
        let height = faults.length(object, "sheetHeightMm", &SHEET_RANGE);
        let rows = faults.whole(object, "rows", &COUNT_RANGE).unwrap_or(1);
        let columns = faults.whole(object, "columns", &COUNT_RANGE).unwrap_or(1);
        let left = faults.length(object, "marginLeftMm", &GAP_RANGE);
        let top = faults.length(object, "marginTopMm", &GAP_RANGE);
        let gap_x = faults.length(object, "gapXMm", &GAP_RANGE).unwrap_or(0);
        let gap_y = faults.length(object, "gapYMm", &GAP_RANGE).unwrap_or(0);
        if rows * columns > MAX_LABELS {
            faults.add(format!("layout.rows times layout.columns must be at most {MAX_LABELS}"));
        }
        if rows * columns > 1 && !object.has("sheetWidthMm") {
            faults.add("layout.sheetWidthMm and layout.sheetHeightMm are missing".to_owned());
        }
        let (label_width, label_height) = (label_width?, label_height?);
        let across = Axis { count: columns, label: label_width, gap: gap_x, margin: left, sheet: width };
        let down = Axis { count: rows, label: label_height, gap: gap_y, margin: top, sheet: height };
        let (width, left) = across.fit(faults, "layout.columns", "sheetWidthMm")?;
        let (height, top) = down.fit(faults, "layout.rows", "sheetHeightMm")?;
        let sheet = Self {
            name: None,
            width,
            height,
            rows,
            columns,
            label_width,
            label_height,
            left,
            top,
            gap_x,
            gap_y,
            start: 1,
            cut_marks: false,
        };
        Some(sheet)
    }

    /// The members of `layout` of an order that is parsed again.
    pub(super) fn to_json(&self, format: PrintFormat) -> Map<String, Value> {
        let mut members = match self.name {
            Some(name) => Map::from_iter([("size".to_owned(), json!(name))]),
            None => self.measures(),
        };
        if format == PrintFormat::PdfSheets {
            members.insert("start".to_owned(), json!(self.start));
            members.insert("cutMarks".to_owned(), json!(self.cut_marks));
        }
        members
    }

    /// The members that say where labels lie.
    pub(super) fn measures(&self) -> Map<String, Value> {
        let members = [
            ("sheetWidthMm", millimetres(self.width)),
            ("sheetHeightMm", millimetres(self.height)),
            ("rows", json!(self.rows)),
            ("columns", json!(self.columns)),
            ("labelWidthMm", millimetres(self.label_width)),
            ("labelHeightMm", millimetres(self.label_height)),
            ("marginLeftMm", millimetres(self.left)),
            ("marginTopMm", millimetres(self.top)),
            ("gapXMm", millimetres(self.gap_x)),
            ("gapYMm", millimetres(self.gap_y)),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The upper left corner of a label, in nanometres from that of the sheet; row and column from 0.
    pub(crate) fn corner(&self, row: u32, column: u32) -> (u64, u64) {
        let at = |margin: u32, label: u32, gap: u32, nth: u32| {
            u64::from(margin) + u64::from(nth) * (u64::from(label) + u64::from(gap))
        };
        (
            at(self.left, self.label_width, self.gap_x, column),
            at(self.top, self.label_height, self.gap_y, row),
        )
    }
}

/// Labels along one side of a sheet.
struct Axis {
    count: u32,
    label: u32,
    gap: u32,
    margin: Option<u32>,
    sheet: Option<u32>,
}

impl Axis {
    /// Length of the sheet and margin; without a margin the labels are centred, without a sheet it is one label.
    fn fit(&self, faults: &mut Faults, what: &str, sheet_name: &str) -> Option<(u32, u32)> {
        let count = u64::from(self.count);
        let labels = count * u64::from(self.label) + count.saturating_sub(1) * u64::from(self.gap);
        let margin = u64::from(self.margin.unwrap_or(0));
        let sheet = self.sheet.map_or(labels + margin, u64::from);
        if labels + margin > sheet {
            let needed = (labels + margin) as f64 / 1e6;
            faults.add(format!("{what} do not fit: they need {needed} mm, more than layout.{sheet_name}"));
            return None;
        }
        let margin = self.margin.unwrap_or(((sheet - labels) / 2) as u32);
        let sheet = u32::try_from(sheet).ok().filter(|sheet| SHEET_RANGE.contains(sheet));
        if sheet.is_none() {
            let most = f64::from(*SHEET_RANGE.end()) / 1e6;
            faults.add(format!("layout.{sheet_name} would be more than {most} mm with label and margin"));
        }
        Some((sheet?, margin))
    }
}
