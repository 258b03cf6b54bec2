//! Loads the shards of a container's records.

use super::super::tally::Tally;
use crate::forms::encoded::{Load, Records};
use fec_base::io::ReadAt;
use fec_base::program::stages::{self, Observed, Stage};
use fec_core::format::container::{RecordHeader, record_head_len};
use fec_core::params::GroupGeometry;
use fec_core::set::{Reading, Run};
use std::io;
use std::ops::Range;

/// Loads records from the places that their tallies tell.
pub(super) struct RecordLoader<'a> {
    pub(super) file: Option<&'a dyn ReadAt>,
    /// The number of the first group.
    pub(super) first: u32,
    pub(super) tallies: Vec<Option<&'a Tally>>,
}

impl<'a> RecordLoader<'a> {
    fn tally(&self, group: u32) -> Option<&'a Tally> {
        self.tallies[(group - self.first) as usize]
    }

    fn one(&self, group: u32, set: u32, index: u32, reading: &mut Reading<'_>) -> io::Result<Load> {
        let (Some(tally), Some(file)) = (self.tally(group), self.file) else {
            return Ok(Load::Missing);
        };
        let Some(at) = tally.find(set, index) else { return Ok(Load::Missing) };
        let mut head = vec![0u8; tally.id.record_head_len()];
        let stage = stages::enter(Stage::Read, tally.id.record_len());
        let read = file.read_exact_at(at, &mut head);
        let read = read.and_then(|()| file.read_exact_at(at + head.len() as u64, reading.slot(index)));
        drop(stage);
        match read {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Load::Missing),
            other => other?,
        }
        // The file may have changed since the scan, so every part is checked again.
        let fixed = head.first_chunk().expect("a record's head has 128 bytes");
        if record_head_len(fixed) != head.len() {
            return Ok(Load::Damaged);
        }
        let Ok(header) = RecordHeader::parse(&head) else { return Ok(Load::Damaged) };
        let Some(proof) = header.proof(&head) else { return Ok(Load::Damaged) };
        let intact = reading.check(index, &[proof], Run { observer: &Observed, ..Run::default() });
        Ok(if intact { Load::Intact } else { Load::Damaged })
    }
}

impl Records for RecordLoader<'_> {
    fn load(&self, group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        let mut one = |index: &u32| self.one(group, set, *index, reading).unwrap_or_else(Load::Unreadable);
        wanted.iter().map(&mut one).collect()
    }

    fn present(&self, group: u32, _sets: u32) -> Vec<Range<u32>> {
        self.tally(group).filter(|_| self.file.is_some()).map_or_else(Vec::new, Tally::present)
    }

    fn obtainable(&self, group: &GroupGeometry) -> Vec<Range<u64>> {
        let tally = self.tally(group.number()).filter(|_| self.file.is_some());
        tally.map_or_else(Vec::new, Tally::obtainable)
    }
}
