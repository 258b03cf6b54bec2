//! Finds the shards of a segment.

use super::call::Cancel;
use super::error::StoreError;
use super::keys;
use super::lists::Lists;
use super::places::Places;
use fec_base::threads::{Threads, spawn_or_do};
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Other places are waited for this many times as long as the first answer took.
const PATIENCE: u32 = 10;
/// Shortest wait for other places.
const LEAST_PATIENCE: Duration = Duration::from_millis(300);
/// Objects that are asked for by their keys at the same time.
pub(super) const HEADS: usize = 16;
/// After this many failures the other shards are not asked for. "Not found" and "denied" are no failures here.
const HEADS_FAILED: usize = 3;

/// An object that may be a shard file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) index: u32,
    pub(super) place: usize,
    pub(super) size: u64,
}

/// Shards of a segment at a place.
#[derive(Debug, Default)]
pub(super) struct Located {
    pub(super) place: usize,
    /// The place gave a list, which may be incomplete. Otherwise each shard was asked for by its key, or the place did
    /// not answer.
    pub(super) by_list: bool,
    pub(super) found: Vec<Candidate>,
    /// Why the place does not tell what else it has.
    pub(super) failed: Option<StoreError>,
    /// Why it is unknown whether an object is there: without the right to list, "denied" is also the answer for objects
    /// that are not there.
    pub(super) unsure: Option<StoreError>,
}

/// Asks a place for its list of a segment's shard files, or looks at its whole list. If it gives no list, it is asked
/// for each shard below `n` by its key.
pub(super) fn locate(
    places: &Places,
    place: usize,
    (root, n): (&Digest, u32),
    lists: Option<&Lists>,
    cancel: &Cancel,
) -> Located {
    if let Some(shards) = lists.and_then(|lists| lists.shards(places, place, root, cancel)) {
        let sizes: BTreeMap<u32, u64> = shards.into_iter().filter(|(index, _)| *index < n).collect();
        let found = sizes.into_iter().map(|(index, size)| Candidate { index, place, size }).collect();
        return Located { place, by_list: true, found, ..Located::default() };
    }
    let listed =
        places.look(place, cancel, |store, call| store.list_wanted(&keys::prefix(root), keys::is_ours, call));
    let failed = |error| Located { place, failed: Some(error), ..Located::default() };
    let error = match listed {
        Ok(objects) => {
            let mut sizes = BTreeMap::new();
            for object in objects {
                if let Some(index) = keys::shard_index(root, &object.key).filter(|index| *index < n) {
                    sizes.insert(index, object.size);
                }
            }
            let found = sizes.into_iter().map(|(index, size)| Candidate { index, place, size }).collect();
            return Located { place, by_list: true, found, ..Located::default() };
        }
        Err(StoreError::NotFound) => return Located { by_list: true, ..failed(StoreError::Absent) },
        Err(error @ (StoreError::Cancelled | StoreError::GivenUp)) => return failed(error),
        Err(error) => error,
    };
    let is_down = error.is_worth_retrying() && !answers(places, place, root, cancel);
    if is_down {
        return failed(error);
    }
    let mut located = locate_by_key(places, place, root, &(0..n).collect::<Vec<_>>(), cancel);
    // Without any object and without a list, something is wrong at the place.
    let is_ill = !matches!(error, StoreError::Unsupported(_) | StoreError::Denied(_));
    if is_ill && located.found.is_empty() && located.unsure.is_none() {
        located.failed.get_or_insert_with(|| error.clone());
    }
    // The list was asked for first, and its error tells more.
    let says_more = !matches!(error, StoreError::Unsupported(_));
    for told in [&mut located.failed, &mut located.unsure] {
        if says_more && told.as_ref().is_some_and(|why| *why != StoreError::Cancelled) {
            *told = Some(error.clone());
        }
    }
    located
}

/// Tells whether a place that gives no list answers at all.
fn answers(places: &Places, place: usize, root: &Digest, cancel: &Cancel) -> bool {
    let head = places.get(place).store.head(&keys::shard(root, 0), &places.call(cancel));
    head.map_or_else(|error| !error.is_worth_retrying() && error != StoreError::Cancelled, |_| true)
}

/// Asks a place for these shards by their keys, some at a time. Lists may be denied, short or behind; keys follow from
/// root and index.
pub(super) fn locate_by_key(
    places: &Places,
    place: usize,
    root: &Digest,
    indices: &[u32],
    cancel: &Cancel,
) -> Located {
    let located = Mutex::new(Located { place, ..Located::default() });
    let failures = AtomicUsize::new(0);
    Threads(HEADS).run(indices.len(), &|nth| {
        if failures.load(Ordering::Relaxed) >= HEADS_FAILED {
            return;
        }
        let index = indices[nth];
        let key = keys::shard(root, index);
        let head = places.look(place, cancel, |store, call| store.head(&key, call));
        let mut located = lock(&located);
        match head {
            Ok(info) => located.found.push(Candidate { index, place, size: info.size }),
            Err(StoreError::NotFound) => {}
            Err(error @ StoreError::Denied(_)) => drop(located.unsure.get_or_insert(error)),
            Err(error) => {
                failures.fetch_add(1, Ordering::Relaxed);
                if located.failed.as_ref().is_none_or(|first| *first == StoreError::GivenUp) {
                    located.failed = Some(error);
                }
            }
        }
    });
    let mut located = into_value(located);
    located.found.sort_unstable();
    located
}

/// A search for shards of a segment.
pub(super) struct Search<'a> {
    pub(super) root: &'a Digest,
    /// Shards below this number are looked for.
    pub(super) n: u32,
    /// With this many different shards lists are believed. With fewer each place is asked for each shard by its key.
    pub(super) enough: usize,
    /// The home of each shard. If no list names a shard, its home is asked for it by key.
    pub(super) home: &'a BTreeMap<u32, usize>,
    /// Places that take much longer than the first are not waited for.
    pub(super) is_hasty: bool,
    /// Whole lists of places, for an encoding of many segments.
    pub(super) lists: Option<&'a Lists>,
}

/// Answers of all places.
#[derive(Default)]
pub(super) struct Told {
    /// Why some places do not tell their shards.
    pub(super) failed: Vec<(usize, StoreError)>,
    /// Why some places do not tell whether they have the shards that were not found.
    pub(super) unsure: Vec<(usize, StoreError)>,
    /// All places have answered or failed.
    pub(super) is_complete: bool,
    found: BTreeSet<(u32, usize)>,
    /// Places that answered with a list.
    pub(super) listed: Vec<usize>,
}

impl Told {
    pub(super) fn take(&mut self, located: Located, on: &mut impl FnMut(Candidate)) {
        let Located { place, by_list, found, failed, unsure } = located;
        self.listed.extend(by_list.then_some(place));
        if !by_list && !found.is_empty() {
            // Objects are there, although the list said that the place is not.
            self.failed.retain(|(other, why)| *other != place || *why != StoreError::Absent);
        }
        for candidate in found {
            if self.found.insert((candidate.index, place)) {
                on(candidate);
            }
        }
        self.failed.extend(failed.map(|error| (place, error)));
        self.unsure.extend(unsure.map(|error| (place, error)));
    }

    /// Shards that lists did not name, by place: each at its home, or if too few were found, at every place.
    fn unnamed(&self, search: &Search<'_>) -> Vec<(usize, Vec<u32>)> {
        let found: BTreeSet<u32> = self.found.iter().map(|(index, _)| *index).collect();
        let is_few = found.len() < search.enough;
        let wanted = |place: usize| {
            let belongs = |index: u32| search.home.get(&index) == Some(&place) && !found.contains(&index);
            let all = (0..search.n).filter(|index| !self.found.contains(&(*index, place)));
            all.filter(|index| is_few || belongs(*index)).collect::<Vec<_>>()
        };
        let asked = self.listed.iter().map(|place| (*place, wanted(*place)));
        asked.filter(|(_, wanted)| !wanted.is_empty()).collect()
    }
}

/// Asks all places and hands on their shards as they come: first by lists, then by keys for shards that lists do not
/// name.
pub(super) fn locate_all(places: &Places, search: &Search<'_>, mut on: impl FnMut(Candidate)) -> Told {
    let Search { root, n, .. } = *search;
    let mut told = Told::default();
    let all: Vec<usize> = (0..places.len()).collect();
    let by_list = |place: &usize, cancel: &Cancel| locate(places, *place, (root, n), search.lists, cancel);
    told.is_complete = ask(places, &all, search.is_hasty, by_list, |located| told.take(located, &mut on));
    let unnamed = told.unnamed(search);
    let by_key = |(place, indices): &(usize, Vec<u32>), cancel: &Cancel| {
        locate_by_key(places, *place, root, indices, cancel)
    };
    told.is_complete &= ask(places, &unnamed, search.is_hasty, by_key, |located| told.take(located, &mut on));
    told
}

/// Asks places at the same time; tells whether all of them have answered or failed. A hasty search does not wait for
/// places that take much longer than the first.
pub(super) fn ask<T: Sync>(
    places: &Places,
    asked: &[T],
    is_hasty: bool,
    question: impl Fn(&T, &Cancel) -> Located + Sync,
    mut on: impl FnMut(Located),
) -> bool {
    let (start, cancel) = (Instant::now(), places.cancel.child());
    let mut open = asked.len();
    std::thread::scope(|scope| {
        let (told, telling): (Sender<Located>, Receiver<Located>) = channel();
        for one in asked {
            let (told, cancel, question) = (told.clone(), &cancel, &question);
            spawn_or_do(scope, move || {
                // A failed send means that the receiver is gone.
                let _ = told.send(question(one, cancel));
            });
        }
        drop(told);
        let mut wait: Option<Duration> = None;
        loop {
            let located = match wait {
                Some(wait) => telling.recv_timeout(wait.saturating_sub(start.elapsed())),
                None => telling.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let Ok(located) = located else { break };
            open -= 1;
            if is_hasty && located.failed.is_none() {
                wait.get_or_insert_with(|| patience(start.elapsed()));
            }
            on(located);
        }
        cancel.cancel();
    });
    open == 0
}

/// Longest wait for answers when the first one took `first`.
fn patience(first: Duration) -> Duration {
    (first * PATIENCE).max(LEAST_PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow network is no reason to leave places out, and a quick one no reason to wait for none.
    #[test]
    fn other_places_are_waited_for_by_the_first_answer() {
        let ms = Duration::from_millis;
        assert_eq!(
            [0, 1, 30, 31, 2000].map(|first| patience(ms(first))),
            [300, 300, 300, 310, 20_000].map(ms)
        );
    }
}
