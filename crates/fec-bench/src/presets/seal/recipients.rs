//! The cost of recipients: giving the content key to each of them, one after the other and on all threads, and getting
//! it back.

use super::ciphers::random;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::table::{FigureTable, figure, key};
use crate::words;
use fec_core::format::seal::{MAX_SEAL, SealedKind};
use fec_keys::age::{self, Identity, KeyKind, Keys, Recipient};
use fec_keys::cipher::Cipher;
use fecfile::seal::{SealError, SealedTo, Sealer, Sealing};
use std::cell::RefCell;
use std::num::NonZeroUsize;

/// Recipients of a file; kinds that do not fit a seal so often have as many as fit.
const COUNTS: [usize; 3] = [1, 10, 100];

const KINDS: [(KeyKind, &str); 2] = [(KeyKind::X25519, "X25519"), (KeyKind::Hybrid, "ML-KEM-768 and X25519")];

/// Number of figures: sealing and opening.
pub(super) const FIGURES: usize = 2 * COUNTS.len() * KINDS.len();

/// The text to be sealed.
const CONTENT_KEY: [u8; 32] = [0x42; 32];

pub(super) fn table(lab: &mut Lab, notes: &mut Vec<String>) -> Result<FigureTable> {
    let columns = [
        key("kind", "kind"),
        key("recipients", "recipients"),
        figure("file_bytes", "bytes", 0),
        figure("sequential_ms", "in sequence ms", 3),
        figure("sequential_us_each", "µs each", 1),
        figure("threads_ms", "on all threads ms", 3),
        figure("threads_us_each", "µs each", 1),
        figure("ratio", "threads / in sequence", 3),
        figure("open_ms", "open by last ms", 3),
    ];
    let mut table = FigureTable::new(
        "recipients",
        "Age files of 32 bytes: recipients one after the other, and shared among all threads, from 8 on",
        columns,
    );
    for (kind, name) in KINDS {
        let most = COUNTS[COUNTS.len() - 1];
        let fits = fitting(&recipients(&identities(kind, most)?));
        if fits < most {
            let note = "recipients do not fit the bytes of a seal";
            notes.push(format!("{most} {note}, {MAX_SEAL}, with {name}: {fits} do"));
        }
        for count in COUNTS {
            row(lab, &mut table, name, identities(kind, count.min(fits))?)?;
        }
    }
    Ok(table)
}

fn identities(kind: KeyKind, count: usize) -> Result<Vec<Identity>> {
    let all: std::io::Result<Vec<Identity>> = (0..count).map(|_| Identity::generate(kind)).collect();
    Ok(all.map_err(random)?)
}

fn recipients(identities: &[Identity]) -> Vec<Recipient> {
    identities.iter().map(Identity::recipient).collect()
}

/// Number of recipients, from the first on, that fit a seal.
fn fitting(recipients: &[Recipient]) -> usize {
    let counts: Vec<usize> = (1..=recipients.len()).collect();
    counts.partition_point(|count| {
        let to = SealedTo::Recipients(recipients[..*count].to_vec());
        let sealing = Sealing { to, cipher: Cipher::Aes256Gcm };
        Sealer::new(&sealing, SealedKind::Payload, None, 1).is_ok()
    })
}

/// Measures files for all of these.
fn row(lab: &mut Lab, table: &mut FigureTable, name: &str, mut identities: Vec<Identity>) -> Result<()> {
    let to = recipients(&identities);
    let count = to.len();
    let recipients = words::count(count as u64, "recipient", "recipients");
    let Some(last) = identities.pop() else { return Ok(()) };
    let failed: RefCell<Option<SealError>> = RefCell::default();
    let note = |error: age::AgeError| drop(failed.replace(Some(error.into())));
    let threads = NonZeroUsize::new(lab.settings.threads).unwrap_or(NonZeroUsize::MIN);
    let mut file = Vec::new();
    let mut in_sequence = || match age::seal_on(NonZeroUsize::MIN, &to, &CONTENT_KEY) {
        Ok(made) => file = made,
        Err(error) => note(error),
    };
    let mut on_threads = || {
        age::seal_on(threads, &to, &CONTENT_KEY).map_or_else(note, |made| drop(std::hint::black_box(made)));
    };
    let sealed = lab.race(&format!("{recipients}, {name}"), true, &mut [&mut in_sequence, &mut on_threads]);
    if let Some(error) = failed.take() {
        return Err(error.into());
    }
    let Some(sealed) = sealed else { return Ok(()) };
    let keys = Keys::Identities(vec![last]);
    let mut is_right = true;
    let opened = lab.measure(&format!("open, {recipients}, {name}"), false, || {
        is_right &= age::open(&file, &keys).is_ok_and(|opened| opened[..] == CONTENT_KEY);
    });
    if !is_right {
        return Err(Error::NotAuthentic("age file"));
    }
    let [in_sequence, on_threads] = [0, 1].map(|way| &sealed[way].time);
    let each = 1e6 / count as f64;
    table.row([
        ("kind", name.into()),
        ("recipients", count.into()),
        ("file_bytes", file.len().into()),
        ("sequential_ms", in_sequence.scaled(1e3).into()),
        ("sequential_us_each", (in_sequence.median * each).into()),
        ("threads_ms", on_threads.scaled(1e3).into()),
        ("threads_us_each", (on_threads.median * each).into()),
        ("ratio", (on_threads.median / in_sequence.median).into()),
        ("open_ms", opened.map(|opened| opened.time.scaled(1e3)).into()),
    ]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hybrid stanza has 16 + 1494 + 1 + 43 + 1 bytes by the specification, and 41 of them have 63,755.
    #[test]
    fn as_many_fit_as_the_lengths_of_stanzas_say() {
        let x25519 = recipients(&identities(KeyKind::X25519, 100).expect("randomness"));
        assert_eq!(fitting(&x25519), 100);
        let hybrid = recipients(&identities(KeyKind::Hybrid, 60).expect("randomness"));
        assert_eq!(fitting(&hybrid), 41);
    }
}
