//! Sealing: who can open what is encoded, and what opens it.

pub(crate) mod args;
pub(crate) mod help;
mod keys;
