//! Names of files: a template, and what makes a name safe and unique.

use crate::PrintItem;

/// The longest stem of a name: file systems take 255 bytes, of which suffix and index need some.
const MAX_STEM: usize = 150;
/// Longest template in bytes.
const MAX_TEMPLATE: usize = 120;
/// Digits of an index: those of the largest order.
const INDEX_DIGITS: usize = 7;

/// A placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Index,
    Serial,
    ShortId,
    Gtin,
}

impl Part {
    const ALL: [(&'static str, Self); 4] =
        [("index", Self::Index), ("serial", Self::Serial), ("shortId", Self::ShortId), ("gtin", Self::Gtin)];
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Part(Part),
}

/// A template such as `{serial}_{shortId}`, whose suffix is that of the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Naming {
    text: String,
    pieces: Vec<Piece>,
    /// The short id alone tells two names apart; otherwise the index is added.
    is_unique: bool,
}

impl Default for Naming {
    /// `{index}_{shortId}`.
    fn default() -> Self {
        let pieces = vec![Piece::Part(Part::Index), Piece::Text("_".to_owned()), Piece::Part(Part::ShortId)];
        Self { text: "{index}_{shortId}".to_owned(), pieces, is_unique: true }
    }
}

impl Naming {
    /// Reads a template; the suffix of the format may be given or not.
    pub(super) fn parse(template: &str, suffix: &str) -> Result<Self, Vec<String>> {
        let stem = template.strip_suffix(&format!(".{suffix}")).unwrap_or(template);
        let mut problems = Vec::new();
        if template.len() > MAX_TEMPLATE {
            return Err(vec![format!("must have at most {MAX_TEMPLATE} bytes")]);
        }
        let pieces = pieces(stem, &mut problems);
        let bad: Vec<char> = pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Text(text) => Some(text),
                Piece::Part(_) => None,
            })
            .flat_map(|text| text.chars())
            .filter(|&letter| !is_safe(letter))
            .collect();
        if !bad.is_empty() {
            let bad: String = bad.into_iter().collect();
            problems.push(format!(
                "may have letters of ASCII, digits and . _ - beside placeholders, not {bad:?}"
            ));
        }
        if !pieces.iter().any(|piece| matches!(piece, Piece::Part(_))) {
            problems.push("has no placeholder: {index}, {serial}, {shortId} or {gtin}".to_owned());
        }
        if stem.starts_with(['.', '-']) || stem.ends_with('.') || stem.contains("..") {
            problems.push(
                "must not begin with . or -, end with . before the suffix or have two points".to_owned(),
            );
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let is_unique = is_unique(&pieces);
        Ok(Self { text: stem.to_owned(), pieces, is_unique })
    }

    /// The template without its suffix.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.pieces.contains(&Piece::Part(part))
    }

    /// The name of a code's file. Names of one order differ where its short ids do.
    pub(super) fn name_of(&self, index: u64, item: &PrintItem, suffix: &str) -> String {
        let number = format!("{:0INDEX_DIGITS$}", index + 1);
        let mut stem = String::new();
        for piece in &self.pieces {
            let value: &str = match piece {
                Piece::Text(text) => text,
                Piece::Part(Part::Index) => &number,
                Piece::Part(Part::Serial) => item.serial.as_deref().unwrap_or_default(),
                Piece::Part(Part::ShortId) => &item.short_id,
                Piece::Part(Part::Gtin) => item.gtin.as_deref().unwrap_or_default(),
            };
            stem.extend(value.chars().map(|letter| if is_safe(letter) { letter } else { '_' }));
        }
        let mut with_index = !self.is_unique && !self.has(Part::Index);
        // File systems that ignore case would take two such short ids for one; those with signs could run into
        // what is beside them.
        let plain = |letter: u8| letter.is_ascii_uppercase() || letter.is_ascii_digit();
        with_index |= !self.has(Part::Index) && !item.short_id.bytes().all(plain);
        if stem.len() > MAX_STEM {
            stem.truncate(MAX_STEM);
            with_index = true;
        }
        if is_reserved(&stem) || stem.starts_with(['.', '-']) {
            stem.insert(0, '_');
        }
        while stem.ends_with('.') {
            stem.pop();
        }
        match with_index {
            true => format!("{stem}_{number}.{suffix}"),
            false => format!("{stem}.{suffix}"),
        }
    }
}

fn pieces(stem: &str, problems: &mut Vec<String>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = stem;
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let Some((name, after)) = after.split_once('}') else {
            problems.push("has a { without }".to_owned());
            return pieces;
        };
        match Part::ALL.iter().find(|(known, _)| *known == name) {
            Some(&(_, part)) => pieces.push(Piece::Part(part)),
            None => problems.push(format!(
                "has the placeholder {{{name}}}; known are {{index}}, {{serial}}, {{shortId}}, {{gtin}}"
            )),
        }
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    pieces
}

/// Whether two names differ where their short ids of `[A-Z0-9]` do.
///
/// So it is where the short id is the first or last part and a sign keeps it apart from its neighbour: whatever the
/// other parts are, it can be read out of the name again.
fn is_unique(pieces: &[Piece]) -> bool {
    let separates = |text: Option<char>| text.is_some_and(|letter| !letter.is_ascii_alphanumeric());
    let id = Piece::Part(Part::ShortId);
    let (first, last) = (pieces.first(), pieces.last());
    if first == Some(&id) {
        return match pieces.get(1) {
            None => true,
            Some(Piece::Text(text)) => separates(text.chars().next()),
            Some(Piece::Part(_)) => false,
        };
    }
    if last == Some(&id) {
        return match pieces.len().checked_sub(2).and_then(|at| pieces.get(at)) {
            Some(Piece::Text(text)) => separates(text.chars().next_back()),
            Some(Piece::Part(_)) | None => false,
        };
    }
    false
}

/// Whether every file system takes a character within a name.
fn is_safe(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

/// Whether Windows takes a name for a device, whatever its suffix.
fn is_reserved(stem: &str) -> bool {
    let name = stem.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let port = name.strip_prefix("COM").or(name.strip_prefix("LPT"));
    matches!(name.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || port.is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(serial: &str, short_id: &str) -> PrintItem {
        let url = format!("HTTPS://TN.GG/{short_id}");
        PrintItem { serial: Some(serial.to_owned()), short_id: short_id.to_owned(), url, gtin: None }
    }

    #[track_caller]
    fn check(template: &str, serial: &str, short_id: &str, expected: &str, why: &str) {
        let naming = Naming::parse(template, "pdf").unwrap_or_else(|faults| panic!("{template}: {faults:?}"));
        assert_eq!(naming.name_of(4, &item(serial, short_id), "pdf"), expected, "{why}");
        let again = Naming::parse(naming.as_str(), "pdf");
        assert_eq!(again.as_ref(), Ok(&naming), "what is written out is read again");
    }

    #[test]
    fn names_are_safe_and_unique() {
        check("{serial}_{shortId}.pdf", "A1", "K7Q2", "A1_K7Q2.pdf", "as it is given");
        check("{serial}_{shortId}", "A1", "K7Q2", "A1_K7Q2.pdf", "the suffix may be left out");
        check("{index}", "A1", "K7Q2", "0000005.pdf", "counted from 1");
        check("{serial}", "A1", "K7Q2", "A1_0000005.pdf", "serials may repeat");
        check("{serial}{shortId}", "A1", "K7Q2", "A1K7Q2_0000005.pdf", "A + 1K and A1 + K would be one name");
        check("{shortId}-x", "", "K7Q2", "K7Q2-x.pdf", "first and kept apart");
        check("{serial}_{shortId}", "A1", "k7Q2", "A1_k7Q2_0000005.pdf", "k7 and K7 are one on some disks");
        check("{serial}_{shortId}", "../a b/ü", "K7Q2", "_.._a_b___K7Q2.pdf", "no separator, no climbing");
        check("{serial}_{index}", "-r", "K7Q2", "_-r_0000005.pdf", "not an option");
        check("{serial}.{index}", "nul", "K7Q2", "_nul.0000005.pdf", "a device on Windows");
        let long = "X".repeat(200);
        let cut = format!("{}_0000005.pdf", "X".repeat(150));
        check("{serial}_{shortId}", &long, "K7Q2", &cut, "names of 255 bytes are the most");
    }

    #[test]
    fn a_bad_template_is_refused() {
        for template in [
            "",
            "fixed",
            "{nothing}",
            "{index",
            "a/{index}",
            "a\\{index}",
            "{index}\0",
            "../{index}",
            ".{index}",
            "-{index}",
            "{index}.",
            "ä{index}",
            "{index}:x",
            "{}",
        ] {
            assert!(Naming::parse(template, "pdf").is_err(), "{template:?}");
        }
        assert!(Naming::parse(&format!("{{index}}{}", "a".repeat(120)), "pdf").is_err());
    }
}
