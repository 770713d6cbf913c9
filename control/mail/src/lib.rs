//! Mail to people: an outbox in the database, and a worker that sends it by SMTP.
//!
//! Invariants: A mail is written in the transaction of the change that it tells of, encrypted, and removed once the
//! server has taken it. It is sent at least once, under a lease, and given up after a day, or when it is of no use any more.
//! No request waits for the server of mail.

pub mod letters;
pub mod metrics;
mod outbox;
mod settings;
mod smtp;
pub mod store;
pub mod worker;

pub use self::{
    outbox::{InvalidMail, Mail, Outbox},
    settings::{InvalidSetting, MAILS_PER_ACCOUNT, MailSettings, Protection},
};
