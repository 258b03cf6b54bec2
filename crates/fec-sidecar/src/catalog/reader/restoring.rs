//! Restores metadata from its pieces.

use super::{Found, Places, Reader};
use crate::catalog::generations::{Opened, PiecesFound, extent_of};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::sidecar::difference::Difference;
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::piece::Generation;
use fec_core::set::{Run, SetDecoder};
use std::collections::HashMap;

impl Reader<'_> {
    /// The metadata of an encoding, if enough of its pieces are intact, and of those of the whole generation that its
    /// payload differs from.
    pub(crate) fn open(&self, of: Generation, found: &Found) -> std::io::Result<Option<Opened>> {
        let Some(places) = found.get(&of) else { return Ok(None) };
        if !of.is_difference() {
            // Differences may need it, too.
            if !found.keys().any(Generation::is_difference) {
                return self.restore(of, places);
            }
            let mut whole = self.whole.borrow_mut();
            if whole.as_ref().is_none_or(|whole| whole.of != of) {
                *whole = self.restore(of, places)?;
            }
            return Ok(whole.clone());
        }
        let Some(mut opened) = self.restore(of, places)? else { return Ok(None) };
        if opened.rule.is_some() {
            return Ok(Some(opened));
        }
        let root = match Difference::parse(&opened.metadata) {
            Ok(difference) => difference.whole,
            Err(rule) => {
                opened.rule = Some(rule);
                return Ok(Some(opened));
            }
        };
        let mut whole = self.whole.borrow_mut();
        if whole.as_ref().is_none_or(|whole| whole.of.root != root) {
            *whole = None;
            for (of, places) in found.iter().filter(|(of, _)| of.root == root && !of.is_difference()) {
                *whole = self.restore(*of, places)?;
                if whole.is_some() {
                    break;
                }
            }
        }
        // Many short differences to long metadata are much work.
        let whole = whole.as_ref().filter(|whole| self.may_hash(whole.metadata.len() as u64));
        Ok(whole.map(|whole| {
            opened.apply_to(whole);
            opened
        }))
    }

    /// The payload of an encoding, if enough of its pieces are intact.
    fn restore(&self, of: Generation, places: &Places) -> std::io::Result<Option<Opened>> {
        let Some(extent) = extent_of(&of) else { return Ok(None) };
        let shape = *of.geometry.shape();
        if let Places::Found(found) = places
            && found.len() < shape.code.k() * shape.sets as usize
        {
            self.note_if_usable(&of, found);
            return Ok(None);
        }
        let mut restoring = Restoring {
            reader: self,
            of,
            extent,
            places,
            tree: None,
            body: vec![0; shape.shard_len],
            decoder: SetDecoder::for_payload(&shape),
            metadata: vec![0; of.geometry.payload_len() as usize],
            pieces: PiecesFound { all: of.pieces(), spare: u64::MAX, ..PiecesFound::default() },
            rule: None,
        };
        for set in 0..shape.sets {
            let proved = restoring.read_set(set);
            let Some(tree) = restoring.tree.filter(|_| proved.len() >= shape.code.k()) else {
                return Ok(None);
            };
            restoring.restore_set(set, &tree, &proved);
        }
        let Restoring { metadata, pieces, rule, .. } = restoring;
        let (_, first) = places.span(&of);
        let catalog_len = of.layout.catalog_len;
        Ok(Some(Opened { of, rule, first, metadata, catalog_len, pieces, difference: None }))
    }

    /// Notes an encoding that has too few pieces, if one of them is usable.
    fn note_if_usable(&self, of: &Generation, found: &HashMap<(u32, u32), Vec<u64>>) {
        let mut body = vec![0; of.geometry.shape().shard_len];
        let mut all = found.iter().flat_map(|(key, places)| places.iter().map(move |at| (*key, *at)));
        let is_usable = |(tree, _): (Digest, Vec<u8>)| of.is_proved_by(&tree);
        if all.any(|(key, at)| self.prove(of, key, at, &mut body).is_some_and(is_usable)) {
            self.note(of);
        }
    }
}

/// A proved piece of metadata: its index, its body, and its proof.
type ProvedPiece = (u32, Vec<u8>, Vec<u8>);

/// Metadata that is being restored, set by set.
struct Restoring<'a> {
    reader: &'a Reader<'a>,
    of: Generation,
    extent: Extent,
    places: &'a Places,
    /// The X that the pieces so far lead to.
    tree: Option<Digest>,
    /// Room for the body of a piece.
    body: Vec<u8>,
    decoder: SetDecoder,
    metadata: Vec<u8>,
    pieces: PiecesFound,
    /// The rule that the coding of the metadata breaks, if any.
    rule: Option<FormatError>,
}

impl Restoring<'_> {
    /// Reads the pieces of a set, and counts them. Returns those that are proved, as many as can be needed.
    fn read_set(&mut self, set: u32) -> Vec<ProvedPiece> {
        let (k, n) = (self.of.geometry.shape().code.k(), self.of.geometry.shape().code.n());
        let mut proved: Vec<ProvedPiece> = Vec::new();
        let mut intact = 0;
        for index in 0..n as u32 {
            let expected = self.extent.piece(self.of.ordinal(set, index), self.of.layout.block.into());
            let found = self.find_piece((set, index), &expected);
            if found.as_ref().is_none_or(|(at, _)| *at != expected) {
                self.pieces.displaced += 1;
            }
            let Some((_, proof)) = found else { continue };
            intact += 1;
            // Recovery shards are kept only while they are needed.
            if (index as usize) < k || proved.len() < k {
                proved.push((index, self.body.clone(), proof));
            }
        }
        self.pieces.intact += intact;
        self.pieces.spare = self.pieces.spare.min(intact.saturating_sub(k as u64));
        proved
    }

    /// Reads the body of a piece that belongs at `expected` into its room, from where the piece is proved. Returns the
    /// offset of the piece, and its proof.
    fn find_piece(&mut self, key: (u32, u32), expected: &u64) -> Option<(u64, Vec<u8>)> {
        for &at in self.places.of(key, expected) {
            let Some((leads_to, proof)) = self.reader.prove(&self.of, key, at, &mut self.body) else {
                continue;
            };
            let is_proved = match &self.tree {
                Some(tree) => *tree == leads_to,
                None => self.of.is_proved_by(&leads_to),
            };
            if is_proved {
                self.reader.note(&self.of);
                self.tree = Some(leads_to);
                return Some((at, proof));
            }
        }
        None
    }

    /// Puts a set into the metadata. `proved` has at least as many pieces as the set has originals.
    fn restore_set(&mut self, set: u32, tree: &Digest, proved: &[ProvedPiece]) {
        let geometry = &self.of.geometry;
        let k = geometry.shape().code.k();
        let (metadata, rule) = (&mut self.metadata, &mut self.rule);
        let mut put = |index: usize, row: &[u8]| {
            let at = geometry.shard_offset(set, index) as usize;
            let len = geometry.shard_payload(set, index);
            metadata[at.min(geometry.payload_len() as usize)..][..len].copy_from_slice(&row[..len]);
            if row[len..].iter().any(|byte| *byte != 0) {
                *rule = Some(FormatError::Catalog("what is behind its end is not zero"));
            }
        };
        if proved.iter().take(k).all(|(index, ..)| (*index as usize) < k) {
            proved.iter().take(k).for_each(|(index, row, _)| put(*index as usize, row));
            return;
        }
        let mut reading = self.decoder.begin(geometry, tree, set);
        for (index, row, proof) in proved {
            reading.slot(*index).copy_from_slice(row);
            reading.check(*index, &[proof], Run::default());
        }
        match reading.decode(&self.reader.plans, Run::default()) {
            Ok(decoded) => (0..k).for_each(|index| put(index, decoded.row(index as u32))),
            Err(_) => self.rule = Some(FormatError::Catalog("it is not a codeword")),
        }
    }
}
