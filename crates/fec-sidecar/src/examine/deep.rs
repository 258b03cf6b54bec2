//! Checks more than digests: whether the recovery data really restores the files that the sidecar records.
//!
//! Each set is decoded and coded once more, and each damaged file is put together without writing it. A failure of
//! `repair` is thus known before anything is lost or written.

use crate::Sidecar;
use crate::catalog::hashing::plain_digests;
use crate::catalog::metadata::LOST;
use crate::catalog::positions::{Any, PositionReader, Positions, shared_tails};
use crate::error::SidecarError;
use crate::examine::Examined;
use crate::examine::rebuild::{Rebuild, Sink, Wants};
use crate::examine::written::Written;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_core::digest::{HashKind, blocks};
use fec_core::format::sidecar::catalog::shortened;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use std::collections::HashMap;

/// The sidecar and files under check.
pub(crate) struct Deep<'a> {
    pub(crate) sidecar: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) examined: &'a Examined,
    pub(crate) context: &'a Context<'a>,
    pub(crate) meter: &'a Gauge<'a>,
}

impl Deep<'_> {
    /// The first contradiction: a set that is no codeword, or a file that the computed bytes would not make whole.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`]; those of the files.
    pub(crate) fn all(&self) -> Result<Option<SidecarError>> {
        let is_reported =
            |nth: usize| self.examined.entries.binary_search_by_key(&nth, |report| report.entry).is_ok();
        let block = u64::from(self.sidecar.catalog.block);
        // Whole files that share a position with lost bytes count too: the computed position must have their bytes.
        let is_lost =
            |file: &FileEntry| file.tail_len(block) > 0 && self.examined.erased.get(file.tail / block);
        // The first of the files that share a place gave the bytes of the position.
        let shared = shared_tails(&self.sidecar.catalog);
        let is_shared = |file: &FileEntry| file.tail_len(block) > 0 && shared.contains(&file.tail);
        let files = self.sidecar.catalog.files();
        let files = files.filter(|(nth, file)| is_reported(*nth) || is_lost(file) || is_shared(file));
        let files: Vec<usize> = files.map(|(nth, _)| nth).collect();
        match self.sidecar.is_coded_right(&self.context.settings)? {
            true => self.look(&files, true),
            false => Ok(Some(SidecarError::NotACodeword(None))),
        }
    }

    /// Like [`Deep::all`], but for these files alone.
    ///
    /// # Errors
    /// As [`Deep::all`].
    pub(crate) fn files(&self, files: &[usize]) -> Result<Option<SidecarError>> {
        self.look(files, false)
    }

    fn look(&self, files: &[usize], check: bool) -> Result<Option<SidecarError>> {
        let positions = Positions::of(&self.sidecar.catalog);
        let mut sums = Sums::new(self.sidecar, &positions, files);
        let rebuild = Rebuild {
            sidecar: self.sidecar,
            base: self.base,
            positions: &positions,
            examined: self.examined,
            context: self.context,
            meter: self.meter,
        };
        let is_of_these =
            |position: u64| positions.within(position..position + 1).any(|span| sums_of(files, span.entry));
        let wants = Wants { position: &is_of_these, recovery: false, check };
        if let Some(contradiction) = rebuild.run(&wants, &mut sums)? {
            return Ok(Some(contradiction));
        }
        sums.read_the_rest(self.base, self.examined)?;
        sums.contradiction(self.meter)
    }
}

/// Tells whether an entry is one of `files`, which are in order.
fn sums_of(files: &[usize], entry: u32) -> bool {
    files.binary_search(&(entry as usize)).is_ok()
}

/// The values of the blocks of files: 32 bytes for each block, without its bytes.
struct Sums<'a> {
    sidecar: &'a Sidecar,
    positions: &'a Positions,
    files: HashMap<u32, Written<'a>>,
}

impl<'a> Sums<'a> {
    fn new(sidecar: &'a Sidecar, positions: &'a Positions, files: &[usize]) -> Sums<'a> {
        let of = |nth: &usize| match &sidecar.catalog.entries[*nth].kind {
            EntryKind::File(file) => Some((*nth as u32, Written::new(file))),
            _ => None,
        };
        Sums { sidecar, positions, files: files.iter().filter_map(of).collect() }
    }

    fn file(&self, entry: u32) -> Option<&'a FileEntry> {
        match &self.sidecar.catalog.entries[entry as usize].kind {
            EntryKind::File(file) => Some(file),
            _ => None,
        }
    }

    /// Takes the bytes of a position that belong to these files.
    fn take(&mut self, position: u64, bytes: &[u8]) {
        let block = u64::from(self.sidecar.catalog.block);
        for span in self.positions.within(position..position + 1) {
            let Some(sum) = self.files.get_mut(&span.entry) else { continue };
            let bytes = &bytes[(span.at - position * block) as usize..][..span.len as usize];
            if !span.is_packed {
                sum.add(bytes, span.offset, block);
                continue;
            }
            sum.tail = Some(match span.offset {
                0 => HashKind::Blake3.digest(bytes),
                offset => blocks::tail_value(bytes, offset),
            });
        }
    }

    /// Reads the intact positions of these files.
    fn read_the_rest(&mut self, base: &Base, examined: &Examined) -> Result<()> {
        let block = self.sidecar.catalog.block as usize;
        let catalog = &self.sidecar.catalog;
        let mut reader = PositionReader::new(base, catalog, self.positions, &Any).with(&examined.moved);
        let mut bytes = vec![0; block];
        let mut files: Vec<u32> = self.files.keys().copied().collect();
        files.sort_unstable();
        for entry in files {
            let Some(file) = self.file(entry) else { continue };
            let tail = (file.tail_len(block as u64) > 0).then_some(file.tail / block as u64);
            let of_runs = file.runs.iter().flat_map(|run| run.start..run.start + run.count);
            for position in of_runs.chain(tail).filter(|position| !examined.erased.get(*position)) {
                let changed = |_, _| Err(Error::at(Action::Verify, base.path(), ErrorKind::Changed));
                reader.fill(position, &mut bytes, changed)?;
                let found = match self.positions.whole_block(position) {
                    Some(offset) => {
                        let mut value = [[0; 32]];
                        blocks::values(&bytes, block, offset, &mut value);
                        shortened(&value[0])
                    }
                    None => plain_digests(&bytes, block)[0],
                };
                let expected = self.sidecar.digest_of(position);
                if found == expected && expected != LOST {
                    self.take(position, &bytes);
                }
            }
        }
        Ok(())
    }

    /// The first file whose blocks all have their digests, while its own digest differs.
    fn contradiction(self, meter: &Gauge<'_>) -> Result<Option<SidecarError>> {
        let block = self.sidecar.catalog.block.into();
        let entries = &self.sidecar.catalog.entries;
        let mut files: Vec<(u32, Written<'_>)> = self.files.into_iter().collect();
        files.sort_unstable_by_key(|(entry, _)| *entry);
        for (entry, sum) in files {
            let Entry { path, kind: EntryKind::File(file) } = &entries[entry as usize] else { continue };
            let digest = sum.digest(block, || meter.check())?;
            if file.size > 0 && digest.is_some_and(|digest| digest != file.blake3) {
                return Ok(Some(SidecarError::Contradiction(path.to_vec())));
            }
        }
        Ok(None)
    }
}

impl Sink for Sums<'_> {
    fn position(&mut self, position: u64, bytes: &[u8]) -> Result<()> {
        self.take(position, bytes);
        Ok(())
    }

    fn recovery(&mut self, _group: usize, _shard: u64, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}
