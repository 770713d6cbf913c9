//! The record that tests of the edge hold.

use shared::{
    redirect::{Redirect, ResourceType},
    time::UnixMillis,
};

use super::HOST;

/// A record with a target; everything else fixed.
pub(crate) fn redirect(short_id: &str, target: &str) -> Redirect {
    Redirect {
        resource_type: ResourceType::Product,
        product_id: Some("U5Gq8sKVBfgRtKRaagBefgwk".parse().unwrap()),
        updated_at: UnixMillis(1_700_000_000_001),
        ..Redirect::plain(
            HOST.parse().unwrap(),
            short_id.parse().unwrap(),
            "U5Gq8sKVBfgRtKRaagBefgwk".parse().unwrap(),
            target,
            UnixMillis(1_700_000_000_000),
        )
    }
}
