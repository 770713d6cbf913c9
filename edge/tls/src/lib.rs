#![doc = include_str!("../README.md")]

mod certs;
mod challenges;
mod disk;
mod pair;
mod received;

pub use self::{certs::TlsCerts, challenges::ACME_TLS};
