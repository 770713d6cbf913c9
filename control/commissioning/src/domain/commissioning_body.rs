//! Parses the bodies of commissioning requests.

use serde_json::Value;
use shared::{id::ProductId, identifier::Identifier};

use super::{
    body::text,
    commissioning::Moment,
    limits::{MAX_IDENTIFIER, check_text, shorten},
    location::{Form, Location},
    members::Members,
    reference::Reference,
};

/// Most pairs of one `commissionStateList`: at 64 bytes each, a sixteenth of the largest body.
pub const MAX_PAIRS: usize = 1_000;

/// The key of Thngs in a list of states.
pub const THNG_KEY: &str = "gs1:21";
/// The key of products in a list of states.
pub const PRODUCT_KEY: &str = "gs1:01";

// Spec gap: how long these texts may be is not shown.
/// Longest purchase order, factory, supplier or zone, in characters; as long as an identifier.
pub const MAX_TEXT: usize = MAX_IDENTIFIER;

/// Where in which factory something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactoryMetadata {
    /// The factory.
    pub factory: String,
    /// Id of the supplier.
    pub supplier: Option<String>,
    /// Name of the zone within the factory.
    pub zone: Option<String>,
}

/// Members that a decommission and a commission share.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDraft {
    /// Where it happened.
    pub location: Location,
    /// When it happened.
    pub occurred_at: Moment,
    /// Where in the factory.
    pub factory_metadata: Option<FactoryMetadata>,
}

/// The members of a commission.
#[derive(Debug, Clone, PartialEq)]
pub struct CommissionDraft {
    /// Where and when.
    pub step: StepDraft,
    // Spec gap: a platform id in place of an identifier is not shown; clients that know only ids need it.
    /// The product that the Thng becomes an instance of.
    pub product: Reference<ProductId>,
    /// The purchase order.
    pub purchase_order: Option<String>,
}

/// A Thng and a product that may belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Value of the Thng's `gs1:21`.
    pub thng: String,
    /// Value of the product's `gs1:01`.
    pub product: String,
}

impl CommissionDraft {
    /// Reads the body of a commission.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        if members.raw("product").is_none() {
            members.fault("product is required.");
        }
        let product = members.parsed("product");
        let purchase_order = text(&mut members, "purchaseOrder", 0, MAX_TEXT);
        let step = step(&mut members);
        members.finish(step.zip(product).map(|(step, product)| Self { step, product, purchase_order }))
    }
}

impl StepDraft {
    /// Reads the body of a decommission.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let step = step(&mut members);
        members.finish(step)
    }
}

fn step(members: &mut Members<'_>) -> Option<StepDraft> {
    for name in ["location", "occurredAt"] {
        if members.raw(name).is_none() {
            members.fault(format!("{name} is required."));
        }
    }
    let location = Location::read(members, "location", Form::Commissioning);
    let occurred_at = moment(members);
    let factory_metadata = factory_metadata(members);
    Some(StepDraft { location: location?, occurred_at: occurred_at?, factory_metadata })
}

fn moment(members: &mut Members<'_>) -> Option<Moment> {
    let text = members.text("occurredAt")?;
    text.parse().map_err(|error| members.fault(format!("occurredAt {error}."))).ok()
}

fn factory_metadata(members: &mut Members<'_>) -> Option<FactoryMetadata> {
    let value = members.raw("factoryMetadata")?;
    let read = |value: &Value| {
        let mut inside = Members::within(value, "factoryMetadata")?;
        if inside.raw("factory").is_none() {
            inside.fault("factoryMetadata.factory is required.");
        }
        let factory = text(&mut inside, "factory", 1, MAX_TEXT);
        let supplier = text(&mut inside, "supplier", 0, MAX_TEXT);
        let zone = text(&mut inside, "zone", 0, MAX_TEXT);
        inside.finish(factory.map(|factory| FactoryMetadata { factory, supplier, zone }))
    };
    read(value).map_err(|faults| faults.into_iter().for_each(|fault| members.fault(fault))).ok()
}

/// Reads the body of a list of states.
///
/// # Errors
/// Every fault found, each naming its member, as `[3].thngIdentifier`.
pub fn parse_pairs(body: &Value) -> Result<Vec<Pair>, Vec<String>> {
    let Value::Array(items) = body else {
        return Err(vec!["The body must be an array.".to_owned()]);
    };
    if items.len() > MAX_PAIRS {
        return Err(vec![format!("The array must hold at most {MAX_PAIRS} pairs, not {}.", items.len())]);
    }
    let (mut pairs, mut faults) = (Vec::with_capacity(items.len()), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let read = Members::within(item, &format!("[{index}]")).and_then(|mut members| {
            let thng = value_of(&mut members, "thngIdentifier", THNG_KEY);
            let product = value_of(&mut members, "productIdentifier", PRODUCT_KEY);
            members.finish(thng.zip(product))
        });
        match read {
            Ok((thng, product)) => pairs.push(Pair { thng, product }),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() { Ok(pairs) } else { Err(faults) }
}

/// The value of an identifier whose key must be this one.
fn value_of(members: &mut Members<'_>, name: &str, key: &str) -> Option<String> {
    if members.raw(name).is_none() {
        members.fault(format!("{} is required.", members.path(name)));
    }
    let identifier: Identifier = members.parsed(name)?;
    if identifier.key != key {
        let other = shorten(&identifier.key);
        members.fault(format!("{} must have the key {key}, not {other}.", members.path(name)));
        return None;
    }
    if let Err(fault) = check_text(&identifier.value, 1, MAX_IDENTIFIER) {
        members.fault(format!("{} {fault}.", members.path(name)));
        return None;
    }
    Some(identifier.value)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    fn with(name: &str, value: Value) -> Value {
        let mut body = json!({"product": "gs1:01:1", "location": {"place": ID},
            "occurredAt": "2026-11-22T08:15:30+01:00"});
        body[name] = value;
        body
    }

    #[test]
    fn each_fault_of_a_commission_is_named() {
        let cases: Vec<(Value, &[&str])> = vec![
            (with("unknown", json!(1)), &[]),
            (with("product", json!(ID)), &[]),
            (with("purchaseOrder", json!("")), &[]),
            (with("purchaseOrder", json!("PO 1/ü")), &[]),
            (with("factoryMetadata", json!({"factory": "F", "supplier": "S", "zone": "Z", "more": 1})), &[]),
            (with("factoryMetadata", Value::Null), &[]),
            (json!({}), &["product is required", "location is required", "occurredAt is required"]),
            (json!([]), &["must be a JSON object"]),
            (with("product", json!(1)), &["product must be a string"]),
            (with("product", json!("x")), &["product: neither an id nor <key>:<value>"]),
            (with("product", json!("gs1:01:")), &["product: neither"]),
            (with("purchaseOrder", json!(1)), &["purchaseOrder must be a string"]),
            (with("purchaseOrder", json!("x".repeat(257))), &["purchaseOrder must have at most 256"]),
            (with("occurredAt", json!(1)), &["occurredAt must be a string"]),
            (with("occurredAt", json!("2026-11-22T08:15:30")), &["occurredAt must be an ISO 8601"]),
            (with("occurredAt", json!("")), &["occurredAt must be an ISO 8601"]),
            (with("location", json!(1)), &["location must be an object"]),
            (with("location", json!({})), &["location must have position or place"]),
            (
                with("location", json!({"latitude": 1, "longitude": 2})),
                &["location must have position or place"],
            ),
            (with("location", json!({"place": "x"})), &["location.place"]),
            (with("location", json!({"place": ID, "color": 1})), &["location.color is not a member"]),
            (
                with("location", json!({"position": {"type": "Point", "coordinates": [181, 0]}})),
                &["location.position.coordinates"],
            ),
            (
                with("location", json!({"position": {"type": "Point", "coordinates": [0, -181]}})),
                &["location.position.coordinates"],
            ),
            (with("factoryMetadata", json!("F")), &["factoryMetadata must be an object"]),
            (with("factoryMetadata", json!({})), &["factoryMetadata.factory is required"]),
            (with("factoryMetadata", json!({"factory": ""})), &["factoryMetadata.factory must not be empty"]),
            (
                with("factoryMetadata", json!({"factory": 1, "supplier": 2, "zone": "\0"})),
                &[
                    "factoryMetadata.factory must be",
                    "factoryMetadata.supplier must",
                    "factoryMetadata.zone must",
                ],
            ),
            (
                json!({"product": 1, "location": 2, "occurredAt": 3, "factoryMetadata": 4, "purchaseOrder": 5}),
                &[
                    "product must",
                    "purchaseOrder must",
                    "location must",
                    "occurredAt must",
                    "factoryMetadata",
                ],
            ),
        ];
        for (body, expected) in cases {
            assert_faults(&body, CommissionDraft::parse, expected);
        }
    }

    #[test]
    fn a_decommission_takes_no_product() {
        let body = json!({"location": {"place": ID}, "occurredAt": "2026-11-22T08:15:30Z", "product": 7});
        let draft = StepDraft::parse(&body).unwrap();
        assert_eq!(draft.occurred_at.text, "2026-11-22T08:15:30Z");
        assert_faults(&json!({}), StepDraft::parse, &["location is", "occurredAt is"]);
    }

    #[test]
    fn each_fault_of_a_list_is_named() {
        let pair =
            |thng: Value, product: Value| json!([{"thngIdentifier": thng, "productIdentifier": product}]);
        let good = pair(json!("gs1:21:A"), json!("gs1:01:1"));
        assert_eq!(parse_pairs(&good), Ok(vec![Pair { thng: "A".to_owned(), product: "1".to_owned() }]));
        assert_eq!(parse_pairs(&json!([])), Ok(vec![]));
        let long = format!("gs1:21:{}", "x".repeat(257));
        let cases: Vec<(Value, &[&str])> = vec![
            (json!({}), &["must be an array"]),
            (json!([1]), &["[0] must be an object"]),
            (json!([{}]), &["[0].thngIdentifier is required", "[0].productIdentifier is required"]),
            (pair(json!(1), json!("gs1:01:1")), &["[0].thngIdentifier must be a string"]),
            (pair(json!("A"), json!("1")), &["[0].thngIdentifier: an", "[0].productIdentifier: an"]),
            (pair(json!("serial:A"), json!("gs1:01:1")), &["[0].thngIdentifier must have the key gs1:21"]),
            (pair(json!("gs1:01:1"), json!("gs1:21:A")), &["the key gs1:21", "the key gs1:01"]),
            // The last colon separates.
            (pair(json!("gs1:21:A:B"), json!("gs1:01:1")), &["must have the key gs1:21, not gs1:21:A"]),
            (pair(json!("gs1:21:"), json!("gs1:01:1")), &["[0].thngIdentifier: an identifier"]),
            (pair(json!("gs1:21:\0"), json!("gs1:01:1")), &["[0].thngIdentifier must not hold"]),
            (pair(json!(long), json!("gs1:01:1")), &["[0].thngIdentifier must have at most 256"]),
            (json!(vec![json!({}); MAX_PAIRS + 1]), &["at most 1000 pairs, not 1001"]),
        ];
        for (body, expected) in cases {
            assert_faults(&body, parse_pairs, expected);
        }
        let many = json!(vec![good[0].clone(); MAX_PAIRS]);
        assert_eq!(parse_pairs(&many).map(|pairs| pairs.len()), Ok(MAX_PAIRS));
    }
}
