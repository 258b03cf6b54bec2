//! Sidecars told from other files, and the path of a signature: all that is known of sidecars on every system.

use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::ReadAt;
use fec_base::io::own::open_regular;
use fec_core::error::FormatError;
use fec_core::format::container::{MetaFrame, RECORD_MAGIC};
use fec_core::format::meta::Meta;
use fec_core::format::seal::{Seal, SealedKind};
use fec_core::format::sidecar::piece::{HEADER_LEN, PIECE_MAGIC, Piece, piece_head_len};
use fecfile::{Archive, EncodingError, Input};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes at the front of a file that are read first to recognize a container.
const FRONT: u64 = 256 << 10;

/// Tells whether a file starts as a sidecar does.
///
/// # Errors
/// Those of the file.
pub fn starts(path: &Path) -> Result<bool> {
    let file = open_regular(path).map_err(|e| Error::io(Action::Read, path, e))?;
    let Some(file) = file else { return Ok(false) };
    let mut head = vec![0; HEADER_LEN];
    // A file that is too short is an answer; a failed read is none.
    let is_read = |read: io::Result<()>| match read {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true).map_err(|e| Error::io(Action::Read, path, e)),
    };
    if !is_read(file.read_exact_at(0, &mut head))? || !head.starts_with(&PIECE_MAGIC) {
        return Ok(false);
    }
    // The whole head counts, since a record of a container differs from the magic by a single bit.
    let head_len = piece_head_len(head.first_chunk().expect("it has that many bytes"));
    head.resize(head_len, 0);
    Ok(is_read(file.read_exact_at(HEADER_LEN as u64, &mut head[HEADER_LEN..]))?
        && Piece::parse(&head)
            .map_or_else(|e| e.is_behind_checksum() && !matches!(e, FormatError::Damaged(_)), |_| true))
}

/// Tells whether a file is a container that a sidecar is sealed in. Its front tells that; if the front is damaged, the
/// rest of the container does.
///
/// # Errors
/// Those of the file.
pub fn is_sealed(path: &Path) -> Result<bool> {
    let fail = |e| Error::io(Action::Read, path, e);
    let Some(file) = open_regular(path).map_err(fail)? else { return Ok(false) };
    let mut front = Vec::new();
    file.take(FRONT).read_to_end(&mut front).map_err(fail)?;
    let frame = front.first_chunk().map_or(0, MetaFrame::frame_len);
    let frame = front.get(..frame).map(MetaFrame::parse);
    if let Some(Ok(MetaFrame { meta: Meta { seal: Some(seal), .. }, .. })) = frame
        && Seal::parse(&seal).is_ok_and(|seal| seal.content == SealedKind::Sidecar)
    {
        return Ok(true);
    }
    if !front.windows(8).any(|magic| magic == RECORD_MAGIC) {
        return Ok(false);
    }
    let input = Input::of_paths(&[path.to_path_buf()])?;
    match Archive::open(&input, None, &Context::default()) {
        Ok(archive) => Ok(archive.sealed_kind() == Some(SealedKind::Sidecar)),
        // An ambiguous container may be one: the root tells which.
        Err(error) => Ok(matches!(error.cause(), Some(EncodingError::Ambiguous(_)))),
    }
}

/// The file of the signature over the root of the sidecar at `sidecar`: `NAME.fecp.minisig` (docs/FORMAT.md, section
/// 19.1).
pub fn signature_path(sidecar: &Path) -> PathBuf {
    let mut path = sidecar.as_os_str().to_owned();
    path.push(".minisig");
    path.into()
}
