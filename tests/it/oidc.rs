//! Sign-in of operators by a provider of identities: the certified `oidc-provider` from npm (`tests/clients/oidc`).

mod api;
mod library;
mod product;
mod provider;
mod site;
