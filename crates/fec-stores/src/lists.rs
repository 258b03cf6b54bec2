//! Lists of whole places, for all segments of an encoding at once.
//!
//! Segments have no prefix in common, so the list is that of the whole place. A place that holds much else is asked for
//! each segment after all. The word of such a list counts no more than that of the others: what it leaves out is asked
//! for by its key.

use super::call::Cancel;
use super::error::StoreError;
use super::keys;
use super::places::Places;
use fec_core::digest::Digest;
use fec_core::executor::lock;
use fec_core::format::shard_file::Encoding;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Fewer segments are listed one by one.
const WORTH: u64 = 8;
/// Objects of a whole list for each segment: half of what one request brings.
const PER_SEGMENT: u64 = 500;
/// Most objects of a whole list.
const MOST: u64 = 200_000;

/// Shards that a place lists, by root: index, and length in bytes.
type Shards = BTreeMap<Digest, Vec<(u32, u64)>>;

/// The whole list of a place, as far as it is known.
#[derive(Debug, Default)]
enum Whole {
    #[default]
    NotAsked,
    Given(Shards),
    /// The place fails, or holds too much else.
    NotGiven,
}

/// Whole lists of places, each asked for when it is first needed.
#[derive(Debug)]
pub(super) struct Lists {
    /// The roots that are kept; without any, all.
    kept: BTreeSet<Digest>,
    most: u64,
    of: Vec<Mutex<Whole>>,
}

impl Lists {
    /// Lists for an encoding of these segments; `None`: they are too few.
    pub(super) fn of_segments(places: &Places, segments: &[Encoding]) -> Option<Lists> {
        let lists = Lists::of_count(places, segments.len() as u64)?;
        Some(Lists { kept: segments.iter().map(|segment| segment.root).collect(), ..lists })
    }

    /// Lists for so many segments whose roots are not known yet; `None`: they are too few.
    pub(super) fn of_count(places: &Places, segments: u64) -> Option<Lists> {
        (segments >= WORTH).then(|| Lists {
            kept: BTreeSet::new(),
            most: segments.saturating_mul(PER_SEGMENT).min(MOST),
            of: (0..places.len()).map(|_| Mutex::default()).collect(),
        })
    }

    /// The shards of a segment by the whole list of a place; `None` if it gives none.
    pub(super) fn shards(
        &self,
        places: &Places,
        place: usize,
        root: &Digest,
        cancel: &Cancel,
    ) -> Option<Vec<(u32, u64)>> {
        let mut whole = lock(&self.of[place]);
        if matches!(*whole, Whole::NotAsked) {
            *whole = match self.ask(places, place, cancel) {
                Ok(shards) => Whole::Given(shards),
                // The next segment may have more time.
                Err(StoreError::Cancelled) => Whole::NotAsked,
                Err(_) => Whole::NotGiven,
            };
        }
        match &*whole {
            Whole::Given(shards) => Some(shards.get(root).cloned().unwrap_or_default()),
            Whole::NotAsked | Whole::NotGiven => None,
        }
    }

    fn ask(&self, places: &Places, place: usize, cancel: &Cancel) -> Result<Shards, StoreError> {
        places.look(place, cancel, |store, call| {
            let (mut shards, mut count) = (Shards::new(), 0);
            let mut each = |object: super::object::ObjectInfo| {
                if let Some((root, Some(index))) = keys::parsed(&object.key)
                    && (self.kept.is_empty() || self.kept.contains(&root))
                {
                    shards.entry(root).or_default().push((index, object.size));
                }
                count += 1;
                if count > self.most { Err(StoreError::Unsupported("list so many objects")) } else { Ok(()) }
            };
            store.walk("", keys::leads_to_ours, &mut each, call).map(|()| shards)
        })
    }
}
