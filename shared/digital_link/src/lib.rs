#![doc = include_str!("../README.md")]

mod ai;
mod asked;
mod checks;
mod choose;
mod coupon;
mod epc;
mod error;
mod fill;
mod identifiers;
mod link;
pub mod link_types;
mod parse;
mod query;
mod value;
mod wanted;

pub use self::{
    ai::Ai,
    asked::{Asked, Lead, Level, counted},
    choose::ChosenBy,
    error::{DigitalLinkError, Needs},
    fill::{Tags, expand},
    link::{DigitalLink, Qualifier},
    value::push_encoded,
    wanted::{Form, LINKSET},
};

#[cfg(test)]
mod tests;
