//! The sliding-window packet code: live streams over links that lose, reorder, repeat and damage packets.
//!
//! ```text
//! payloads ─▶ Encoder ─▶ source, repair, mark packets ─▶ (a network) ─▶ Decoder ─▶ payloads, gaps
//! ```
//!
//! One way: nothing is acknowledged. The [`Encoder`] sends each payload at once and, at a fixed ratio, repair
//! packets over the last [`window`](StreamSettings::window) payloads. The [`Decoder`] gives out payloads in order, those
//! that were lost as soon as enough repair packets have come, and names the gaps that are left. In the terms of
//! RFC 8406 this is a systematic sliding-window code with dense coding over GF(2^8).
//!
//! Packets are specified in `docs/FORMAT.md`, sections 13 to 15, and parsed by [`format::packet`].
//!
//! [`format::packet`]: crate::format::packet
//!
//! Nothing here reads a clock, opens a socket or starts a thread: callers own timers and deadlines.

mod decoder;
mod encoder;
mod lane_sums;
mod reception;
mod row;
mod sets;
mod settings;
pub mod simulate;
mod symbol_ring;
mod system;
mod trace;

pub use crate::format::packet::Profile;
pub use decoder::{Decoder, Event, Limits, Order, Received, Statistics};
pub use encoder::{Encoder, PushError};
pub use settings::{Ratio, SettingsError, StreamSettings, WINDOW_LIMIT};
#[cfg(feature = "trace")]
pub use trace::{Stage, Trace};
