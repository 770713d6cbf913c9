//! Several resources in one request.

use std::sync::Arc;

use super::{
    batches::BatchDocument,
    collections::CollectionDocument,
    files::FileDocument,
    places::PlaceDocument,
    products::ProductDocument,
    reactions::{ReactionDocument, parse as parse_reaction},
    thngs::ThngDocument,
    webhooks::{WebhookDocument, parse as parse_webhook},
};
use crate::{
    domain::{
        batch::{Batch, BatchChange},
        body::Purpose,
        collection::{Collection, CollectionChange},
        file::{File, FileChange},
        place::{Place, PlaceChange},
        reaction::Reaction,
        resource::{Product, ProductChange, Thng, ThngChange},
        webhook::Webhook,
    },
    service::{Catalog, Core, EventState},
};

web::bulk!(Arc<Core>, Core, thngs, Thng, ThngChange, ThngDocument, "/thngs", "Thngs", "thngs");
web::bulk!(
    Arc<Core>,
    Core,
    products,
    Product,
    ProductChange,
    ProductDocument,
    "/products",
    "Products",
    "products"
);
web::bulk!(Arc<Core>, Core, places, Place, PlaceChange, PlaceDocument, "/places", "Places", "places");
web::bulk!(
    Arc<Core>,
    Core,
    collections,
    Collection,
    CollectionChange,
    CollectionDocument,
    "/collections",
    "Collections",
    "collections"
);
web::bulk!(Catalog, Catalog, files, File, FileChange, FileDocument, "/files", "Files", "files");
web::bulk!(Arc<Core>, Core, batches, Batch, BatchChange, BatchDocument, "/batches", "Batches", "batches");

web::bulk!(
    Arc<EventState>,
    EventState,
    webhooks,
    Webhook,
    WebhookDocument,
    "/webhooks",
    "Events",
    "webhooks",
    "Beta",
    |app, body| { parse_webhook(app, body, Purpose::Update) }
);
web::bulk!(
    Arc<EventState>,
    EventState,
    reactions,
    Reaction,
    ReactionDocument,
    "/reactions",
    "Events",
    "reactions",
    "Beta",
    |_, body| { parse_reaction(body, Purpose::Update) }
);
