//! The packet code as its users see it: packets in, packets out.

mod common;
mod recovery;
