//! The order of objects, the transfers that are not waited for, and the cost of that.

use super::*;
use crate::fetch::tests::{add, with_fetch};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The places give as much in a second.
fn speeds(fetch: &Fetch<'_>, speeds: &[(usize, u64)]) {
    speeds.iter().for_each(|(place, bytes)| fetch.places.get(*place).note_speed(*bytes, SECOND));
}

/// Transfers under way: key, their age, and their bytes.
fn running(transfers: &[(Key, Duration, u64)]) -> Running {
    let mut running = Running::default();
    for (key, ago, moved) in transfers {
        running.active.insert(*key, Active::under_way(*ago, *moved));
    }
    running
}

/// A fetch whose transfers took 10 ms each, with these objects, none of which has come.
fn usual(fetch: &mut Fetch<'_>, objects: &[Key]) {
    fetch.times = vec![10 * MS; 20];
    objects.iter().for_each(|key| add(fetch, *key, 0, false));
}

#[test]
fn the_object_that_will_be_whole_first_comes_next() {
    with_fetch(|fetch, _, len| {
        let idle = Running::default();
        assert_eq!(fetch.best(&idle), None);
        [(3, 0), (1, 0), (2, 1), (0, 2)].into_iter().for_each(|key| add(fetch, key, 0, false));
        assert_eq!(fetch.best(&idle), Some((0, 2)), "originals need no decoding");
        // The place that nothing is known of counts as fast as the others are on the whole.
        speeds(fetch, &[(0, 1000), (1, 5000)]);
        assert_eq!(fetch.best(&idle), Some((2, 1)));
        speeds(fetch, &[(0, 1_000_000)]);
        assert_eq!(fetch.best(&idle), Some((1, 0)), "of a place the first");
        // A place that gives others already is shared by them.
        let busy = running(&[((4, 0), 10 * MS, 0), ((5, 0), 10 * MS, 0), ((6, 2), 10 * MS, 0)]);
        fetch.places.get(1).note_speed(1_000_000, SECOND);
        fetch.places.get(1).note_speed(1_000_000, SECOND);
        assert_eq!(fetch.best(&busy), Some((2, 1)));
        // Its speed of now counts more than that of before.
        let slow = running(&[((4, 0), 10 * SECOND, 10), ((5, 1), 10 * SECOND, 1 << 40)]);
        assert_eq!(fetch.best(&slow), Some((2, 1)));
        // The bytes of an object that have come need not come again.
        add(fetch, (3, 0), len - 1, false);
        assert_eq!(fetch.best(&idle), Some((3, 0)));
        // Whoever has lied comes last.
        fetch.liars.insert(0);
        assert_eq!(fetch.best(&idle), Some((2, 1)));
        // A shard that is here or under way is not wanted.
        fetch.came.insert(2, 0);
        assert_eq!(fetch.best(&running(&[((0, 0), MS, 0)])), Some((3, 0)));
    });
}

#[test]
fn a_transfer_is_late_behind_nearly_all_others() {
    with_fetch(|fetch, _, _| {
        let late = |fetch: &Fetch<'_>, ago: Duration| fetch.are_late(&running(&[((0, 0), ago, 5)]));
        fetch.times = vec![10 * MS];
        assert!(!late(fetch, 100 * SECOND), "one says nothing");
        // At least 50 ms, and at least a quarter more than 95 of 100 took.
        for (times, usual) in [(vec![10 * MS; 2], 60 * MS), (vec![4 * SECOND; 20], 5 * SECOND)] {
            fetch.times = times;
            assert!(!late(fetch, usual - 30 * MS) && late(fetch, usual), "{usual:?}");
        }
        fetch.times = (1..=100).map(|nth| nth * SECOND / 10).collect();
        assert!(!late(fetch, 11_900 * MS) && late(fetch, 12 * SECOND));
        // All have to be late, alone or with another beside them.
        fetch.times = vec![10 * MS; 20];
        let mut two = running(&[((0, 0), SECOND, 5), ((1, 1), MS, 5)]);
        assert!(!fetch.are_late(&two));
        two.active.get_mut(&(1, 1)).expect("it is there").is_late = true;
        assert!(fetch.are_late(&two) && fetch.are_late(&Running::default()));
    });
}

/// A late transfer goes on beside its replacement, for which a shard of the spare ones is taken, once.
#[test]
fn a_late_transfer_gets_another_beside_it() {
    with_fetch(|fetch, _, len| {
        usual(fetch, &[(0, 0), (1, 1), (2, 2)]);
        speeds(fetch, &[(0, 1000), (1, 1000), (2, 1000)]);
        assert_eq!(fetch.spare, 2 * len, "of three shards that are needed");
        let mut under_way = running(&[((0, 0), 500 * MS, 5), ((3, 1), 20 * MS, 5)]);
        fetch.hedge(&mut under_way, 1);
        let is_late = |running: &Running, key: Key| running.active[&key].is_late;
        assert!(is_late(&under_way, (0, 0)) && !is_late(&under_way, (3, 1)));
        assert_eq!((under_way.extra, fetch.spare, under_way.active[&(0, 0)].paid), (1, len, len));
        assert!(fetch.objects[&(0, 0)].is_late && fetch.begun.contains(&0) && fetch.mute.is_empty());
        fetch.hedge(&mut under_way, 1);
        assert_eq!((under_way.extra, fetch.spare), (1, len), "once is enough");
        // The last of the spare ones, and then no more.
        under_way.active.insert((4, 2), Active::under_way(500 * MS, 5));
        fetch.hedge(&mut under_way, 1);
        assert_eq!((under_way.extra, fetch.spare), (2, 0));
        under_way.active.insert((5, 2), Active::under_way(500 * MS, 5));
        fetch.hedge(&mut under_way, 1);
        assert_eq!((under_way.extra, fetch.spare, is_late(&under_way, (5, 2))), (2, 0, false));
        // A transfer that is left gives back what it does not need.
        under_way.leave((0, 0));
        assert_eq!(under_way.extra, 1);
    });
}

/// Two late transfers need two others. A transfer that was late before is waited for.
#[test]
fn there_are_no_more_replacements_than_others() {
    with_fetch(|fetch, _, len| {
        usual(fetch, &[(2, 1)]);
        speeds(fetch, &[(0, 1000)]);
        let mut under_way = running(&[((0, 0), 500 * MS, 5), ((1, 0), 500 * MS, 5)]);
        fetch.hedge(&mut under_way, 2);
        let late = under_way.active.values().filter(|active| active.is_late).count();
        assert_eq!((late, under_way.extra, fetch.spare), (1, 1, len));
        let mut again = running(&[((0, 0), 500 * MS, 5)]);
        add(fetch, (0, 0), 0, true);
        add(fetch, (3, 1), 0, false);
        fetch.hedge(&mut again, 1);
        assert_eq!((again.extra, fetch.spare, again.active.len()), (0, len, 1));
    });
}

/// A place that never gave a byte is left at once, at no cost, and comes last from then on.
#[test]
fn a_place_that_gives_nothing_is_left() {
    with_fetch(|fetch, _, len| {
        usual(fetch, &[(0, 0), (1, 1)]);
        let mut under_way = running(&[((0, 0), 500 * MS, 0)]);
        let active = under_way.active[&(0, 0)].cancel.clone();
        fetch.hedge(&mut under_way, 1);
        assert!(under_way.active.is_empty() && !fetch.is_open((0, 0), &under_way), "it has not stopped yet");
        assert!(active.is_cancelled() && fetch.mute.contains(&0));
        assert_eq!((under_way.extra, fetch.spare), (0, 2 * len));
        assert!(
            fetch.doubts((0, 0), &fetch.objects[&(0, 0)]) > fetch.doubts((1, 1), &fetch.objects[&(1, 1)])
        );
        // A place that gave something before is only slow.
        speeds(fetch, &[(2, 1000)]);
        let mut under_way = running(&[((5, 2), 500 * MS, 0)]);
        fetch.hedge(&mut under_way, 1);
        assert!(under_way.active.contains_key(&(5, 2)) && !fetch.mute.contains(&2));
    });
}

/// Intact records of damaged shards may suffice together, so liars are asked where nobody else is left.
#[test]
fn liars_help_where_nobody_else_can() {
    with_fetch(|fetch, _, len| {
        usual(fetch, &[(1, 1)]);
        fetch.liars.insert(1);
        let mut under_way = running(&[((0, 0), 500 * MS, 5), ((2, 0), 500 * MS, 5)]);
        fetch.hedge(&mut under_way, 2);
        let late = under_way.active.values().filter(|active| active.is_late).count();
        assert_eq!((late, under_way.extra, fetch.spare), (1, 1, 2 * len), "one object for one of them");
        let mut alone = running(&[((3, 0), 500 * MS, 5)]);
        fetch.objects.clear();
        fetch.hedge(&mut alone, 1);
        assert_eq!((alone.extra, alone.active.len()), (0, 1), "it is waited for");
    });
}

/// A transfer is hopeless that is four times slower than the places that could give all that is lacking.
#[test]
fn a_transfer_that_is_much_slower_is_replaced() {
    let left = |slow: u64, fast: u64, lacking: usize, spare: u64| {
        let mut is_left = None;
        with_fetch(|fetch, _, len| {
            // Nothing is late by its time.
            fetch.times = Vec::new();
            [(0, 0), (1, 1), (2, 2)].into_iter().for_each(|key| add(fetch, key, 0, false));
            speeds(fetch, &[(1, fast), (2, fast / 10)]);
            fetch.spare = spare;
            let mut under_way = running(&[((0, 0), 4 * SECOND, 4 * slow)]);
            fetch.hedge(&mut under_way, lacking);
            is_left = Some((under_way.active.is_empty(), spare - fetch.spare, len));
        });
        is_left.expect("it ran")
    };
    let len = left(1, 1, 1, 0).2;
    let (slow, plenty) = (len / 100, 10 * len);
    assert_eq!(left(slow, 5 * slow, 1, plenty), (true, 0, len), "crumbs cost nothing");
    assert_eq!(left(slow, 3 * slow, 1, plenty), (false, 0, len), "it is not much slower");
    // Two are lacking, and the second place is as slow.
    assert_eq!(left(slow, 20 * slow, 2, plenty), (false, 0, len));
    // Three are lacking: without the slow one they are not complete.
    assert_eq!(left(slow, 100 * slow, 3, plenty), (false, 0, len));
    assert_eq!(left(slow, 100 * slow, 2, plenty), (true, 0, len));
    // The bytes that came are paid from the spare ones, unless they are crumbs. A nearly whole one is waited for.
    let fifth = len / 20;
    assert_eq!(left(fifth, 100 * fifth, 1, plenty), (true, 4 * fifth, len));
    assert_eq!(left(fifth, 100 * fifth, 1, 4 * fifth - 1), (false, 0, len));
    assert_eq!(left(len * 22 / 100, 100 * len, 1, plenty), (false, 0, len), "it takes half a second more");
}

/// All places are slow: others that nobody has tried may be faster.
#[test]
fn places_that_nobody_has_tried_are_tried_when_all_crawl() {
    for (tried, speed, is_left) in [(false, 50, true), (true, 50, false), (false, 50_000, false)] {
        with_fetch(|fetch, _, _| {
            fetch.times = Vec::new();
            [(0, 0), (1, 1)].into_iter().for_each(|key| add(fetch, key, 0, false));
            if tried {
                speeds(fetch, &[(1, speed)]);
            }
            let mut under_way = running(&[((0, 0), 2 * SECOND, 2 * speed)]);
            fetch.hedge(&mut under_way, 1);
            assert_eq!(under_way.active.is_empty(), is_left, "{tried}, {speed}");
        });
    }
}

/// A late transfer that proves hopeless gives back what was taken for the one beside it, less what it brought.
#[test]
fn a_late_transfer_that_is_left_gives_back() {
    with_fetch(|fetch, _, len| {
        fetch.times = Vec::new();
        [(0, 0), (1, 1)].into_iter().for_each(|key| add(fetch, key, 0, false));
        speeds(fetch, &[(1, 100 * len)]);
        fetch.spare = 0;
        let mut active = Active::under_way(4 * SECOND, len / 10);
        (active.is_late, active.paid) = (true, len);
        let mut under_way = Running::default();
        under_way.extra = 1;
        under_way.active.insert((0, 0), active);
        fetch.hedge(&mut under_way, 1);
        assert!(under_way.active.is_empty());
        assert_eq!((fetch.spare, under_way.extra), (len - len / 10, 0));
    });
}
