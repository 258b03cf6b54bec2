//! Digests of blocks and files.

use fec_base::io::ReadAt;
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::FileEntry;
use fec_core::format::sidecar::catalog::{ShortDigest, shortened};
use std::fs::File;
use std::io;

/// The plain digests of consecutive blocks.
pub(crate) fn plain_digests(bytes: &[u8], block: usize) -> Vec<ShortDigest> {
    /// Blocks that are hashed together: enough to fill the lanes of a vector several times.
    const TOGETHER: usize = 64;
    let blocks: Vec<&[u8]> = bytes.chunks_exact(block).collect();
    let digests = blocks.chunks(TOGETHER).flat_map(|blocks| HashKind::Blake3.digests(blocks));
    digests.map(|digest| shortened(&digest)).collect()
}

/// The BLAKE3 of a file, from the values of its whole blocks and of its tail.
#[derive(Debug, Default)]
pub(crate) struct FileTree {
    /// Values of full units.
    units: Vec<Digest>,
    /// Values of the blocks in the unit that is not full.
    blocks: Vec<Digest>,
}

/// Blocks of a unit, which is kept as a single value.
const UNIT: usize = 64;

impl FileTree {
    /// Adds the next blocks.
    pub(crate) fn push(&mut self, values: &[Digest]) {
        let mut left = values;
        while !left.is_empty() {
            if self.blocks.len() == UNIT {
                self.units.push(blocks::subtree(&self.blocks));
                self.blocks.clear();
            }
            let (now, later) = left.split_at(left.len().min(UNIT - self.blocks.len()));
            self.blocks.extend_from_slice(now);
            left = later;
        }
    }

    /// The hash. At least two values must have been added, of blocks or of the tail.
    pub(crate) fn finish(mut self) -> Digest {
        if self.units.is_empty() {
            return blocks::root(&self.blocks);
        }
        self.units.push(blocks::subtree(&self.blocks));
        blocks::root(&self.units)
    }
}

/// Tells whether a file has the size and the digest of its entry.
pub(crate) fn is_whole(file: &File, of: &FileEntry, block: u64) -> io::Result<bool> {
    if file.metadata()?.len() != of.size {
        return Ok(false);
    }
    Ok(digest_of_file(file, of, block)? == of.blake3)
}

/// A file in which bytes behind the end are zeros, which they become when it gets its length back.
pub(crate) struct Padded<'a>(pub(crate) &'a File);

impl ReadAt for Padded<'_> {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        Ok(match ReadAt::read_at(self.0, offset, out)? {
            0 => {
                out.fill(0);
                out.len()
            }
            read => read,
        })
    }

    fn size(&self) -> io::Result<u64> {
        ReadAt::size(self.0)
    }
}

/// The BLAKE3 of a file of a known size.
pub(crate) fn digest_of_file(file: &impl ReadAt, of: &FileEntry, block: u64) -> io::Result<Digest> {
    Ok(hash_file(file, of.size, block, |_, _| ())?.digest)
}

/// The result of hashing a file in one pass.
pub(crate) struct Hashed {
    /// The BLAKE3 of the file.
    pub(crate) digest: Digest,
    /// The bytes behind the whole blocks, if any: their chaining value, or the file's digest if it has no whole block.
    pub(crate) tail: Option<Digest>,
}

/// Hashes a file of a known size. `each` gets the values of its whole blocks, with the number of the first.
pub(crate) fn hash_file(
    file: &impl ReadAt,
    size: u64,
    block: u64,
    mut each: impl FnMut(u64, &[Digest]),
) -> io::Result<Hashed> {
    /// Bytes that are read and hashed at a time: they stay in the cache on the way.
    const PIECE: u64 = 256 << 10;
    let whole = FileEntry::whole_blocks(size, block);
    let mut tail = vec![0; (size - whole * block) as usize];
    ReadAt::read_exact_at(file, whole * block, &mut tail)?;
    if whole == 0 {
        let digest = HashKind::Blake3.digest(&tail);
        return Ok(Hashed { digest, tail: (!tail.is_empty()).then_some(digest) });
    }
    let together = (PIECE / block).clamp(1, whole);
    let mut bytes = vec![0; (together * block) as usize];
    let mut values = vec![[0; 32]; together as usize];
    let mut tree = FileTree::default();
    let mut at = 0;
    while at < whole {
        let count = together.min(whole - at);
        let (bytes, values) = (&mut bytes[..(count * block) as usize], &mut values[..count as usize]);
        ReadAt::read_exact_at(file, at * block, bytes)?;
        blocks::values(bytes, block as usize, at * block, values);
        each(at, values);
        tree.push(values);
        at += count;
    }
    let tail = (!tail.is_empty()).then(|| blocks::tail_value(&tail, whole * block));
    tail.iter().for_each(|tail| tree.push(&[*tail]));
    Ok(Hashed { digest: tree.finish(), tail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_length_has_its_hash() {
        let bytes: Vec<u8> = (0..300_000usize).map(|i| (i * 31 + i / 251) as u8).collect();
        for len in [1025, 2048, 64 * 1024, 64 * 1024 + 1, 65 * 1024, 128 * 1024, 129 * 1024 + 5, 300_000] {
            let whole = len / 1024;
            let mut values = vec![[0; 32]; whole];
            blocks::values(&bytes[..whole * 1024], 1024, 0, &mut values);
            if len % 1024 > 0 {
                values.push(blocks::tail_value(&bytes[whole * 1024..len], whole as u64 * 1024));
            }
            let mut tree = FileTree::default();
            values.chunks(7).for_each(|values| tree.push(values));
            assert_eq!(tree.finish(), HashKind::Blake3.digest(&bytes[..len]), "{len}");
        }
    }
}
