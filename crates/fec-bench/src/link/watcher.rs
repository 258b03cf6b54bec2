//! The interface of a caller that shows the progress of a test.

use super::message::SoFar;
use std::net::SocketAddr;

/// Receives the progress of a test.
pub trait LinkWatcher {
    /// A listener waits at this address.
    fn listening(&mut self, _at: SocketAddr) {}

    /// The test begins, with the other side at this address.
    fn begun(&mut self, _other: SocketAddr) {}

    /// The arrivals so far, about once a second.
    fn so_far(&mut self, _so_far: &SoFar) {}
}

/// Watches nothing.
impl LinkWatcher for () {}
