//! How long scans by edges are kept.

use super::members::Members;

/// Days that scans are kept unless an account says otherwise: so that a year can be compared with the one before.
pub const DEFAULT_DAYS: u16 = 400;

/// Most days that an account may ask for: ten years.
pub const MAX_DAYS: u16 = 3_650;

const MEMBER: &str = "scanRetentionDays";

/// Reads the member of an update of an account.
pub(super) fn read(members: &mut Members<'_>) -> Option<u16> {
    let days = members.raw(MEMBER)?;
    let found = days.as_u64().and_then(|days| u16::try_from(days).ok());
    let found = found.filter(|days| (1..=MAX_DAYS).contains(days));
    if found.is_none() {
        members.fault(format!("{MEMBER} must be a whole number of days from 1 to {MAX_DAYS}."));
    }
    found
}
