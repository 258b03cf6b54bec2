//! Containers: records one behind the other, and an index (docs/FORMAT.md, section 9).

pub(crate) mod census;
pub(crate) mod scan;
mod tally;
pub(crate) mod writer;

use super::encoded::Encoded;
use super::form::{Candidate, Form, Found, Seen};
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::input::{Content, Input};
use crate::io::ReadAt;
use crate::leftovers::{Leftovers, show_root};
use crate::report::{Examination, ShardReport, ShardState};
use census::{Census, Chain};
use fec_core::digest::Digest;
use fec_core::format::container::{GroupId, HEADER_LEN};
use fec_core::params;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The form.
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
        let meter = context.meter("scan", Some(*len));
        let max_group = context.settings.max_group;
        let place = object.place.as_path();
        let census = Census::of_object((bytes, *len), place, &seen.proved, max_group, wanted, meter.as_ref());
        meter.finish();
        let found = census.and_then(|census| FoundChains::new(census, Some(bytes.clone()), max_group));
        match found {
            // The input imitates records without end. If its headers make it another form, it is that all the same.
            Err(e) if seen.form.is_some() && is_about_records(&e.kind) => {
                Ok(Box::new(FoundChains::default()))
            }
            other => Ok(Box::new(other?)),
        }
    }
}

impl Containers {
    /// The roots of all containers in an input that can be restored, whatever else the input is.
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

fn is_about_records(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Imitation(_) | ErrorKind::TooManyGroups(_) | ErrorKind::TooManyEncodings(_))
}

/// Finds what a pipe holds. Its bytes are not kept, so nothing can be restored.
pub(crate) fn in_pipe(
    pipe: impl io::Read,
    place: &Path,
    is_live: bool,
    wanted: Option<Digest>,
    context: &Context<'_>,
) -> Result<Box<dyn Found>> {
    let meter = context.meter("verify", None);
    let max_group = context.settings.max_group;
    let mut census = Census::take(pipe, None, place, max_group, wanted, meter.as_ref())?;
    meter.finish();
    census.leftovers.is_live = is_live;
    Ok(Box::new(FoundChains::new(census, None, max_group)?))
}

/// Chains of groups in a container.
#[derive(Default)]
struct FoundChains {
    census: Census,
    chains: Vec<Chain>,
    bytes: Option<Arc<dyn ReadAt>>,
    max_group: u64,
}

impl FoundChains {
    fn new(mut census: Census, bytes: Option<Arc<dyn ReadAt>>, max_group: u64) -> Result<FoundChains> {
        let chains = census.chains_found()?;
        Ok(FoundChains { census, chains, bytes, max_group })
    }

    /// How many records of each shard are there.
    fn shards(&self, chain: &Chain) -> Vec<ShardReport> {
        let n = chain.groups.first().map_or(0, |(g, ..)| g.shape().code.n());
        let sets: u64 = chain.groups.iter().map(|(g, ..)| u64::from(g.shape().sets)).sum();
        let report = |index| {
            let intact_sets = self.census.records_of(chain, index);
            let state = match intact_sets {
                0 => ShardState::Missing,
                _ if intact_sets == sets => ShardState::Intact,
                _ => ShardState::Damaged,
            };
            ShardReport { index, state, files: Vec::new(), intact_sets, sets, damage: Vec::new() }
        };
        (0..n as u32).map(report).collect()
    }

    /// Damage other than missing records.
    fn damage(&self, chain: &Chain) -> Vec<String> {
        let census = &self.census;
        let mut damage = Vec::new();
        if !census.gaps.is_empty() {
            let (bytes, places) = (census.gaps.total(), census.gaps.len());
            damage.push(format!("{bytes} bytes in {places} places belong to no intact record"));
        }
        if !census.has_index(chain) {
            damage.push("no copy of the index is left".to_owned());
        }
        if census.duplicates > 0 {
            damage.push(format!("{} records are there twice", census.duplicates));
        }
        let with_records = self.chains.iter().filter(|c| census.has_records(c) && c.root != chain.root);
        let others: Vec<String> =
            with_records.filter(|c| c.root.is_some()).map(|c| show_root(c.root)).collect();
        if !others.is_empty() {
            damage.push(format!("records of other encodings: {}", others.join(", ")));
        }
        let expected = expected_len(chain);
        if chain.geometry.is_none() {
            damage.push("it is cut: its end is missing".to_owned());
        } else if census.len != expected && others.is_empty() {
            damage.push(format!("it has {} bytes and should have {expected}", census.len));
        } else if damage.is_empty() && census.weakest(chain) > 0 && !census.is_in_order(chain) {
            damage.push(
                "records do not stand where they were written, or name other groups before them".to_owned(),
            );
        }
        damage
    }
}

/// Bytes of the container that a chain was written as.
fn expected_len(chain: &Chain) -> u64 {
    let body = (32 * chain.groups.len() as u64).next_multiple_of(64);
    let groups = chain
        .groups
        .iter()
        .map(|(geometry, root, _)| GroupId { geometry: *geometry, root: *root, head: [0; 32] }.group_len());
    groups.sum::<u64>() + 3 * HEADER_LEN as u64 + 2 * body
}

impl Found for FoundChains {
    fn kind(&self) -> params::Form {
        params::Form::Container
    }

    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |chain: &Chain| Candidate {
            root: chain.root,
            is_restorable: Some(self.census.is_restorable(chain)),
            has_records: self.census.has_records(chain),
        };
        self.chains.iter().map(candidate).collect()
    }

    fn encoded(&self, nth: usize) -> Encoded<'_> {
        self.census.encoded(&self.chains[nth], self.bytes.as_deref(), self.max_group)
    }

    fn examine(&self, nth: usize, _context: &Context<'_>) -> Examination {
        let chain = &self.chains[nth];
        Examination {
            shards: self.shards(chain),
            weakest: if chain.geometry.is_some() { self.census.weakest(chain) } else { 0 },
            damage: self.damage(chain),
            gaps: self.census.gaps.list(),
        }
    }

    fn leftovers(&self) -> &Leftovers {
        &self.census.leftovers
    }
}
