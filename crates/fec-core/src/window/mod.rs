//! The sliding-window packet code: live streams over links that lose, reorder, repeat and damage packets.
//!
//! ```text
//! payloads ─▶ Encoder ─▶ source, repair, mark packets ─▶ (a network) ─▶ Decoder ─▶ payloads, gaps
//! ```
//!
//! The stream goes one way: nothing is acknowledged. The [`Encoder`] sends each payload at once and, at a fixed ratio,
//! repair packets over the last [`window`](StreamSettings::window) payloads. The [`Decoder`] gives out payloads in
//! order, lost ones as soon as enough repair packets have come, and names the remaining gaps. In the terms of RFC 8406
//! this is a systematic sliding-window code with dense coding over GF(2^8).
//!
//! Packets are specified in `docs/FORMAT.md`, sections 13 to 15, and parsed by [`format::packet`].
//!
//! [`format::packet`]: crate::format::packet
//!
//! Nothing here reads a clock, opens a socket or starts a thread: callers own timers and deadlines.
//!
//! ```
//! use fec_core::gf256::kernel::Backend;
//! use fec_core::window::{Decoder, Encoder, Event, Limits, Profile, Ratio, StreamSettings, WINDOW_LIMIT};
//!
//! let settings = StreamSettings {
//!     stream_id: 7,
//!     window: 1000,
//!     block: 48,
//!     payload: 1200,
//!     profile: Profile::Bounded,
//!     // One repair packet for four others.
//!     ratio: Ratio::new(1, 4).expect("neither is 0"),
//!     limit: WINDOW_LIMIT,
//! };
//! let mut sender = Encoder::new(&settings, Backend::best())?;
//! let mut receiver = Decoder::new(Limits::default(), Backend::best());
//!
//! // A network that loses every tenth packet, until the sender has no more to say.
//! let mut sent = 0;
//! let mut network = |packet: &[u8]| {
//!     sent += 1;
//!     if sent % 10 != 3 {
//!         receiver.receive(packet);
//!     }
//! };
//! for seq in 0..200u32 {
//!     sender.push(format!("payload {seq}").as_bytes(), &mut network)?;
//! }
//! sender.finish(&mut network);
//!
//! // All payloads come out in order, those that were lost as well.
//! let (mut expected, mut restored) = (0, 0);
//! while let Some(event) = receiver.next() {
//!     match event {
//!         Event::Packet { seq, payload, rebuilt } => {
//!             assert_eq!((seq, payload), (expected, format!("payload {seq}").as_bytes()));
//!             expected += 1;
//!             restored += u32::from(rebuilt);
//!         }
//!         Event::Gap { first, count } => panic!("{count} payloads from {first} on are lost for good"),
//!         Event::End => break,
//!     }
//! }
//! assert!(expected == 200 && restored > 15);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod deal;
mod decoder;
mod encoder;
mod events;
mod lane_sums;
mod operation;
mod payloads;
mod reception;
mod replays;
mod row;
mod row_solver;
mod set_solver;
mod settings;
pub mod simulate;
mod states;
mod stream;
mod symbol_ring;
mod system;
#[cfg(test)]
mod work;

pub use crate::format::packet::Profile;
pub use decoder::Decoder;
pub use encoder::{Encoder, PushError};
#[cfg(feature = "trace")]
pub use encoder::{Stage, Trace};
pub use events::{Event, Limits, Order, Received, Statistics};
pub use reception::Prospect;
pub use replays::Replays;
pub use settings::{Ratio, SettingsError, StreamSettings, WINDOW_LIMIT};
