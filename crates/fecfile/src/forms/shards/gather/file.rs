//! A shard file as it lies there: its holes, headers and metas, and the positions at which shards may stand.

use fec_base::io::ReadAt;
use fec_base::program::stages::{self, Stage};
use fec_base::ranges::Ranges;
use fec_core::error::{Class, FormatError};
use fec_core::format::meta::Meta;
use fec_core::format::outline::Outlines;
use fec_core::format::shard_file::{self, Encoding, HEADER_LEN, Layout};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// An open shard file.
pub(crate) struct ShardFile {
    pub place: PathBuf,
    pub bytes: Arc<dyn ReadAt>,
    /// Its length in bytes, without annexes.
    pub len: u64,
    /// Its length with them.
    pub end: u64,
    /// Ranges of stored bytes, if it has holes.
    pub stored: Option<Ranges>,
    /// Outlines stand in its annexes.
    pub has_outlines: bool,
}

impl ShardFile {
    /// A file of `end` bytes, of which `len` are in front of its annexes.
    pub(super) fn new(place: PathBuf, bytes: Arc<dyn ReadAt>, (len, end): (u64, u64)) -> ShardFile {
        let mut file = ShardFile { place, bytes, len, end, stored: None, has_outlines: false };
        let end_of_first = file.bytes.next_data(0).filter(|data| data.start == 0).map(|data| data.end);
        if end_of_first.is_none_or(|end| end < len) {
            let mut stored = Ranges::default();
            let mut at = 0;
            while let Some(data) = file.bytes.next_data(at).filter(|data| data.start < len) {
                stored.add(data.start, data.end.min(len));
                at = data.end;
            }
            file.stored = Some(stored);
        }
        file
    }

    /// Tells whether these bytes are all in a hole, and therefore zeros.
    pub(crate) fn is_hole(&self, at: i128, len: u64) -> bool {
        let Some(stored) = &self.stored else { return false };
        let inside = at >= 0 && at + i128::from(len) <= i128::from(self.len);
        inside && stored.within(at as u64, at as u64 + len).next().is_none()
    }

    /// Sets whose proof may be stored in the copy of all proofs that begins at `at`. A proof in a hole proves nothing.
    pub(super) fn proved_sets(&self, at: i128, layout: &Layout, sets: u32) -> Vec<Range<u32>> {
        let Some(stored) = &self.stored else { return std::iter::once(0..sets).collect() };
        let start = u64::try_from(at.max(0)).unwrap_or(u64::MAX);
        let end = u64::try_from((at + i128::from(layout.proofs_len)).max(0)).unwrap_or(u64::MAX);
        let set_at = |byte: u64| ((i128::from(byte) - at) / i128::from(layout.proof_len)) as u64;
        let of = |(from, to): (u64, u64)| set_at(from) as u32..(set_at(to - 1) + 1).min(sets.into()) as u32;
        if start < end { stored.within(start, end).map(of).collect() } else { Vec::new() }
    }
}

/// A layout by a header of the file itself, and the byte of the file at which it starts. That byte differs from 0 when
/// bytes were lost or gained. The root does not bind the length of the meta, so no file's header places the bytes of
/// another file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub base: i128,
    pub layout: Layout,
}

impl Position {
    /// Start of the shard of `set`.
    pub(crate) fn shard(&self, set: u32) -> i128 {
        self.base + i128::from(self.layout.shard(set))
    }

    /// Start of the outline of the shard of `set`.
    pub(crate) fn outline(&self, outlines: &Outlines, set: u32) -> i128 {
        self.base + i128::from(self.layout.file_len + outlines.outline_at(set))
    }

    /// Starts of the two copies of the proof of `set`.
    pub(crate) fn proofs(&self, set: u32) -> [i128; 2] {
        self.layout.proofs(set).map(|at| self.base + i128::from(at))
    }
}

/// Reads exactly the bytes at `at`; `None` when the file does not have all of them. An annex may be a forgery over the
/// file's last bytes, and therefore hides none of them.
pub(crate) fn read_at(file: &ShardFile, at: i128, out: &mut [u8]) -> io::Result<Option<()>> {
    let _stage = stages::enter(Stage::Read, out.len() as u64);
    let inside = at >= 0 && at + out.len() as i128 <= i128::from(file.end);
    if !inside {
        return Ok(None);
    }
    match file.bytes.read_exact_at(at as u64, out) {
        Ok(()) => Ok(Some(())),
        // The file became shorter since it was opened, so the shard is an erasure.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// The meta that a header names, from any good copy; `None` if no copy is good.
///
/// # Errors
/// A broken rule of the meta.
pub(super) fn read_meta(
    file: &ShardFile,
    encoding: &Encoding,
    positions: &[Position],
) -> Result<Option<Meta>, FormatError> {
    for Position { base, layout } in positions {
        for at in layout.metas() {
            let mut copy = vec![0; layout.padded_meta_len() as usize];
            let is_read = matches!(read_at(file, base + i128::from(at), &mut copy), Ok(Some(())));
            let (meta, zeros) = copy.split_at(layout.meta_len as usize);
            if !is_read || zeros.iter().any(|byte| *byte != 0) {
                continue;
            }
            match Meta::open(encoding.geometry.shape().hash, &encoding.meta_hash, meta) {
                Err(error) if error.class() == Class::Damaged => {}
                opened => return opened.map(Some),
            }
        }
    }
    Ok(None)
}

/// Tells whether at least one shard is inside the file at this position. A header that claims more must not decide how
/// much memory is taken.
pub(super) fn holds_a_shard(file: &ShardFile, Position { base, layout }: &Position) -> bool {
    let body = base + i128::from(layout.body);
    let last = body + i128::from(layout.body_len - layout.shard_len);
    let fits = |at: i128| at >= 0 && at + i128::from(layout.shard_len) <= i128::from(file.end);
    fits(body) || fits(last)
}

/// The bytes of a header copy, unchecked; `None` if the magic is missing.
pub(super) fn read_header(file: &ShardFile, at: i128) -> io::Result<Option<[u8; HEADER_LEN]>> {
    let mut bytes = [0u8; HEADER_LEN];
    Ok(read_at(file, at, &mut bytes)?.filter(|()| shard_file::has_magic(&bytes)).map(|()| bytes))
}

/// Tells whether a file is shorter than a header but begins like one: it is what is left of a shard file.
pub(super) fn is_cut_header(file: &ShardFile) -> bool {
    let mut bytes = [0u8; HEADER_LEN];
    let len = file.len.min(HEADER_LEN as u64) as usize;
    len < HEADER_LEN
        && matches!(read_at(file, 0, &mut bytes[..len]), Ok(Some(())))
        && shard_file::has_magic(&bytes)
}

/// The other version that a file names which is shorter than a header but begins like one.
pub(super) fn version_of_short(file: &ShardFile) -> Option<FormatError> {
    let mut bytes = vec![0; file.len.min(HEADER_LEN as u64) as usize];
    let is_short = bytes.len() < HEADER_LEN && matches!(read_at(file, 0, &mut bytes), Ok(Some(())));
    shard_file::other_version(&bytes).filter(|_| is_short)
}
