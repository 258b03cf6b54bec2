//! fec for browsers and Node. The module is compiled to WebAssembly; its host, JavaScript, hands objects to it that it
//! reads at positions, and takes what it restores or encodes.
//!
//! A [`Session`] is all of it: requests in JSON, answers in JSON, over a [`Host`]. docs/guide/browser.md
//! shows the page and the package that are made of it; [`request`] and [`report`] list what may be asked and what is
//! answered.
//!
//! ```
//! use fec_web::{Host, Session};
//! # use std::{io, sync::Arc};
//! struct Empty;
//! impl Host for Empty {
//!     fn read(&self, _object: u32, _offset: u64, _out: &mut [u8]) -> io::Result<usize> { Ok(0) }
//!     fn write(&self, _output: u32, _offset: u64, _bytes: &[u8]) -> io::Result<()> { Ok(()) }
//!     fn read_back(&self, _output: u32, _offset: u64, _out: &mut [u8]) -> io::Result<usize> { Ok(0) }
//!     fn progress(&self, _done: u64, _total: Option<u64>) {}
//! }
//! let mut session = Session::new(Arc::new(Empty));
//! let said = session.answer(br#"{"do": "verify", "objects": [{"name": "x.fec", "size": 0}]}"#);
//! assert!(said["ok"] == false && said["error"]["class"] == "missing");
//! ```

#[cfg(target_family = "wasm")]
pub mod border;
mod encode;
mod host;
pub mod report;
pub mod request;
mod run;

pub use host::Host;
pub use run::Session;
