//! The store and the operations on it, on both engines.

mod races;
mod redirections;
mod scans;
mod stream;
