//! The subtree stacks of files that grow (section 17.3, part 5): whoever appends to a file reads on at its old end.

use super::entry::{Entry, EntryKind, FileEntry};
use super::varint::{Bytes, put};
use crate::digest::Digest;
use crate::error::FormatError;

/// The chaining values over the whole blocks of a file but the last, as BLAKE3 keeps them on its stack: those of the
/// complete subtrees, the largest first. With the last whole block and the tail they lead to the file's digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The number of the entry, which is a file with at least two whole blocks.
    pub entry: u32,
    /// Values, one for each bit that is set in the number of blocks.
    pub values: Vec<Digest>,
}

impl Stack {
    /// The number of blocks that the stack of a file is over; 0 if the file has none.
    pub fn blocks(file: &FileEntry, block: u64) -> u64 {
        FileEntry::whole_blocks(file.size, block).saturating_sub(1)
    }
}

/// The bytes of stacks, which ascend by their entries.
pub(super) fn to_bytes(stacks: &[Stack]) -> Vec<u8> {
    let (mut out, mut next) = (Vec::new(), 0);
    for stack in stacks {
        put(&mut out, (stack.entry - next).into());
        next = stack.entry + 1;
        stack.values.iter().for_each(|value| out.extend_from_slice(value));
    }
    out
}

/// Parses the stacks of a catalog with these entries and this block.
pub(super) fn parse(bytes: &[u8], entries: &[Entry], block: u64) -> Result<Vec<Stack>, FormatError> {
    let wrong = FormatError::Catalog;
    let (mut rest, mut next) = (Bytes(bytes), 0u64);
    let mut stacks = Vec::new();
    while !rest.0.is_empty() {
        let entry = next.checked_add(rest.varint()?).and_then(|entry| u32::try_from(entry).ok());
        let found = entry.and_then(|entry| Some((entry, &entries.get(entry as usize)?.kind)));
        let Some((entry, EntryKind::File(file))) = found else {
            return Err(wrong("a stack is of no file"));
        };
        let count = Stack::blocks(file, block).count_ones() as usize;
        if count == 0 {
            return Err(wrong("a stack is of a file with fewer than two whole blocks"));
        }
        let values = rest.take(32 * count)?.as_chunks().0.to_vec();
        stacks.push(Stack { entry, values });
        next = u64::from(entry) + 1;
    }
    Ok(stacks)
}
