//! The commands, one module each, and the ground that they share: inputs, targets, proofs and surveys.

pub(crate) mod attest;
pub(crate) mod bench;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod inputs;
pub(crate) mod keygen;
pub(crate) mod link;
pub(crate) mod lists;
pub(crate) mod manual;
pub(crate) mod own;
pub(crate) mod proofs;
pub(crate) mod repair;
pub(crate) mod seal;
pub(crate) mod sidecar;
pub(crate) mod sign;
pub(crate) mod stores;
pub(crate) mod stream;
pub(crate) mod survey;
pub(crate) mod target;
pub(crate) mod tuned;
pub(crate) mod verify;
