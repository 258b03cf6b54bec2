//! Audits a payload in stores: a few leaves of each place, chosen at random and proved to the root, tell how much of it
//! the place can have lost at most.
//!
//! All bytes of a place are cut into as many equal parts as there are looks. Each look is at a byte of its part that is
//! chosen at random: at the leaf that this byte is in, or at the record where a shard has no outline. A place that has
//! lost a share p of its bytes, wherever they are, gives n looks right with a probability of at most (1 − p)^n. The
//! places do not know the seed, and each is looked at by itself.

mod chance;
mod looks;
mod state;
mod verdict;

use super::error::{StoreError, note};
use super::find::Candidate;
use super::lists::Lists;
use super::stored::{Stored, failure};
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Result};
use fec_base::names::show;
use fec_base::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::shard_file::Encoding;
use fec_core::random::SplitMix64;
use looks::{Held, Look};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

pub use state::AuditState;
pub use verdict::{Audit, Audited, AuditedPlace};

/// Most looks at a place. Whoever wants to be surer reads every byte.
const MOST_LOOKS: u64 = 1 << 20;
/// Most groups of looks that a place serves at the same time.
const TOGETHER: u64 = 16;
/// Bytes of them, unless a record has more.
const MEMORY: u64 = 32 << 20;

/// The objects of all places, as they are listed.
struct Listed {
    held: Vec<Vec<Held>>,
    found: Vec<AuditedPlace>,
    margins: Vec<i64>,
    trouble: BTreeMap<usize, StoreError>,
}

impl Stored<'_> {
    /// Looks at bytes of every place that are chosen at random, and proves each.
    ///
    /// Memory: for each place 32 MiB, or a record if it has more and no outline, and some 64 bytes for each look.
    ///
    /// # Errors
    /// Those of stopping. Places that do not answer are in the result.
    ///
    /// # Panics
    /// If confidence or rot are not between 0 and 1.
    pub fn audit(&self, audit: &Audit, context: &Context<'_>) -> Result<Audited> {
        assert!([audit.confidence, audit.rot].iter().all(|share| *share > 0.0 && *share < 1.0), "a share");
        let Listed { held, mut found, margins, mut trouble } = self.listed();
        let open = |place: usize| {
            !audit.left_out.contains(&place) && !trouble.contains_key(&place) && !held[place].is_empty()
        };
        let asked: Vec<usize> = (0..self.places.len()).filter(|place| open(*place)).collect();
        let plans: Vec<Vec<Vec<Look>>> = asked
            .iter()
            .map(|place| {
                let share = audit.budget.map(|budget| budget / asked.len() as u64);
                let (looks, groups) = self.looks(audit, *place, &held[*place], share);
                found[*place].looks = looks;
                groups
            })
            .collect();
        let all = plans.iter().flatten().flatten().map(|look| look.bytes.end - look.bytes.start).sum();
        let meter = context.meter(Action::Verify, Some(all));
        let looked: Vec<Mutex<AuditedPlace>> =
            asked.iter().map(|place| Mutex::new(found[*place].clone())).collect();
        Threads(asked.len()).run(asked.len(), &|nth| {
            self.look_at(asked[nth], &held[asked[nth]], &plans[nth], &looked[nth], &meter);
        });
        meter.finish();
        if self.places.cancel.is_cancelled() {
            return Err(failure(&StoreError::Cancelled));
        }
        for (place, looked) in asked.iter().zip(looked) {
            found[*place] = into_value(looked);
        }
        for (place, why) in std::mem::take(&mut trouble) {
            // Nobody knows what it lacks.
            found[place].missing.clear();
            found[place].failed = Some(why);
        }
        let has_failed = |place: usize| found[place].failed.is_some();
        let lack_manifest = self.lack_manifest().into_iter().filter(|place| !has_failed(*place)).collect();
        // The lists tell of all places.
        found.retain(|of| !audit.left_out.contains(&of.place) || of.lacks() || of.failed.is_some());
        let told = |of: &AuditedPlace| {
            let name = show(self.places.get(of.place).target.name());
            of.failed.as_ref().map(|why| format!("{name}: {why}"))
        };
        Ok(Audited {
            trouble: self.lost_meta().chain(found.iter().filter_map(told)).collect(),
            is_cut_off: found.iter().any(|of| of.failed.is_some()),
            places: found,
            margins,
            lack_manifest,
            fetched_bytes: self.places.moved(),
            is_meta_lost: self.is_meta_lost,
        })
    }

    /// Asks all places for what they hold, by names and lengths.
    fn listed(&self) -> Listed {
        let count = self.places.len();
        let mut held: Vec<Vec<Held>> = vec![Vec::new(); count];
        let mut found: Vec<AuditedPlace> =
            (0..count).map(|place| AuditedPlace { place, ..AuditedPlace::default() }).collect();
        let mut trouble = BTreeMap::new();
        let mut margins = Vec::new();
        let lists = Lists::of_segments(self.places, &self.manifest.segments);
        for (segment, encoding) in (0..).zip(&self.manifest.segments) {
            let (located, told) = self.located(segment as usize, lists.as_ref());
            told.failed.into_iter().for_each(|(place, why)| note(&mut trouble, place, why));
            let home = self.home(segment as usize);
            let at_home: BTreeSet<u32> = located
                .iter()
                .filter(|of| encoding.has_len(of.size) && home.get(&of.index) == Some(&of.place))
                .map(|of| of.index)
                .collect();
            let mut there = BTreeSet::new();
            for Candidate { index, place, size } in located {
                // Copies beside those at home would hide how much of its own a place has lost.
                if at_home.contains(&index) && home.get(&index) != Some(&place) {
                    continue;
                }
                match Held::new(encoding, (segment, index), size) {
                    Some(object) => {
                        found[place].objects += 1;
                        found[place].bytes += object.len;
                        held[place].push(object);
                        there.insert(index);
                    }
                    None => found[place].damaged.push((segment, index)),
                }
            }
            let lacking: Vec<(u32, usize)> =
                home.into_iter().filter(|(index, _)| !there.contains(index)).collect();
            if !lacking.is_empty() {
                told.unsure.into_iter().for_each(|(place, why)| note(&mut trouble, place, why));
            }
            for (index, place) in lacking {
                if !found[place].damaged.contains(&(segment, index)) {
                    found[place].missing.push((segment, index));
                }
            }
            margins.push(there.len() as i64 - self.manifest.code.k() as i64);
        }
        Listed { held, found, margins, trouble }
    }

    /// Chooses the looks at a place, within its share of the budget: their number, and the leaves that they meet, in
    /// groups that are fetched together.
    fn looks(&self, audit: &Audit, place: usize, held: &[Held], share: Option<u64>) -> (u64, Vec<Vec<Look>>) {
        let all = held.iter().map(|object| object.len).sum();
        let mut count = chance::looks(audit.confidence, audit.rot, MOST_LOOKS);
        loop {
            // Places that hold the same objects are looked at elsewhere.
            let mut random = SplitMix64::new(audit.seed ^ SplitMix64::new(place as u64).next());
            let drawn = chance::drawn(all, count, &mut random);
            let groups = looks::groups(&drawn, held, |object| self.encoding(object));
            let costs = groups.iter().map(|group| {
                let object = &held[group[0].object];
                looks::cost(self.encoding(object), object, group)
            });
            let cost: u64 = costs.sum();
            match share.filter(|share| cost > *share) {
                None => return (count, groups),
                Some(share) => count = (count - 1).min((count as f64 * share as f64 / cost as f64) as u64),
            }
        }
    }

    fn encoding(&self, object: &Held) -> &Encoding {
        &self.manifest.segments[object.segment as usize]
    }

    /// Takes the looks at a place. Once it fails, nothing more is asked of it.
    fn look_at(
        &self,
        place: usize,
        held: &[Held],
        groups: &[Vec<Look>],
        looked: &Mutex<AuditedPlace>,
        meter: &Gauge<'_>,
    ) {
        let is_over = AtomicBool::new(false);
        let largest = held.iter().map(|object| object.look_len(self.encoding(object))).max().unwrap_or(0);
        let together = (MEMORY / largest.max(looks::GROUP_BYTES)).clamp(1, TOGETHER) as usize;
        Threads(together).run(groups.len(), &|nth| {
            if is_over.load(Relaxed) || self.places.cancel.is_cancelled() {
                return;
            }
            let group = &groups[nth];
            let object = &held[group[0].object];
            let done = looks::take(self.places, place, self.encoding(object), object, group);
            let mut looked = lock(looked);
            looked.requests += done.requests;
            looked.fetched_bytes += done.fetched_bytes;
            for look in done.wrong {
                looked.wrong += look.drawn;
                looked.wrong_at.push((object.segment, object.index, look.set, look.bytes.start));
            }
            if let Some(why) = done.failed {
                is_over.store(true, Relaxed);
                looked.failed.get_or_insert(why);
            }
            meter.add(group.iter().map(|look| look.bytes.end - look.bytes.start).sum());
        });
        lock(looked).wrong_at.sort_unstable();
    }
}
