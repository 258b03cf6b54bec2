//! The ground that the crates of `fec` share: files, names, errors and their classes, threads and settings. It knows no
//! cipher and no format but those of [`fec_core`].
//!
//! | to | use |
//! |---|---|
//! | tell what failed, where, and what it means | [`Error`], with a [`Class`] |
//! | give threads, kernel and limits to an operation, and hear of its progress | [`Context`] |
//! | read payloads, write outputs that appear whole or not at all, open names that others can predict | [`io`] |
//! | tell a live stream from encodings | [`beginning`] |
//! | write roots as text, and read lists of them | [`roots`] |
//! | print names of files without what a terminal obeys | [`names`] |
//! | end an operation from another thread | [`context::Cancel`] |
//! | handle signals, time stages, fence mapped files | [`program`], [`io::temporary`] |

mod action;
pub mod beginning;
pub mod class;
pub mod context;
pub mod error;
pub mod io;
pub mod names;
pub mod processor;
pub mod program;
pub mod ranges;
pub mod roots;
pub mod threads;

pub use context::{Context, Settings};
pub use error::{Class, Error, ErrorKind, Result};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
