//! Parser: recursive descent over the grammar in the parent module.

use std::str::FromStr;

use super::{Expr, InvalidFilter, MAX_BYTES, MAX_DEPTH, MAX_TERMS, Operator, Term, Value};

/// The signs that a backslash takes the meaning from.
pub(super) const SIGNS: [char; 11] = ['&', '|', '!', '>', '<', '=', '~', '(', ')', ',', '\\'];

impl FromStr for Expr {
    type Err = InvalidFilter;

    fn from_str(text: &str) -> Result<Self, InvalidFilter> {
        if text.len() > MAX_BYTES {
            let what = format!("expected at most {MAX_BYTES} bytes, not {},", text.len());
            return Err(InvalidFilter { position: 1, what });
        }
        read(text)
    }
}

/// Parses printed text, however long.
impl TryFrom<String> for Expr {
    type Error = InvalidFilter;

    fn try_from(text: String) -> Result<Self, InvalidFilter> {
        read(&text)
    }
}

fn read(text: &str) -> Result<Expr, InvalidFilter> {
    let mut parser = Parser { text, at: 0, terms: 0 };
    let expr = parser.alternatives(0)?;
    // Only an unpaired parenthesis ends a filter early.
    if parser.at < text.len() { Err(parser.fault("unpaired )")) } else { Ok(expr) }
}

struct Parser<'a> {
    text: &'a str,
    /// Byte offset of what comes next.
    at: usize,
    terms: usize,
}

impl Parser<'_> {
    fn alternatives(&mut self, depth: usize) -> Result<Expr, InvalidFilter> {
        let first = self.conjunction(depth)?;
        let mut branches = vec![first];
        while self.take('|') {
            branches.push(self.conjunction(depth)?);
        }
        Ok(one_or(branches, Expr::Or))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Expr, InvalidFilter> {
        let mut branches = vec![self.factor(depth)?];
        while self.take('&') {
            branches.push(self.factor(depth)?);
        }
        Ok(one_or(branches, Expr::And))
    }

    fn factor(&mut self, depth: usize) -> Result<Expr, InvalidFilter> {
        if depth > MAX_DEPTH {
            return Err(self.fault(format!("nested deeper than {MAX_DEPTH}")));
        }
        if self.take('!') {
            return Ok(Expr::Not(Box::new(self.factor(depth + 1)?)));
        }
        if self.take('(') {
            let inner = self.alternatives(depth + 1)?;
            return if self.take(')') { Ok(inner) } else { Err(self.fault("expected )")) };
        }
        self.term(depth)
    }

    fn term(&mut self, depth: usize) -> Result<Expr, InvalidFilter> {
        self.count_term()?;
        let field = self.field();
        if field.is_empty() {
            return Err(self.fault("expected the name of a field"));
        }
        let negated = self.take('!');
        let operator = self.operator()?;
        let value = Value::new(self.value()?);
        let mut branches = vec![Expr::Term(Term { field: field.clone(), operator, value })];
        while self.is_before_bare_value() && self.take('|') {
            self.count_term()?;
            let value = Value::new(self.value()?);
            branches.push(Expr::Term(Term { field: field.clone(), operator, value }));
        }
        // Printed, a negation stands around the term, and parentheses around several values: one level more each.
        if depth + usize::from(negated) + usize::from(branches.len() > 1) > MAX_DEPTH {
            return Err(self.fault(format!("nested deeper than {MAX_DEPTH}")));
        }
        let term = one_or(branches, Expr::Or);
        Ok(if negated { Expr::Not(Box::new(term)) } else { term })
    }

    fn count_term(&mut self) -> Result<(), InvalidFilter> {
        self.terms += 1;
        if self.terms > MAX_TERMS {
            Err(self.fault(format!("more than {MAX_TERMS} conditions")))
        } else {
            Ok(())
        }
    }

    /// Whether what comes next is `|` and another value of the same condition: a text without an operator.
    fn is_before_bare_value(&self) -> bool {
        let Some(rest) = self.rest().strip_prefix('|') else { return false };
        let mut parser = Parser { text: rest, at: 0, terms: 0 };
        while let Some((c, escaped)) = parser.peek() {
            match c {
                '&' | '|' | ')' if !escaped => break,
                '=' | '~' | '<' | '>' | '!' | '(' if !escaped => return false,
                _ => parser.skip(c, escaped),
            }
        }
        parser.at > 0
    }

    fn field(&mut self) -> String {
        let mut field = String::new();
        while let Some((c, escaped)) = self.peek() {
            if !escaped && SIGNS.contains(&c) && !matches!(c, ',' | '\\') {
                break;
            }
            self.skip(c, escaped);
            field.push(c);
        }
        field
    }

    fn operator(&mut self) -> Result<Operator, InvalidFilter> {
        let pairs = [
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("=", Operator::Equal),
            ("~", Operator::Prefix),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        for (sign, operator) in pairs {
            if self.rest().starts_with(sign) {
                self.at += sign.len();
                return Ok(operator);
            }
        }
        Err(self.fault("expected one of = ~ < > <= >="))
    }

    fn value(&mut self) -> Result<String, InvalidFilter> {
        let (mut value, mut open) = (String::new(), 0_usize);
        while let Some((c, escaped)) = self.peek() {
            match c {
                '&' | '|' if !escaped => break,
                ')' if !escaped && open == 0 => break,
                ')' if !escaped => open -= 1,
                '(' if !escaped => open += 1,
                _ => {}
            }
            self.skip(c, escaped);
            value.push(c);
        }
        if open > 0 { Err(self.fault("expected )")) } else { Ok(value) }
    }

    /// The next character, and whether a backslash takes its meaning from it.
    fn peek(&self) -> Option<(char, bool)> {
        let mut chars = self.rest().chars();
        let first = chars.next()?;
        match chars.next() {
            Some(second) if first == '\\' && SIGNS.contains(&second) => Some((second, true)),
            Some(_) | None => Some((first, false)),
        }
    }

    fn skip(&mut self, c: char, escaped: bool) {
        self.at += c.len_utf8() + usize::from(escaped);
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len_utf8();
        }
        found
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, what: impl Into<String>) -> InvalidFilter {
        let before = self.text.get(..self.at).unwrap_or_default();
        InvalidFilter { position: before.chars().count() + 1, what: what.into() }
    }
}

fn one_or(mut branches: Vec<Expr>, many: fn(Vec<Expr>) -> Expr) -> Expr {
    match (branches.pop(), branches.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            branches.extend(last);
            many(branches)
        }
    }
}
