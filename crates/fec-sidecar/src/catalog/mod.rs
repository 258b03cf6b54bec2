//! The record of the files: the tree that was found, the plan of its blocks, and the metadata in pieces from which a
//! [`Sidecar`](metadata::Sidecar) is opened.

pub(crate) mod bits;
pub(crate) mod fingerprint;
pub(crate) mod folder;
pub(crate) mod generations;
pub(crate) mod hashing;
pub(crate) mod history;
pub(crate) mod holes;
pub(crate) mod journal;
pub mod manifest;
pub(crate) mod metadata;
pub(crate) mod moved;
pub(crate) mod others;
pub(crate) mod patterns;
pub(crate) mod permissions;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod positions;
pub(crate) mod proof;
pub(crate) mod proved;
pub(crate) mod reader;
pub(crate) mod samples;
pub(crate) mod sealed;
pub(crate) mod seen;
pub(crate) mod sources;
pub(crate) mod stash;
pub(crate) mod tree;
pub(crate) mod wide;
