//! Rules as plain functions from data to data: no I/O, no clock, no randomness.

pub use ::kernel::domain::*;

pub mod attempts;
pub mod audit;
pub mod custom_role;
pub mod egress;
pub mod email;
pub mod link_history;
pub mod operator;
pub mod operator_key;
pub mod pages;
pub mod password;
pub mod password_body;
pub mod personal_data_days;
pub mod scan_retention;
pub mod target_hosts;
pub mod tenant;
pub mod tenant_body;
pub mod user_registration;
pub mod withheld;
