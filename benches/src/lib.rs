//! Whole-system measurements of the real binaries beside their peers; the figures and how to repeat them are in
//! the README of this crate.
//!
//! Invariants: every answer of every run is checked; a wrong one fails the run, a slow one never does;
//! the product is driven from outside, through its public interfaces alone.

mod answer;
mod build;
mod control;
mod drive;
mod hist;
mod http;
mod ingest;
mod links;
mod load;
mod metrics;
mod mixed;
mod other;
mod process;
mod push;
mod rules;
mod scripts;
mod things;
mod waymark;

pub use self::{
    ingest::{IngestArgs, run_ingest},
    load::{Args, run},
    mixed::{MixedArgs, run_mixed},
    push::{PushArgs, run_push},
    rules::{RulesArgs, run_rules},
    things::{ThingsArgs, run_things},
};
