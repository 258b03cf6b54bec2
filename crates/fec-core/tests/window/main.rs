//! The packet code as its users see it: packets in, packets out.

mod common;
mod counts;
mod ends;
mod hostile;
mod ideal;
mod joining;
mod kernels;
mod outages;
mod recovery;
mod sender;
