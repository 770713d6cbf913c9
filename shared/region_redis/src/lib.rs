#![doc = include_str!("../README.md")]

mod client;
mod url;

pub use self::{
    client::{Patience, RedisClient},
    url::{Form, InvalidRedisUrl, RedisUrl},
};
