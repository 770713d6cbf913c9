//! The record that tests of the edge hold.

use shared::{
    redirect::{Redirect, ResourceType},
    redirect_status::RedirectStatus,
    short_id::ShortId,
    time::UnixMillis,
};

use super::HOST;

/// A record with a target; everything else fixed.
pub(crate) fn redirect(short_id: &str, target: &str) -> Redirect {
    Redirect {
        domain: HOST.parse().unwrap(),
        short_id: short_id.parse::<ShortId>().unwrap(),
        resource_type: ResourceType::Product,
        platform_id: "U5Gq8sKVBfgRtKRaagBefgwk".parse().unwrap(),
        thng_id: None,
        product_id: Some("U5Gq8sKVBfgRtKRaagBefgwk".parse().unwrap()),
        target: target.into(),
        thng_name: None,
        standing: shared::standing::Standing::default(),
        projects: Box::default(),
        forward_query: false,
        status_code: RedirectStatus::default(),
        availability: None,
        digital_link: None,
        created_at: UnixMillis(1_700_000_000_000),
        updated_at: UnixMillis(1_700_000_000_001),
    }
}
