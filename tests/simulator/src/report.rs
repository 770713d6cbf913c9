//! Figures of a run, and their formatting.

use std::{collections::BTreeMap, fmt};

use shared::standing::Risk;

use super::{
    Judged, Kind,
    items::{TOURIST, TRIED_INSIDE},
};

/// Shares of bad items for which precision is told.
const PREVALENCES: [f64; 3] = [0.10, 0.03, 0.005];

/// Largest share of false alarms allowed.
const ALLOWED: f64 = 0.01;

/// What a run showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Area under the curve of points, of the number of scans, and of impossible journeys.
    pub auc: [f64; 3],
    /// Recall of each by its own bar, at the same share of false alarms: one in a hundred at most.
    pub recall_at_allowed: [f64; 3],
    /// Share of copies that were called duplicates.
    pub recall: f64,
    /// Share of other items that were called duplicates.
    pub false_positives: f64,
    /// Share of copies that were called duplicates or suspected.
    pub noticed: f64,
    /// Share of other items that were.
    pub falsely_noticed: f64,
    /// How often each sign was seen in copies that were called, copies that were not, false alarms, and the rest.
    pub signs: BTreeMap<&'static str, [f64; 4]>,
    /// Share of diverted items whose diversion was confirmed.
    pub diversion_recall: f64,
    /// Share of diverted items whose diversion was confirmed or suspected.
    pub diversion_noticed: f64,
    /// Share of genuine items whose diversion was confirmed.
    pub diversion_false_positives: f64,
    /// Of these, the share that was bought on a journey: by a phone that is seen at home while it roams.
    pub diversion_bought_on_a_journey: f64,
    /// Share of diverted items with an earlier session outside whose diversion was confirmed.
    pub diversion_seen_again: Rate,
    /// The same of the items among them that nobody scanned inside of the market first.
    pub diversion_never_inside: Rate,
    /// How many of each kind.
    pub counts: [usize; 3],
    /// How many of each group there were, and of them the shares of duplicates and of confirmed diversions.
    pub groups: BTreeMap<&'static str, (usize, f64, f64)>,
}

/// A share of so many items, with the interval of 95 % by Wilson.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The share.
    pub share: f64,
    /// How many items there were.
    pub of: usize,
}

impl Rate {
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a Judged>, is_so: impl Fn(&Judged) -> bool) -> Self {
        let (hits, of) = all.fold((0, 0), |(hits, of), one| (hits + usize::from(is_so(one)), of + 1));
        Self { share: hits as f64 / of.max(1) as f64, of }
    }

    /// The least and the greatest share that what was seen speaks for.
    #[must_use]
    pub fn interval(self) -> [f64; 2] {
        const Z: f64 = 1.96;
        let n = self.of.max(1) as f64;
        let middle = self.share + Z * Z / (2.0 * n);
        let half = Z * (self.share * (1.0 - self.share) / n + Z * Z / (4.0 * n * n)).sqrt();
        [(middle - half) / (1.0 + Z * Z / n), (middle + half) / (1.0 + Z * Z / n)]
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [least, most] = self.interval();
        write!(f, "{:.3} ({least:.3} to {most:.3}, of {})", self.share, self.of)
    }
}

fn share<'a>(all: impl Iterator<Item = &'a Judged>, is_so: impl Fn(&Judged) -> bool) -> f64 {
    let (mut hits, mut count) = (0_usize, 0_usize);
    for one in all {
        count += 1;
        hits += usize::from(is_so(one));
    }
    hits as f64 / count.max(1) as f64
}

impl Report {
    /// The figures of some judgements.
    #[must_use]
    pub fn of(judged: &[Judged]) -> Self {
        let of = |kind| judged.iter().filter(move |one| one.kind == kind);
        let others = || judged.iter().filter(|one| one.kind != Kind::Copied);
        let scores: [fn(&Judged) -> f64; 3] =
            [|one| f64::from(one.points), |one| one.sessions as f64, |one| one.impossible as f64];
        let pairs = scores.map(|score| {
            let copies: Vec<f64> = of(Kind::Copied).map(score).collect();
            (copies, others().map(score).collect::<Vec<f64>>())
        });
        let is_duplicate = |one: &Judged| one.is_duplicate;
        let is_confirmed = |one: &Judged| one.gray_market == Risk::Confirmed;
        let is_noticed = |one: &Judged| one.is_duplicate || one.is_suspected;
        let mut signs = BTreeMap::new();
        for name in judged.iter().flat_map(|one| &one.signs).map(|sign| sign.name) {
            signs.entry(name).or_insert_with(|| {
                let has = |one: &Judged| one.signs.iter().any(|sign| sign.name == name);
                [(true, true), (true, false), (false, true), (false, false)].map(|(is_copy, is_called)| {
                    let is_of = |one: &&Judged| {
                        (one.kind == Kind::Copied) == is_copy && one.is_duplicate == is_called
                    };
                    share(judged.iter().filter(is_of), has)
                })
            });
        }
        let mut groups = BTreeMap::new();
        for one in judged {
            groups.entry(one.who).or_insert_with(|| {
                let same = || judged.iter().filter(|other| other.who == one.who);
                (same().count(), share(same(), is_duplicate), share(same(), is_confirmed))
            });
        }
        Self {
            auc: [0, 1, 2].map(|at| auc(&pairs[at].0, &pairs[at].1)),
            recall_at_allowed: [0, 1, 2].map(|at| recall_at(&pairs[at].0, &pairs[at].1, ALLOWED)),
            recall: share(of(Kind::Copied), is_duplicate),
            false_positives: share(others(), is_duplicate),
            noticed: share(of(Kind::Copied), is_noticed),
            falsely_noticed: share(others(), is_noticed),
            signs,
            diversion_recall: share(of(Kind::Diverted), is_confirmed),
            diversion_noticed: share(of(Kind::Diverted), |one| {
                [Risk::Confirmed, Risk::Suspected].contains(&one.gray_market)
            }),
            diversion_false_positives: share(of(Kind::Genuine), is_confirmed),
            diversion_bought_on_a_journey: share(of(Kind::Genuine).filter(|one| is_confirmed(one)), |one| {
                one.who == TOURIST
            }),
            diversion_seen_again: Rate::of(
                of(Kind::Diverted).filter(|one| one.is_seen_outside_before),
                is_confirmed,
            ),
            diversion_never_inside: Rate::of(
                of(Kind::Diverted).filter(|one| one.is_seen_outside_before && one.who != TRIED_INSIDE),
                is_confirmed,
            ),
            counts: [Kind::Genuine, Kind::Diverted, Kind::Copied].map(|kind| of(kind).count()),
            groups,
        }
    }

    /// Precision of confirmed diversions where so many items are diverted.
    #[must_use]
    pub fn diversion_precision(&self, prevalence: f64) -> f64 {
        precision(prevalence, self.diversion_recall, self.diversion_false_positives)
    }
}

/// Share of pairs in which the positive one has the higher score; ties count half.
#[must_use]
pub fn auc(positives: &[f64], negatives: &[f64]) -> f64 {
    let mut negatives = negatives.to_vec();
    negatives.sort_by(f64::total_cmp);
    let below = |value: f64| negatives.partition_point(|other| *other < value) as f64;
    let up_to = |value: f64| negatives.partition_point(|other| *other <= value) as f64;
    let wins: f64 = positives.iter().map(|value| f64::midpoint(below(*value), up_to(*value))).sum();
    wins / (positives.len() as f64 * negatives.len() as f64).max(1.0)
}

/// Share of positives above the lowest bar that so many negatives pass at most.
fn recall_at(positives: &[f64], negatives: &[f64], false_positives: f64) -> f64 {
    let mut negatives = negatives.to_vec();
    negatives.sort_by(|a, b| b.total_cmp(a));
    let allowed = (false_positives * negatives.len() as f64) as usize;
    let bar = negatives.get(allowed).copied().unwrap_or(f64::INFINITY);
    positives.iter().filter(|value| **value > bar).count() as f64 / positives.len().max(1) as f64
}

/// Share of alarms that are right, where so many items are bad.
#[must_use]
pub fn precision(prevalence: f64, recall: f64, false_positives: f64) -> f64 {
    let (right, wrong) = (prevalence * recall, (1.0 - prevalence) * false_positives);
    if right + wrong > 0.0 { right / (right + wrong) } else { 0.0 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [genuine, diverted, copied] = self.counts;
        let at = |recall: f64, wrong: f64| {
            let [a, b, c] = PREVALENCES.map(|share| precision(share, recall, wrong));
            format!("{a:.2}  {b:.2}  {c:.2}")
        };
        writeln!(f, "items: {genuine} genuine, {diverted} diverted, {copied} of copied codes")?;
        writeln!(f, "                          AUC    recall  false alarms  precision at 10 %, 3 %, 0.5 %")?;
        let (recall, wrong) = (self.recall, self.false_positives);
        writeln!(
            f,
            "  called a duplicate      {:.3}  {recall:.3}   {wrong:.4}        {}",
            self.auc[0],
            at(recall, wrong)
        )?;
        let (recall, wrong) = (self.noticed, self.falsely_noticed);
        writeln!(
            f,
            "  called or suspected            {recall:.3}   {wrong:.4}        {}",
            at(recall, wrong)
        )?;
        let names = ["points", "number of scans", "impossible travel"];
        for (name, (auc, recall)) in names.into_iter().zip(self.auc.into_iter().zip(self.recall_at_allowed)) {
            writeln!(f, "  {name:<22}  {auc:.3}  {recall:.3}  <{ALLOWED:.4}        {}", at(recall, ALLOWED))?;
        }
        let (recall, wrong) = (self.diversion_recall, self.diversion_false_positives);
        writeln!(
            f,
            "  confirmed diversion            {recall:.3}   {wrong:.4}        {}",
            at(recall, wrong)
        )?;
        writeln!(f, "  confirmed or suspected diversion of diverted items: {:.3}", self.diversion_noticed)?;
        writeln!(f, "  confirmed, of diverted items seen outside before: {}", self.diversion_seen_again)?;
        writeln!(f, "  the same, not tried inside first: {}", self.diversion_never_inside)?;
        writeln!(
            f,
            "  genuine items with a confirmed diversion that were bought on a journey: {:.3}",
            self.diversion_bought_on_a_journey
        )?;
        writeln!(f, "  sign            seen in: copies called  not called  false alarms  the rest")?;
        for (name, [called, missed, wrong, rest]) in &self.signs {
            writeln!(f, "  {name:<22}  {called:>15.3}  {missed:>10.3}  {wrong:>12.3}  {rest:>8.3}")?;
        }
        writeln!(f, "  group                  items   duplicates  confirmed diversions")?;
        for (who, (count, duplicates, confirmed)) in &self.groups {
            writeln!(f, "  {who:<22} {count:>6}   {duplicates:.4}      {confirmed:.4}")?;
        }
        Ok(())
    }
}
