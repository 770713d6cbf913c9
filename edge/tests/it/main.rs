//! The edge over real sockets, behind a backing that keeps a real log in memory.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod availability;
mod certificates;
mod conditions;
mod digital_links;
mod domain_files;
mod fleet;
mod gs1;
mod headers;
mod history;
mod limits;
mod management;
mod pages;
mod plain;
mod process;
mod proxies;
mod redirect_heads;
mod replica;
mod representations;
mod rules;
mod scan_limits;
mod scans;
mod stream;
mod support;
mod tls;
mod withheld;
