//! Compiles rules: conditions are parsed once when a set arrives, and only compared for each request.

use super::{
    AccountRules, Facts, Field, MAX_CONDITIONS, MAX_NAME, MAX_RULES, Owner, Rule, program::Program,
    reading::Reading,
};
use crate::{
    filter::{Expr, Term, Value},
    id::ApplicationId,
    target::Target,
};

/// Why a rule is invalid: the member, and the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{member}{separator}{what}", separator = if what.starts_with("must") { " " } else { ": " })]
pub struct InvalidRule {
    /// The member of the rule: `name`, `match` or `redirectUrl`.
    pub member: &'static str,
    /// The fault, without a full stop.
    pub what: String,
}

/// The condition of a rule, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Matcher(Expr<Field>);

impl Matcher {
    /// Reads a condition.
    ///
    /// # Errors
    /// It is not in the filter language; or each field that rules do not have, and each that it compares wrongly.
    pub fn parse(text: &str) -> Result<Self, Vec<InvalidRule>> {
        let invalid = |what: String| InvalidRule { member: "match", what };
        let expr: Expr = text.parse().map_err(|fault| vec![invalid(format!("{fault}"))])?;
        let mut faults: Vec<InvalidRule> = Vec::new();
        for fault in expr.terms().into_iter().filter_map(|term| understand(term).err()).map(invalid) {
            // A field is often compared with several values.
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        expr.try_map(&mut |term: Term| understand(&term)).map(Self).map_err(|fault| vec![invalid(fault)])
    }

    /// How many conditions it has.
    #[must_use]
    pub fn conditions(&self) -> usize {
        self.0.terms().len()
    }

    /// Whether it holds; asks for no more facts than it needs.
    #[cfg(test)]
    pub(super) fn holds(&self, facts: &impl Facts) -> bool {
        Program::new([&self.0].into_iter()).first(&Reading::new(facts)).is_some()
    }
}

/// A term with the field that it names, and its value in the form in which facts come.
///
/// # Errors
/// The field is unknown, or is not compared in this way; as the end of a sentence.
pub(super) fn understand(term: &Term) -> Result<Term<Field>, String> {
    let field = Field::parse(&term.field)?;
    if !field.takes(term.operator) {
        return Err(format!("the field {} cannot be compared in this way", term.field));
    }
    let value = field.read(term.operator, &term.value);
    let value = value.map_err(|fault| format!("the field {} {fault}", term.field))?;
    Ok(Term { field, operator: term.operator, value: Value::new(value) })
}

/// The compiled rules of an account; `T` is the holder's data for each rule.
#[derive(Debug)]
pub struct Compiled<T>(Vec<List<T>>);

#[derive(Debug)]
struct List<T> {
    owner: Option<Owner>,
    conditions: Program,
    /// The data of each rule.
    made: Vec<T>,
}

/// The rule that fired.
#[derive(Debug, PartialEq, Eq)]
pub struct Hit<'a, T> {
    /// The application of its list; `None` for the account's own.
    pub application: Option<ApplicationId>,
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its data.
    pub made: &'a T,
}

impl<T> Compiled<T> {
    /// Compiles every rule; `make` builds the data of each, from its index in its list and its target.
    ///
    /// # Errors
    /// The first invalid rule, with its index; or a list that is too long.
    pub fn new(
        rules: &AccountRules,
        mut make: impl FnMut(Option<&Owner>, usize, &Rule, Option<Target>) -> Result<T, String>,
    ) -> Result<Self, String> {
        let mut lists = Vec::with_capacity(rules.lists.len());
        for list in &rules.lists {
            if list.rules.len() > MAX_RULES {
                return Err(format!("rules: at most {MAX_RULES}, not {}", list.rules.len()));
            }
            let (mut matchers, mut made) = (Vec::new(), Vec::with_capacity(list.rules.len()));
            for (index, rule) in list.rules.iter().enumerate() {
                let place = |fault: String| format!("rules[{index}].{fault}");
                let (matcher, target) = rule.check().map_err(|faults| {
                    place(faults.into_iter().next().map(|fault| fault.to_string()).unwrap_or_default())
                })?;
                made.push(make(list.owner.as_ref(), index, rule, target).map_err(place)?);
                matchers.push(matcher);
            }
            let conditions: usize = matchers.iter().map(Matcher::conditions).sum();
            if conditions > MAX_CONDITIONS {
                return Err(format!("rules: at most {MAX_CONDITIONS} conditions, not {conditions}"));
            }
            let conditions = Program::new(matchers.iter().map(|matcher| &matcher.0));
            lists.push(List { owner: list.owner, conditions, made });
        }
        Ok(Self(lists))
    }

    /// The first rule that holds for a scan of a redirection.
    #[must_use]
    pub fn first(&self, facts: &impl Facts) -> Option<Hit<'_, T>> {
        let is_for = |owner: &Owner| owner.is_of(facts.projects());
        let lists = self.0.iter().filter(|list| list.owner.as_ref().is_none_or(is_for));
        let request = Reading::new(facts);
        for list in lists {
            if let Some(index) = list.conditions.first(&request)
                && let Some(made) = list.made.get(index)
            {
                return Some(Hit { application: list.owner.map(|owner| owner.application), index, made });
            }
        }
        None
    }
}

impl Rule {
    /// Reads the rule: its condition, and its target if it has one.
    ///
    /// # Errors
    /// Every fault found.
    pub fn check(&self) -> Result<(Matcher, Option<Target>), Vec<InvalidRule>> {
        let mut faults = Vec::new();
        if self.name.as_ref().is_some_and(|name| name.is_empty() || name.len() > MAX_NAME) {
            faults.push(InvalidRule { member: "name", what: format!("must have 1 to {MAX_NAME} bytes") });
        }
        let matcher = Matcher::parse(&self.condition).map_err(|found| faults.extend(found)).ok();
        let target = self.redirect_url.as_deref().map(|url| {
            let invalid = |fault| InvalidRule { member: "redirectUrl", what: format!("{fault}") };
            Target::parse(url).map_err(|fault| faults.push(invalid(fault))).ok()
        });
        match matcher {
            Some(matcher) if faults.is_empty() => Ok((matcher, target.flatten())),
            Some(_) | None => Err(faults),
        }
    }
}
