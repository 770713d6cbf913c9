//! HTTP: products, Thngs, places, collections, batches, files and properties.
//!
//! Each handler extracts, calls one service function and answers.

mod batches;
mod bodies;
mod bulk;
mod collection_members;
mod collections;
mod file_content;
mod files;
mod link_documents;
mod one;
mod places;
mod products;
mod properties;
mod thng_keys;
mod thng_locations;
mod thngs;

use axum::extract::FromRef;
use tenants::http::bodies::overlap;
use utoipa_axum::routes;
use web::{
    access::Access,
    bodies::or_many,
    routes::{Columns, Routes},
};

use crate::service::Catalog;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Catalog: FromRef<S>,
{
    Routes::new()
        .routes(routes!(thng_keys::create).idempotent().body(bodies::thng_key))
        .routes(routes!(thng_keys::read, thng_keys::revoke))
        .routes(routes!(thng_keys::rotate).idempotent().body(overlap))
        .routes(
            routes!(products::list, bulk::products::update, bulk::products::delete)
                .body(|| bodies::product(false)),
        )
        .routes(routes!(products::create).idempotent().waits().body(|| or_many(bodies::product(true))))
        .routes(routes!(products::read).answers_tag())
        .routes(
            routes!(products::update, products::delete).takes_tag().waits().body(|| bodies::product(false)),
        )
        .routes(routes!(thngs::list, bulk::thngs::update, bulk::thngs::delete).body(|| bodies::thng(false)))
        .routes(routes!(thngs::create).idempotent().waits().body(|| or_many(bodies::thng(true))))
        .routes(routes!(thngs::read).answers_tag())
        .routes(routes!(thngs::update, thngs::delete).takes_tag().waits().body(|| bodies::thng(false)))
        .routes(
            routes!(thng_locations::list, thng_locations::add, thng_locations::delete)
                .body(bodies::locations),
        )
        .routes(
            routes!(collections::list, bulk::collections::update, bulk::collections::delete)
                .body(|| bodies::collection(false)),
        )
        .routes(routes!(collections::create).idempotent().body(|| bodies::collection(true)))
        .routes(routes!(collections::read).answers_tag())
        .routes(
            routes!(collections::update, collections::delete).takes_tag().body(|| bodies::collection(false)),
        )
        .routes(
            routes!(
                collection_members::list_thngs,
                collection_members::add_thngs,
                collection_members::remove_thngs
            )
            .body(|| bodies::members("thng-id")),
        )
        .routes(routes!(collection_members::remove_thng))
        .routes(
            routes!(
                collection_members::list_collections,
                collection_members::add_collections,
                collection_members::post_collections,
                collection_members::remove_collections
            )
            .body(|| bodies::members("collection-id")),
        )
        .routes(routes!(collection_members::remove_collection))
        .routes(routes!(files::list, bulk::files::update, bulk::files::delete).body(|| bodies::file(false)))
        .routes(routes!(files::create).idempotent().body(|| bodies::file(true)))
        .routes(routes!(files::read).answers_tag())
        .routes(routes!(files::update, files::delete).takes_tag().body(|| bodies::file(false)))
        // The store of contents may be a server that answers late.
        .routes(routes!(file_content::download).takes_no_place())
        .routes(
            routes!(file_content::upload)
                .time_limit(file_content::UPLOAD_TIME_LIMIT)
                .takes_no_place()
                .body(bodies::content),
        )
        .routes(
            routes!(places::list, bulk::places::update, bulk::places::delete).body(|| bodies::place(false)),
        )
        .routes(routes!(places::create).idempotent().body(|| bodies::place(true)))
        .routes(routes!(places::read).answers_tag())
        .routes(routes!(places::update, places::delete).takes_tag().body(|| bodies::place(false)))
        .routes(
            routes!(
                properties::of_thng::list,
                properties::of_thng::create,
                properties::of_thng::update,
                properties::of_thng::delete
            )
            .body(bodies::properties),
        )
        .routes(
            routes!(
                properties::of_thng::read_one,
                properties::of_thng::update_one,
                properties::of_thng::delete_one
            )
            .body(bodies::property),
        )
        .routes(routes!(properties::of_thng::read_series))
        .routes(routes!(properties::of_product::read_series))
        .routes(
            routes!(
                properties::of_product::list,
                properties::of_product::create,
                properties::of_product::update,
                properties::of_product::delete
            )
            .body(bodies::properties),
        )
        .routes(
            routes!(
                properties::of_product::read_one,
                properties::of_product::update_one,
                properties::of_product::delete_one
            )
            .body(bodies::property),
        )
        .routes(
            routes!(batches::list, bulk::batches::update, bulk::batches::delete)
                .body(|| bodies::batch(false)),
        )
        .routes(routes!(batches::create).idempotent().body(|| bodies::batch(true)))
        .routes(routes!(batches::read).answers_tag())
        .routes(routes!(batches::update, batches::delete).takes_tag().body(|| bodies::batch(false)))
}
