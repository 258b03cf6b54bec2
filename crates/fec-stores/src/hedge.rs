//! Chooses the next object to fetch, and the transfers that are not waited for.
//!
//! A late transfer gets another one beside it or in its place. Both cost bytes that are not needed in the end. A bound
//! on them prevents a storm when everything is slow.

use super::fetch::{Fetch, Key, Object, Running};
use super::transfer::{Active, WARM};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A transfer is late only if it is later than the others by at least this.
const NOT_LATE: Duration = Duration::from_millis(50);
/// A transfer this many times slower than the slowest place still needed is hopeless. Another shard is fetched in its
/// place.
const HOPELESS: f64 = 4.0;
/// A transfer that would take longer than this crawls.
const CRAWL: Duration = Duration::from_secs(60);
/// An abandoned transfer costs nothing if less than a part in this many of its shard came.
const CRUMBS: u64 = 8;
/// Objects with this many [`doubts`](Fetch::doubts) or more hedge nothing: their places lied or are down.
const DOUBTFUL: u32 = 2;

impl Fetch<'_> {
    /// The object to fetch next: the one that will probably be whole first, of a shard that is not under way.
    /// Originals come first, because they need no decoding.
    pub(super) fn best(&self, running: &Running) -> Option<Key> {
        let mut at_place: BTreeMap<usize, usize> = BTreeMap::new();
        running.active.keys().for_each(|(_, place)| *at_place.entry(*place).or_default() += 1);
        let speeds: Vec<f64> = self.places.iter().filter_map(|place| place.speed()).collect();
        let usual = if speeds.is_empty() { 1.0 } else { speeds.iter().sum::<f64>() / speeds.len() as f64 };
        let known = self.speeds(&running.active);
        let len = self.encoding.layout().file_len;
        let cost = |place: usize, object: &Object| {
            let speed = known.get(&place).copied().unwrap_or(usual);
            let waiting = at_place.get(&place).copied().unwrap_or(0) + 1;
            waiting as f64 * len.saturating_sub(object.bytes) as f64 * usual / speed.max(1.0)
        };
        let open = self.open(running);
        let open = open.map(|(key, object)| (self.doubts(key, object), cost(key.1, object), key));
        let least = open.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        least.map(|(_, _, key)| key)
    }

    /// Speed of each place in bytes a second, now or at last, as far as known.
    fn speeds(&self, active: &BTreeMap<Key, Active>) -> BTreeMap<usize, f64> {
        let last = |place: usize| Some((place, self.places.get(place).speed()?));
        let mut speeds: BTreeMap<usize, f64> = (0..self.places.len()).filter_map(last).collect();
        let mut now: BTreeMap<usize, f64> = BTreeMap::new();
        for ((_, place), active) in active {
            if let Some(speed) = active.speed() {
                let fastest = now.entry(*place).or_insert(speed);
                *fastest = fastest.max(speed);
            }
        }
        speeds.extend(now);
        speeds
    }

    /// Abandons or doubles slow transfers while there are others to fetch and the bound allows it.
    pub(super) fn hedge(&mut self, running: &mut Running, lacking: usize) {
        let open = self.others(running);
        let mut begun = 0;
        // The objects of a late transfer's own place are no way around it.
        let beside = |place: usize, begun: usize| {
            let is_elsewhere = |places: &&BTreeSet<usize>| places.iter().any(|other| *other != place);
            open.values().filter(is_elsewhere).count().saturating_sub(begun)
        };
        let len = self.encoding.layout().file_len;
        for key in self.hopeless(running, lacking) {
            let Some(active) = running.active.get(&key) else { continue };
            let moved = active.moved();
            // A transfer beside a late one is paid for already. Crumbs of a crawling one are not counted.
            let (back, taken) = match active.is_late {
                true => (active.paid.saturating_sub(moved), 0),
                false => (0, if moved < len / CRUMBS { 0 } else { moved }),
            };
            if taken > self.spare || beside(key.1, begun) == 0 && !active.is_late {
                continue;
            }
            self.spare += back;
            self.spare -= taken;
            begun += usize::from(!active.is_late);
            self.leave(key, running);
        }
        let mut doubtful = self.doubtful(running);
        for key in self.late(running) {
            let Some(active) = running.active.get_mut(&key) else { continue };
            // The place has never given a byte, so the network is not the cause, and leaving costs nothing.
            let is_dead = active.moved() == 0 && self.places.get(key.1).speed().is_none();
            let was_late = self.objects.get(&key).is_some_and(|object| object.is_late);
            let others = beside(key.1, begun);
            if others > 0 && was_late {
                // The late transfer is waited for, because its replacements did not suffice.
            } else if others > 0 && is_dead {
                begun += 1;
                self.mute.insert(key.1);
                self.leave(key, running);
            } else if others > 0 && len <= self.spare {
                begun += 1;
                self.spare -= len;
                self.go_on(key, len, running);
            } else if others == 0 && doubtful > 0 {
                // Objects of lying places come once in any case; their intact records may suffice together.
                doubtful -= 1;
                self.go_on(key, 0, running);
            }
        }
    }

    /// Starts another transfer beside a late one; `paid` bytes of the spare ones were taken for it.
    fn go_on(&mut self, key: Key, paid: u64, running: &mut Running) {
        if let Some(active) = running.active.get_mut(&key) {
            active.is_late = true;
            active.paid = paid;
            running.extra += 1;
            self.is_late(key);
        }
    }

    /// Stops a transfer; it is not stopped a second time.
    fn leave(&mut self, key: Key, running: &mut Running) {
        self.is_late(key);
        running.leave(key);
    }

    /// Notes that the transfer of an object is late.
    fn is_late(&mut self, key: Key) {
        self.objects.entry(key).or_default().is_late = true;
        self.begun.insert(key.1);
    }

    /// Shards that may come in place of others, and the places that they may come from.
    fn others(&self, running: &Running) -> BTreeMap<u32, BTreeSet<usize>> {
        let may = |(key, object): &(Key, &Object)| !object.is_late && self.doubts(*key, object) < DOUBTFUL;
        let mut others: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        self.open(running).filter(may).for_each(|((index, place), _)| {
            others.entry(index).or_default().insert(place);
        });
        others
    }

    /// Tells whether an object hedges nothing.
    pub(super) fn is_doubtful(&self, key: Key) -> bool {
        self.objects.get(&key).is_none_or(|object| self.doubts(key, object) >= DOUBTFUL)
    }

    /// Number of shards that may come from lying places.
    fn doubtful(&self, running: &Running) -> usize {
        let may = |(key, object): &(Key, &Object)| !object.is_late && self.liars.contains(&key.1);
        let indices: BTreeSet<u32> = self.open(running).filter(may).map(|((index, _), _)| index).collect();
        indices.len()
    }

    /// Transfers that were not late before, or that have another one beside them.
    fn in_time<'b>(&'b self, running: &'b Running) -> impl Iterator<Item = (&'b Key, &'b Active)> {
        let was_late = |key: &Key| self.objects.get(key).is_some_and(|object| object.is_late);
        running.active.iter().filter(move |(key, active)| active.is_late || !was_late(key))
    }

    /// The time after which a transfer is late: longer than 95 % of finished ones took. `None`: too few finished.
    fn late_after(&self) -> Option<Duration> {
        let times = &self.times;
        let usual = times.get((times.len() * 95 / 100).min(times.len().saturating_sub(1)))?;
        (times.len() >= 2).then(|| *usual + NOT_LATE.max(*usual / 4))
    }

    /// Late transfers that have no other one beside them.
    fn late(&self, running: &Running) -> Vec<Key> {
        let Some(after) = self.late_after() else { return Vec::new() };
        let is_late = |active: &Active| {
            !active.is_late && !self.is_looked_at(active) && active.started.elapsed() >= after
        };
        running.active.iter().filter(|(_, active)| is_late(active)).map(|(key, _)| *key).collect()
    }

    /// Tells whether all transfers under way are late.
    pub(super) fn are_late(&self, running: &Running) -> bool {
        let after = self.late_after();
        let is_late = |active: &Active| {
            let is_over = || after.is_some_and(|after| active.started.elapsed() >= after);
            active.is_late || !self.is_looked_at(active) && is_over()
        };
        running.active.values().all(is_late)
    }

    /// Tells whether all bytes of a transfer are here: what is left is a look at them, which no other place shortens.
    fn is_looked_at(&self, active: &Active) -> bool {
        active.bytes() >= self.encoding.layout().file_len
    }

    /// Transfers much slower than the places that could give enough other shards. If all places are equally slow, none
    /// is hopeless, so this is no storm. An untried place counts as fast as the best known one, and a few are tried
    /// when all others crawl.
    fn hopeless(&self, running: &Running, lacking: usize) -> Vec<Key> {
        if !self.in_time(running).any(|(_, active)| active.speed().is_some()) {
            return Vec::new();
        }
        let known = self.speeds(&running.active);
        let best = known.values().copied().fold(0.0, f64::max);
        let speed = |place: usize| known.get(&place).copied().unwrap_or(best);
        let open = || {
            let all = self.open(running).map(|(key, _)| key).chain(running.active.keys().copied());
            all.filter(|key| !self.is_doubtful(*key))
        };
        let mut by_speed: Vec<(f64, u32)> = open().map(|(index, place)| (speed(place), index)).collect();
        by_speed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let is_untried = open().any(|(_, place)| !known.contains_key(&place));
        let mut indices = BTreeSet::new();
        let enough = by_speed.iter().find(|(_, index)| indices.insert(*index) && indices.len() >= lacking);
        let reference = enough.map_or(0.0, |(speed, _)| *speed);
        let len = self.encoding.layout().file_len as f64;
        let is_hopeless = |active: &Active| {
            let Some(speed) = active.speed() else { return false };
            let left = (len - active.bytes() as f64) / speed;
            speed * HOPELESS < reference && left > WARM.as_secs_f64()
                || is_untried && left > CRAWL.as_secs_f64()
        };
        let hopeless = self.in_time(running).filter(|(_, active)| is_hopeless(active));
        hopeless.map(|(key, _)| *key).collect()
    }
}

#[cfg(test)]
mod tests;
