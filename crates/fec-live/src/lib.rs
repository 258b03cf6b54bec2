//! Live streams: packets of the sliding-window code over byte streams and UDP.
//!
//! ```text
//! send     reader thread ─▶ payloads ─▶ fec_core::window ─▶ seal ─▶ impair ─▶ pace ─▶ frame ─▶ file, pipe
//!                                                                               └────▶ udp
//! receive  reader thread ─▶ frame ─▶ open ─▶ fec_core::window ─▶ payload
//!          (reads, or receives)
//! ```
//!
//! The content of a packet is the codec's affair; here packets are bytes. The codec has neither clock nor sockets:
//! timers, deadlines and the silence of a network belong here. Neither direction needs the other. A receiver may report
//! to a sender that calls for it, and the number of repair packets then follows the loss.
//!
//! ```
//! use fec_base::error::Place;
//! use fec_live::Output;
//! use fec_live::receive::{PacketSource, ReceiveOptions, receive};
//! use fec_live::send::{PacketDestination, SendOptions, send};
//! use fec_base::context::{Context, Silent};
//! use std::io::Cursor;
//! # fn main() -> fec_base::Result<()> {
//! let (context, here) = (Context::default(), Place::Nowhere);
//! let (mut stream, mut back) = (Vec::new(), Vec::new());
//! let destination = PacketDestination::Bytes(Output::stream(here.clone(), &mut stream));
//! send(Cursor::new(b"what is said"), here.clone(), destination, &SendOptions::default(), &context)?;
//!
//! let source = PacketSource::Bytes { place: here.clone(), head: Vec::new(), input: Box::new(Cursor::new(stream)) };
//! let output = Output::stream(here, &mut back);
//! assert!(receive(source, output, &ReceiveOptions::default(), &mut Silent, &context)?.is_whole());
//! assert_eq!(back, b"what is said");
//! # Ok(())
//! # }
//! ```

pub mod address;
mod ages;
mod calls;
mod chunk;
pub mod detect;
mod error;
mod feedback;
mod follow;
mod frame;
pub mod impair;
pub mod key;
pub mod loss;
mod origins;
mod output;
pub mod pace;
mod packetizer;
pub mod paths;
pub mod quality;
mod rate;
mod reader_thread;
pub mod receive;
mod received;
mod refusals;
mod reporter;
mod seal;
pub mod send;
mod sent;
#[cfg(test)]
mod simulated;
mod system;
#[cfg(test)]
mod tests;
mod timers;
mod transmitter;
pub mod udp;

pub use chunk::{Arrival, Chunk};
pub use error::{LiveError, LostPackets, Refusal};
pub use origins::{MOST_WAYS, WayReceived};
pub use output::Output;
pub use received::Received;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
