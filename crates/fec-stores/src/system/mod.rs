//! The border to the operating system, beside that of `fec-base`: files for the owner alone, and how folders are named.
//! A function has the same signature on either side.

#[cfg(any(test, not(unix)))]
#[cfg_attr(unix, allow(dead_code, unreachable_pub, reason = "only its tests run on Unix"))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use elsewhere::*;
#[cfg(unix)]
pub(crate) use unix::*;
