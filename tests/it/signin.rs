//! Sign-in of operators: passwords, second factors by an authenticator that is not ours (`pyotp` from PyPI), and sessions.

mod authenticator;
mod invitations;
mod links;
mod mailbox;
mod passwords;
mod second_factor;
mod secrecy;
mod sessions;
mod site;
mod suspension;
mod throttles;

/// The operator of a test's account, as it is made without a password.
const OWNER: &str = "o@example.com";
const PASSWORD: &str = "a long sentence is best";
const ANOTHER: &str = "a longer sentence is better";
const HOUR_MS: i64 = 3_600_000;
