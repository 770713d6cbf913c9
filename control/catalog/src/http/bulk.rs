//! Several resources in one request.

use super::{
    batches::BatchDocument, collections::CollectionDocument, files::FileDocument, places::PlaceDocument,
    products::ProductDocument, thngs::ThngDocument,
};
use crate::{
    domain::{
        batch::{Batch, BatchChange},
        collection::{Collection, CollectionChange},
        file::{File, FileChange},
        place::{Place, PlaceChange},
        resource::{Product, ProductChange, Thng, ThngChange},
    },
    service::{Catalog, Core},
};

web::bulk!(Catalog, Core, thngs, Thng, ThngChange, ThngDocument, "/thngs", "Thngs", "thngs");
web::bulk!(
    Catalog,
    Core,
    products,
    Product,
    ProductChange,
    ProductDocument,
    "/products",
    "Products",
    "products"
);
web::bulk!(Catalog, Core, places, Place, PlaceChange, PlaceDocument, "/places", "Places", "places");
web::bulk!(
    Catalog,
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
web::bulk!(Catalog, Core, batches, Batch, BatchChange, BatchDocument, "/batches", "Batches", "batches");
