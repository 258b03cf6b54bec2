//! Key encapsulation: ML-KEM-768, one key a call and several, on one thread and shared among all.

use crate::counters;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::table::{FigureTable, Findings, figure, key};
use fec_base::threads::Threads;
use fec_core::executor::Executor;
use fec_keys::kem::{self, Ciphertext, DecapsulationKey, EncapsulationKey, SharedSecret};
use fecfile::seal::SealError;
use std::hint::black_box;

/// Numbers of keys of a call.
const COUNTS: [usize; 5] = [1, 2, 4, 8, 32];

const OPERATIONS: [&str; 3] = ["keys from new seeds", "encapsulate", "decapsulate"];

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    lab.plan(COUNTS.len());
    let threads = lab.options.settings.threads;
    let columns = [
        key("operation", "operation"),
        key("keys", "keys of a call"),
        figure("us_each", "µs each", 2),
        figure("threads_us_each", "on all threads: µs each", 2),
        figure("ratio", "threads / one", 3),
    ];
    let mut table = FigureTable::new(
        "kem",
        format!(
            "ML-KEM-768 by {}: the keys of a call one after the other, and shared among {threads} threads",
            kem::ENGINE
        ),
        columns.into_iter().chain(counters::columns()),
    );
    for count in COUNTS {
        rows(lab, &mut table, count, threads)?;
    }
    let notes = vec![
        "a batch is a call for several keys: the engine has none that works on several at once".to_owned(),
        "threads are started for each call, and counters are those of the calls on one thread".to_owned(),
    ];
    Ok(Findings::new(vec![table], notes))
}

fn rows(lab: &mut Lab, table: &mut FigureTable, count: usize, threads: usize) -> Result<()> {
    let keys = Keys::new(count)?;
    let ways = (0..OPERATIONS.len()).flat_map(|operation| [(operation, 1), (operation, threads)]);
    let mut calls: Vec<_> =
        ways.map(|(operation, threads)| move |keys: &Keys| keys.on(operation, threads)).collect();
    let mut calls: Vec<_> = calls.iter_mut().map(|call| || call(&keys)).collect();
    let mut calls: Vec<_> = calls.iter_mut().map(|call| call as &mut dyn FnMut()).collect();
    let Some(measured) = lab.race(&format!("ML-KEM-768, {count}"), threads > 1, &mut calls) else {
        return Ok(());
    };
    for (operation, pair) in OPERATIONS.into_iter().zip(measured.chunks(2)) {
        let [one, all] = pair else { unreachable!("two of each") };
        let cells = [
            ("operation", operation.into()),
            ("keys", count.into()),
            ("us_each", one.time.scaled(1e6 / count as f64).into()),
            ("threads_us_each", all.time.scaled(1e6 / count as f64).into()),
            ("ratio", (all.time.median / one.time.median).into()),
        ];
        table.row(cells.into_iter().chain(counters::cells(&one.counts, count as u64)));
    }
    Ok(())
}

/// Keys, and what was sent to them.
struct Keys {
    secret: Vec<DecapsulationKey>,
    public: Vec<EncapsulationKey>,
    sent: Vec<(Ciphertext, SharedSecret)>,
}

impl Keys {
    /// New keys, whose secrets arrive.
    ///
    /// # Errors
    /// Those of the system's randomness; [`Error::NotAuthentic`].
    fn new(count: usize) -> Result<Keys> {
        let random = |e| SealError::from(fec_keys::age::AgeError::Random(e));
        let secret: Vec<DecapsulationKey> =
            kem::generate(count).map_err(random)?.into_iter().map(|(_, key)| key).collect();
        let public: Vec<_> = secret.iter().map(DecapsulationKey::encapsulation_key).collect();
        let sent = kem::encapsulate(&public).map_err(random)?;
        let keys = Keys { secret, public, sent };
        let arrived = kem::decapsulate(keys.pairs(0, count));
        match arrived.iter().eq(keys.sent.iter().map(|(_, secret)| secret)) {
            true => Ok(keys),
            false => Err(Error::NotAuthentic("shared secret")),
        }
    }

    fn pairs(&self, from: usize, to: usize) -> impl Iterator<Item = (&DecapsulationKey, &Ciphertext)> {
        self.secret[from..to].iter().zip(self.sent[from..to].iter().map(|(ciphertext, _)| ciphertext))
    }

    /// An operation on all keys, in as many shares as there are threads.
    fn on(&self, operation: usize, threads: usize) {
        let count = self.secret.len();
        let share = |nth: usize| (count * nth / threads, count * (nth + 1) / threads);
        let work = |nth: usize| {
            let (from, to) = share(nth);
            match operation {
                0 => drop(black_box(kem::generate(to - from))),
                1 => drop(black_box(kem::encapsulate(&self.public[from..to]))),
                _ => drop(black_box(kem::decapsulate(self.pairs(from, to)))),
            }
        };
        Threads(threads).run(threads, &work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_do_not_arrive_are_noticed() {
        let mut keys = Keys::new(3).expect("keys");
        for (operation, threads) in (0..3).flat_map(|operation| [1, 2, 5].map(|threads| (operation, threads)))
        {
            keys.on(operation, threads);
        }
        keys.sent.swap(0, 2);
        let arrived = kem::decapsulate(keys.pairs(0, 3));
        assert!(arrived[1] == keys.sent[1].1 && arrived[0] != keys.sent[0].1);
    }
}
