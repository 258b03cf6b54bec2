//! The border to the operating system, as far as the command itself asks: standard streams, the terminal, signals and
//! limits. A function has the same signature on either side. `fec-base` has the border for files.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
