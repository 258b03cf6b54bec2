//! Live streams: packets of the sliding-window code over pipes and UDP.
//!
//! ```text
//! encode: feed (a thread reads) ─▶ packets ─▶ fec_core::window ─▶ impair ─▶ pace ─▶ frame ─▶ file, pipe
//!                                                                            └────▶ udp
//! decode: feed (a thread reads or receives) ─▶ frame ─▶ fec_core::window ─▶ payload
//! ```
//!
//! What a packet holds is the codec's affair; here packets are bytes.

pub(crate) mod address;
pub(crate) mod args;
pub(crate) mod detect;
mod feed;
pub(crate) mod frame;
pub(crate) mod impair;
pub(crate) mod loopback;
pub(crate) mod loss;
pub(crate) mod output;
mod pace;
pub(crate) mod receive;
mod report;
pub(crate) mod send;
mod sent;
mod udp;
mod way;
