//! The border to the operating system. Portable modules ask here, and name no system themselves.
//!
//! | file | has |
//! |---|---|
//! | `unix.rs` | the border on Unix |
//! | `unixes.rs`, `naming.rs` | what Unixes, and file systems, do differently |
//! | `windows/` | the border on Windows |
//! | `reserved.rs` | names that Windows takes for something else |
//! | `elsewhere.rs` | the border on a system of which nothing is known but Rust's own library, such as WASI |
//! | `unmapped.rs` | maps of files, where there are none |
//!
//! A function has the same signature on either side. A call that a system lacks is an error, which callers know from
//! file systems that lack it: no promise is weakened in silence.

#[cfg(any(test, not(any(unix, windows))))]
#[cfg_attr(
    any(unix, windows),
    allow(dead_code, unreachable_pub, unused_imports, reason = "only its tests run there")
)]
mod elsewhere;
#[cfg(unix)]
pub mod naming;
#[cfg(any(test, windows))]
#[cfg_attr(not(windows), allow(dead_code, reason = "only its tests run elsewhere"))]
mod reserved;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(super) mod unixes;
#[cfg(any(test, not(unix)))]
#[cfg_attr(unix, allow(dead_code, reason = "only tests have it on Unix"))]
mod unmapped;
#[cfg(windows)]
mod windows;

#[cfg(not(any(unix, windows)))]
pub use elsewhere::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

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
