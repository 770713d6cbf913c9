//! After how many days what is left of people is cut.

use super::members::Members;

/// Most days that an account may say: ten years, as for scans.
pub const MAX_DAYS: u16 = 3_650;

const MEMBER: &str = "personalDataDays";

/// Reads the member of an update of an account; `null` is never.
pub(super) fn read(members: &mut Members<'_>) -> Option<Option<u16>> {
    if members.is_null(MEMBER) {
        return Some(None);
    }
    let days = members.raw(MEMBER)?;
    let found = days.as_u64().and_then(|days| u16::try_from(days).ok());
    let found = found.filter(|days| (1..=MAX_DAYS).contains(days));
    if found.is_none() {
        members.fault(format!(
            "{MEMBER} must be a whole number of days from 1 to {MAX_DAYS}, or null for never."
        ));
    }
    found.map(Some)
}
