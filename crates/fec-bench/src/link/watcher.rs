//! Whoever shows what happens meanwhile.

use super::message::SoFar;
use std::net::SocketAddr;

/// Told what happens meanwhile.
pub trait LinkWatcher {
    /// A listener waits at this address.
    fn listening(&mut self, _at: SocketAddr) {}

    /// The test begins: there is somebody at this address.
    fn begun(&mut self, _other: SocketAddr) {}

    /// About once a second, what has arrived.
    fn so_far(&mut self, _so_far: &SoFar) {}
}

/// Watches nothing.
impl LinkWatcher for () {}
