//! How an item stands, by the columns of its row.

use shared::{commission::CommissionState, standing::Standing};

use super::{StoreError, parse};

/// How a Thng stands, by its columns.
pub fn standing(commission: Option<&str>, verdict: Option<&str>) -> Result<Standing, StoreError> {
    Ok(Standing {
        commission: commission.map(parse_state).transpose()?,
        verdict: verdict.map(|text| parse("verdict", text)).transpose()?,
    })
}

/// The state of a commission as it is stored.
///
/// # Errors
/// The column holds no state.
pub fn parse_state(text: &str) -> Result<CommissionState, StoreError> {
    parse("commission_state", text)
}
