//! Figures of a run, and how they read.

use std::fmt;

use shared::standing::Risk;

use super::{ASSUMPTIONS, Judged, Kind};

/// What a run showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Area under the curve of points, of the number of scans, and of impossible journeys.
    pub auc: [f64; 3],
    /// Share of copies that were called duplicates.
    pub recall: f64,
    /// Share of other items that were called duplicates.
    pub false_positives: f64,
    /// Recall of the baselines at the same share of false positives.
    pub recall_of_baselines: [f64; 2],
    /// Share of diverted items whose diversion was confirmed.
    pub diversion_recall: f64,
    /// Share of genuine items that were called diverted.
    pub diversion_false_positives: f64,
    /// How many of each kind.
    pub counts: [usize; 3],
}

impl Report {
    /// The figures of some judgements.
    #[must_use]
    pub fn of(judged: &[Judged]) -> Self {
        let of = |kind| judged.iter().filter(move |one| one.kind == kind);
        let copies: Vec<&Judged> = of(Kind::Copied).collect();
        let others: Vec<&Judged> = judged.iter().filter(|one| one.kind != Kind::Copied).collect();
        let share = |all: &[&Judged], is_so: &dyn Fn(&Judged) -> bool| {
            all.iter().filter(|one| is_so(one)).count() as f64 / all.len().max(1) as f64
        };
        let scores: [&dyn Fn(&Judged) -> f64; 3] =
            [&|one| f64::from(one.points), &|one| one.sessions as f64, &|one| one.impossible as f64];
        let values = |all: &[&Judged], score: &dyn Fn(&Judged) -> f64| {
            all.iter().map(|one| score(one)).collect::<Vec<_>>()
        };
        let false_positives = share(&others, &|one| one.is_duplicate);
        let recall_at = |score: &dyn Fn(&Judged) -> f64| {
            let mut negatives = values(&others, score);
            negatives.sort_by(|a, b| b.total_cmp(a));
            let allowed = (false_positives * negatives.len() as f64) as usize;
            let bar = negatives.get(allowed).copied().unwrap_or(f64::INFINITY);
            values(&copies, score).iter().filter(|value| **value > bar).count() as f64
                / copies.len().max(1) as f64
        };
        let genuine: Vec<&Judged> = of(Kind::Genuine).collect();
        let diverted: Vec<&Judged> = of(Kind::Diverted).collect();
        Self {
            auc: scores.map(|score| auc(&values(&copies, score), &values(&others, score))),
            recall: share(&copies, &|one| one.is_duplicate),
            false_positives,
            recall_of_baselines: [recall_at(scores[1]), recall_at(scores[2])],
            diversion_recall: share(&diverted, &|one| one.gray_market == Risk::Confirmed),
            diversion_false_positives: share(&genuine, &|one| one.gray_market == Risk::Confirmed),
            counts: [genuine.len(), diverted.len(), copies.len()],
        }
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

/// Share of alarms that are right, where so many items are bad.
#[must_use]
pub fn precision(prevalence: f64, recall: f64, false_positives: f64) -> f64 {
    let (right, wrong) = (prevalence * recall, (1.0 - prevalence) * false_positives);
    if right + wrong > 0.0 { right / (right + wrong) } else { 0.0 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [genuine, diverted, copied] = self.counts;
        writeln!(f, "items: {genuine} genuine, {diverted} diverted, {copied} of copied codes")?;
        writeln!(
            f,
            "copies                    AUC   recall  false positives  precision at 10 %, 3 %, 0.5 %"
        )?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, auc: f64, recall: f64| {
            let at = [0.10, 0.03, 0.005].map(|share| precision(share, recall, self.false_positives));
            writeln!(
                f,
                "  {name:<22}  {auc:.3}  {recall:.3}   {:.4}           {:.2}  {:.2}  {:.2}",
                self.false_positives, at[0], at[1], at[2]
            )
        };
        line(f, "Waymark", self.auc[0], self.recall)?;
        line(f, "number of scans", self.auc[1], self.recall_of_baselines[0])?;
        line(f, "impossible travel", self.auc[2], self.recall_of_baselines[1])?;
        let at = [0.10, 0.03, 0.005]
            .map(|share| precision(share, self.diversion_recall, self.diversion_false_positives));
        writeln!(
            f,
            "diversion: recall {:.3}, false positives {:.4}, precision {:.2} {:.2} {:.2}",
            self.diversion_recall, self.diversion_false_positives, at[0], at[1], at[2]
        )?;
        writeln!(f, "assumed:")?;
        ASSUMPTIONS.iter().try_for_each(|text| writeln!(f, "  - {text}"))
    }
}
