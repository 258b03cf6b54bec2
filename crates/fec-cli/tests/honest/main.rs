//! What a run tells is what was done: exit code 0 means that all that was named was looked at, another one has a reason that is
//! said, no secret is repeated, and no name plays tricks with a terminal.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod looked;
mod secrets;
mod silence;
mod terminal;
