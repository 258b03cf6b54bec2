//! The chains of groups that the records of a census form.
//!
//! Each group names the one before it, so a chain is followed from its last group to its first. An index makes a chain
//! of the groups that it lists, whose records may be lost.

use super::super::copies::Copies;
use super::super::tally::Tally;
use super::loader::RecordLoader;
use super::{Census, IndexedGroups};
use crate::forms::encoded::Encoded;
use crate::groups::Groups;
use fec_base::io::ReadAt;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::container::{GroupId, HEADER_LEN, MetaFrame};
use fec_core::format::meta::Meta;
use fec_core::params::{FileGeometry, GroupGeometry};
use std::collections::HashSet;

/// Groups that follow one another.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub root: Option<Digest>,
    pub geometry: Option<FileGeometry>,
    /// True if every set of every group has k intact shards, the end is known, and so is the meta of a sealed payload.
    pub is_restorable: bool,
    /// All its records are in annexes, so they do not count as damage of the object in front of the annexes.
    pub is_in_annexes: bool,
    members: Members,
}

#[derive(Clone, Copy, Debug)]
enum Members {
    /// The groups that index number `.0` lists.
    Listed(usize),
    /// The group with tally `tip` and all groups before it, `count` in all.
    Followed { tip: usize, count: usize },
}

/// A group's link to the groups before it.
#[derive(Clone, Copy, Default)]
struct Link {
    /// Tally of the group before it.
    before: Option<usize>,
    /// Tally of the first known group of its chain, and the number of groups from there up to this one.
    first: usize,
    count: usize,
    /// True if that is group 0 and all groups up to this one can be restored.
    is_whole: bool,
    /// Some record up to this group is outside of annexes.
    stands_by_itself: bool,
    is_followed: bool,
}

/// For each tally the one before it.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Option<usize>>);

impl Census {
    /// The chains that the records form.
    pub(crate) fn chains(&mut self) -> (Vec<Chain>, Links) {
        let links = self.links();
        self.list_groups();
        let listed: HashSet<usize> = self
            .indexes
            .iter()
            .flat_map(|listed| listed.tallies.iter().flatten().map(|t| *t as usize))
            .collect();
        let mut chains: Vec<Chain> = (0..self.indexes.len()).map(|nth| self.listed_chain(nth)).collect();
        for (tip, link) in links.iter().enumerate() {
            if link.is_followed || listed.contains(&tip) {
                continue;
            }
            chains.extend(self.followed_chain(tip, link));
        }
        (chains, Links(links.into_iter().map(|link| link.before).collect()))
    }

    /// Looks up the records of the groups that indexes list.
    fn list_groups(&mut self) {
        for listed in &mut self.indexes {
            let found = |(id, _): (GroupId, Digest)| self.by_root.get(&id.root).map(|tally| *tally as u32);
            listed.tallies = listed.index.groups().map(found).collect();
        }
    }

    fn listed_chain(&self, nth: usize) -> Chain {
        let IndexedGroups { index, tallies } = &self.indexes[nth];
        let can_restore = |tally: &Option<u32>| {
            tally.is_some_and(|tally| {
                let tally = &self.tallies[tally as usize];
                tally.weakest() as usize >= tally.id.geometry.shape().code.k()
            })
        };
        let mut found = tallies.iter().flatten().map(|tally| &self.tallies[*tally as usize]);
        Chain {
            is_in_annexes: found.all(|tally| !tally.stands_by_itself),
            root: Some(index.header.root),
            geometry: Some(index.header.geometry),
            is_restorable: tallies.iter().all(can_restore),
            members: Members::Listed(nth),
        }
    }

    /// The chain that ends with group `tip`; `None` if the group's place in the payload is unknown.
    fn followed_chain(&mut self, tip: usize, link: &Link) -> Option<Chain> {
        let last = self.tallies[tip].id.geometry;
        if last.is_last() && last.number() > 0 && link.count == 1 {
            let lost =
                FormatError::Damaged("the place of a last group, of which all groups before are lost,");
            self.leftovers.reject(|| format!("group {}", last.number()), lost);
            if self.wanted == Some(self.tallies[tip].id.root) {
                self.leftovers.found_wanted = true;
            }
            return None;
        }
        let Tally { id: GroupId { geometry: first, before, .. }, .. } = &self.tallies[link.first];
        if first.number() == 0 && self.bad_metas.contains(before) {
            return None;
        }
        let has_meta = first.number() == 0
            && (self.metas.get(before).is_some() || first.shape().hash.digest(b"") == *before);
        let is_seal_lost = first.shape().is_sealed() && !has_meta;
        let geometry =
            last.is_last().then(|| FileGeometry::of_chain(first.shape(), &last).expect("it follows them"));
        Some(Chain {
            root: last.is_last().then(|| self.tallies[tip].id.root),
            geometry,
            is_restorable: geometry.is_some() && link.is_whole && !is_seal_lost,
            is_in_annexes: !link.stands_by_itself,
            members: Members::Followed { tip, count: link.count },
        })
    }

    /// Follows every group to the one before it.
    fn links(&mut self) -> Vec<Link> {
        let mut order: Vec<usize> = (0..self.tallies.len()).collect();
        order.sort_by_key(|nth| self.tallies[*nth].id.geometry.number());
        let mut links = vec![Link::default(); self.tallies.len()];
        for nth in order {
            let tally = &self.tallies[nth];
            let (id, stands_by_itself) = (tally.id, tally.stands_by_itself);
            let has_k = tally.weakest() as usize >= id.geometry.shape().code.k();
            let before = match id.geometry.number() {
                0 => None,
                _ => self.by_root.get(&id.before).copied(),
            };
            let fits = |before: &usize| may_follow(&self.tallies[*before].id.geometry, &id.geometry);
            if before.is_some_and(|before| !fits(&before)) {
                let error =
                    FormatError::NotCanonical("a group is not what the geometry of the payload implies");
                self.leftovers.reject(|| format!("group {}", id.geometry.number()), error);
            }
            // A fitting group has a lower number, so it is linked already.
            links[nth] = match before.filter(fits) {
                None => Link {
                    first: nth,
                    count: 1,
                    is_whole: id.geometry.number() == 0 && has_k,
                    stands_by_itself,
                    ..Link::default()
                },
                Some(before) => {
                    links[before].is_followed = true;
                    let so_far = links[before];
                    Link {
                        before: Some(before),
                        count: so_far.count + 1,
                        is_whole: so_far.is_whole && has_k,
                        stands_by_itself: so_far.stands_by_itself || stands_by_itself,
                        is_followed: false,
                        ..so_far
                    }
                }
            };
        }
        links
    }

    /// The tallies of a chain's groups, in order.
    fn members(&self, chain: &Chain, links: &Links) -> Vec<Option<u32>> {
        match chain.members {
            Members::Listed(nth) => self.indexes[nth].tallies.clone(),
            Members::Followed { tip, count } => {
                let back = std::iter::successors(Some(tip), |nth| links.0[*nth]);
                let mut members: Vec<Option<u32>> = back.take(count).map(|nth| Some(nth as u32)).collect();
                members.reverse();
                members
            }
        }
    }

    pub(super) fn present<'a>(&'a self, chain: &Chain, links: &Links) -> impl Iterator<Item = &'a Tally> {
        self.members(chain, links).into_iter().flatten().map(|nth| &self.tallies[nth as usize])
    }

    /// The groups of a chain.
    pub(crate) fn groups(&self, chain: &Chain, links: &Links) -> Groups<'_> {
        match chain.members {
            Members::Listed(nth) => {
                let index = &self.indexes[nth].index;
                let (geometry, last) = (index.header.geometry, index.header.geometry.groups() - 1);
                Groups::new(geometry.group(0), geometry.group(last), &index.trees[..])
            }
            Members::Followed { tip, .. } => {
                let trees: Vec<Digest> = self.present(chain, links).map(|tally| tally.tree).collect();
                let first =
                    self.present(chain, links).next().map_or(tip, |first| self.by_root[&first.id.root]);
                Groups::new(self.tallies[first].id.geometry, self.tallies[tip].id.geometry, trees)
            }
        }
    }

    /// The fewest intact shards of any set of the chain.
    pub(crate) fn weakest(&self, chain: &Chain, links: &Links) -> u32 {
        let members = self.members(chain, links);
        let is_from_0 = match chain.members {
            Members::Listed(_) => true,
            Members::Followed { tip, count } => self.tallies[tip].id.geometry.number() as usize + 1 == count,
        };
        let weakest = |tally: &Option<u32>| tally.map_or(0, |t| self.tallies[t as usize].weakest());
        members.iter().map(weakest).min().filter(|_| is_from_0).unwrap_or(0)
    }

    /// Number of records found of each shard, over all sets of the chain.
    pub(crate) fn records_by_index(&self, chain: &Chain, links: &Links, n: u32) -> Vec<u64> {
        let tallies: Vec<&Tally> = self.present(chain, links).collect();
        (0..n).map(|index| tallies.iter().map(|tally| tally.records_of(index)).sum()).collect()
    }

    /// Tells whether a copy of the chain's index was found.
    pub(crate) fn has_index(&self, chain: &Chain) -> bool {
        matches!(chain.members, Members::Listed(_))
    }

    /// Tells whether all parts of a chain with an index are at the places where they were written: the meta, the
    /// records, and the index three times.
    pub(crate) fn is_in_order(&self, chain: &Chain, links: &Links) -> bool {
        let Members::Listed(nth) = chain.members else { return false };
        let header = &self.indexes[nth].index.header;
        let Some(mut at) = self.front_len(chain, links) else { return false };
        let mut copies = self.copies(chain, links);
        if self.copies_in_place(chain, links) != copies.count() {
            return false;
        }
        let kind = *header.geometry.to_bytes().first_chunk().expect("32 bytes");
        if at > 0 && self.first_meta != Some((kind, header.meta_hash, 0)) {
            return false;
        }
        let are_records_whole = self.members(chain, links).iter().all(|tally| {
            tally.is_some_and(|tally| {
                let tally = &self.tallies[tally as usize];
                let (start, between) = (at, std::mem::replace(&mut copies, Copies::NONE));
                at += tally.id.group_len() + between.total();
                tally.is_whole_at(start, between)
            })
        });
        let step = HEADER_LEN as u64 + header.body_len();
        are_records_whole && self.index_places == [0, 1, 2].map(|copy| (header.root, at + copy * step))
    }

    /// Bytes of the meta frame that a chain was written with; `None`: unknown.
    pub(crate) fn front_len(&self, chain: &Chain, links: &Links) -> Option<u64> {
        self.meta_len(chain, links).map(|len| if len == 0 { 0 } else { MetaFrame::len_for(len as usize) })
    }

    /// Bytes of a chain's meta; `None`: unknown.
    pub(crate) fn meta_len(&self, chain: &Chain, links: &Links) -> Option<u32> {
        if let Members::Listed(nth) = chain.members {
            return Some(self.indexes[nth].index.header.meta_len);
        }
        let meta_hash = self.meta_hash(chain, links)?;
        let frame = self.metas.get(&meta_hash);
        frame.map(|frame| frame.meta_len).or_else(|| self.meta(chain, links).map(|_| 0))
    }

    /// M of a chain; `None` if both its first group and its index are lost.
    pub(super) fn meta_hash(&self, chain: &Chain, links: &Links) -> Option<Digest> {
        match chain.members {
            Members::Listed(nth) => Some(self.indexes[nth].index.header.meta_hash),
            Members::Followed { .. } => {
                self.present(chain, links).next().filter(|t| t.id.geometry.number() == 0).map(|t| t.id.before)
            }
        }
    }

    /// The meta of a chain, if a copy of it was found.
    pub(crate) fn meta(&self, chain: &Chain, links: &Links) -> Option<&Meta> {
        if let Members::Listed(nth) = chain.members {
            return Some(&self.indexes[nth].index.meta);
        }
        let meta_hash = self.meta_hash(chain, links)?;
        let is_empty = self.present(chain, links).next()?.id.geometry.shape().hash.digest(b"") == meta_hash;
        let found = self.metas.get(&meta_hash).map(|frame| &frame.meta);
        if is_empty { Some(&NO_META) } else { found }
    }

    /// Tells whether any record is left of a chain.
    pub(crate) fn has_records(&self, chain: &Chain) -> bool {
        match chain.members {
            Members::Listed(nth) => self.indexes[nth].tallies.iter().any(Option::is_some),
            Members::Followed { .. } => true,
        }
    }

    /// A chain as an encoding to restore from `file`. Without a file no shard can be loaded.
    pub(crate) fn encoded<'a>(
        &'a self,
        chain: &Chain,
        links: &Links,
        file: Option<&'a dyn ReadAt>,
    ) -> Encoded<'a> {
        let groups = self.groups(chain, links);
        let tallies = self.members(chain, links);
        let tallies = tallies.into_iter().map(|nth| nth.map(|nth| &self.tallies[nth as usize])).collect();
        let first = groups.first_number();
        Encoded {
            root: chain.root,
            payload_len: chain.geometry.map(|p| p.payload_len()),
            meta: self.meta(chain, links),
            records: Box::new(RecordLoader { file, first, tallies }),
            groups,
        }
    }
}

static NO_META: Meta =
    Meta { name: None, sha256: None, blake3: None, annexes: None, seal: None, others: Vec::new() };

/// Tells whether a group with `geometry` can follow one with `before`.
pub(crate) fn may_follow(before: &GroupGeometry, geometry: &GroupGeometry) -> bool {
    let (shape, its) = (before.shape(), geometry.shape());
    if before.is_last() || u64::from(before.number()) + 1 != u64::from(geometry.number()) {
        return false;
    }
    match geometry.is_last() {
        false => its == shape,
        true => {
            (its.hash, its.flags, its.code) == (shape.hash, shape.flags, shape.code)
                && FileGeometry::of_chain(shape, geometry).is_ok()
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::params::ContainerLayout;

    /// An attacker may append groups behind a signed last group. Readers that stop there would get another payload than
    /// readers that go on.
    #[test]
    fn nothing_follows_a_last_group() {
        let layout = |m| {
            let code = Code::new(2, m).unwrap();
            ContainerLayout::new(HashKind::Blake3, code, 8192, Some(1)).unwrap()
        };
        let of = layout(1);
        let full = |number| of.group(number, of.piece_len(), false);
        let last = |number, len| of.group(number, len, true);
        assert!(may_follow(&full(0), &full(1)) && may_follow(&full(0), &last(1, 100)));
        for next in [full(1), last(1, 100), last(1, of.piece_len())] {
            assert!(
                !may_follow(&last(0, 100), &next) && !may_follow(&last(0, of.piece_len()), &next),
                "{next:?}"
            );
        }
        assert!(
            !may_follow(&full(0), &full(2))
                && !may_follow(&full(1), &full(1))
                && !may_follow(&full(1), &full(0))
        );
        let other = layout(2);
        assert!(!may_follow(&full(0), &other.group(1, other.piece_len(), false)));
        assert!(!may_follow(&full(0), &other.group(1, 100, true)));
    }
}
