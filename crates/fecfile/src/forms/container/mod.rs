//! Containers: a sequence of records, and an index (docs/FORMAT.md, section 9).

pub(crate) mod census;
mod copies;
pub(crate) mod metas;
pub(crate) mod placed;
mod repair;
pub(crate) mod scan;
mod tally;
pub(crate) mod writer;

use super::encoded::Encoded;
use super::form::{Candidate, Form, Found, Seen};
use super::repair::RepairJob;
use crate::error::{Action, EncodingError, Error, Result};
use crate::forms::annexes;
use crate::input::{Content, Input};
use crate::leftovers::{Beginning, Leftovers, show_root};
use crate::report::{Examination, NO_RECORD, ShardReport, ShardState};
use census::Census;
use census::chains::{Chain, Links};
use fec_base::context::Context;
use fec_base::io::ReadAt;
use fec_base::names::counted;
use fec_core::digest::Digest;
use fec_core::format::container::{GroupId, HEADER_LEN};
use fec_core::params;
use fec_keys::sign::Signatures;
use scan::Piped;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The form of containers.
pub(crate) struct Containers;

impl Form for Containers {
    fn kind(&self) -> params::Form {
        params::Form::Container
    }

    fn find(
        &self,
        input: &Input,
        seen: &mut Seen,
        wanted: Option<Digest>,
        context: &Context<'_>,
    ) -> Result<Box<dyn Found>> {
        let Input::One(object) = input else { return Ok(Box::new(FoundChains::default())) };
        let Content::Bytes(bytes, len) = &object.content else { return Ok(Box::new(FoundChains::default())) };
        if seen.is_wanted {
            return Ok(Box::new(FoundChains::default()));
        }
        let meter = context.meter(Action::Scan, Some(*len));
        let place = object.place.as_path();
        let census = Census::of_object((bytes, *len), place, &seen.proved, wanted, &meter)?;
        meter.finish();
        Ok(Box::new(FoundChains::new(census, Some((place, bytes)))))
    }
}

impl Containers {
    /// Roots of all restorable containers in an input, whatever else the input is.
    pub(crate) fn find_restorable(
        &self,
        input: &Input,
        context: &Context<'_>,
    ) -> Result<Vec<Option<Digest>>> {
        let mut seen = Seen { form: Some(self.kind()), ..Seen::default() };
        let found = self.find(input, &mut seen, None, context)?;
        let restorable = found.candidates().into_iter().filter(|c| c.is_restorable == Some(true));
        Ok(restorable.map(|candidate| candidate.root).collect())
    }
}

/// The container of `wanted`, if the index at an object's end says that the object is one. Nothing else is read.
pub(crate) fn by_index(input: &Input, wanted: Digest) -> Option<Box<dyn Found>> {
    let Input::One(object) = input else { return None };
    let Content::Bytes(bytes, len) = &object.content else { return None };
    let bare = annexes::stripped(bytes.as_ref(), *len).ok()?;
    let mut census = Census::by_index(bytes.as_ref(), bare.len, wanted)?;
    census.signatures.list = bare.signatures;
    Some(Box::new(FoundChains::new(census, Some((&object.place, bytes)))))
}

/// Finds the containers in a pipe. The bytes are not kept, so nothing can be restored.
pub(crate) fn in_pipe(
    pipe: impl io::Read,
    place: &Path,
    beginning: Beginning,
    wanted: Option<Digest>,
    context: &Context<'_>,
) -> Result<Box<dyn Found>> {
    let meter = context.meter(Action::Verify, None);
    let mut census = Census::take(Piped(pipe), None, place, wanted, &meter)?;
    meter.finish();
    census.leftovers.beginning = beginning;
    Ok(Box::new(FoundChains::new(census, None)))
}

/// Chains of groups in a container.
#[derive(Default)]
struct FoundChains {
    census: Census,
    chains: Vec<Chain>,
    links: Links,
    /// The object that holds them; `None` for a pipe, whose bytes are gone.
    object: Option<(PathBuf, Arc<dyn ReadAt>)>,
}

impl FoundChains {
    fn new(mut census: Census, object: Option<(&Path, &Arc<dyn ReadAt>)>) -> FoundChains {
        let (chains, links) = census.chains();
        let object = object.map(|(place, bytes)| (place.to_path_buf(), bytes.clone()));
        FoundChains { census, chains, links, object }
    }

    /// Number of intact records of each shard.
    fn shards(&self, chain: &Chain) -> Vec<ShardReport> {
        let groups = self.census.groups(chain, &self.links);
        let (n, sets) = (groups.largest().code.n() as u32, groups.sets());
        let report = |(index, intact_sets)| {
            let state = match intact_sets {
                0 => ShardState::Missing,
                _ if intact_sets == sets => ShardState::Intact,
                _ => ShardState::Damaged,
            };
            ShardReport { index, state, files: Vec::new(), intact_sets, sets, damage: Vec::new() }
        };
        (0..).zip(self.census.records_by_index(chain, &self.links, n)).map(report).collect()
    }

    /// Damage other than missing records.
    fn damage(&self, chain: &Chain) -> Vec<String> {
        let census = &self.census;
        let mut damage = Vec::new();
        if !census.gaps.is_empty() {
            let (bytes, places) = (census.gaps.total(), census.gaps.len());
            let (bytes, places) = (counted(bytes, "byte"), counted(places, "place"));
            damage.push(format!("{bytes} in {places} {NO_RECORD}"));
        }
        if !census.has_index(chain) {
            damage.push("no copy of the index is left".to_owned());
        }
        if census.duplicates > 0 {
            let is_or_are = if census.duplicates == 1 { "is" } else { "are" };
            damage.push(format!("{} {is_or_are} there twice", counted(census.duplicates, "record")));
        }
        let with_records =
            self.chains.iter().filter(|c| census.has_records(c) && c.root != chain.root && !c.is_in_annexes);
        let others: Vec<String> =
            with_records.filter(|c| c.root.is_some()).map(|c| show_root(c.root)).collect();
        if !others.is_empty() {
            damage.push(format!("records of other encodings: {}", others.join(", ")));
        }
        if census.meta(chain, &self.links).is_none() {
            damage.push("no copy of the meta is left".to_owned());
        }
        let expected = self.expected_len(chain);
        let copies = census.copies(chain, &self.links);
        let in_place = census.copies_in_place(chain, &self.links);
        let len = census.len - census.annexes + in_place * copies.each_len();
        if chain.geometry.is_none() {
            damage.push("it is cut: its end is missing".to_owned());
        } else if expected.is_some_and(|expected| len != expected) && others.is_empty() {
            let expected = expected.unwrap_or(0);
            damage.push(format!("it has {len} bytes and should have {expected}"));
        } else if damage.is_empty()
            && census.weakest(chain, &self.links) > 0
            && !census.is_in_order(chain, &self.links)
        {
            damage.push("its parts do not stand where they were written".to_owned());
        }
        damage
    }

    /// Bytes of the container that a chain was written as; `None`: unknown.
    fn expected_len(&self, chain: &Chain) -> Option<u64> {
        let front = self.census.front_len(chain, &self.links)?;
        let meta_len = u64::from(self.census.meta_len(chain, &self.links)?);
        let groups = self.census.groups(chain, &self.links);
        let body = (32 * groups.len() as u64 + meta_len).next_multiple_of(64);
        let group_len = |nth: usize| {
            let geometry = groups.get(nth).geometry;
            GroupId { geometry, root: [0; 32], before: [0; 32] }.group_len()
        };
        let last = groups.len() - 1;
        let records = last as u64 * group_len(0) + group_len(last);
        let copies = self.census.copies(chain, &self.links).total();
        Some(front + records + copies + 3 * HEADER_LEN as u64 + 2 * body)
    }
}

impl Found for FoundChains {
    fn kind(&self) -> params::Form {
        params::Form::Container
    }

    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |chain: &Chain| Candidate {
            root: chain.root,
            is_restorable: Some(chain.is_restorable),
            has_records: self.census.has_records(chain),
            is_in_annexes: chain.is_in_annexes,
        };
        self.chains.iter().map(candidate).collect()
    }

    fn encoded(&self, nth: usize) -> Encoded<'_> {
        self.census.encoded(
            &self.chains[nth],
            &self.links,
            self.object.as_ref().map(|(_, bytes)| bytes.as_ref()),
        )
    }

    fn examine(&self, nth: usize, _context: &Context<'_>) -> Examination {
        let chain = &self.chains[nth];
        Examination {
            shards: self.shards(chain),
            weakest: if chain.geometry.is_some() { self.census.weakest(chain, &self.links) } else { 0 },
            damage: self.damage(chain),
            gaps: self.census.gaps.list(),
            seal_places: self.census.seal_places(chain, &self.links),
        }
    }

    fn repair(&self, nth: usize, found: &Examination, job: &RepairJob<'_>) -> Result<Vec<PathBuf>> {
        let chain = &self.chains[nth];
        let (Some((place, bytes)), false) = (&self.object, found.is_intact()) else {
            return Ok(Vec::new());
        };
        // Records in annexes are kept, so they are no obstacle.
        let mut others = self.chains.iter().filter(|other| other.root != chain.root);
        let is_lost = |other: &Chain| self.census.has_records(other) && !other.is_in_annexes;
        if job.out.is_none() && (self.census.holds_others || others.any(is_lost)) {
            return Err(Error::at(Action::Repair, place.as_path(), EncodingError::HoldsAnother));
        }
        repair::repair((&self.census, &self.links), chain, (place, bytes), job)
    }

    fn signatures(&self) -> &Signatures {
        &self.census.signatures.list
    }

    fn leftovers(&self) -> &Leftovers {
        &self.census.leftovers
    }
}
