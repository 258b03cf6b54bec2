//! A test of the link between two machines, as iperf does it, with the packet code of live streams on top: arrivals,
//! losses, and the effect of recovery.
//!
//! ```text
//! sender                                                                     listener
//! message ── Hello ─────────────────────────────────────────────────▶ message
//!         ◀───────────────────────────────────────────────── Cookie ──
//!         ── Open, with the cookie: there is somebody at this address ─▶ one test at a time
//! probe   ── datagrams of several sizes, never cut ─────────────────▶ Probed: these came whole
//! line    ── window::Encoder ─▶ numbered ─▶ impair ─▶ pace ─▶ udp ──▶ intake ─▶ tracker, delay ─▶ window::Decoder
//!         ◀────────────────────────────── Alive, five times a second ──
//!         ── Finish: what was sent ──────────────────────────────────▶ Result: what arrived
//! report                                                                     report
//! ```
//!
//! All of it goes over one pair of UDP ports, so a route that lets streams through lets the test through. Every
//! datagram has a number of its own, whatever its content, and its sending time. Losses, bursts, order and delays are
//! therefore those of the link, apart from the code. The code's packets are those of a live stream, and thus up to 50
//! bytes longer.
//!
//! # What nobody can do with it
//!
//! - Make a listener send somewhere: until an address has sent the cookie back, the listener answers it with fewer
//!   bytes than it got, and remembers nothing. An address that has sent it gets a few short messages a second.
//! - Make a sender flood somebody: it sends only to an address that answered, never to a group or a broadcast address,
//!   and stops when nothing was heard from there for [`SILENCE`].
//! - Keep either of them busy for ever: a test has an end ([`LONGEST`]), and so has every wait.
//!
//! A person who can read the packets on the way can forge others: figures are not proofs.
//!
//! # Datagrams
//!
//! Numbers are little-endian; `message.rs` has the fields of each type.
//!
//! | at | bytes | |
//! |---:|---:|---|
//! | 0 | 4 | `89 66 65 6C` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | type |
//! | 6 | 2 | of test data: bytes of what stands behind the header, without padding; otherwise 0 |
//! | 8 | 8 | the cookie, which names the test; before there is one, a number that the sender chose |
//! | 16 | 8 | of test data: the number of the datagram, from 0 |
//! | 24 | 8 | of test data: when it was sent, in ns |
//! | 32 | | of test data: a packet of the stream, or without recovery a payload; then zeros |
//!
//! All test data is as long as a repair packet, so that the kernel takes it in the order of the numbers. A payload has
//! 8 bytes with its number, 8 with its time of creation, in ns, and bytes that are the same in all payloads and look
//! random.

mod conversation;
mod delay;
mod error;
mod intake;
mod line;
mod listener;
mod message;
mod probe;
mod report;
mod sender;
mod terms;
mod tracker;
mod watcher;

pub use error::LinkError;
pub use listener::{ListenOptions, Listener};
pub use message::SoFar;
pub use report::{Delays, LinkReport, Role};
pub use sender::{LinkOptions, Recovery, run};
pub use terms::{LONGEST, PORT, SECONDS, SILENCE};
pub use watcher::LinkWatcher;

use fec_live::address::Address;
use std::path::Path;

/// Reads `HOST`, `HOST:PORT`, `IPV6`, `[IPV6]:PORT`, with `udp://` in front or not; `:PORT` and the empty text are for
/// listeners.
///
/// # Errors
/// [`LiveError::NotAnAddress`](fec_live::LiveError::NotAnAddress) for anything else.
pub fn address(text: &str) -> std::result::Result<Address, fec_live::LiveError> {
    let plain = text.strip_prefix("udp://").unwrap_or(text);
    if plain.starts_with('@') {
        // The mark of a place to receive at says nothing that the options do not.
        return Err(fec_live::LiveError::NotAnAddress(text.into()));
    }
    let full = match (plain.starts_with('['), plain.matches(':').count()) {
        (false, 2..) => format!("[{plain}]:{PORT}"),
        (true, _) if plain.ends_with(']') => format!("{plain}:{PORT}"),
        (false, 0) => format!("{plain}:{PORT}"),
        _ => plain.to_owned(),
    };
    Address::parse(Path::new(&format!("udp://{full}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_a_port_or_the_usual_one() {
        for (text, expected) in [
            ("board", "udp://board:5205"),
            ("board:1", "udp://board:1"),
            ("udp://board:1", "udp://board:1"),
            ("::1", "udp://[::1]:5205"),
            ("[::1]", "udp://[::1]:5205"),
            ("[::1]:7", "udp://[::1]:7"),
            (":7", "udp://:7"),
            ("", "udp://:5205"),
        ] {
            assert_eq!(address(text).expect("an address").to_string(), expected);
        }
        for bad in ["board:", "board:x", "a/b", "[::1", "a@b:1", "@b:1", "@:1", "b:1?ttl=1", "board:65536"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
