//! Answers questions to the roll-ups.

use std::collections::BTreeSet;

use shared::id::ProjectId;
use tracing::instrument;

use super::{StatisticsState, access::require};
use crate::{
    domain::{
        access::Actor,
        dimension::Dimension,
        grant::Limit,
        permission::{
            Subject::{PersonalData, Statistics},
            Verb,
        },
        roll_ups::Counts,
        stats_query::StatsQuery,
    },
    error::{ServiceError, StatisticsError},
    store::scan_statistics::{self, Choice, Group, Groups, MAX_READ},
};

/// The number of the set of no dimension: all scans.
const ALL: i16 = 1;

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// The counts of a group in a period: its place, the values of the group, and how many.
    pub rows: Vec<Row>,
    /// The groups that are in no row, and what they have together.
    pub others: (u64, Counts),
    /// All scans of the range that the filter admits.
    pub totals: Counts,
}

/// A row of an answer.
#[derive(Debug)]
pub struct Row {
    /// The place of its period.
    pub period: usize,
    /// The values of the dimensions that are grouped by, in their order; empty where unknown.
    pub values: Vec<String>,
    /// How many.
    pub counts: Counts,
}

/// Answers a question.
///
/// # Errors
/// The role does not allow statistics, or not those of cities; a key of several projects names none of them.
#[instrument(skip_all)]
pub async fn read(
    state: &StatisticsState,
    actor: &Actor,
    query: &StatsQuery,
) -> Result<Answer, ServiceError> {
    let grant = require(actor, Verb::List, Statistics)?;
    if query.is_personal() {
        let _ = require(actor, Verb::Read, PersonalData)?;
    }
    let Some(project) = view(grant.limit(), query)? else { return Ok(Answer::default()) };
    let series = query.series;
    let by = |dimension: Option<Dimension>| dimension.is_some_and(|one| query.group_by.contains(&one));
    let choice = Choice {
        account: actor.account,
        project,
        series: series.number,
        first: query.first.as_deref(),
        second: query.second.as_deref(),
        by: (by(series.first), by(series.second)),
        is_whole: [series.first, series.second].into_iter().flatten().all(|one| by(Some(one))),
    };
    let _permit = state.read_permit(actor.account).await;
    // A scan may be of several projects, or of none: their sum is not the number of scans, which is read of the same moment.
    let (groups, totals) = if series.first == Some(Dimension::Project) {
        let mut conn = state.db.snapshot().await?;
        let groups = scan_statistics::list_groups(&mut conn, &choice, &query.parts, query.top).await?;
        let all = Choice { series: ALL, first: None, by: (false, false), is_whole: true, ..choice };
        let totals = scan_statistics::list_groups(&mut conn, &all, &query.parts, 1).await?.totals;
        (groups, totals)
    } else {
        let mut conn = state.db.read().await?;
        let groups = scan_statistics::list_groups(&mut conn, &choice, &query.parts, query.top).await?;
        let totals = groups.totals;
        (groups, totals)
    };
    if groups.is_cut {
        let of = series.first.map_or("all scans", Dimension::as_str);
        return Err(StatisticsError::RangeTooLong { of, most: MAX_READ }.into());
    }
    let others = others(&groups);
    let row = |(period, group, counts)| Row { period, values: values(query, group), counts };
    let rows = groups.cells.into_iter().map(row).filter(|row| row.period < query.periods.len()).collect();
    Ok(Answer { rows, others, totals })
}

/// The project whose scans are counted, or all; `None` where the caller sees nothing of what it asked for.
fn view(limit: &Limit, query: &StatsQuery) -> Result<Option<Option<ProjectId>>, StatisticsError> {
    match (limit, query.project) {
        (Limit::Account, project) => Ok(Some(project)),
        (Limit::Projects(_), _) if query.group_by.contains(&Dimension::Project) => {
            Err(StatisticsError::GroupedByProject)
        }
        (Limit::Projects(own), Some(project)) => Ok(own.contains(&project).then_some(Some(project))),
        (Limit::Projects(own), None) => match own.as_slice() {
            [project] => Ok(Some(Some(*project))),
            // A scan may be of several of them, and must not be counted twice.
            _ => Err(StatisticsError::SeveralProjects),
        },
        (Limit::User(_) | Limit::Itself(_), _) => Ok(None),
    }
}

/// The groups that are in no row, and what they have together.
fn others(groups: &Groups) -> (u64, Counts) {
    let shown: BTreeSet<&Group> = groups.cells.iter().map(|(_, group, _)| group).collect();
    let of_shown = groups.cells.iter().fold(Counts::default(), |all, (_, _, counts)| all.plus(*counts));
    let all = groups.totals;
    let counts = Counts {
        scans: all.scans - of_shown.scans,
        new_devices: all.new_devices - of_shown.new_devices,
        robots: all.robots - of_shown.robots,
    };
    (groups.number.saturating_sub(shown.len() as u64), counts)
}

/// The values of a group in the order of the question.
fn values(query: &StatsQuery, (first, second): Group) -> Vec<String> {
    let of = |dimension: &Dimension| {
        if query.series.first == Some(*dimension) { first.clone() } else { second.clone() }
    };
    query.group_by.iter().map(of).collect()
}
