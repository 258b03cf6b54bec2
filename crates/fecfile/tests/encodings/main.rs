//! Encodings by calls: the vectors of shard files, containers and pipes.

mod golden;
#[path = "../vectors/mod.rs"]
mod vectors;
