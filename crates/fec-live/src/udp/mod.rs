//! Packets over UDP, many with one system call where the kernel can: segmentation offload on the way out, `recvmmsg`
//! and receive offload on the way in. Otherwise they go singly.
//!
//! A packet is a datagram. Streams never send anything back; a measurement of the route may
//! ([`PacketReceiver::answer`]).

mod receiver;
mod sender;
mod socket;
mod system;
#[cfg(test)]
mod tests;
mod waiting;

pub use receiver::{Drops, PacketReceiver};
pub use sender::{PacketSender, Replies};
pub use socket::{Interface, MAX_DATAGRAM, enlarge, most_bytes, most_bytes_through};
pub(super) use system::{is_away, may_pass};
pub(super) use waiting::WaySender;
