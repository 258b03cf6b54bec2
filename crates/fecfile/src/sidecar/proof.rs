//! What is proved of a sidecar (docs/FORMAT.md, section 17.9).
//!
//! Times and permissions stand behind the catalog, where the root does not bind them. Whoever can write to the sidecar can make an edit
//! look like rot, or a private file public, under the same root. So a reader that was given a root asks what proves them.

/// What the root or the signature that a sidecar was opened by proves of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No root and no signature was given.
    Nothing,
    /// What the files are: the root, or a signature that binds it alone.
    Root,
    /// Times, permissions and the base too: a signature that names E, or what proves the container of a sealed sidecar.
    Metadata,
}
