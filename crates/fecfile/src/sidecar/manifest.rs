//! Lists of digests, as `b3sum` and `sha256sum` print and check them.

use super::Sidecar;
use fec_core::digest::Digest;
use fec_core::format::sidecar::EntryKind;

/// Which digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// BLAKE3, which every sidecar has.
    Blake3,
    /// SHA-256, which a sidecar has if it was asked for.
    Sha256,
}

/// A line for each file, hard links too: the digest in hexadecimal, two spaces, and the path from the base as raw bytes. A
/// path with a line feed, a carriage return or a backslash is escaped, and its line begins with a backslash, as the tools
/// do it. `None` if the sidecar has not these digests.
pub fn manifest(sidecar: &Sidecar, listed: Listed) -> Option<Vec<u8>> {
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
        put_line(&mut out, digest, &entry.path);
    }
    Some(out)
}

fn put_line(out: &mut Vec<u8>, digest: &Digest, path: &[u8]) {
    let escape = |byte: &u8| match byte {
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\\' => Some(b'\\'),
        _ => None,
    };
    if path.iter().any(|byte| escape(byte).is_some()) {
        out.push(b'\\');
    }
    out.extend_from_slice(crate::names::hex(digest).as_bytes());
    out.extend_from_slice(b"  ");
    for byte in path {
        match escape(byte) {
            Some(escaped) => out.extend_from_slice(&[b'\\', escaped]),
            None => out.push(*byte),
        }
    }
    out.push(b'\n');
}
