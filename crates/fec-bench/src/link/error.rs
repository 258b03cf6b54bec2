//! Why there is no test, or no result of one.

use fec_core::window::SettingsError;
use fecfile::Class;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why there is no test, or no result of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// An address, a socket, or what loses packets on purpose.
    #[error(transparent)]
    Library(#[from] fecfile::Error),
    /// A group, a broadcast address, or none.
    #[error("{0}: a test goes to one machine, never to a group or a broadcast address")]
    NotOneMachine(SocketAddr),
    /// Settings that no live stream can have.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// Packets that are too long for the way.
    #[error("packets of {payload} bytes do not fit: the largest datagram that does has {largest} bytes")]
    TooLong {
        /// Bytes of a payload.
        payload: u16,
        /// Bytes of the largest datagram.
        largest: usize,
        /// Most bytes of a payload.
        most: Option<u16>,
    },
    /// The system does not do it.
    #[error("{address}: {cause}")]
    Network {
        /// Where to, or where.
        address: SocketAddr,
        /// What it says.
        #[source]
        cause: io::Error,
    },
    /// The other machine says that nobody listens.
    #[error("{0}: nobody listens there")]
    NobodyListens(SocketAddr),
    /// Nobody answers.
    #[error("{address}: no answer within {:.1} s", .waited.as_secs_f64())]
    NoAnswer {
        /// Where from.
        address: SocketAddr,
        /// How long was waited.
        waited: Duration,
    },
    /// Nobody came.
    #[error("{address}: nobody came within {:.1} s", .waited.as_secs_f64())]
    NobodyCame {
        /// Where to.
        address: SocketAddr,
        /// How long was waited.
        waited: Duration,
    },
    /// The listener is there no more.
    #[error("{0}: the listener fell silent, and sending was stopped")]
    Silent(SocketAddr),
    /// The listener tests another link.
    #[error("{0}: it is busy with another test")]
    Busy(SocketAddr),
    /// The listener does not take so large a window.
    #[error("{address}: it takes windows of at most {most} bytes")]
    Window {
        /// Who says so.
        address: SocketAddr,
        /// The most.
        most: u64,
    },
    /// The listener does not take so long a test.
    #[error("{address}: it takes tests of at most {seconds} s")]
    Long {
        /// Who says so.
        address: SocketAddr,
        /// The most.
        seconds: u64,
    },
    /// The listener is of another version.
    #[error("{address}: it speaks version {version} of the test")]
    Version {
        /// Who says so.
        address: SocketAddr,
        /// Its version.
        version: u64,
    },
    /// It was to end before there was anything to tell.
    #[error("interrupted before the test began")]
    Interrupted,
}

impl LinkError {
    /// What it means for whoever asked; none if somebody asked for the end.
    pub fn class(&self) -> Option<Class> {
        Some(match self {
            LinkError::Library(error) => error.class(),
            LinkError::NotOneMachine(_) => Class::Usage,
            LinkError::Settings(_)
            | LinkError::Window { .. }
            | LinkError::Long { .. }
            | LinkError::Version { .. } => Class::Refused,
            LinkError::TooLong { .. }
            | LinkError::Network { .. }
            | LinkError::NobodyListens(_)
            | LinkError::NoAnswer { .. }
            | LinkError::NobodyCame { .. }
            | LinkError::Silent(_)
            | LinkError::Busy(_) => Class::Io,
            LinkError::Interrupted => return None,
        })
    }
}
