//! Bounds of the work that a file or a key can ask for.

/// Most stanzas of a header, as in Go's age.
pub const MOST_STANZAS: usize = 1024;
/// The highest work factor, log N, of a passphrase: 4 GiB of memory, and about 15 seconds. As in Go's age.
pub const MOST_WORK: u8 = 22;
/// The work factor of a passphrase, unless the caller asks for another: 256 MiB, and a second or less.
pub const DEFAULT_WORK: u8 = 18;
/// Most arguments of a stanza of an unknown kind.
pub(super) const MOST_ARGUMENTS: usize = 128;
/// Most bytes of a line with a recipient or an identity, as in OpenSSH.
pub(super) const LONGEST_LINE: usize = 8 << 10;
/// Most recipients or identities in a text.
pub(super) const MOST_KEYS: usize = MOST_STANZAS;
/// Most bytes of an OpenSSH private key.
pub(super) const LONGEST_SSH_KEY: usize = 16 << 10;
/// Most rounds of the key derivation of an OpenSSH private key: about ten seconds. `ssh-keygen` takes 24 by default.
pub(super) const MOST_SSH_ROUNDS: u32 = 2048;
