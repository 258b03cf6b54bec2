//! Encodings by calls: the vectors of shard files, containers and pipes.

mod cancel;
#[path = "../support/cancelled.rs"]
mod cancelled;
mod golden;
mod sealed;
#[path = "../vectors/mod.rs"]
mod vectors;
