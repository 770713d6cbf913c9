//! Mail to people: an outbox in the database, and a worker that sends it by SMTP.
//!
//! Invariants: A mail is written in the transaction of the change that it tells of, encrypted, and removed once the
//! server has taken it. It is sent at least once, under a lease, and given up after a day, or when the code in it has expired.
//! No request waits for the mail server.

pub mod metrics;
mod outbox;
mod settings;
mod smtp;
pub mod store;
pub mod templates;
pub mod worker;

pub use self::{
    outbox::{InvalidMail, Mail, Outbox},
    settings::{InvalidSetting, MAILS_PER_ACCOUNT, MailSettings, Protection},
};
