//! The refusals of `fec manifest`: each depends on what is in the file.

use super::{Table, refusals};

/// The content of the file that is to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Sidecar { has_digests: bool },
    Encoding,
    Nothing,
}

/// The value `{command}` looks at the file.
pub(crate) const FOUND: Table<Found> = refusals! {
    |found| *found == Found::Sidecar { has_digests: false } => "list {path}: SHA-256 was not recorded",
        "protect again with --sha256, or list BLAKE3 with --b3";
    |found| *found == Found::Encoding => "list {path}: it is shard files or a container, not a sidecar",
        "to look at it:\n  {command}";
    |found| *found == Found::Nothing => "list {path}: no piece of a sidecar was found in it",
        "name a sidecar, as fec protect makes it: PATH.fecp";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_refuses_what_was_found() {
        let found = [Found::Sidecar { has_digests: false }, Found::Encoding, Found::Nothing];
        crate::plan::assert_rows(FOUND, &found);
        assert!(crate::plan::check(&Found::Sidecar { has_digests: true }, FOUND, str::to_owned).is_ok());
    }
}
