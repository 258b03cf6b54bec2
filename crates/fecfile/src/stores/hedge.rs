//! What is fetched next, and what is not waited for.
//!
//! A transfer that is late has another one beside it, or in its place. Both cost bytes that nobody needs in the end, and these have
//! a bound; otherwise they would be a storm when everything is slow.

use super::fetch::{Fetch, Key, Object, Running};
use super::transfer::{Active, WARM};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Later than the others by less than this is not late.
const NOT_LATE: Duration = Duration::from_millis(50);
/// What is so many times slower than places that have enough is hopeless: another one is fetched in its place.
const HOPELESS: f64 = 4.0;
/// What would take longer than this crawls.
const CRAWL: Duration = Duration::from_secs(60);
/// Less than such a part of a shard is not counted when its transfer is left.
const CRUMBS: u64 = 8;
/// So much speaks against objects that nobody is hedged with: their places lie, or are down.
const DOUBTFUL: u32 = 2;

impl Fetch<'_> {
    /// The object to fetch next: of a shard that nobody fetches yet, from the place that will probably be done first; and
    /// originals first, which are payload as they are.
    pub(super) fn best(&self, running: &Running) -> Option<Key> {
        let mut at_place: BTreeMap<usize, usize> = BTreeMap::new();
        running.active.keys().for_each(|(_, place)| *at_place.entry(*place).or_default() += 1);
        let speeds: Vec<f64> = self.places.iter().filter_map(|place| place.speed()).collect();
        let usual = if speeds.is_empty() { 1.0 } else { speeds.iter().sum::<f64>() / speeds.len() as f64 };
        let known = self.speeds(&running.active);
        let cost = |place: usize| {
            let speed = known.get(&place).copied().unwrap_or(usual);
            let waiting = at_place.get(&place).copied().unwrap_or(0) + 1;
            waiting as f64 * usual / speed.max(1.0)
        };
        let open = self.open(running).map(|(key, object)| (self.doubts(key, object), cost(key.1), key));
        let least = open.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        least.map(|(_, _, key)| key)
    }

    /// Bytes a second that each place gives just now, or gave at last, as far as that is known.
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

    /// Looks which transfers are not waited for, as long as there are others to fetch, and the bound allows it.
    pub(super) fn hedge(&mut self, running: &mut Running, lacking: usize) {
        let mut others = self.others(running);
        let len = self.encoding.layout().file_len;
        for key in self.hopeless(running, lacking) {
            let Some(active) = running.active.get(&key) else { continue };
            let moved = active.moved();
            // One beside it was paid for already; and what crawls has brought so little that it is not worth waiting for.
            let (back, taken) = match active.is_late {
                true => (active.paid.saturating_sub(moved), 0),
                false => (0, if moved < len / CRUMBS { 0 } else { moved }),
            };
            if taken > self.spare || others == 0 && !active.is_late {
                continue;
            }
            self.spare += back;
            self.spare -= taken;
            others -= usize::from(!active.is_late);
            self.leave(key, running);
        }
        let mut doubtful = self.doubtful(running);
        for key in self.late(running) {
            let Some(active) = running.active.get_mut(&key) else { continue };
            // Where nothing came from at all, it is not the network that is slow, and it costs nothing.
            let is_dead = active.moved() == 0 && self.places.get(key.1).speed().is_none();
            let was_late = self.objects.get(&key).is_some_and(|object| object.is_late);
            if others > 0 && was_late {
                // It is waited for, since those that came in its place did not do.
            } else if others > 0 && is_dead {
                others -= 1;
                self.mute.insert(key.1);
                self.leave(key, running);
            } else if others > 0 && len <= self.spare {
                others -= 1;
                self.spare -= len;
                self.go_on(key, len, running);
            } else if others == 0 && doubtful > 0 {
                // What places that lie have comes once in any case; together it may do.
                doubtful -= 1;
                self.go_on(key, 0, running);
            }
        }
    }

    /// Has another transfer begin beside one, for which so many bytes were taken from what is spare.
    fn go_on(&mut self, key: Key, paid: u64, running: &mut Running) {
        if let Some(active) = running.active.get_mut(&key) {
            active.is_late = true;
            active.paid = paid;
            running.extra += 1;
            self.objects.entry(key).or_default().is_late = true;
        }
    }

    /// Has a transfer stop; it is not stopped a second time.
    fn leave(&mut self, key: Key, running: &mut Running) {
        self.objects.entry(key).or_default().is_late = true;
        running.leave(key);
    }

    /// How many shards there are that may come in place of others.
    fn others(&self, running: &Running) -> usize {
        let may = |(key, object): &(Key, &Object)| !object.is_late && self.doubts(*key, object) < DOUBTFUL;
        let indices: BTreeSet<u32> = self.open(running).filter(may).map(|((index, _), _)| index).collect();
        indices.len()
    }

    /// How many there are at places that lie.
    fn doubtful(&self, running: &Running) -> usize {
        let may = |(key, object): &(Key, &Object)| !object.is_late && self.liars.contains(&key.1);
        let indices: BTreeSet<u32> = self.open(running).filter(may).map(|((index, _), _)| index).collect();
        indices.len()
    }

    /// Those under way that were not found late before, or have another one beside them.
    fn in_time<'b>(&'b self, running: &'b Running) -> impl Iterator<Item = (&'b Key, &'b Active)> {
        let was_late = |key: &Key| self.objects.get(key).is_some_and(|object| object.is_late);
        running.active.iter().filter(move |(key, active)| active.is_late || !was_late(key))
    }

    /// After how long a transfer is late: later than 95 % of those that came. `None`: too few came to tell.
    fn late_after(&self) -> Option<Duration> {
        let times = &self.times;
        let usual = times.get((times.len() * 95 / 100).min(times.len().saturating_sub(1)))?;
        (times.len() >= 2).then(|| *usual + NOT_LATE.max(*usual / 4))
    }

    /// Which of those that are under way are late, and have none beside them.
    fn late(&self, running: &Running) -> Vec<Key> {
        let Some(after) = self.late_after() else { return Vec::new() };
        let is_late = |active: &Active| !active.is_late && active.started.elapsed() >= after;
        running.active.iter().filter(|(_, active)| is_late(active)).map(|(key, _)| *key).collect()
    }

    /// Whether nothing is under way but what is late.
    pub(super) fn are_late(&self, running: &Running) -> bool {
        let after = self.late_after();
        let is_late =
            |active: &Active| active.is_late || after.is_some_and(|after| active.started.elapsed() >= after);
        running.active.values().all(is_late)
    }

    /// Which of those that are under way are much slower than places that have enough of the others. That is no storm: where all
    /// are slow alike, none of them is hopeless. Where nothing was asked of some places yet, they are taken to be as fast as the
    /// best of the others, and a few are tried when all others crawl.
    fn hopeless(&self, running: &Running, lacking: usize) -> Vec<Key> {
        if !self.in_time(running).any(|(_, active)| active.speed().is_some()) {
            return Vec::new();
        }
        let known = self.speeds(&running.active);
        let best = known.values().copied().fold(0.0, f64::max);
        let speed = |place: usize| known.get(&place).copied().unwrap_or(best);
        let is_good =
            |key: Key| self.objects.get(&key).is_some_and(|object| self.doubts(key, object) < DOUBTFUL);
        let open = || {
            let all = self.open(running).map(|(key, _)| key).chain(running.active.keys().copied());
            all.filter(|key| is_good(*key))
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
