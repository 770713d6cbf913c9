//! The steps that settle a check: a closed list of codes, so that clients can offer the step.

shared::words! {
    /// A step by which a person could settle a check.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Settle {
        /// Tag an item that is on display.
        TagDisplay = "TAG_DISPLAY",
        /// Inspect it.
        Inspect = "INSPECT",
        /// Ask for a scan with the place of the device.
        AskForPlace = "ASK_FOR_PLACE",
        /// Decide its case.
        DecideCase = "DECIDE_CASE",
        /// Say where it may be sold.
        SetMarkets = "SET_MARKETS",
        /// Commission it.
        Commission = "COMMISSION",
        /// Leave the scans of a place out.
        AllowPlace = "ALLOW_PLACE",
    } else ()
}

impl Settle {
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
}
