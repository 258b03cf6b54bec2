//! Digests of blocks and files.

use fec_base::io::ReadAt;
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::catalog::{ShortDigest, shortened};
use fec_core::format::sidecar::stack::Stack;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
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
#[derive(Clone, Debug, Default)]
pub(crate) struct FileTree {
    /// Blocks so far.
    count: u64,
    /// The values of complete subtrees, the largest first. The last two may be of one that was just completed: it is
    /// not merged before more follow, since it may be the root.
    stack: Vec<Digest>,
}

/// Blocks whose values are merged at once.
const UNIT: usize = 64;

/// The fewest whole blocks of a file whose stack is kept. A smaller file is read again.
const LEAST_STACK: u64 = 64;

/// Room for the stack of the file that is entry `nth`, if one is kept of it.
pub(crate) fn room_for_stack(nth: usize, entry: &Entry, block: u32) -> Option<Stack> {
    let EntryKind::File(file) = &entry.kind else { return None };
    let is_kept = FileEntry::whole_blocks(file.size, block.into()) >= LEAST_STACK;
    let count = Stack::blocks(file, block.into()).count_ones() as usize;
    is_kept.then(|| Stack { entry: nth as u32, values: vec![[0; 32]; count] })
}

/// Bytes that are hashed at a time: they stay in the cache on the way.
const PIECE: u64 = 256 << 10;

impl FileTree {
    /// The tree of the first `count` blocks, whose values [`FileTree::stack`] gave.
    pub(crate) fn resumed(count: u64, stack: &[Digest]) -> FileTree {
        FileTree { count, stack: stack.to_vec() }
    }

    /// Adds the next blocks.
    pub(crate) fn push(&mut self, mut values: &[Digest]) {
        while let Some(value) = values.first() {
            let is_aligned = self.count.is_multiple_of(UNIT as u64);
            // The only subtree of a file would be its root.
            let is_unit = is_aligned && values.len() + usize::from(self.count > 0) > UNIT;
            let (value, count) = match is_unit {
                true => (blocks::subtree(&values[..UNIT]), UNIT),
                false => (*value, 1),
            };
            self.merge();
            self.stack.push(value);
            self.count += count as u64;
            values = &values[count..];
        }
    }

    /// Merges the subtrees that are complete.
    fn merge(&mut self) {
        while self.stack.len() > self.count.count_ones() as usize {
            let both = self.stack.split_off(self.stack.len() - 2);
            self.stack.push(blocks::subtree(&both));
        }
    }

    /// The values of complete subtrees over all blocks so far, which are not all of the file: one for each bit that is
    /// set in their number.
    pub(crate) fn stack(mut self) -> Vec<Digest> {
        self.merge();
        self.stack
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
        let mut last = self.stack.pop().expect("values were added");
        while let Some(value) = self.stack.pop() {
            if self.stack.is_empty() {
                return blocks::root(&[value, last]);
            }
            last = blocks::subtree(&[value, last]);
        }
        panic!("a single value leads to no hash")
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
    /// The [stack](FileTree::stack) of the whole blocks but the last; empty for a small file.
    pub(crate) stack: Vec<Digest>,
}

/// Hashes a file of a known size. `each` gets its whole blocks and their values, with the number of the first.
pub(crate) fn hash_file(
    file: &impl ReadAt,
    size: u64,
    block: u64,
    each: impl FnMut(u64, &[u8], &[Digest]),
) -> io::Result<Hashed> {
    hash_on(file, (size, block), FileTree::default(), each)
}

/// As [`hash_file`], from the first block on that the tree does not have yet.
pub(crate) fn hash_on(
    file: &impl ReadAt,
    (size, block): (u64, u64),
    mut tree: FileTree,
    mut each: impl FnMut(u64, &[u8], &[Digest]),
) -> io::Result<Hashed> {
    let whole = FileEntry::whole_blocks(size, block);
    let mut tail = vec![0; (size - whole * block) as usize];
    ReadAt::read_exact_at(file, whole * block, &mut tail)?;
    if whole == 0 {
        let digest = HashKind::Blake3.digest(&tail);
        return Ok(Hashed { digest, tail: (!tail.is_empty()).then_some(digest), stack: Vec::new() });
    }
    let mut at = tree.count;
    let together = (PIECE / block).clamp(1, whole - at);
    let mut bytes = vec![0; (together * block) as usize];
    let mut values = vec![[0; 32]; together as usize];
    let mut stack = Vec::new();
    while at < whole {
        let count = together.min(whole - at);
        let (bytes, values) = (&mut bytes[..(count * block) as usize], &mut values[..count as usize]);
        ReadAt::read_exact_at(file, at * block, bytes)?;
        blocks::values(bytes, block as usize, at * block, values);
        each(at, bytes, values);
        at += count;
        let (last, before) = values.split_last().expect("there is a block");
        if at == whole && whole >= LEAST_STACK {
            tree.push(before);
            stack = tree.clone().stack();
            tree.push(&[*last]);
        } else {
            tree.push(values);
        }
    }
    let tail = (!tail.is_empty()).then(|| blocks::tail_value(&tail, whole * block));
    tail.iter().for_each(|tail| tree.push(&[*tail]));
    Ok(Hashed { digest: tree.finish(), tail, stack })
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
            let digest = HashKind::Blake3.digest(&bytes[..len]);
            assert_eq!(tree.finish(), digest, "{len}");
            // A stack goes on as the tree that it is of.
            for at in [1, values.len() / 3, values.len() / 2, values.len() - 1] {
                let mut tree = FileTree::default();
                tree.push(&values[..at]);
                let stack = tree.stack();
                assert_eq!(stack.len() as u32, at.count_ones());
                if at > 0 {
                    let mut tree = FileTree::resumed(at as u64, &stack);
                    tree.push(&values[at..]);
                    assert_eq!(tree.finish(), digest, "{len} from {at}");
                }
            }
        }
    }

    #[test]
    fn a_stack_is_of_all_whole_blocks_but_the_last() {
        let bytes: Vec<u8> = (0..300_000usize).map(|i| (i * 31 + i / 251) as u8).collect();
        for len in [63 * 1024, 64 * 1024, 64 * 1024 + 1, 65 * 1024, 129 * 1024 + 7, 256 * 1024, 300_000] {
            let whole = hash_file(&&bytes[..len], len as u64, 1024, |_, _, _| ()).unwrap();
            let count = len as u64 / 1024 - 1;
            assert_eq!(whole.stack.is_empty(), len < 64 * 1024, "{len}");
            if !whole.stack.is_empty() {
                let tree = FileTree::resumed(count, &whole.stack);
                let mut first = None;
                let on = hash_on(&&bytes[..len], (len as u64, 1024), tree, |at, _, _| {
                    first.get_or_insert(at);
                });
                let on = on.unwrap();
                assert_eq!((on.digest, on.tail, on.stack), (whole.digest, whole.tail, whole.stack));
                assert_eq!(first, Some(count), "only the end is read");
            }
        }
    }
}
