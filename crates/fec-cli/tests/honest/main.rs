//! A run reports the truth. Exit code 0 means that everything named was examined, and any other code comes with a
//! reason. No secret is repeated, and no name plays tricks with a terminal.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod looked;
mod secrets;
mod silence;
mod terminal;
