//! Reads the members of a JSON object and collects every fault, each naming its member.

use serde_json::{Map, Value};

/// A reader over one object; `null` counts as absent, unknown members are ignored.
#[derive(Debug)]
pub struct Members<'a> {
    object: &'a Map<String, Value>,
    /// What stands before the name of a member in a fault.
    prefix: String,
    faults: Vec<String>,
}

impl<'a> Members<'a> {
    /// A reader over `value`.
    ///
    /// # Errors
    /// The value is not an object.
    pub fn of(value: &'a Value) -> Result<Self, Vec<String>> {
        match value {
            Value::Object(object) => Ok(Self { object, prefix: String::new(), faults: Vec::new() }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(vec!["The body must be a JSON object.".to_owned()])
            }
        }
    }

    /// A reader over an object inside of a body, which faults call by `name`: `location`, `[3]`.
    ///
    /// # Errors
    /// The value is not an object.
    pub fn within(value: &'a Value, name: &str) -> Result<Self, Vec<String>> {
        let object = value.as_object().ok_or_else(|| vec![format!("{name} must be an object.")])?;
        Ok(Self { object, prefix: format!("{name}."), faults: Vec::new() })
    }

    /// The names of all members, also of those that are `null`.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.object.keys().map(String::as_str)
    }

    /// The name by which faults call a member.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Adds a fault.
    pub fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    /// A member that is present and not `null`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Whether a member is there and `null`: a change removes it then, where leaving it out keeps it.
    #[must_use]
    pub fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        self.typed(name, "a string", Value::as_str)
    }

    /// A truth value.
    pub fn boolean(&mut self, name: &str) -> Option<bool> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// An array of texts.
    pub fn texts(&mut self, name: &str) -> Option<Vec<&'a str>> {
        self.typed(name, "an array of strings", |value| value.as_array()?.iter().map(Value::as_str).collect())
    }

    /// A text that parses; the parser's error becomes the fault.
    pub fn parsed<T: std::str::FromStr>(&mut self, name: &str) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        let text = self.text(name)?;
        text.parse().map_err(|error| self.fault(format!("{}: {error}.", self.path(name)))).ok()
    }

    /// A value of the type that `read` expects.
    pub fn typed<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.raw(name)?;
        let read = read(value);
        if read.is_none() {
            self.fault(format!("{} must be {expected}.", self.path(name)));
        }
        read
    }

    /// `value` if no fault was found.
    ///
    /// # Errors
    /// Every fault found.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Vec<String>> {
        match value {
            Some(value) if self.faults.is_empty() => Ok(value),
            Some(_) | None => Err(self.faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fault_is_named() {
        let value = json!({"a": 1, "b": "x", "c": null, "d": ["x", 1]});
        let mut members = Members::of(&value).unwrap();
        assert_eq!(members.text("a"), None);
        assert_eq!(members.boolean("b"), None);
        assert_eq!(members.text("c"), None);
        assert!(members.is_null("c") && !members.is_null("a") && !members.is_null("e"));
        assert_eq!(members.texts("d"), None);
        assert_eq!(members.text("e"), None);
        let faults = members.finish(Some(())).unwrap_err();
        assert_eq!(
            faults,
            ["a must be a string.", "b must be true or false.", "d must be an array of strings."]
        );
        assert!(Members::of(&json!([])).is_err());
    }
}
