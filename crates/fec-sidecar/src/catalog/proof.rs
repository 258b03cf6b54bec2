//! The proof of a sidecar's content (docs/FORMAT.md, section 17.9).
//!
//! Times and permissions stand behind the catalog, where the root does not bind them. Anybody who can write to the
//! sidecar can make an edit look like rot, or a private file public, under the same root. A reader that was given a
//! root therefore asks what proves them.

/// The proof by the root or the signature that a sidecar was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No root and no signature was given.
    Nothing,
    /// The content of files is proved: by the root, or by a signature that binds it alone.
    Root,
    /// Times, permissions and the base are proved too: by a signature that names E, or by the proof of a sealed
    /// sidecar's container.
    Metadata,
}
