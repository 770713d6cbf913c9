//! What rules read of a request and of a link, the same at an edge and in a preview.

use super::Text;
use crate::{commission::CommissionState, redirect::Redirect};

/// The action type of a redirect.
const ACTION_TYPE: &str = "implicitScans";

/// The first language that an `Accept-Language` accepts.
#[must_use]
pub fn first_language(accepted: &str) -> Option<&str> {
    // By the order of the text, as browsers write it; qualities are theirs to keep in step.
    let first = accepted.split([',', ';']).next().unwrap_or_default().trim();
    Some(first).filter(|tag| !tag.is_empty() && *tag != "*")
}

/// What a link says of a field; `None` too for fields that only a request says something of.
#[must_use]
#[inline]
pub fn text_of_link(link: &Redirect, field: Text) -> Option<&str> {
    match field {
        Text::Thng => link.thng_id.as_ref().map(|id| id.as_str()),
        Text::ThngName => link.thng_name.as_deref(),
        Text::Product => link.product_id.as_ref().map(|id| id.as_str()),
        // A Thng without a declaration is not commissioned; anything else has no state.
        Text::CommissionState => link
            .thng_id
            .map(|_| link.standing.commission.unwrap_or(CommissionState::NotCommissioned).as_str()),
        Text::Assessment => Some(link.standing.verdict?.authentication.as_str()),
        Text::Counterfeit => Some(link.standing.verdict?.counterfeit.as_str()),
        Text::GrayMarket => Some(link.standing.verdict?.gray_market.as_str()),
        Text::ActionType => Some(ACTION_TYPE),
        Text::ShortDomain => Some(link.domain.as_str()),
        Text::ShortId => Some(link.short_id.as_str()),
        Text::Country | Text::Region | Text::City | Text::AgentName | Text::SystemName | Text::Device => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_language_is_that_of_the_text() {
        for (accepted, expected) in [
            ("de-AT,en;q=0.5", Some("de-AT")),
            ("en;q=0.5,de", Some("en")),
            (" fr ,de", Some("fr")),
            ("*", None),
            ("", None),
            (",de", None),
        ] {
            assert_eq!(first_language(accepted), expected, "{accepted:?}");
        }
    }
}
