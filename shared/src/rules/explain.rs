//! Why a rule holds for a scan or does not. Apart from the compiled rules, so that redirects do no work for it.

use super::{Facts, Field, InvalidRule, Rule, compile::understand, program, reading::Reading};
use crate::filter::{Expr, Term};

/// Whether a rule holds, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Whether it holds.
    pub holds: bool,
    /// Conditions of the rule as they are written, or their opposites where they are negated: those that are met if it holds,
    /// else those that are not. What was not looked at is left out. Each has the field that it tests.
    pub because: Vec<(Field, String)>,
}

/// A term, understood and as it is written.
#[derive(Debug)]
struct Condition {
    test: Term<Field>,
    written: Term,
}

impl Rule {
    /// Evaluates the rule for a scan.
    ///
    /// # Errors
    /// Its condition is invalid.
    pub fn explain(&self, facts: &impl Facts) -> Result<Explained, InvalidRule> {
        let invalid = |what: String| InvalidRule { member: "match", what };
        let expr: Expr = self.condition.parse().map_err(|fault| invalid(format!("{fault}")))?;
        let expr = expr.try_map(&mut |written: Term| {
            let test = understand(&written)?;
            let (operator, value) = (written.operator, written.value.clone());
            Ok::<_, String>(Term { field: Condition { test, written }, operator, value })
        });
        let mut because = Vec::new();
        let holds = explain(&expr.map_err(invalid)?, false, &Reading::new(facts), &mut because);
        Ok(Explained { holds, because })
    }
}

/// Whether a tree holds; appends the conditions from which that follows.
fn explain(
    expr: &Expr<Condition>,
    is_negated: bool,
    request: &Reading<'_, impl Facts>,
    because: &mut Vec<(Field, String)>,
) -> bool {
    match expr {
        Expr::Term(term) => {
            let Condition { test, written } = &term.field;
            let condition = if is_negated { written.negated() } else { written.to_string() };
            because.push((test.field.clone(), condition));
            program::holds(test, request)
        }
        Expr::Not(one) => !explain(one, !is_negated, request, because),
        Expr::And(branches) => decide(branches, false, is_negated, request, because),
        Expr::Or(branches) => decide(branches, true, is_negated, request, because),
    }
}

/// The first branch with the result `decisive` decides alone; where there is none, all of them do.
fn decide(
    branches: &[Expr<Condition>],
    decisive: bool,
    is_negated: bool,
    request: &Reading<'_, impl Facts>,
    because: &mut Vec<(Field, String)>,
) -> bool {
    let start = because.len();
    for branch in branches {
        let before = because.len();
        if explain(branch, is_negated, request, because) == decisive {
            because.drain(start..before);
            return decisive;
        }
    }
    !decisive
}
