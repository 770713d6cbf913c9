//! The API client of the tools.
