//! HTTP: products, Thngs, places, collections, batches, files and properties.
//!
//! Each handler extracts, calls one service function and answers.

mod batches;
pub mod bodies;
mod bulk;
mod collection_members;
mod collections;
mod file_content;
mod files;
mod places;
mod products;
mod properties;
mod thng_keys;
mod thng_locations;
mod thngs;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
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
        .routes(routes!(thng_keys::create).idempotent())
        .routes(routes!(thng_keys::read, thng_keys::revoke))
        .routes(routes!(thng_keys::rotate).idempotent())
        .routes(routes!(products::list, bulk::products::update, bulk::products::delete))
        .routes(routes!(products::create).idempotent())
        .routes(routes!(products::read).answers_tag())
        .routes(routes!(products::update, products::delete).takes_tag())
        .routes(routes!(thngs::list, bulk::thngs::update, bulk::thngs::delete))
        .routes(routes!(thngs::create).idempotent())
        .routes(routes!(thngs::read).answers_tag())
        .routes(routes!(thngs::update, thngs::delete).takes_tag())
        .routes(routes!(thng_locations::list, thng_locations::add, thng_locations::delete))
        .routes(routes!(collections::list, bulk::collections::update, bulk::collections::delete))
        .routes(routes!(collections::create).idempotent())
        .routes(routes!(collections::read).answers_tag())
        .routes(routes!(collections::update, collections::delete).takes_tag())
        .routes(routes!(
            collection_members::list_thngs,
            collection_members::add_thngs,
            collection_members::remove_thngs
        ))
        .routes(routes!(collection_members::remove_thng))
        .routes(routes!(
            collection_members::list_collections,
            collection_members::add_collections,
            collection_members::post_collections,
            collection_members::remove_collections
        ))
        .routes(routes!(collection_members::remove_collection))
        .routes(routes!(files::list, bulk::files::update, bulk::files::delete))
        .routes(routes!(files::create).idempotent())
        .routes(routes!(files::read).answers_tag())
        .routes(routes!(files::update, files::delete).takes_tag())
        .routes(routes!(file_content::download))
        .routes(routes!(file_content::upload).time_limit(file_content::UPLOAD_TIME_LIMIT))
        .routes(routes!(places::list, bulk::places::update, bulk::places::delete))
        .routes(routes!(places::create).idempotent())
        .routes(routes!(places::read).answers_tag())
        .routes(routes!(places::update, places::delete).takes_tag())
        .routes(routes!(
            properties::of_thng::list,
            properties::of_thng::create,
            properties::of_thng::update,
            properties::of_thng::delete
        ))
        .routes(routes!(
            properties::of_thng::read_one,
            properties::of_thng::update_one,
            properties::of_thng::delete_one
        ))
        .routes(routes!(properties::of_thng::read_series))
        .routes(routes!(properties::of_product::read_series))
        .routes(routes!(
            properties::of_product::list,
            properties::of_product::create,
            properties::of_product::update,
            properties::of_product::delete
        ))
        .routes(routes!(
            properties::of_product::read_one,
            properties::of_product::update_one,
            properties::of_product::delete_one
        ))
        .routes(routes!(batches::list, bulk::batches::update, bulk::batches::delete))
        .routes(routes!(batches::create).idempotent())
        .routes(routes!(batches::read).answers_tag())
        .routes(routes!(batches::update, batches::delete).takes_tag())
}
