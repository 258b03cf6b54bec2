//! The look of an entry, by which its later writers show, and what may lose a name to another.

/// The place, the length and the modification time of an entry. Whoever replaces the entry or writes to it changes its
/// look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Device and inode.
    pub(super) place: (u64, u64),
    /// Length in bytes.
    pub size: u64,
    pub(super) modified: (i64, i64),
}

/// The entry that may lose its name to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// None: the name must be free.
    Nothing,
    /// The entry that looked like this. Another one, which somebody has put there since, keeps the name.
    Known(Look),
    /// Any entry.
    Anything,
}
