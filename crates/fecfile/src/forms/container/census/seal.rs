//! Places where a census found the meta, which holds the seal of a sealed payload.

use super::super::copies::{Copies, holds_seal};
use super::chains::{Chain, Links};
use super::{Census, FramePlace};
use fec_core::format::annex;
use fec_core::format::container::{GroupId, MetaFrame};
use std::collections::HashSet;

/// Most meta frames whose places are kept.
const MAX_FRAMES: usize = 65_536;

impl Census {
    /// Notes the place of a meta frame.
    pub(super) fn note_frame(&mut self, frame: &MetaFrame, at: u64) {
        if self.frames.len() >= MAX_FRAMES {
            return;
        }
        let (kind, annex) = &self.last_annex;
        let around = annex::HEADER_LEN as u64;
        let len = MetaFrame::len_for(frame.meta_len as usize);
        let is_copy = *kind == annex::META_COPY && *annex == (at.wrapping_sub(around)..at + len + around);
        let annex = is_copy.then_some(annex.start);
        self.frames.push(FramePlace { kind: frame.kind, meta_hash: frame.meta_hash, annex });
    }

    /// The copies of the meta that a chain was written with: all of them, if any copy is in front of its index, or if
    /// its records leave room for copies; otherwise none.
    pub(crate) fn copies(&self, chain: &Chain, links: &Links) -> Copies {
        let (Some(meta), Some(front)) = (self.meta(chain, links), self.front_len(chain, links)) else {
            return Copies::NONE;
        };
        let shape = *self.groups(chain, links).largest();
        if !holds_seal(&shape, meta) {
            return Copies::NONE;
        }
        let copies = Copies::framed(shape.code, front);
        let end = self.index_places.iter().find(|(root, _)| Some(*root) == chain.root).map(|(_, at)| *at);
        let is_between = |at: u64| end.is_none_or(|end| at < end);
        let first = self.present(chain, links).find(|tally| tally.id.geometry.number() == 0);
        let is_any = self.copies_of(chain, links).any(is_between)
            || first.is_some_and(|first| first.leaves_room_for(copies));
        if is_any { copies } else { Copies::NONE }
    }

    /// Places of a chain's copies of the meta that are annexes of their own.
    fn copies_of(&self, chain: &Chain, links: &Links) -> impl Iterator<Item = u64> {
        let meta_hash = self.meta_hash(chain, links);
        // The kind comes from P, in which the flag of a last group is off.
        let [version, hash, form, flags, ..] = self.groups(chain, links).get(0).geometry.to_bytes();
        let kind = [version, hash, form, flags & !1];
        let is_its = move |frame: &&FramePlace| frame.kind == kind && Some(frame.meta_hash) == meta_hash;
        self.frames.iter().filter(is_its).filter_map(|frame| frame.annex)
    }

    /// Number of its copies at the places where they were written.
    pub(crate) fn copies_in_place(&self, chain: &Chain, links: &Links) -> u64 {
        let copies = self.copies(chain, links);
        let groups = self.groups(chain, links);
        let geometry = groups.get(0).geometry;
        let Some(front) = self.front_len(chain, links).filter(|_| geometry.number() == 0) else { return 0 };
        let id = GroupId { geometry, root: [0; 32], before: [0; 32] };
        let place = |nth| {
            let record = id.ordinal(0, copies.shard(nth) as u32) * id.record_len();
            front + record + (nth - 1) * copies.each_len()
        };
        let found: HashSet<u64> = self.copies_of(chain, links).collect();
        (1..=copies.count()).filter(|nth| found.contains(&place(*nth))).count() as u64
    }

    /// Number of places with the seal of a chain's payload; `None` if the payload is not sealed, or its seal is not in
    /// its meta. The two copies in the index are side by side, so they count as a single place.
    pub(crate) fn seal_places(&self, chain: &Chain, links: &Links) -> Option<u32> {
        if !self.groups(chain, links).largest().is_sealed() {
            return None;
        }
        let Some(meta) = self.meta(chain, links) else { return Some(0) };
        let meta_hash = self.meta_hash(chain, links);
        let frames = self.frames.iter().filter(|frame| Some(frame.meta_hash) == meta_hash).count();
        meta.seal.as_ref().map(|_| frames as u32 + u32::from(self.has_index(chain)))
    }
}
