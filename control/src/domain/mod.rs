//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub mod access;
pub mod action;
pub mod action_draft;
pub mod action_type;
pub mod app_user;
pub mod context;
pub mod filter;
pub mod geo;
pub mod grant;
pub mod limits;
pub mod location;
pub mod members;
pub mod page;
pub mod password;
pub mod permission;
pub mod place;
pub mod project;
pub mod property;
pub mod property_body;
pub mod redirection;
pub mod reference;
pub mod resource;
pub mod resource_body;
pub mod scan;
pub mod tenant;
