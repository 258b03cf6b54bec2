//! Blocks from all of a file, by which it is recognized without reading it whole.

use crate::Sidecar;
use crate::catalog::hashing::is_zeros;
use crate::catalog::positions::position_of;
use fec_base::io::ReadAt;
use fec_core::digest::blocks;
use fec_core::format::sidecar::FileEntry;
use fec_core::format::sidecar::catalog::shortened;
use std::io;

/// Most blocks that are compared.
const SAMPLES: u64 = 16;

/// The numbers of the blocks that are compared, of so many whole ones.
pub(crate) fn numbers(whole: u64) -> impl Iterator<Item = u64> {
    let count = SAMPLES.min(whole);
    let spread = move |nth| if count < SAMPLES { nth } else { nth * (whole - 1) / (SAMPLES - 1) };
    (0..count).map(spread)
}

/// Some whole blocks of a file: the number, the digest, and whether the block is zeros.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<(u64, [u8; 16], bool)>);

impl Samples {
    /// Samples of a file of this size.
    pub(crate) fn of(file: &impl ReadAt, size: u64, block: u32) -> io::Result<Samples> {
        let mut bytes = vec![0; block as usize];
        let digest = |nth: u64| {
            file.read_exact_at(nth * u64::from(block), &mut bytes)?;
            let mut value = [[0; 32]];
            blocks::values(&bytes, block as usize, nth * u64::from(block), &mut value);
            Ok((nth, shortened(&value[0]), is_zeros(&bytes)))
        };
        numbers(FileEntry::whole_blocks(size, block.into()))
            .map(digest)
            .collect::<io::Result<_>>()
            .map(Samples)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of samples that are blocks of an old file of the same size.
    pub(crate) fn same_as(&self, sidecar: &Sidecar, of: &FileEntry) -> usize {
        let is_same = |(nth, digest, is_zeros): &&(u64, [u8; 16], bool)| match position_of(of, *nth) {
            Some(position) => sidecar.digest_of(position) == *digest,
            None => *is_zeros,
        };
        self.0.iter().filter(is_same).count()
    }
}
