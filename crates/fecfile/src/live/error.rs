//! What goes wrong with live streams.

use crate::error::Class;
use crate::names::show;
use crate::passphrases::{NoMemory, ShortPassphrase};
use fec_core::format::packet::PacketError;
use fec_core::window::{PushError, SettingsError};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a live stream cannot be sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// No stream can have these settings.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// A rate that cannot be kept, in million bits a second.
    #[error("a rate of {0} million bits a second")]
    Rate(f64),
    /// The stream takes no more packets.
    #[error("{0}")]
    Push(#[from] PushError),
    /// A trace of losses that is too long.
    #[error("a trace has at most {most} bytes")]
    TraceTooLong {
        /// Most bytes of a trace.
        most: u64,
    },
    /// A trace of losses with other bytes than 0, 1 and spaces.
    #[error("a trace is made of 0 (passes) and 1 (is lost)")]
    NotATrace,
    /// A trace of losses that says nothing.
    #[error("the trace is empty")]
    EmptyTrace,
    /// What stands for a place on the network is none.
    #[error("{}: not an address", show(.0))]
    NotAnAddress(PathBuf),
    /// A port that no address has.
    #[error("port {port} is above 65535")]
    LargePort {
        /// The port.
        port: String,
    },
    /// What other transports are called by.
    #[error("{}: only udp:// is supported", show(.0))]
    OtherScheme(PathBuf),
    /// An address to send to that lacks its host or port.
    #[error("host or port is missing")]
    IncompleteAddress,
    /// A name that is not resolved.
    #[error("{0}")]
    Unresolved(#[source] io::Error),
    /// A name that stands for no address.
    #[error("the name has no address")]
    NoAddress,
    /// A socket cannot use the interface that was asked for; mostly there is none of that name.
    #[error("{cause}")]
    Interface {
        /// Its name.
        name: String,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// Another program receives at the address.
    #[error("{0}")]
    AddressInUse(#[source] io::Error),
    /// The address to receive on is none of this machine's.
    #[error("{0}")]
    NotLocal(#[source] io::Error),
    /// The stream's packets are longer than datagrams may be.
    #[error("the packets do not fit into datagrams")]
    PacketsTooLong {
        /// Most bytes of a payload so that they fit.
        most: usize,
    },
    /// The way to the receiver takes smaller datagrams only.
    #[error("{cause}")]
    DatagramTooLong {
        /// What the system says.
        #[source]
        cause: io::Error,
        /// Most bytes of a payload so that its packets pass, if something on the way told.
        most: Option<usize>,
    },
    /// There is no way to the receiver.
    #[error("{0}")]
    Unreachable(#[source] io::Error),
    /// A gap longer than zeros are written for.
    #[error("a gap of {count} packets is more than zeros are written for ({most})")]
    LongGap {
        /// Packets that are missing.
        count: u64,
        /// Most packets that zeros are written for.
        most: u64,
    },
    /// A key file that holds no key.
    #[error("a key has 32 bytes")]
    KeyFile,
    /// A passphrase that is too short.
    #[error("{0}")]
    Passphrase(#[from] ShortPassphrase),
    /// The system does not have the memory that a passphrase takes.
    #[error("{0}")]
    Memory(#[from] NoMemory),
    /// A number for a stream that is sealed: if it had been used before, nonces would repeat.
    #[error(
        "the number of a sealed stream is not for choosing: with one that was used before, it could be read and forged"
    )]
    StreamIdOfSealed,
    /// Packets came, and the key opens none.
    #[error("no packet that came is of this key")]
    NothingOpened {
        /// Sealed packets that were forged, or have another key.
        forged: u64,
        /// Packets that are not sealed.
        unsealed: u64,
    },
    /// Authentic packets came, and were sealed too long ago, or in the future.
    #[error("the packets that came were sealed {} {}", duration(*.0), if *.0 < 0 { "in the future" } else { "ago" })]
    Stale(i32),
    /// Packets are lost for good, and gaps were not to be passed over.
    #[error("lost for good: {0}")]
    LostForGood(LostPackets),
    /// No packet of a stream came.
    #[error("no packet of a stream came")]
    NothingCame {
        /// Packets of other streams that came.
        foreign: u64,
        /// Packets and frames that came damaged, or are none.
        damaged: u64,
    },
    /// All that came is intact, and nothing that this receiver accepts.
    #[error("{0}")]
    NothingAccepted(Refusal),
}

impl LiveError {
    /// What it means for whoever asked.
    pub fn class(&self) -> Class {
        match self {
            LiveError::Rate(_)
            | LiveError::NotAnAddress(_)
            | LiveError::LargePort { .. }
            | LiveError::OtherScheme(_)
            | LiveError::IncompleteAddress
            | LiveError::Passphrase(_)
            | LiveError::StreamIdOfSealed
            | LiveError::PacketsTooLong { .. } => Class::Usage,
            LiveError::Settings(_)
            | LiveError::Push(_)
            | LiveError::LongGap { .. }
            | LiveError::KeyFile
            | LiveError::Memory(_)
            | LiveError::Stale(_)
            | LiveError::NothingAccepted(_) => Class::Refused,
            LiveError::NothingOpened { .. } => Class::Untrue,
            LiveError::LostForGood(_) | LiveError::NothingCame { .. } => Class::Lost,
            LiveError::TraceTooLong { .. }
            | LiveError::NotATrace
            | LiveError::EmptyTrace
            | LiveError::Unresolved(_)
            | LiveError::NoAddress
            | LiveError::Interface { .. }
            | LiveError::AddressInUse(_)
            | LiveError::NotLocal(_)
            | LiveError::DatagramTooLong { .. }
            | LiveError::Unreachable(_) => Class::Io,
        }
    }
}

/// A number of seconds, in words.
fn duration(seconds: i32) -> String {
    let seconds = seconds.unsigned_abs();
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        7200..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Packets in a row that are lost for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPackets {
    /// The number of the first.
    pub first: u64,
    /// How many, 1 at least.
    pub count: u64,
}

impl fmt::Display for LostPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LostPackets { first, count: 1 } => write!(f, "packet {first}"),
            LostPackets { first, count } => {
                write!(f, "packets {first} to {}", first.saturating_add(count.saturating_sub(1)))
            }
        }
    }
}

/// Why an intact packet is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This build does not know what it says, or it breaks a rule.
    #[error("{0}")]
    Packet(PacketError),
    /// The stream's window takes more memory than is allowed.
    #[error("the window takes {bytes} bytes")]
    Window {
        /// Bytes of its symbols.
        bytes: u64,
    },
}
