//! The border to the operating system. Portable modules ask here, and name no system themselves.
//!
//! | file | has |
//! |---|---|
//! | `unix.rs` | the border on Unix |
//! | `unixes.rs`, `naming.rs` | what Unixes, and file systems, do differently |
//! | `elsewhere.rs` | the border on a system of which nothing is known but Rust's own library, such as WASI |
//!
//! A function has the same signature on either side. A call that a system lacks is an error, which callers know from
//! file systems that lack it: no promise is weakened in silence.

#[cfg(any(test, not(unix)))]
#[cfg_attr(unix, allow(dead_code, unreachable_pub, reason = "only its tests run on Unix"))]
mod elsewhere;
#[cfg(unix)]
pub mod naming;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(super) mod unixes;

#[cfg(not(unix))]
pub use elsewhere::*;
#[cfg(unix)]
pub use unix::*;

use std::io;

/// Fills `out` from the system's source of randomness. Systems have different calls for that, and `getrandom` knows
/// them.
///
/// # Errors
/// Those of the source.
pub fn random(out: &mut [u8]) -> io::Result<()> {
    Ok(getrandom::fill(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randomness_fills_all_bytes() {
        let mut bytes = [0; 4096];
        random(&mut bytes).unwrap();
        assert!(bytes.as_chunks::<16>().0.iter().all(|chunk| *chunk != [0; 16]));
        random(&mut []).unwrap();
    }
}
