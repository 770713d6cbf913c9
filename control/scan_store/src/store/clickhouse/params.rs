//! Parameters of statements: named in the text as `{name:Type}`, sent beside it.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use shared::{id::AccountId, time::UnixMillis};

use super::super::filter::Bind;
use crate::domain::month::Month;

/// The values of a statement's parameters.
#[derive(Debug, Clone, Default)]
pub(super) struct Params {
    query: String,
}

impl Params {
    /// The account and a month, which most statements begin with.
    pub(super) fn of(account: AccountId, month: Month) -> Self {
        let mut params = Self::default();
        params.text("account", account.as_str()).whole("month", i64::from(month.number()));
        params
    }

    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.push(name, &escape(value))
    }

    pub(super) fn whole(&mut self, name: &str, value: i64) -> &mut Self {
        self.push(name, &value.to_string())
    }

    pub(super) fn time(&mut self, name: &str, value: UnixMillis) -> &mut Self {
        self.whole(name, value.0)
    }

    /// Whole numbers, of the type `Array(Int64)`.
    pub(super) fn wholes(&mut self, name: &str, values: impl Iterator<Item = i64>) -> &mut Self {
        let values: Vec<String> = values.map(|value| value.to_string()).collect();
        self.push(name, &format!("[{}]", values.join(",")))
    }

    /// Bytes in hexadecimal, of the type `Array(String)`.
    pub(super) fn bytes<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a [u8]>) -> &mut Self {
        let values: Vec<String> = values.map(|value| format!("'{}'", hex(value))).collect();
        self.push(name, &format!("[{}]", values.join(",")))
    }

    /// Ids, which have no signs, of the type `Array(String)`.
    pub(super) fn names<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) -> &mut Self {
        let values: Vec<String> = values.map(|value| format!("'{value}'")).collect();
        self.push(name, &format!("[{}]", values.join(",")))
    }

    /// The values of conditions, under the names that these have for them: `p1` and so on.
    pub(super) fn binds(&mut self, binds: &[Bind]) -> &mut Self {
        for (index, bind) in binds.iter().enumerate() {
            let name = format!("p{}", index + 1);
            match bind {
                Bind::Text(text) => self.text(&name, text),
                Bind::Whole(number) => self.whole(&name, *number),
                Bind::Bytes(bytes) => self.text(&name, &hex(bytes)),
            };
        }
        self
    }

    /// The part of a URL that holds them all.
    pub(super) fn query(&self) -> String {
        self.query.clone()
    }

    fn push(&mut self, name: &str, value: &str) -> &mut Self {
        self.query.push_str("&param_");
        self.query.push_str(name);
        self.query.push('=');
        self.query.push_str(&encode(value));
        self
    }
}

/// A text in a URL.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Bytes as digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text as ClickHouse reads a parameter: as one column of a line that tabs separate.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\0' => escaped.push_str("\\0"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_parameter() {
        let mut params = Params::default();
        let bind = Bind::Text("a\\'&param_x=1\t\n\r\0é".to_owned());
        params.binds(&[bind, Bind::Whole(-7), Bind::Bytes(vec![1, 255])]);
        params.wholes("w", [1, -2].into_iter()).bytes("b", [&[0, 255][..], b""].into_iter());
        assert_eq!(
            params.query(),
            "&param_p1=a%5C%5C%27%26param%5Fx%3D1%5Ct%5Cn%5Cr%5C0%C3%A9&param_p2=%2D7&param_p3=01ff\
             &param_w=%5B1%2C%2D2%5D&param_b=%5B%2700ff%27%2C%27%27%5D"
        );
    }
}
