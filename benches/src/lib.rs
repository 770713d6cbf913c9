//! Whole-system measurements of the real binary beside nginx; the figures and how to repeat them are in
//! the README of this crate.
//!
//! Invariants: every answer of every run is checked; a wrong one fails the run, a slow one never does;
//! the product is driven from outside, through its public interfaces alone.

mod answer;
mod drive;
mod hist;
mod http;
mod import;
mod links;
mod mixed;
mod nginx;
mod process;
mod push;
mod report;
mod rounds;
mod rules;
mod run;
mod scripts;
mod things;
mod update;
mod waymark;

pub use self::{
    mixed::{MixedArgs, run_mixed},
    push::{PushArgs, run_push},
    rules::{RulesArgs, run_rules},
    run::{Args, run},
    things::{ThingsArgs, run_things},
};
