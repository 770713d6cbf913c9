//! The steps that settle a check: a closed list of codes, so that clients can offer the step.

/// A step by which a person could settle a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// Tag an item that is on display.
    TagDisplay,
    /// Inspect it.
    Inspect,
    /// Ask for a scan with the place of the device.
    AskForPlace,
    /// Decide its case.
    DecideCase,
    /// Say where it may be sold.
    SetMarkets,
    /// Commission it.
    Commission,
    /// Leave the scans of a place out.
    AllowPlace,
}

impl Settle {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::TagDisplay,
        Self::Inspect,
        Self::AskForPlace,
        Self::DecideCase,
        Self::SetMarkets,
        Self::Commission,
        Self::AllowPlace,
    ];

    /// Its name in a result.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TagDisplay => "TAG_DISPLAY",
            Self::Inspect => "INSPECT",
            Self::AskForPlace => "ASK_FOR_PLACE",
            Self::DecideCase => "DECIDE_CASE",
            Self::SetMarkets => "SET_MARKETS",
            Self::Commission => "COMMISSION",
            Self::AllowPlace => "ALLOW_PLACE",
        }
    }

    /// What to do, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::TagDisplay => {
                "If the item is on display, add the tag display: its scans are then left out."
            }
            Self::Inspect => {
                "Inspect the item and report an inspectorScans action with inspectedProductMatch: \
                 no confirms a counterfeit, yes lifts the result to suspicious."
            }
            Self::AskForPlace => {
                "Ask for a scan with the place of the device (locationSource sensor): one confirms or clears it."
            }
            Self::DecideCase => "Decide the case of the item: confirm or dismiss it.",
            Self::SetMarkets => {
                "Set permittedCountries of the Thng, its product or its purchase order: without them \
                 nothing is said about the market."
            }
            Self::Commission => "Commission the item with the factory that it names, if it is genuine.",
            Self::AllowPlace => {
                "If the sessions are at a place of your own, add it to allowedPlaces: scans there are then left out."
            }
        }
    }

    /// The step of a code.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.code() == code)
    }
}
