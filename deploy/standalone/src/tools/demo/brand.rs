//! What the items of the demo hang on: an application that reports scans, products, factories and a webhook.

use serde_json::{Value, json};

use super::{
    items::tag,
    mark::{Demo, FIELD, TAG, is_marked, list, text},
    world::{BRAND, FACTORIES, PRODUCTS, gtin},
};
use crate::tools::client::{Client, RequestError};

/// Where the webhook leads: nobody has this name, and it is switched off.
const WEBHOOK_URL: &str = "https://warehouse.example/waymark-demo";

/// The ids of what is there.
pub(super) struct Brand {
    /// GTIN and id of each product, in their order.
    pub(super) products: Vec<(String, String)>,
    /// Ids of the factories' places, in their order.
    pub(super) places: Vec<String>,
}

/// The secret key of the application that reports scans; makes the application if it is not there.
pub(super) async fn secret_key(client: &Client, demo: &Demo) -> Result<String, RequestError> {
    let path = ["projects", demo.project.as_str(), "applications"];
    let there: Vec<Value> = list(client, &path, &[]).await?;
    let application = match there.into_iter().find(is_marked) {
        Some(application) => application,
        None => {
            // `reportsContext`: its scans name the phone and the network of whoever scans.
            let body = json!({"name": "Scans of the demo", "reportsContext": true, "tags": [TAG],
                "customFields": {FIELD: true}});
            demo.post(client, &client.url(&path, []), &body).await?
        }
    };
    let [projects, project, applications] = path;
    let path = [projects, project, applications, text(&application, "id"), "secretKey"];
    let answer: Value = client.read(&client.url(&path, [])).await?;
    Ok(text(&answer, "secretApiKey").to_owned())
}

/// Makes what is missing.
pub(super) async fn make(client: &Client, demo: &Demo) -> Result<Brand, RequestError> {
    let (mut products, mut places) = (Vec::new(), Vec::new());
    let there = demo.list(client, &["products"]).await?;
    for (index, product) in PRODUCTS.iter().enumerate() {
        let gtin = gtin(tag(demo.mark.seed), index);
        let known = there.iter().find(|one| text(&one["identifiers"], "gs1:01") == gtin);
        let id = match known {
            Some(known) => text(known, "id").to_owned(),
            None => {
                let body = json!({"name": product.name, "brand": BRAND, "categories": [product.category],
                    "description": "A product of the demo.", "identifiers": {"gs1:01": gtin}, "tags": [TAG],
                    "customFields": {FIELD: true, "permittedCountries": product.countries}});
                make_one(client, demo, &["products"], &body).await?
            }
        };
        products.push((gtin, id));
    }
    let there = demo.list(client, &["places"]).await?;
    for factory in &FACTORIES {
        let known = there.iter().find(|one| text(&one["identifiers"], "factory") == factory.factory);
        places.push(match known {
            Some(known) => text(known, "id").to_owned(),
            None => {
                let body = json!({"name": factory.name, "type": "factory", "tags": [TAG],
                    "identifiers": {"factory": factory.factory}, "customFields": {FIELD: true},
                    "latitude": factory.latitude, "longitude": factory.longitude});
                make_one(client, demo, &["places"], &body).await?
            }
        });
    }
    if demo.list(client, &["webhooks"]).await?.is_empty() {
        let body = json!({"name": "Verdicts for the warehouse", "url": WEBHOOK_URL, "status": "disabled",
            "types": ["action.authenticationResults"], "tags": [TAG], "customFields": {FIELD: true}});
        make_one(client, demo, &["webhooks"], &body).await?;
    }
    Ok(Brand { products, places })
}

/// Makes a resource in the demo's project; gives its id.
async fn make_one(client: &Client, demo: &Demo, path: &[&str], body: &Value) -> Result<String, RequestError> {
    let made: Value = demo.post(client, &demo.url(client, path), body).await?;
    Ok(text(&made, "id").to_owned())
}
