#![doc = include_str!("../README.md")]

mod ai;
mod checks;
mod coupon;
mod epc;
mod error;
mod identifiers;
mod link;
mod parse;
mod query;
mod value;

pub use self::{
    ai::Ai,
    error::{DigitalLinkError, Needs},
    link::{DigitalLink, Qualifier},
    value::push_encoded,
};

#[cfg(test)]
mod tests;
