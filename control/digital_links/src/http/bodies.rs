//! Request bodies of Digital Links.

use digital_link::Qualifier;
use redirects::domain::assumed_scan::MAX_HEADER;
use serde_json::{Value, json};
use web::bodies::{Body, formatted, text};

use crate::domain::assumed_request::{MAX_CONTEXT, MAX_LINK_TYPE};

/// A request for a Digital Link that nobody made: that of another link, and what is more of this one.
pub(super) fn assumed_request() -> Value {
    let qualifier = |of: Qualifier, meaning: &str| {
        json!({"type": "string", "minLength": 1, "maxLength": of.max_length(), "pattern": "^[!\"%-?A-Z_a-z]+$",
            "description": meaning})
    };
    let described = |mut schema: Value, meaning: &str| {
        schema["description"] = meaning.into();
        schema
    };
    let accept = json!({"type": "string", "maxLength": MAX_HEADER, "pattern": "^[ -~]*$",
        "description": "`Accept`, by which links of several media types are told apart, and lists of links are asked for."});
    let link_type = "`gs1:pip`, a URI, or `linkset`: `linkType` of the query.";
    let own = Body::new("")
        .may(
            "gtin",
            formatted("gtin", "The GTIN of the product, or a former one; without it the one that it has."),
        )
        .may("variant", qualifier(Qualifier::Variant, "The consumer product variant (22)."))
        .may("lot", qualifier(Qualifier::Lot, "The batch or lot (10)."))
        .may("serial", qualifier(Qualifier::Serial, "The serial (21)."))
        .may("tpx", qualifier(Qualifier::ThirdParty, "A third party's extension (235), which stands alone."))
        .may("linkType", described(text(1, MAX_LINK_TYPE), link_type))
        .may("context", described(text(1, MAX_CONTEXT), "`context` of the query."))
        .may("accept", accept)
        .schema();
    let mut request = redirects::http::assumed_scan();
    let content = &mut request["content"]["application/json"];
    if let (Value::Object(own), Some(members)) =
        (&own["properties"], content["schema"]["properties"].as_object_mut())
    {
        members.extend(own.clone());
    }
    content["example"] = json!({"lot": "L1", "serial": "A1", "acceptLanguage": "de-AT,de;q=0.9"});
    request["description"] =
        "What is known of the request; without `time` it comes now. `query` stands behind `linkType` and \
        `context`. Other members are refused"
            .into();
    request
}
