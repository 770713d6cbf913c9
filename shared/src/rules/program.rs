//! Compiled rules: all tests of a list in one block of memory, each with the index of the next test for either result.
//!
//! Tests are evaluated in the order of the text and only as far as needed, as in the filter itself. A contiguous block
//! avoids following pointers while a redirect waits.

use ipnet::IpNet;
use jiff::tz::TimeZone;

use super::{Facts, Field, Text, field::read_network, reading::Reading, zone};
use crate::{
    filter::{Expr, Operator, Term},
    time::UnixMillis,
};

/// Milliseconds of an hour and of a day.
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The conditions of a list of rules.
#[derive(Debug)]
pub(super) struct Program(Box<[Test]>);

#[derive(Debug)]
struct Test {
    check: Check,
    then: Next,
    otherwise: Next,
}

/// Where to continue: there are at most 400 tests and 100 rules.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// The test at this place.
    Test(u16),
    /// The rule at this place holds.
    Hit(u16),
    /// No rule holds.
    End,
}

#[derive(Debug)]
enum Check {
    Text(Text, Shape, Literal),
    Project(Shape, Literal),
    Language(Shape, Literal),
    Languages(Shape, Literal),
    /// Of the language in lower case.
    LanguageQuality(Box<Literal>, Operator, f64),
    RefererHost(Shape, Literal),
    Query(Box<str>, Shape, Box<Literal>),
    /// `None` is in no network; compilation checked that there is one.
    Network(Option<IpNet>),
    /// As with networks.
    AsNumber(Option<u32>),
    Percentage(Box<str>, Operator, f64),
    Timestamp(Operator, f64),
    Hour(Option<TimeZone>, Operator, f64),
    Weekday(Option<TimeZone>, Operator, f64),
}

/// How a text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Whole,
    Prefix,
}

/// A text to compare with: names of countries, languages and programs fit in place.
#[derive(Debug)]
enum Literal {
    Short(u8, [u8; Literal::IN_PLACE]),
    Long(Box<[u8]>),
}

impl Program {
    /// The program of some conditions, the first of which is tried first.
    pub(super) fn new<'a>(conditions: impl ExactSizeIterator<Item = &'a Expr<Field>>) -> Self {
        let mut tests = Vec::new();
        let last = conditions.len().saturating_sub(1);
        for (rule, condition) in conditions.enumerate() {
            let behind = tests.len() + condition.terms().len();
            let otherwise = if rule == last { Next::End } else { Next::test(behind) };
            add(&mut tests, condition, Next::Hit(narrow(rule)), otherwise);
        }
        Self(tests.into())
    }

    /// The place of the first condition that holds.
    pub(super) fn first(&self, request: &Reading<'_, impl Facts>) -> Option<usize> {
        let mut test = self.0.first()?;
        loop {
            match if test.check.holds(request) { test.then } else { test.otherwise } {
                Next::Test(at) => test = self.0.get(usize::from(at))?,
                Next::Hit(rule) => return Some(usize::from(rule)),
                Next::End => return None,
            }
        }
    }
}

impl Next {
    fn test(at: usize) -> Self {
        Self::Test(narrow(at))
    }
}

/// Whether a request meets one condition.
pub(super) fn holds(term: &Term<Field>, request: &Reading<'_, impl Facts>) -> bool {
    Check::new(term).holds(request)
}

/// A count within the limits of a list; one beyond would lead behind the last test.
fn narrow(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Appends the tests of a condition, which takes as many places as it has terms.
fn add(tests: &mut Vec<Test>, condition: &Expr<Field>, then: Next, otherwise: Next) {
    match condition {
        Expr::Term(term) => tests.push(Test { check: Check::new(term), then, otherwise }),
        Expr::Not(one) => add(tests, one, otherwise, then),
        Expr::And(branches) | Expr::Or(branches) => {
            let is_and = matches!(condition, Expr::And(_));
            for (index, branch) in branches.iter().enumerate() {
                let next = Next::test(tests.len() + branch.terms().len());
                match (index + 1 == branches.len(), is_and) {
                    (true, _) => add(tests, branch, then, otherwise),
                    (false, true) => add(tests, branch, next, otherwise),
                    (false, false) => add(tests, branch, then, next),
                }
            }
        }
    }
}

impl Check {
    fn new(term: &Term<Field>) -> Self {
        let shape = if term.operator == Operator::Prefix { Shape::Prefix } else { Shape::Whole };
        let literal = || Literal::new(term.value.as_str());
        // Compilation checked that it is a number.
        let number = term.value.number().unwrap_or(f64::NAN);
        match &term.field {
            Field::Text(text) => Self::Text(*text, shape, literal()),
            Field::Project => Self::Project(shape, literal()),
            Field::Language => Self::Language(shape, literal()),
            Field::Languages => Self::Languages(shape, literal()),
            Field::LanguageQuality(tag) => {
                Self::LanguageQuality(Box::new(Literal::new(tag)), term.operator, number)
            }
            Field::RefererHost => Self::RefererHost(shape, literal()),
            Field::Query(name) => Self::Query(name.clone(), shape, Box::new(literal())),
            Field::Network => Self::Network(read_network(term.value.as_str())),
            Field::AsNumber => Self::AsNumber(term.value.as_str().parse().ok()),
            Field::Percentage(division) => Self::Percentage(division.clone(), term.operator, number),
            Field::Timestamp => Self::Timestamp(term.operator, number),
            Field::Hour(zone) => Self::Hour(zone.clone(), term.operator, number),
            Field::Weekday(zone) => Self::Weekday(zone.clone(), term.operator, number),
        }
    }

    fn holds(&self, request: &Reading<'_, impl Facts>) -> bool {
        let facts = request.facts();
        match self {
            Self::Text(text, shape, literal) => {
                facts.text(*text).is_some_and(|fact| literal.admits(*shape, fact))
            }
            Self::Project(shape, literal) => {
                facts.projects().iter().any(|id| literal.admits(*shape, id.as_str()))
            }
            Self::Language(shape, literal) => facts.language().is_some_and(|tag| literal.speaks(*shape, tag)),
            Self::Languages(shape, literal) => {
                let mut accepted = request.languages().iter();
                accepted.any(|(tag, quality)| *quality > 0.0 && literal.speaks(*shape, tag))
            }
            Self::LanguageQuality(tag, operator, value) => {
                let accepted = request.languages().iter();
                let mine = accepted.filter(|(accepted, _)| tag.speaks(Shape::Whole, accepted));
                let best = mine.map(|(_, quality)| *quality).max_by(f64::total_cmp);
                best.is_some_and(|quality| compare(quality, *operator, *value))
            }
            Self::RefererHost(shape, literal) => {
                request.referer_host().is_some_and(|host| literal.hosts(*shape, host))
            }
            Self::Query(name, shape, literal) => {
                request.query_has(name, |value| literal.admits(*shape, value))
            }
            Self::Network(network) => facts
                .address()
                .zip(*network)
                .is_some_and(|(address, network)| network.contains(&address.to_canonical())),
            Self::AsNumber(number) => number.is_some() && facts.as_number() == *number,
            Self::Percentage(division, operator, value) => facts
                .place(division)
                .is_some_and(|place| compare(f64::from(place) / 100.0, *operator, *value)),
            Self::Timestamp(operator, value) => compare_whole(facts.time().0, *operator, *value),
            Self::Hour(zone, operator, value) => {
                let at = facts.time();
                let there = zone.as_ref().map_or_else(|| Some(hour(at)), |zone| zone::hour(zone, at));
                there.is_some_and(|hour| compare_whole(hour, *operator, *value))
            }
            Self::Weekday(zone, operator, value) => {
                let at = facts.time();
                let there = zone.as_ref().map_or_else(|| Some(weekday(at)), |zone| zone::weekday(zone, at));
                there.is_some_and(|day| compare_whole(day, *operator, *value))
            }
        }
    }
}

fn compare_whole(fact: i64, operator: Operator, value: f64) -> bool {
    // Milliseconds of this age are exact as a float up to the year 287,396.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
    let fact = fact as f64;
    compare(fact, operator, value)
}

fn compare(fact: f64, operator: Operator, value: f64) -> bool {
    match operator {
        #[expect(clippy::float_cmp, reason = "whole numbers, or decimals that were read alike")]
        Operator::Equal => fact == value,
        Operator::Less => fact < value,
        Operator::AtMost => fact <= value,
        Operator::Greater => fact > value,
        Operator::AtLeast => fact >= value,
        // Refused when the rule is read.
        Operator::Prefix => false,
    }
}

/// Hour of the day in UTC, 0 to 23.
#[must_use]
#[inline]
pub const fn hour(at: UnixMillis) -> i64 {
    at.0.rem_euclid(DAY_MS) / HOUR_MS
}

/// Day of the week in UTC: 1 on Mondays to 7 on Sundays; the first day of 1970 was a Thursday.
#[must_use]
#[inline]
pub const fn weekday(at: UnixMillis) -> i64 {
    (at.0.div_euclid(DAY_MS) + 3).rem_euclid(7) + 1
}

impl Literal {
    const IN_PLACE: usize = 22;

    fn new(text: &str) -> Self {
        let mut bytes = [0; Self::IN_PLACE];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(text.as_bytes());
                Self::Short(length, bytes)
            }
            _ => Self::Long(text.as_bytes().into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(length, bytes) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }

    fn admits(&self, shape: Shape, fact: &str) -> bool {
        let (literal, fact) = (self.bytes(), fact.as_bytes());
        match shape {
            // Most texts differ in their first byte, which spares the call that compares the rest.
            Shape::Whole => fact.len() == literal.len() && fact.first() == literal.first() && fact == literal,
            Shape::Prefix => fact.starts_with(literal),
        }
    }

    /// Whether a language tag meets a literal in lower case; `en` is met by `en-GB`.
    fn speaks(&self, shape: Shape, tag: &str) -> bool {
        let literal = self.bytes();
        let Some((head, rest)) = tag.as_bytes().split_at_checked(literal.len()) else { return false };
        head.eq_ignore_ascii_case(literal)
            && match shape {
                Shape::Prefix => true,
                Shape::Whole => !literal.is_empty() && (rest.is_empty() || rest.starts_with(b"-")),
            }
    }

    /// Whether a host meets a literal in lower case; `example.com` is met by `www.example.com`.
    fn hosts(&self, shape: Shape, host: &str) -> bool {
        let (literal, host) = (self.bytes(), host.as_bytes());
        if shape == Shape::Prefix {
            return host.get(..literal.len()).is_some_and(|start| start.eq_ignore_ascii_case(literal));
        }
        let Some(above) = host.len().checked_sub(literal.len()) else { return false };
        let (head, tail) = host.split_at(above);
        tail.eq_ignore_ascii_case(literal) && (head.is_empty() || head.ends_with(b"."))
    }
}
