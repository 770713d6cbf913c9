//! Names of the files of an order, of which no two may be the same.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::{PrintItem, PrintSpec};

/// The names that the codes of an order have so far, as hashes: some 30 bytes a code.
#[derive(Debug)]
pub struct Names<'a> {
    spec: &'a PrintSpec,
    /// The first code with each name.
    first: HashMap<u64, u64>,
}

impl<'a> Names<'a> {
    /// Of no code.
    #[must_use]
    pub fn new(spec: &'a PrintSpec) -> Self {
        Self { spec, first: HashMap::new() }
    }

    /// Adds a code; a sentence where an earlier one has the same name. `index` counts from 0.
    ///
    /// Always `None` for formats in which a code is no file of its own.
    pub fn add(&mut self, index: u64, item: &PrintItem) -> Option<String> {
        if !self.spec.format().is_zip() {
            return None;
        }
        let name = self.spec.name_of(index, item);
        match self.first.entry(hash(&name)) {
            Entry::Vacant(place) => {
                place.insert(index);
                None
            }
            Entry::Occupied(first) => Some(format!(
                "naming: the codes {} and {} would both be the file {name}; put {{index}} into it.",
                first.get() + 1,
                index + 1
            )),
        }
    }
}

/// A name without case, as some file systems compare names.
pub(crate) fn hash(name: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    name.to_ascii_lowercase().hash(&mut hash);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn codes_of_one_name_are_named_together() {
        let spec = |members: serde_json::Value| PrintSpec::parse(members.as_object().unwrap()).unwrap();
        let item = |short_id: &str| PrintItem {
            serial: None,
            short_id: short_id.to_owned(),
            url: format!("HTTPS://TN.GG/{short_id}"),
            gtin: None,
        };
        let items = [item("A1"), item("B2"), item("A1")];
        for (members, expected) in [
            (
                json!({"format": "png", "naming": "{shortId}"}),
                Some("the codes 1 and 3 would both be the file A1.png"),
            ),
            (json!({"format": "png", "naming": "{shortId}_{index}"}), None),
            (json!({"format": "zpl"}), None),
        ] {
            let spec = spec(members);
            let mut names = Names::new(&spec);
            let found: Vec<String> =
                (0..).zip(&items).filter_map(|(index, item)| names.add(index, item)).collect();
            assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
            if let (Some(found), Some(part)) = (found.first(), expected) {
                assert!(found.contains(part), "{found}");
            }
        }
    }
}
