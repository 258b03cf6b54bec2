//! Packets over UDP, many with one system call where the kernel can: segmentation offload on the way out, `recvmmsg`
//! and receive offload on the way in. Otherwise they go singly.
//!
//! A packet is a datagram. A receiver answers from the address that packets came to ([`PacketReceiver::answer`]), with
//! reports that were called for, or in a measurement of the route.

mod receiver;
mod sender;
mod socket;
#[cfg(test)]
mod tests;
mod waiting;

pub use super::system::is_refused;
pub use receiver::{Drops, PacketReceiver};
pub use sender::{PacketSender, Replies};
pub use socket::{Interface, MAX_DATAGRAM, enlarge, most_bytes, most_bytes_through};
pub(super) use waiting::WaySender;
