//! The fast path of HTTP/1.1: plain redirects are answered before hyper sees the connection.
//!
//! A redirect that hyper reads and writes takes twice the instructions. So [`Front`] reads requests itself as long as it
//! recognises every byte ([`request`]), and answers at once where an id leads, or that it leads nowhere. The first request
//! that it does not recognise, or that needs anything else, goes to hyper with all bytes that were read, and the connection
//! stays there. hyper remains the reference: both give the same answers (`tests/it/plain.rs` of this crate compares them).

mod front;
mod head;
mod replay;
mod request;

pub(crate) use self::{front::Front, replay::Replay};
