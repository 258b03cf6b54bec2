//! ML-KEM-768, one key after the other.

use super::ciphers::random;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::table::{FigureTable, figure, key};
use fec_keys::kem::{self, DecapsulationKey};

/// Number of keys of a call.
const COUNTS: [usize; 2] = [1, 8];

const OPERATIONS: [&str; 3] = ["keys from new seeds", "encapsulate", "decapsulate"];

/// Number of figures.
pub(super) const FIGURES: usize = COUNTS.len();

pub(super) fn table(lab: &mut Lab) -> Result<FigureTable> {
    let mut table = FigureTable::new(
        "kem",
        format!("ML-KEM-768 by {}, one thread: the keys of a call come one after the other", kem::ENGINE),
        [key("operation", "operation"), key("keys", "keys of a call"), figure("us_each", "µs each", 2)],
    );
    for count in COUNTS {
        let keys = kem::generate(count).map_err(random)?;
        let public: Vec<_> = keys.iter().map(|(_, key)| DecapsulationKey::encapsulation_key(key)).collect();
        let sent = kem::encapsulate(&public).map_err(random)?;
        let pairs = || keys.iter().map(|(_, key)| key).zip(sent.iter().map(|(ciphertext, _)| ciphertext));
        if !kem::decapsulate(pairs()).iter().eq(sent.iter().map(|(_, secret)| secret)) {
            return Err(Error::NotAuthentic("shared secret"));
        }
        let mut generate = || drop(std::hint::black_box(kem::generate(count)));
        let mut encapsulate = || drop(std::hint::black_box(kem::encapsulate(&public)));
        let mut decapsulate = || drop(std::hint::black_box(kem::decapsulate(pairs())));
        let works: &mut [&mut dyn FnMut()] = &mut [&mut generate, &mut encapsulate, &mut decapsulate];
        let Some(measured) = lab.race(&format!("ML-KEM-768, {count}"), false, works) else { continue };
        for (operation, measured) in OPERATIONS.into_iter().zip(&measured) {
            table.row([
                ("operation", operation.into()),
                ("keys", count.into()),
                ("us_each", measured.time.scaled(1e6 / count as f64).into()),
            ]);
        }
    }
    Ok(table)
}
