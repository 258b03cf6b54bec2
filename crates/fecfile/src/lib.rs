//! Protects files, pipes and live streams against loss, corruption and tampering: the library behind the command `fec`.
//!
//! A payload becomes k original and m recovery shards; any k intact ones restore it, and a 32-byte root names exactly
//! this encoding of exactly these bytes. The codec is [`fec_core`]; here are files, pipes, stores, sockets and threads
//! around it.
//!
//! ```
//! use fecfile::{Context, encode_path, decode_path, verify_path};
//! # fn main() -> fecfile::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let (file, back) = (folder.path().join("release.bin"), folder.path().join("back.bin"));
//! # std::fs::write(&file, b"the only copy of something").unwrap();
//! let context = Context::default();
//! let root = encode_path(&file, &context)?.root;             // release.bin.shards/, any 33 of 100 restore it
//! # let shards = folder.path().join("release.bin.shards");
//! assert!(verify_path(&shards, Some(root), &context)?.is_intact());
//! // If the payload is not whole, this is an error, and nothing is written.
//! assert!(decode_path(&shards, &back, Some(root), &context)?.is_whole());
//! # assert_eq!(std::fs::read(&back).unwrap(), b"the only copy of something");
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | encode to a store of shards, to a container file, to a writer | [`encode`], with [`Options`](payload::Options) |
//! | find what an input holds, restore it, verify it | [`Archive`] |
//! | encode again, and keep what is there and intact | [`keep`] |
//! | make damaged and missing files anew | [`Archive::repair`] |
//! | decode a container from a pipe as it comes | [`pipe`] |
//! | keep shards somewhere else than in folders | [`io::Store`] |
//! | look at every set as it is decoded | [`sets`] |
//! | tell apart the encodings that lie in folders | [`survey`] |
//! | seal payloads, for the holders of keys | [`seal`], with [`Options::sealing`](payload::Options) |
//! | sign roots, and accept only what is signed | [`sign`] |
//! | send and receive live streams | [`live`] |
//! | wrap a content key for those who may have it, as other tools read it | [`age`] |
//!
//! Everything is synchronous. Errors are values ([`Error`]: action, place, cause) with a [`Class`] that tells their
//! meaning. The library prints nothing, never ends the process, and installs nothing by itself. Programs can ask for
//! the fence that lets inputs be mapped ([`io::sigbus::install`]), the removal of temporary files by a signal
//! ([`io::temporary::remove_all`]) and the timing of stages ([`stages::start`]).

pub mod age;
pub mod archive;
mod choose;
pub mod cipher;
mod class;
pub mod context;
pub mod encode;
pub mod error;
pub mod forms;
mod groups;
pub mod guarded;
pub mod input;
pub mod interrupt;
pub mod io;
pub mod keep;
mod leftovers;
pub mod live;
mod losses;
pub mod names;
pub mod passphrases;
pub mod payload;
pub mod pipe;
pub mod processor;
pub mod range;
pub mod ranges;
pub mod repair;
pub mod report;
pub mod restore;
pub mod roots;
pub mod seal;
pub mod sets;
pub mod sidecar;
pub mod sign;
mod simple;
pub mod stages;
#[cfg(feature = "stores")]
pub mod stores;
pub mod survey;
pub mod threads;
pub mod verify;

pub use archive::Archive;
pub use context::{Context, Settings};
pub use error::{Class, Error, ErrorKind, Result};
pub use input::Input;
pub use simple::{decode_path, decode_reader, encode_path, encode_reader, verify_path, verify_reader};
