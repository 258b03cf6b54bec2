//! The limits of calls: attempts, pauses, rate, and a way to stop them.

use crate::places;
use crate::store::Memory;
use fec_base::error::Cause;
use fec_stores::call::{Call, CallOptions, Cancel, Pace};
use fec_stores::error::StoresError;
use fec_stores::mend::StoredRepaired;
use fec_stores::{ObjectStore, StoreError};
use fecfile::Class;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn with<T>(retries: u32, rate: Option<u64>, run: impl FnOnce(&Call<'_>, &Cancel) -> T) -> T {
    let options = CallOptions { retries, rate, ..CallOptions::default() };
    let (cancel, pace) = (Cancel::default(), Pace::default());
    run(&Call { options: &options, cancel: &cancel, pace: &pace, permissions: 0o600 }, &cancel)
}

/// The number of attempts until a call with these errors ends, and its end.
fn attempts(retries: u32, error: &StoreError, fail: u32) -> (u32, bool) {
    let mut tried = 0;
    let done = with(retries, None, |call, _| {
        call.retry(|| {
            tried += 1;
            if tried <= fail { Err(error.clone()) } else { Ok(()) }
        })
    });
    (tried, done.is_ok())
}

#[test]
fn only_what_may_pass_is_tried_again() {
    let transient = [StoreError::Unavailable("503".into()), StoreError::WrongRange("0-9".into())];
    for error in &transient {
        assert_eq!(attempts(2, error, 0), (1, true));
        assert_eq!(attempts(2, error, 1), (2, true), "{error}");
        assert_eq!(attempts(2, error, 2), (3, true), "{error}");
        assert_eq!(attempts(2, error, 9), (3, false), "{error}");
        assert_eq!(attempts(0, error, 9), (1, false), "{error}");
    }
    // The first pause is short, however many attempts there may be.
    let begun = Instant::now();
    assert_eq!(attempts(9, &transient[0], 1), (2, true));
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    // Silence takes the whole timeout each time, so three of them are enough.
    assert_eq!(attempts(5, &StoreError::Silent("30 s".into()), 9), (3, false));
    assert_eq!(attempts(5, &StoreError::Silent("30 s".into()), 2), (3, true));
    let lasting = [
        StoreError::NotFound,
        StoreError::Absent,
        StoreError::Denied("403".into()),
        StoreError::Cancelled,
        StoreError::GivenUp,
        StoreError::Unsupported("list"),
        StoreError::Failed("broken".into()),
    ];
    for error in &lasting {
        assert_eq!(attempts(5, error, 9), (1, false), "{error}");
    }
}

/// Pauses double, with jitter, and a stop ends them at once.
#[test]
fn pauses_grow_and_can_be_stopped() {
    with(5, None, |call, cancel| {
        let paused = |tries| {
            let begun = Instant::now();
            assert!(call.pause_before(tries));
            begun.elapsed()
        };
        for (tries, most) in [(1, 100), (2, 200), (3, 400)] {
            let took = paused(tries);
            assert!(took >= Duration::from_millis(most / 2), "{tries}: {took:?}");
        }
        let begun = Instant::now();
        cancel.cancel();
        assert!(!call.pause_before(30) && begun.elapsed() < Duration::from_secs(1));
        assert!(matches!(call.retry(|| Ok(())), Err(StoreError::Cancelled)));
    });
}

/// Bytes pass at the rate, those of the first call at once.
#[test]
fn bytes_pass_at_the_rate() {
    with(0, Some(100_000), |call, cancel| {
        let begun = Instant::now();
        (0..4).for_each(|_| call.bytes(10_000).unwrap());
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(290), "three of four wait 0.1 s each: {took:?}");
        assert_eq!(call.pace.moved(), 40_000);
        call.bytes(1_000_000).unwrap();
        cancel.cancel();
        assert_eq!(call.bytes(1), Err(StoreError::Cancelled), "ten seconds are not waited for");
    });
    with(0, None, |call, _| {
        let begun = Instant::now();
        call.bytes(u64::MAX / 2).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1), "without a rate nothing waits");
    });
}

/// The class of a repair follows from what is still missing, and from who refused.
#[test]
fn the_class_of_a_repair_tells_what_is_left() {
    let class = |repaired: StoredRepaired| [false, true].map(|dry_run| repaired.class(dry_run));
    let none = StoredRepaired::default;
    let mendable = Some(Class::Mendable);
    assert_eq!(class(none()), [None, None]);
    assert_eq!(class(StoredRepaired { made: vec![(0, 1, 2)], ..none() }), [None, mendable]);
    assert_eq!(class(StoredRepaired { removed: vec![(0, 1, 2)], ..none() }), [None, mendable]);
    assert_eq!(class(StoredRepaired { manifests: vec![3], ..none() }), [None, mendable]);
    assert_eq!(class(StoredRepaired { left_damaged: true, ..none() }), [mendable; 2]);
    assert_eq!(class(StoredRepaired { postponed: vec![(0, 2)], ..none() }), [mendable; 2]);
    // Nobody knows whether missing objects are lost where access was refused.
    assert_eq!(class(StoredRepaired { is_denied: true, ..none() }), [None, None]);
    let denied = |repaired| class(StoredRepaired { is_denied: true, ..repaired });
    assert_eq!(denied(StoredRepaired { made: vec![(0, 1, 2)], ..none() }), [Some(Class::Io); 2]);
    assert_eq!(denied(StoredRepaired { postponed: vec![(0, 2)], ..none() }), [Some(Class::Io); 2]);
}

/// Calls that fail at the same moment are tried again at different ones.
#[test]
fn pauses_are_spread() {
    with(5, None, |call, _| {
        let paused = |_| {
            let begun = Instant::now();
            assert!(call.pause_before(1));
            begun.elapsed()
        };
        let all: Vec<Duration> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|nth| scope.spawn(move || paused(nth))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        let (least, most) = (all.iter().min().expect("some"), all.iter().max().expect("some"));
        assert!(*least >= Duration::from_millis(50) && *most - *least >= Duration::from_millis(8), "{all:?}");
    });
}

/// Errors tell whether another attempt helps, whether the object may be there, and whether the whole place is meant.
#[test]
fn errors_say_what_they_are_about() {
    let table = [
        (StoreError::NotFound, [false, false, false]),
        (StoreError::Absent, [false, true, true]),
        (StoreError::Invalid("x".into()), [false, true, false]),
        (StoreError::Denied("x".into()), [false, true, true]),
        (StoreError::Unavailable("x".into()), [true, true, true]),
        (StoreError::Silent("x".into()), [true, true, true]),
        (StoreError::WrongRange("x".into()), [true, true, false]),
        (StoreError::Unsupported("x"), [false, true, false]),
        (StoreError::GivenUp, [false, true, true]),
        (StoreError::Cancelled, [false, false, false]),
        (StoreError::Sink("x".into()), [false, true, false]),
        (StoreError::Failed("x".into()), [false, true, false]),
    ];
    for (error, expected) in table {
        let is = [error.is_worth_retrying(), error.leaves_open(), error.is_of_place()];
        assert_eq!(is, expected, "{error:?}");
    }
    let few = |causes: &[&str]| StoresError::FewLeft {
        segment: 1,
        there: 2,
        k: 3,
        causes: causes.iter().map(|cause| (*cause).to_owned()).collect(),
    };
    for (error, expected) in [
        (StoresError::Store(StoreError::Unsupported("list")), Class::Usage),
        (StoresError::Store(StoreError::Invalid("x".into())), Class::Usage),
        (StoresError::Store(StoreError::Denied("x".into())), Class::Io),
        (few(&[]), Class::Lost),
        (few(&["a: it does not answer", "b: neither"]), Class::Io),
        (StoresError::NotFound { places: 2, causes: Vec::new() }, Class::Lost),
        (StoresError::OtherSegment(1), Class::Untrue),
    ] {
        assert_eq!(error.class(), expected, "{error}");
    }
    let words = few(&["a: it does not answer", "b: neither"]).to_string();
    assert!(words.ends_with("and 3 are needed\n  a: it does not answer\n  b: neither"), "{words}");
}

/// A place that failed three times in a row is not asked any more, so that a place that is down costs a bounded time.
/// Any answer counts as one, and without a right to list "denied" is an answer too.
#[test]
fn a_place_is_given_up_after_three_failures_in_a_row() {
    let down = || StoreError::Unavailable("503".into());
    let stores = [Arc::new(Memory::new(0, 1))];
    let asked = |answers: &[Result<(), StoreError>], looks: bool| -> usize {
        let places = places(&stores, 0);
        let mut count = 0;
        for answer in answers {
            let mut attempt = |_: &dyn ObjectStore, _: &Call<'_>| {
                count += 1;
                answer.clone()
            };
            let got = match looks {
                true => places.look(0, &places.cancel, &mut attempt),
                false => places.retry(0, &places.cancel, &mut attempt),
            };
            assert!(got == *answer || got == Err(StoreError::GivenUp), "{got:?}");
        }
        assert_eq!(places.get(0).is_given_up(), count < answers.len() || count == 3 && answers.len() == 3);
        count
    };
    let denied = || Err(StoreError::Denied("403".into()));
    for looks in [false, true] {
        assert_eq!(asked(&[Err(down()), Err(down()), Err(down()), Ok(()), Ok(())], looks), 3);
        for answer in [Ok(()), Err(StoreError::NotFound)] {
            let answers = [Err(down()), Err(down()), answer, Err(down()), Err(down()), Ok(())];
            assert_eq!(asked(&answers, looks), 6);
        }
        // Errors of single objects say nothing about the place.
        let wrong = || Err(StoreError::WrongRange("0-9".into()));
        assert_eq!(asked(&[wrong(), wrong(), wrong(), wrong()], looks), 4);
        assert_eq!(asked(&[denied(), denied(), denied(), denied()], looks), if looks { 4 } else { 3 });
    }
}
