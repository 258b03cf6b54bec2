//! Codes sets of up to 65,536 blocks, coset by coset: each block is read, hashed and added once.

use super::rows::{Coding, Found, Reader};
use crate::catalog::wide::{WideBuffers, on_each, parts};
use fec_base::error::{Error, Result};
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::area::{AreaCode, AreaEncoder};
use fec_core::executor::{into_value, lock};
use std::sync::Mutex;

/// Codes all sets of a group.
///
/// # Errors
/// Those that are not of the files.
pub(super) fn run(coding: &Coding<'_>, code: AreaCode) -> Result<()> {
    let threads = Threads(coding.settings.threads);
    let readers = (0..threads.0).map(|_| Mutex::new(coding.reader())).collect();
    let work = Work { coding, code, threads, readers };
    let mut buffers = WideBuffers::new(code, coding.catalog.block, coding.settings);
    (0..coding.group.sets.into()).try_for_each(|set| work.code(set, &mut buffers))
}

struct Work<'a> {
    coding: &'a Coding<'a>,
    code: AreaCode,
    threads: Threads,
    readers: Vec<Mutex<Reader<'a>>>,
}

impl Work<'_> {
    /// Reads, hashes, codes and writes a set.
    fn code(&self, set: u64, buffers: &mut WideBuffers) -> Result<()> {
        let (coding, code) = (self.coding, self.code);
        let WideBuffers { blocks, room, threads } = buffers;
        let (block, m) = (coding.catalog.block as usize, code.m());
        let mut encoder =
            AreaEncoder::new(code, block, coding.settings.backend, room).expect("it was made for this code");
        for coset in 0..code.cosets() {
            let positions = code.positions(coset);
            let originals = positions.start.max(m)..positions.end.max(m);
            let bytes = &mut blocks.row_mut(0)[..originals.len() * block];
            self.read(set, (originals.start - m) as u64, bytes)?;
            // Recovery shards stand before the originals.
            let none = std::iter::repeat_n(None, positions.len() - originals.len());
            let rows: Vec<Option<&[u8]>> = none.chain(bytes.chunks_exact(block).map(Some)).collect();
            let _stage = stages::enter(Stage::Code, bytes.len() as u64);
            encoder.add(coset, &rows, threads).expect("each coset is added once");
        }
        let shards = &mut blocks.row_mut(0)[..m * block];
        let stage = stages::enter(Stage::Code, 0);
        let mut out: Vec<&mut [u8]> = shards.chunks_exact_mut(block).collect();
        encoder.finish(&mut out, threads).expect("all cosets are added");
        drop(stage);
        self.write(set, shards)
    }

    /// Reads and hashes originals of a set, from number `first` on.
    fn read(&self, set: u64, first: u64, blocks: &mut [u8]) -> Result<()> {
        let Coding { group, catalog, .. } = self.coding;
        let originals = first..first + blocks.len() as u64 / u64::from(catalog.block);
        let run = group.run;
        let parts = parts(originals, blocks, catalog.block, |original| original + run - original % run);
        self.each(parts, |worker, first, blocks, found| {
            let position = self.coding.first + group.position(set, first);
            self.coding.read(position, blocks, &mut lock(&self.readers[worker]), found)
        })
    }

    /// Hashes and writes the recovery shards of a set.
    fn write(&self, set: u64, shards: &mut [u8]) -> Result<()> {
        let Coding { group, catalog, .. } = self.coding;
        let numbers = 0..group.code.m();
        let parts = parts(numbers.clone(), shards, catalog.block, |_| numbers.end);
        self.each(parts, |_, first, shards, found| {
            self.coding.write((group.shard(set, first), group.sets.into()), shards, found)
        })
    }

    /// Calls `job` for each part, with the number of the thread, and keeps what was found.
    fn each(
        &self,
        parts: Vec<(u64, &mut [u8])>,
        job: impl Fn(usize, u64, &mut [u8], &mut Found) -> Result<()> + Sync,
    ) -> Result<()> {
        let meter = self.coding.meter;
        let first_error: Mutex<Option<Error>> = Mutex::new(None);
        on_each(self.threads, parts, |worker, (first, blocks)| {
            if lock(&first_error).is_some() {
                return;
            }
            let mut found = Found::default();
            let done = meter.check().and_then(|()| job(worker, first, blocks, &mut found));
            match done {
                Ok(()) => self.coding.keep(&found),
                Err(error) => drop(lock(&first_error).get_or_insert(error)),
            }
            meter.add(found.bytes);
        });
        into_value(first_error).map_or(Ok(()), Err)
    }
}
