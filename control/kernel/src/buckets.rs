//! Upper bounds of histograms that several subjects have.

/// Seconds of requests: a read takes a millisecond, the longest upload an hour.
pub const REQUEST_SECONDS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

/// Seconds of the way of a change: the target is 5 ms to 100 edges, the floor a poll of 25 ms.
pub const PUSH_SECONDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];
