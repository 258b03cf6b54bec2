//! The forms of encodings, and their common view: an [`Encoded`], which has groups of sets in order, and loads the
//! shards of any set into a decoder, which checks them there.
//!
//! Detection, restoring and verifying all use the list `FORMS`. A new form adds its file, its line in the list, its
//! writer, its part of the specification and its number in `fec_core::params`.
//!
//! Each form looks at an input in turn and says which encodings it has found. `choose` takes the one under the root
//! that was asked for, or else the only one that can be restored. [`Records`] load the shards of a set into a decoder.
//! Records of shard files are arithmetic on headers, from both ends of each file. Records of a container come from a
//! census: one scan proves each record and remembers the runs.

pub(crate) mod annexes;
pub(crate) mod container;
pub(crate) mod encode_job;
pub mod encoded;
pub(crate) mod form;
pub(crate) mod repair;
pub(crate) mod shards;

pub use crate::groups::{GroupEntry, Groups};
pub use crate::leftovers::{Beginning, Leftovers, show_root};
pub use encoded::{Encoded, Load, Records};

use form::Form;

/// All forms, in the order in which they look at an input.
pub(crate) static FORMS: &[&dyn Form] = &[&shards::ShardFiles, &container::Containers];
