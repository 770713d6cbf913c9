//! Status codes of redirects in the database: nothing for the default.

use shared::redirect_status::RedirectStatus;

use super::StoreError;

/// The stored form of a status code.
pub(super) fn stored(status: RedirectStatus) -> Option<i64> {
    status.member().map(|(_, code)| code.into())
}

/// Reads the stored form.
pub(super) fn read(stored: Option<i64>) -> Result<RedirectStatus, StoreError> {
    let Some(code) = stored else { return Ok(RedirectStatus::default()) };
    let status = u16::try_from(code).ok().and_then(|code| RedirectStatus::try_from(code).ok());
    status.ok_or_else(|| StoreError::Row(format!("status_code: {code}")))
}
