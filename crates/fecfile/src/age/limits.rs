//! What bounds the work that a file or a key can ask for.

/// Stanzas that a header has at most: as many as Go's age takes.
pub const MOST_STANZAS: usize = 1024;
/// The highest work factor, log N, of a passphrase: 4 GiB of memory, and about 15 seconds. As in Go's age.
pub const MOST_WORK: u8 = 22;
/// The work factor that a passphrase gets where nothing else is asked for: 256 MiB, and a second or less.
pub const DEFAULT_WORK: u8 = 18;
/// Arguments that a stanza of an unknown kind has at most.
pub(super) const MOST_ARGUMENTS: usize = 128;
/// Bytes of a line with a recipient or an identity, at most: as in OpenSSH.
pub(super) const LONGEST_LINE: usize = 8 << 10;
/// Recipients or identities that a text holds at most.
pub(super) const MOST_KEYS: usize = MOST_STANZAS;
/// Bytes of an OpenSSH private key, at most.
pub(super) const LONGEST_SSH_KEY: usize = 16 << 10;
/// Rounds of the key derivation of an OpenSSH private key, at most: about ten seconds. `ssh-keygen` takes 24 of itself.
pub(super) const MOST_SSH_ROUNDS: u32 = 2048;
