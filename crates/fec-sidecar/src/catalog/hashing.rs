//! Digests of blocks and files.

use fec_base::io::ReadAt;
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::FileEntry;
use fec_core::format::sidecar::catalog::{ShortDigest, shortened};
use std::fs::File;
use std::io;
use std::ops::Range;

/// The plain digests of consecutive blocks.
pub(crate) fn plain_digests(bytes: &[u8], block: usize) -> Vec<ShortDigest> {
    /// Blocks that are hashed together: enough to fill the lanes of a vector several times.
    const TOGETHER: usize = 64;
    let blocks: Vec<&[u8]> = bytes.chunks_exact(block).collect();
    let digests = blocks.chunks(TOGETHER).flat_map(|blocks| HashKind::Blake3.digests(blocks));
    digests.map(|digest| shortened(&digest)).collect()
}

/// Tells whether all bytes are zeros.
pub(crate) fn is_zeros(bytes: &[u8]) -> bool {
    // Whole chunks are compared at once.
    bytes.chunks(256).all(|bytes| bytes.iter().fold(0, |all, byte| all | byte) == 0)
}

/// The BLAKE3 of a file, from the values of its whole blocks and of its tail.
#[derive(Debug, Default)]
pub(crate) struct FileTree {
    /// Values of blocks that fill no unit yet, then those of units, of units of units, and so on.
    levels: Vec<Vec<Digest>>,
}

/// Blocks of a unit, which is kept as a single value.
const UNIT: usize = 64;

/// Bytes that are hashed at a time: they stay in the cache on the way.
const PIECE: u64 = 256 << 10;

impl FileTree {
    /// Adds the next blocks.
    pub(crate) fn push(&mut self, values: &[Digest]) {
        values.iter().for_each(|value| self.push_at(0, *value));
    }

    fn push_at(&mut self, level: usize, value: Digest) {
        if level == self.levels.len() {
            self.levels.push(Vec::with_capacity(UNIT));
        }
        if self.levels[level].len() == UNIT {
            let unit = blocks::subtree(&self.levels[level]);
            self.levels[level].clear();
            self.push_at(level + 1, unit);
        }
        self.levels[level].push(value);
    }

    /// Adds blocks of zeros, by their numbers in the file. `each` gets the bytes of each step, and may end that.
    pub(crate) fn push_zeros<E>(
        &mut self,
        numbers: Range<u64>,
        block: u64,
        each: impl Fn(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let together = (PIECE / block).max(1);
        let zeros = vec![0; (together * block) as usize];
        let mut values = vec![[0; 32]; together as usize];
        for start in numbers.clone().step_by(together as usize) {
            let values = &mut values[..together.min(numbers.end - start) as usize];
            let bytes = &zeros[..values.len() * block as usize];
            each(bytes.len() as u64)?;
            blocks::values(bytes, block as usize, start * block, values);
            self.push(values);
        }
        Ok(())
    }

    /// The hash. At least two values must have been added, of blocks or of the tail.
    pub(crate) fn finish(mut self) -> Digest {
        let mut level = 1;
        while level < self.levels.len() {
            let unit = blocks::subtree(&self.levels[level - 1]);
            self.push_at(level, unit);
            level += 1;
        }
        blocks::root(self.levels.last().expect("values were added"))
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
    Ok(hash_file(file, of.size, block, |_, _, _| ())?.digest)
}

/// The result of hashing a file in one pass.
pub(crate) struct Hashed {
    /// The BLAKE3 of the file.
    pub(crate) digest: Digest,
    /// The bytes behind the whole blocks, if any: their chaining value, or the file's digest if it has no whole block.
    pub(crate) tail: Option<Digest>,
}

/// Hashes a file of a known size. `each` gets its whole blocks and their values, with the number of the first.
pub(crate) fn hash_file(
    file: &impl ReadAt,
    size: u64,
    block: u64,
    mut each: impl FnMut(u64, &[u8], &[Digest]),
) -> io::Result<Hashed> {
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
        each(at, bytes, values);
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
        let bytes: Vec<u8> = (0..5_000_000usize).map(|i| (i * 31 + i / 251) as u8).collect();
        for len in [
            1025,
            2048,
            64 * 1024,
            64 * 1024 + 1,
            65 * 1024,
            128 * 1024,
            129 * 1024 + 5,
            4 << 20,
            (4 << 20) + 1,
            (4 << 20) + 65_540,
        ] {
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
