//! Scans by their ids.

use std::collections::HashSet;

use kernel::{
    domain::action::Action,
    store::{STATEMENT_TIMEOUT, StoreError},
};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};

use super::{
    filter::Conditions,
    list::{Statement, engine, read},
    look_up::Texts,
    months::{self, is_gone},
    plan::By,
    sql_scans::SqlScans,
};
use crate::domain::{ids, month::Month};

impl SqlScans {
    pub(super) async fn find_all(
        &self,
        account: AccountId,
        ids: &[ActionId],
    ) -> Result<Vec<Action>, StoreError> {
        let mut missing: HashSet<ActionId> = ids.iter().copied().collect();
        let oldest = ids.iter().map(|id| ids::split(id).0).min();
        let (Some(number), Some(oldest)) = (self.find_account(account).await?, oldest) else {
            return Ok(Vec::new());
        };
        let mut conn = self.db.read().await?;
        let (mut found, texts) = (Vec::new(), Texts::default());
        // Most scans are created in the month in which they happened: that is known without a list of months.
        let first = Month::of(oldest);
        let mut months = vec![first];
        let mut is_listed = false;
        while !missing.is_empty() {
            for month in std::mem::take(&mut months) {
                let wanted: Vec<ActionId> = missing.iter().copied().collect();
                let mut sql = Conditions::in_tables(engine(&conn), number, &texts, &By::Few);
                sql.push(" AND ").ids(&wanted);
                match read(&mut conn, month, &Statement::of(sql), STATEMENT_TIMEOUT).await {
                    // A key may fit to the time of another id.
                    Ok(actions) => {
                        found.extend(actions.into_iter().filter(|action| missing.remove(&action.id)))
                    }
                    Err(error) if is_gone(&error) => {}
                    Err(error) => return Err(error),
                }
                if missing.is_empty() {
                    break;
                }
            }
            if is_listed {
                break;
            }
            is_listed = true;
            months = by_nearness(months::list(&mut conn).await?, oldest);
            months.retain(|month| *month != first);
        }
        found.sort_unstable_by_key(Action::position);
        Ok(found)
    }
}

/// Months in the order in which scans of a time are likely: most are created at once, some later, and those of an edge
/// whose clock is ahead earlier.
pub(super) fn by_nearness(months: Vec<Month>, at: UnixMillis) -> Vec<Month> {
    let month = Month::of(at);
    let (mut before, mut ordered): (Vec<Month>, Vec<Month>) =
        months.into_iter().partition(|other| *other < month);
    before.reverse();
    ordered.extend(before);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_month_of_the_scan_comes_first() {
        let months = |numbers: &[i32]| -> Vec<Month> {
            numbers.iter().filter_map(|number| Month::stored(*number)).collect()
        };
        // 2026-01-01.
        let ordered =
            by_nearness(months(&[202_511, 202_512, 202_601, 202_602]), UnixMillis(1_767_225_600_000));
        assert_eq!(ordered, months(&[202_601, 202_602, 202_512, 202_511]));
    }
}
