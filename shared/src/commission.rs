//! The commissioning states, as they are stored, returned by the API and tested by redirect rules.

use serde::{Deserialize, Serialize};

crate::words! {
    /// Whether the factory declared a Thng.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CommissionState {
        /// It never did.
        NotCommissioned = "not_commissioned",
        /// It did.
        Commissioned = "commissioned",
        /// It was withdrawn since.
        Decommissioned = "decommissioned",
    } else ()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_reads_back() {
        for state in
            [CommissionState::NotCommissioned, CommissionState::Commissioned, CommissionState::Decommissioned]
        {
            assert_eq!(state.as_str().parse(), Ok(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!("Commissioned".parse::<CommissionState>(), Err(()));
    }
}
