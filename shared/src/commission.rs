//! The commissioning states, as they are stored, returned by the API and tested by redirect rules.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Whether the factory declared a Thng.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionState {
    /// It never did.
    NotCommissioned,
    /// It did.
    Commissioned,
    /// It was withdrawn since.
    Decommissioned,
}

impl CommissionState {
    /// The state as it is written in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotCommissioned => "not_commissioned",
            Self::Commissioned => "commissioned",
            Self::Decommissioned => "decommissioned",
        }
    }
}

impl FromStr for CommissionState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "not_commissioned" => Ok(Self::NotCommissioned),
            "commissioned" => Ok(Self::Commissioned),
            "decommissioned" => Ok(Self::Decommissioned),
            _ => Err(()),
        }
    }
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
