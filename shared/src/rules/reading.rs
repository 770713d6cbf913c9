//! What conditions read of the headers and the query of one request: parsed once for all conditions of all lists, and only
//! what one of them asks for.
//!
//! An account may have tens of thousands of conditions in the lists of its applications. If each parsed the header again, one
//! request would keep an edge busy for seconds.

use std::{borrow::Cow, cell::OnceCell};

use super::{
    Facts,
    headers::{accepted_languages, parameters, referer_host},
};

/// Name and value of a parameter of the query, decoded.
type Parameter<'a> = (Cow<'a, str>, Cow<'a, str>);

/// A request while rules are tried for it.
pub(super) struct Reading<'a, F> {
    facts: &'a F,
    languages: OnceCell<Vec<(&'a str, f64)>>,
    parameters: OnceCell<Vec<Parameter<'a>>>,
    referer_host: OnceCell<Option<&'a str>>,
}

impl<'a, F: Facts> Reading<'a, F> {
    pub(super) fn new(facts: &'a F) -> Self {
        let (languages, parameters) = (OnceCell::new(), OnceCell::new());
        Self { facts, languages, parameters, referer_host: OnceCell::new() }
    }

    pub(super) fn facts(&self) -> &'a F {
        self.facts
    }

    /// The accepted languages with their qualities.
    pub(super) fn languages(&self) -> &[(&'a str, f64)] {
        let read = || accepted_languages(self.facts.accept_language().unwrap_or_default()).collect();
        self.languages.get_or_init(read)
    }

    /// Whether one of the values that the query gives to a parameter is admitted; names and values are decoded.
    pub(super) fn query_has(&self, name: &str, admits: impl Fn(&str) -> bool) -> bool {
        let read = || parameters(self.facts.query().unwrap_or_default()).collect();
        self.parameters.get_or_init(read).iter().any(|(key, value)| **key == *name && admits(value))
    }

    /// Host of the referer, as it was sent.
    pub(super) fn referer_host(&self) -> Option<&'a str> {
        *self.referer_host.get_or_init(|| self.facts.referer().and_then(referer_host))
    }
}
