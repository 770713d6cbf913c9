//! Reading of members, with every fault kept.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// An object of the request, with the path of its members in faults.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'a> {
    /// Empty, or with a point at the end: `layout.`.
    pub(super) path: &'static str,
    pub(super) members: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// A member that is there; `null` means absent.
    fn find(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// Parameters of images that no order has.
const SCREEN: [&str; 4] = ["color", "background", "shape", "logo"];

/// The faults found so far.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<String>);

impl Faults {
    pub(super) fn add(&mut self, fault: String) {
        self.0.push(fault);
    }

    /// Names every member beside the known ones.
    pub(super) fn unknown(&mut self, object: Object<'_>, known: &[&str]) {
        for name in object.members.keys().filter(|name| !known.contains(&name.as_str())) {
            if SCREEN.contains(&name.as_str()) {
                let why = "is for images on screens alone: what is printed stays black on white";
                self.add(format!("{}{name} {why}", object.path));
                continue;
            }
            let shown: String = name.chars().take(64).collect();
            self.add(format!("{}{shown} is not known; known are {}", object.path, known.join(", ")));
        }
    }

    /// A member that is an object.
    pub(super) fn object<'a>(
        &mut self,
        object: Object<'a>,
        name: &str,
        path: &'static str,
    ) -> Option<Object<'a>> {
        match object.find(name)? {
            Value::Object(members) => Some(Object { path, members }),
            _ => {
                self.add(format!("{}{name} must be an object", object.path));
                None
            }
        }
    }

    /// A member that is a text.
    pub(super) fn text<'a>(&mut self, object: Object<'a>, name: &str) -> Option<&'a str> {
        let text = object.find(name)?.as_str();
        if text.is_none() {
            self.add(format!("{}{name} must be a text", object.path));
        }
        text
    }

    /// A member that is one of some names.
    pub(super) fn one_of<T: Copy>(
        &mut self,
        object: Object<'_>,
        name: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let text = object.find(name)?.as_str();
        let found = choices.iter().find(|(known, _)| Some(*known) == text).map(|&(_, value)| value);
        if found.is_none() {
            let known: Vec<&str> = choices.iter().map(|&(known, _)| known).collect();
            self.add(format!("{}{name} must be one of {}", object.path, known.join(", ")));
        }
        found
    }

    /// A member that is `true` or `false`.
    pub(super) fn flag(&mut self, object: Object<'_>, name: &str) -> Option<bool> {
        let flag = object.find(name)?.as_bool();
        if flag.is_none() {
            self.add(format!("{}{name} must be true or false", object.path));
        }
        flag
    }

    /// A member that is a whole number of a range.
    pub(super) fn whole(
        &mut self,
        object: Object<'_>,
        name: &str,
        range: &RangeInclusive<u32>,
    ) -> Option<u32> {
        let number = object.find(name)?.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = (range.start(), range.end());
            self.add(format!("{}{name} must be a whole number from {low} to {high}", object.path));
        }
        number
    }

    /// A member in millimetres, as nanometres.
    pub(super) fn length(
        &mut self,
        object: Object<'_>,
        name: &str,
        range: &RangeInclusive<u32>,
    ) -> Option<u32> {
        // Rounded to nanometres; a cast of what is beyond the range saturates.
        let nanometres = object.find(name)?.as_f64().map(|mm| (mm * 1e6).round());
        let length =
            nanometres.filter(|nm| *nm >= f64::from(*range.start()) && *nm <= f64::from(*range.end()));
        if length.is_none() {
            let (low, high) = (f64::from(*range.start()) / 1e6, f64::from(*range.end()) / 1e6);
            self.add(format!("{}{name} must be millimetres from {low} to {high}", object.path));
        }
        length.map(|nm| nm as u32)
    }
}

/// Nanometres as a number of millimetres, such that `Faults::length` gives the same again.
pub(super) fn millimetres(nm: u32) -> Value {
    Value::from(f64::from(nm) / 1e6)
}
