//! Lists of digests, as `b3sum` and `sha256sum` print and check them.

use crate::Sidecar;
use fec_base::roots::put_line;
use fec_core::digest::Digest;
use fec_core::format::sidecar::EntryKind;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The kind of digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// BLAKE3, which every sidecar has.
    Blake3,
    /// SHA-256, which a sidecar has if it was asked for.
    Sha256,
}

/// The path of each file relative to the base, as raw bytes, with its digest; hard links too. `None` if the sidecar
/// lacks these digests.
pub fn digests(sidecar: &Sidecar, listed: Listed) -> Option<Vec<(&[u8], &Digest)>> {
    let entries = &sidecar.catalog.entries;
    let mut out = Vec::new();
    for entry in entries {
        let kind = match &entry.kind {
            EntryKind::HardLink(of) => &entries[*of as usize].kind,
            kind => kind,
        };
        let EntryKind::File(file) = kind else { continue };
        let digest = match listed {
            Listed::Blake3 => &file.blake3,
            Listed::Sha256 => file.sha256.as_deref()?,
        };
        out.push((&entry.path[..], digest));
    }
    Some(out)
}

/// A line for each of [`digests`]: the digest in hexadecimal, two spaces, and the path. A path with a line feed, a
/// carriage return or a backslash is escaped, and its line begins with a backslash, as in the tools. All other bytes
/// stand as they are, and a terminal may obey them.
pub fn manifest(sidecar: &Sidecar, listed: Listed) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (path, digest) in digests(sidecar, listed)? {
        put_line(&mut out, digest, Path::new(OsStr::from_bytes(path)));
    }
    Some(out)
}
