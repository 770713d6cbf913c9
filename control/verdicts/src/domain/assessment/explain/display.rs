//! What is known of display pieces at the place of an item that looks like one.

use super::Certainty;

/// Items that are tagged as display pieces, by where they are mostly seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displays {
    /// The region, with its country.
    pub region: String,
    /// How many there are.
    pub count: u64,
}

impl Certainty {
    /// The same with the display pieces that are where the item is mostly seen, if it looks like one itself.
    ///
    /// They change no verdict: copies are sold where genuine ones are shown.
    #[must_use]
    pub fn beside(mut self, displays: Option<&Displays>) -> Self {
        let region = self.share.as_ref().map(|share| share.region.as_str());
        self.displays_nearby = displays
            .filter(|displays| self.looks_like_display && region == Some(displays.region.as_str()))
            .map(|displays| displays.count);
        self
    }
}
