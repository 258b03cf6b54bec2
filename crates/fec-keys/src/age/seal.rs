//! Making age files.

use super::error::AgeError;
use super::header::{self, Sealed};
use super::limits::MOST_STANZAS;
use super::passphrase::Passphrase;
use super::primitives::{BODY_LEN, FileKey, random};
use super::recipient::Recipient;
use super::stream;
use std::collections::HashSet;
use std::num::NonZeroUsize;

/// Least recipients of a thread: fewer than eight stay on one.
const FEWEST_EACH: usize = 4;

type Wrapped = (Sealed, [u8; BODY_LEN]);

/// An age file of this plaintext, for each of these recipients, in this order; a second one with the same key counts
/// once. They are encapsulated one after the other: [`seal_on`] takes threads.
///
/// # Errors
/// [`AgeError::NoRecipients`], [`AgeError::TooManyRecipients`], [`AgeError::Mixed`], [`AgeError::Random`].
pub fn seal(recipients: &[Recipient], plaintext: &[u8]) -> Result<Vec<u8>, AgeError> {
    seal_on(NonZeroUsize::MIN, recipients, plaintext)
}

/// As [`seal`], on up to `threads` threads: fewer if there are few recipients.
///
/// # Errors
/// Those of [`seal`].
pub fn seal_on(
    threads: NonZeroUsize,
    recipients: &[Recipient],
    plaintext: &[u8],
) -> Result<Vec<u8>, AgeError> {
    let mut seen = HashSet::new();
    let recipients: Vec<&Recipient> =
        recipients.iter().filter(|recipient| seen.insert(recipient.bytes())).collect();
    let Some(first) = recipients.first() else { return Err(AgeError::NoRecipients) };
    if recipients.len() > MOST_STANZAS {
        return Err(AgeError::TooManyRecipients(recipients.len()));
    }
    if recipients.iter().any(|recipient| recipient.is_post_quantum() != first.is_post_quantum()) {
        return Err(AgeError::Mixed);
    }
    let file_key = random()?;
    file(&file_key, &wrap_all(threads, &recipients, &file_key)?, plaintext)
}

/// An age file of this plaintext, which this passphrase opens. `log_n` is the work factor,
/// [`DEFAULT_WORK`](super::DEFAULT_WORK) for people: it takes 2^`log_n` KiB of memory, now and whenever the file is
/// opened.
///
/// # Errors
/// [`AgeError::WorkFactor`], [`AgeError::Memory`], [`AgeError::Random`].
pub fn seal_with_passphrase(
    passphrase: &Passphrase,
    log_n: u8,
    plaintext: &[u8],
) -> Result<Vec<u8>, AgeError> {
    let file_key = random()?;
    file(&file_key, &[passphrase.seal(log_n, &file_key)?], plaintext)
}

fn file(file_key: &FileKey, stanzas: &[Wrapped], plaintext: &[u8]) -> Result<Vec<u8>, AgeError> {
    let mut file = header::write(file_key, stanzas);
    stream::write(file_key, plaintext, &mut file)?;
    Ok(file)
}

/// The stanzas of these recipients, in their order.
fn wrap_all(
    threads: NonZeroUsize,
    recipients: &[&Recipient],
    file_key: &FileKey,
) -> Result<Vec<Wrapped>, AgeError> {
    let each = recipients.len().div_ceil(threads.get()).max(FEWEST_EACH);
    let wrap = |part: &[&Recipient]| part.iter().map(|recipient| recipient.seal(file_key)).collect();
    let Some((first, others)) = recipients.split_at_checked(each) else { return wrap(recipients) };
    let parts: Vec<Result<Vec<Wrapped>, AgeError>> = std::thread::scope(|scope| {
        let start = |part| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || wrap(part));
            // This thread does the work if the system has no more threads.
            thread.map_err(|_| part)
        };
        let others: Vec<_> = others.chunks(each).map(start).collect();
        let first = wrap(first);
        let others = others.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().expect("it does not panic"),
            Err(part) => wrap(part),
        });
        std::iter::once(first).chain(others).collect()
    });
    let mut stanzas = Vec::with_capacity(recipients.len());
    for part in parts {
        stanzas.append(&mut part?);
    }
    Ok(stanzas)
}
