//! Encodings by calls: the vectors of shard files, containers and pipes, parts of payloads, the order of records in
//! pipes, and outputs that are kept.

mod cancel;
#[path = "../support/cancelled.rs"]
mod cancelled;
mod golden;
#[cfg(unix)]
mod keeps;
mod made;
mod meanwhile;
mod notices;
mod outlines;
mod pipes;
mod ranges;
mod sealed;
mod signed;
#[path = "../vectors/mod.rs"]
mod vectors;
