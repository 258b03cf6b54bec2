//! Reasons why there is no test, or no result of it.

use fec_core::window::SettingsError;
use fecfile::Class;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Reason why there is no test, or no result of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// An error of an address, a socket, or the model that loses packets on purpose.
    #[error(transparent)]
    Library(#[from] fecfile::Error),
    /// A group, a broadcast address, or no address.
    #[error("{0}: a test goes to one machine, never to a group or a broadcast address")]
    NotOneMachine(SocketAddr),
    /// Settings that no live stream can have.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Packets longer than the route allows.
    #[error("packets of {payload} bytes do not fit: the largest datagram that does has {largest} bytes")]
    TooLong {
        /// Bytes of a payload.
        payload: u16,
        /// Bytes of the largest datagram.
        largest: usize,
        /// Most bytes of a payload.
        most: Option<u16>,
    },
    /// An error of the system.
    #[error("{address}: {cause}")]
    Network {
        /// The remote or the local address.
        address: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
    /// The other machine reports that no program listens there.
    #[error("{0}: nobody listens there")]
    NobodyListens(SocketAddr),
    /// Nobody answers.
    #[error("{address}: no answer within {:.1} s", .waited.as_secs_f64())]
    NoAnswer {
        /// The silent address.
        address: SocketAddr,
        /// The time waited.
        waited: Duration,
    },
    /// Nobody came.
    #[error("{address}: nobody came within {:.1} s", .waited.as_secs_f64())]
    NobodyCame {
        /// The address that was listened on.
        address: SocketAddr,
        /// The time waited.
        waited: Duration,
    },
    /// The listener has gone.
    #[error("{0}: the listener fell silent, and sending was stopped")]
    Silent(SocketAddr),
    /// The listener tests another link.
    #[error("{0}: it is busy with another test")]
    Busy(SocketAddr),
    /// The listener refuses so large a window.
    #[error("{address}: it takes windows of at most {most} bytes")]
    Window {
        /// The listener.
        address: SocketAddr,
        /// Its limit, in bytes.
        most: u64,
    },
    /// The listener refuses so long a test.
    #[error("{address}: it takes tests of at most {seconds} s")]
    Long {
        /// The listener.
        address: SocketAddr,
        /// Its limit, in seconds.
        seconds: u64,
    },
    /// The listener has another version.
    #[error("{address}: it speaks version {version} of the test")]
    Version {
        /// The listener.
        address: SocketAddr,
        /// Its version.
        version: u64,
    },
    /// A signal came before there was a result.
    #[error("interrupted before the test began")]
    Interrupted,
}

impl LinkError {
    /// The class of the error, for the caller; `None` if a signal asked for the end.
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
