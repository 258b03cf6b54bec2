//! Sealed sidecars (docs/FORMAT.md, section 21): containers whose payload is a sealed sidecar.
//!
//! Anybody can verify and mend the container, and a holder of a key reads the sidecar through it. The sidecar inside is
//! never written to: a repair mends the container, and an update seals the whole sidecar anew, with another key.
//!
//! The container names the length of the sidecar, and anybody with a public key can make one that claims anything. The
//! obtainable bytes are therefore computed once, from the records that exist, and nothing is sought elsewhere.

use crate::error::SidecarError;
use fec_base::context::{Context, Settings};
use fec_base::error::{Action, Error, Result};
use fec_base::io::ReadAt;
use fec_base::io::output::Policy;
use fec_core::digest::Digest;
use fec_core::executor::{into_value, lock};
use fec_core::format::seal::{CHUNK, SealedKind};
use fec_core::params::Form;
use fec_keys::age::Keys;
use fec_keys::sign::{Signed, Trust};
use fecfile::seal::Opener;
use fecfile::within::part;
use fecfile::{Archive, Input, Wanted};
use std::collections::HashSet;
use std::io::{self};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// Chunks that are opened together as a piece, and the number of pieces that are kept.
const PIECE_CHUNKS: u64 = 8;
const PIECE: u64 = PIECE_CHUNKS * CHUNK as u64;
const MOST_PIECES: usize = 8;

/// Bytes of several chunks, opened.
type Piece = Arc<Zeroizing<Vec<u8>>>;

/// A sidecar in a container, opened as it is read. Bytes that the container cannot give cannot be read.
pub(crate) struct SealedBytes {
    archive: Archive,
    opener: Opener,
    settings: Settings,
    len: u64,
    /// The bytes whose chunks the container can give, in order.
    obtainable: Vec<Range<u64>>,
    /// The pieces opened last, with their ranges; the newest is last.
    pieces: Mutex<Vec<(Range<u64>, Piece)>>,
    /// Ranges that the container can give, but that do not open.
    lost: Mutex<HashSet<Range<u64>>>,
}

impl SealedBytes {
    /// Finds the container and opens its payload. The container must have the root `wanted`, or a signature by somebody
    /// in `trust`.
    ///
    /// # Errors
    /// Those of [`Archive::open`] and [`Archive::opener`].
    pub(crate) fn open(
        path: &Path,
        (wanted, trust): (Option<Digest>, Option<&Trust>),
        keys: &Keys,
        settings: &Settings,
    ) -> Result<(SealedBytes, Digest, Option<Signed>)> {
        let context = Context::new(*settings);
        let input = Input::of_paths(&[path.to_path_buf()])?;
        let archive = Archive::open(&input, Wanted::from(wanted).signed_by(trust), &context)?;
        if archive.form() != Form::Container {
            return Err(Error::at(Action::Read, path, SidecarError::NotFound(None)));
        }
        let opener =
            archive.opener_of(Some(keys), SealedKind::Sidecar)?.expect("what is not sealed is refused");
        // Without the container's end its length is unknown.
        let Some(root) = archive.root() else {
            return Err(Error::at(Action::Read, path, SidecarError::NotFound(None)));
        };
        let sealed_len = archive.encoded().known_len();
        let len = opener.plain_len(sealed_len)?;
        let obtainable = archive.encoded().obtainable();
        let obtainable = obtainable.into_iter().map(|sealed| Opener::opened_range(&sealed, sealed_len));
        let obtainable = obtainable.filter(|bytes| !bytes.is_empty()).collect();
        let signed = archive.signed().cloned();
        let (pieces, lost) = (Mutex::default(), Mutex::default());
        let bytes = SealedBytes { archive, opener, settings: *settings, len, obtainable, pieces, lost };
        Ok((bytes, root, signed))
    }

    /// The number of obtainable bytes.
    pub(crate) fn stored(&self) -> u64 {
        self.obtainable.iter().map(|bytes| bytes.end - bytes.start).sum()
    }

    /// The first obtainable bytes at `offset` or behind it.
    fn next_obtainable(&self, offset: u64) -> Option<&Range<u64>> {
        self.obtainable.get(self.obtainable.partition_point(|bytes| bytes.end <= offset))
    }

    /// The opened chunks of these bytes; `None` if they are lost.
    fn piece(&self, bytes: Range<u64>) -> Option<Piece> {
        let mut pieces = lock(&self.pieces);
        if let Some(at) = pieces.iter().position(|(held, _)| *held == bytes) {
            let found = pieces.remove(at);
            let piece = Arc::clone(&found.1);
            pieces.push(found);
            return Some(piece);
        }
        drop(pieces);
        if lock(&self.lost).contains(&bytes) {
            return None;
        }
        let Ok(piece) = self.chunks(bytes.start, bytes.end - bytes.start).map(Arc::new) else {
            // The set holds at most as many ranges as are obtainable.
            lock(&self.lost).insert(bytes);
            return None;
        };
        let mut pieces = lock(&self.pieces);
        if pieces.len() >= MOST_PIECES {
            pieces.remove(0);
        }
        pieces.push((bytes, Arc::clone(&piece)));
        Some(piece)
    }

    /// Opens the chunks of `len` bytes from `start` on, where a chunk begins.
    fn chunks(&self, start: u64, len: u64) -> io::Result<Zeroizing<Vec<u8>>> {
        let encoded = self.archive.encoded();
        let bytes = Opener::sealed_range(&(start..start + len), encoded.known_len());
        let sealed = Mutex::new(Zeroizing::new(vec![0; (bytes.end - bytes.start) as usize]));
        let put = |at: u64, part: &[u8]| {
            lock(&sealed)[at as usize..][..part.len()].copy_from_slice(part);
            Ok(())
        };
        // Several threads read blocks already.
        let context = Context::new(Settings { threads: 1, ..self.settings });
        let outcome =
            part(&encoded, self.archive.plans(), &bytes, &put, &context).map_err(io::Error::other)?;
        if !outcome.is_whole() {
            return Err(io::Error::other("too little is left of the container"));
        }
        self.opener
            .open_chunks(start / CHUNK as u64, encoded.known_len(), into_value(sealed))
            .map_err(io::Error::other)
    }

    /// Mends the container, or with `dry_run` changes nothing. Returns whether the container was damaged. Needs no key.
    ///
    /// # Errors
    /// As [`Archive::repair`].
    pub(crate) fn mend(&self, sync: bool, dry_run: bool, context: &Context<'_>) -> Result<bool> {
        let how =
            fecfile::Repair { out: None, policy: Policy::new().with_force(true).with_sync(sync), dry_run };
        Ok(!self.archive.repair(how, &context.silent())?.files.is_empty())
    }

    /// Tells whether every byte of the container is as it was written.
    pub(crate) fn is_intact(&self, context: &Context<'_>) -> Result<bool> {
        Ok(self.archive.verify(false, &context.silent())?.is_intact())
    }
}

impl ReadAt for SealedBytes {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        if offset >= self.len {
            return Ok(0);
        }
        let lost = || io::Error::other("too little is left of the container");
        let held = self.next_obtainable(offset).filter(|held| held.start <= offset).ok_or_else(lost)?;
        // Obtainable bytes begin and end with a chunk.
        let around = |len: u64| {
            let start = offset / len * len;
            start.max(held.start)..start.saturating_add(len).min(held.end)
        };
        let pieces = [around(PIECE), around(CHUNK as u64)];
        // If one chunk of a piece does not open, the wanted chunk alone may.
        let found = pieces.into_iter().find_map(|bytes| Some((bytes.start, self.piece(bytes)?)));
        let (start, piece) = found.ok_or_else(lost)?;
        let rest = &piece[(offset - start) as usize..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        self.next_obtainable(offset).map(|held| held.start.max(offset)..held.end)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}
