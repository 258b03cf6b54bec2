//! Errors of live streams.

use fec_base::class::Class;
use fec_base::error::Cause;
use fec_base::names::{show, show_bytes};
use fec_core::format::packet::PacketError;
use fec_core::window::{PushError, SettingsError};
use fec_keys::passphrases::NoMemory;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a live stream cannot be sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// No stream can have these settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A rate that cannot be kept, in Mb/s.
    #[error("a rate of {0} million bits a second")]
    Rate(f64),
    /// The stream takes no more packets.
    #[error(transparent)]
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
    /// A trace of losses without a digit.
    #[error("the trace is empty")]
    EmptyTrace,
    /// Text that is no address, where a place on the network is expected.
    #[error("{}: not an address", show(.0))]
    NotAnAddress(PathBuf),
    /// A port above 65,535.
    #[error("port {port} is above 65535")]
    LargePort {
        /// The port.
        port: String,
    },
    /// An address of another transport.
    #[error("{}: only udp:// is supported", show(.0))]
    OtherScheme(PathBuf),
    /// Options behind `?` in an address, as other programs take them.
    #[error("{address}: options do not stand in an address: {}", show_bytes(names.join(", ").as_bytes()))]
    OptionsInAddress {
        /// The address without them.
        address: String,
        /// The names of the options, at most 16.
        names: Vec<String>,
    },
    /// An address with `@`, and no multicast group, where packets are sent to.
    #[error("an address with @ is a place to receive at")]
    PlaceToReceive,
    /// An address of each network, without the interface that says on which.
    #[error("each network has this address, and no interface is named")]
    InterfaceMissing,
    /// An address that names another interface than the options do.
    #[error("the address names the interface {}, and the options name another", show_bytes(.0.as_bytes()))]
    TwoInterfaces(String),
    /// An address to send to that lacks its host or port.
    #[error("host or port is missing")]
    IncompleteAddress,
    /// A name that cannot be resolved.
    #[error(transparent)]
    Unresolved(io::Error),
    /// A name without an address.
    #[error("the name has no address")]
    NoAddress,
    /// A socket cannot use the requested interface; mostly there is none of that name.
    #[error("{cause}")]
    Interface {
        /// Its name.
        name: String,
        /// The system's error.
        cause: io::Error,
    },
    /// Another program receives at the address.
    #[error(transparent)]
    AddressInUse(io::Error),
    /// The address to receive on is none of this machine's.
    #[error(transparent)]
    NotLocal(io::Error),
    /// The stream's packets are longer than datagrams can be.
    #[error("the packets do not fit into datagrams")]
    PacketsTooLong {
        /// Most bytes of a payload whose packets fit.
        most: usize,
    },
    /// The route to the receiver takes smaller datagrams only.
    #[error("{cause}")]
    DatagramTooLong {
        /// The system's error.
        cause: io::Error,
        /// Most bytes of a payload whose packets pass, if the route reported it.
        most: Option<usize>,
    },
    /// There is no route to the receiver.
    #[error(transparent)]
    Unreachable(io::Error),
    /// A gap longer than the limit for writing zeros.
    #[error("a gap of {count} packets is more than zeros are written for ({most})")]
    LongGap {
        /// Packets that are missing.
        count: u64,
        /// The limit, in packets.
        most: u64,
    },
    /// A key file that holds no key.
    #[error("a key has 32 bytes")]
    KeyFile,
    /// A passphrase that is too short for a stream.
    #[error(
        "a passphrase of a stream needs at least {least} characters: whoever records packets can guess it"
    )]
    ShortPassphrase {
        /// The fewest characters.
        least: usize,
    },
    /// The system does not have the memory that a passphrase takes.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// A chosen number for a sealed stream: if it had been used before, nonces would repeat.
    #[error(
        "the number of a sealed stream is not for choosing: with one that was used before, it could be read and forged"
    )]
    StreamIdOfSealed,
    /// Packets came, and the key opens none of them.
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
    /// Packets are lost for good, and gaps were not allowed.
    #[error("lost for good: {0}")]
    LostForGood(LostPackets),
    /// No packet of a stream came.
    #[error("no packet of a stream came")]
    NothingCame {
        /// Packets of other streams that came.
        foreign: u64,
        /// Packets and frames that were damaged or malformed.
        damaged: u64,
    },
    /// All packets that came are intact, and this receiver accepts none of them.
    #[error("{0}")]
    NothingAccepted(Refusal),
}

impl Cause for LiveError {
    fn class(&self) -> Class {
        match self {
            LiveError::Rate(_)
            | LiveError::NotAnAddress(_)
            | LiveError::LargePort { .. }
            | LiveError::OtherScheme(_)
            | LiveError::IncompleteAddress
            | LiveError::OptionsInAddress { .. }
            | LiveError::PlaceToReceive
            | LiveError::InterfaceMissing
            | LiveError::TwoInterfaces(_)
            | LiveError::ShortPassphrase { .. }
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

/// Consecutive packets that are lost for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPackets {
    /// The number of the first packet.
    pub first: u64,
    /// Number of packets, at least 1.
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

/// The reason why an intact packet is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The packet breaks a rule, or this build does not know its fields.
    #[error("{0}")]
    Packet(PacketError),
    /// The stream's window takes more memory than allowed.
    #[error("the window takes {bytes} bytes")]
    Window {
        /// Bytes of its symbols.
        bytes: u64,
    },
}
