//! Encodings of files and pipes, protected against loss, corruption and tampering.
//!
//! A payload becomes k original and m recovery shards; any k intact ones restore it, and a 32-byte root names exactly
//! this encoding of exactly these bytes. The codec is [`fec_core`], files and threads are [`fec_base`]; here are shard
//! files, containers, pipes and seals.
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
//! | have shards in memory that prove themselves | [`encode_proved`], [`Root`] |
//! | encode to a store of shards, to a container file, to a writer | [`encode`], with [`Options`](payload::Options) |
//! | find what an input holds, restore it, verify it | [`Archive`] |
//! | encode again, and keep what is there and intact | [`keep`] |
//! | make damaged and missing files anew | [`Archive::repair`] |
//! | decode a container from a pipe as it comes | [`pipe`] |
//! | keep shards somewhere else than in folders | [`fec_base::io::Store`] |
//! | look at every set as it is decoded | [`sets`] |
//! | seal payloads, for the holders of keys | [`seal`], with [`Options::sealing`](payload::Options) |
//! | sign roots, and accept only what is signed | [`fec_keys::sign`] |
//! | wrap a content key for those who may have it, as other tools read it | [`fec_keys::age`] |
//!
//! Everything is synchronous. Errors are values ([`Error`]: action, place, cause) with a [`Class`] that tells their
//! meaning. The library prints nothing, never ends the process, and installs nothing by itself. Programs can ask for
//! the fence that lets inputs be mapped, the timing of stages and more ([`fec_base::program`]), and for the removal of
//! temporary files by a signal ([`fec_base::io::temporary::remove_all`]).

mod archive;
mod choose;
pub mod encode;
pub mod error;
pub mod forms;
mod groups;
mod input;
pub mod keep;
mod leftovers;
mod losses;
pub mod payload;
pub mod pipe;
mod range;
mod repair;
pub mod report;
mod restore;
pub mod seal;
pub mod sets;
mod simple;
mod verify;
#[doc(hidden)]
pub mod within;

pub use archive::{Archive, Wanted, check_only_stream};
pub use error::{Class, EncodingError, Error, ErrorKind, Result};
pub use fec_base::context::Cancel;
pub use fec_base::io::output::{Destination, Policy};
pub use fec_base::{Context, Settings, io};
pub use fec_core::{ProvedShard, Root, encode_proved};
pub use input::{Content, Input, Object};
pub use range::PayloadRange;
pub use repair::{Repair, Repaired};
pub use restore::{PayloadOut, Put, Wish};
pub use simple::{decode_path, decode_reader, encode_path, encode_reader, verify_path, verify_reader};
