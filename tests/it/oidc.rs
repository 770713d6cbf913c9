//! Sign-in of operators by a provider of identities: the certified `oidc-provider` from npm (`tests/clients/oidc`).

mod library;
mod provider;
