//! The edge: answers scans from memory, and never waits for anything behind it on a hit.

pub mod backing;
