//! The integration tests, one binary.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod attacks;
mod availability;
mod bad_input;
mod broker;
mod clients;
mod conditions;
mod console;
mod conventions;
mod countries;
mod decode;
mod errors;
mod export;
mod fleet;
mod geo;
mod gs1;
mod guides;
mod http;
mod jobs;
mod kill;
mod link_previews;
mod mail;
mod oidc;
mod openapi;
mod openapi_clients;
mod ops;
mod pages;
mod platform;
mod preview;
mod print;
mod privacy;
mod publisher;
mod reactions;
mod readme;
mod restore;
mod route_table;
mod rules;
mod schemathesis;
mod secrets;
mod signin;
mod simulation;
mod simulator;
mod sizing;
mod stability;
mod statements;
mod store;
mod tidy;
mod tour;
mod unknown_ids;
mod update;
mod walk;
mod webhooks;

/// Mounts each test of a module on both engines.
macro_rules! on_both_engines {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(tests::db::Engine::Sqlite).await.unwrap();
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(tests::db::Engine::Postgres).await.unwrap();
            })*
        }
    };
}
pub(crate) use on_both_engines;

/// Mounts tests with scans in ClickHouse.
macro_rules! on_clickhouse {
    ($($test:ident),* $(,)?) => {
        mod clickhouse {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(tests::db::Engine::ClickHouse).await.unwrap();
            })*
        }
    };
}
pub(crate) use on_clickhouse;

/// Mounts each test of a module on every store of scans.
macro_rules! on_all_scan_stores {
    ($($test:ident),* $(,)?) => {
        crate::on_both_engines!($($test),*);
        crate::on_clickhouse!($($test),*);
    };
}
pub(crate) use on_all_scan_stores;
