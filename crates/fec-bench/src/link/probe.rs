//! The largest datagram that fits the route. Datagrams of several sizes are sent at a time, without leave to be cut,
//! and the listener says which came.

use super::conversation::Conversation;
use super::message::{Message, REQUEST};
use super::terms::Result;
use std::time::{Duration, Instant};

/// Sizes that usual links allow, without headers of UDP and IP: jumbo frames, Ethernet, PPPoE, tunnels, the least of
/// IPv6.
const USUAL: [usize; 10] = [8972, 8952, 1472, 1464, 1452, 1444, 1424, 1392, 1372, 1232];
/// Number of sizes that are tried at a time between two, if no usual size tells.
const BETWEEN: usize = 8;
/// Number of times that an unanswered datagram is sent.
const TRIES: u32 = 4;
/// Most time of the search.
const LIMIT: Duration = Duration::from_secs(6);

/// Bytes of the largest datagram that came whole.
pub(super) fn largest(talk: &mut Conversation) -> Result<usize> {
    let until = Instant::now() + LIMIT;
    // A request has come whole already; larger datagrams than this machine sends cannot come.
    let (mut passes, mut fails) = (REQUEST, talk.most_bytes().max(REQUEST) + 1);
    let mut is_first = true;
    while passes + 1 < fails && Instant::now() < until && !fec_base::program::interrupt::interrupted() {
        let sizes = candidates(passes, fails, is_first);
        is_first = false;
        let came = try_sizes(talk, &sizes, until)?;
        (passes, fails) = narrowed(&sizes, came, passes, fails);
    }
    Ok(passes)
}

/// Sizes to try above `passes` and below `fails`, in order; at least one if there is any.
fn candidates(passes: usize, fails: usize, is_first: bool) -> Vec<usize> {
    let mut sizes: Vec<usize> = match is_first {
        true => USUAL.into_iter().chain([fails - 1]).collect(),
        false => (1..=BETWEEN).map(|i| passes + (fails - passes) * i / (BETWEEN + 1)).collect(),
    };
    sizes.retain(|size| passes < *size && *size < fails);
    if sizes.is_empty() {
        sizes.push(passes + 1);
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The new bounds, if `came` is the largest of `sizes` that came.
fn narrowed(sizes: &[usize], came: Option<usize>, passes: usize, fails: usize) -> (usize, usize) {
    let passes = came.unwrap_or(passes);
    let fails = sizes.iter().copied().find(|size| *size > passes).unwrap_or(fails);
    (passes, fails)
}

/// Sends datagrams of these sizes, and returns the largest that came.
fn try_sizes(talk: &mut Conversation, sizes: &[usize], until: Instant) -> Result<Option<usize>> {
    let pause = talk.round_trip.unwrap_or_default() * 4;
    let pause = pause.clamp(Duration::from_millis(60), Duration::from_millis(500));
    let mut left = sizes.to_vec();
    let mut came = None;
    for _ in 0..TRIES {
        let mut sent = Vec::new();
        for size in left {
            // A size that does not leave this machine is not tried again.
            if talk.say(&Message::Probe(size as u64))? {
                sent.push(size);
            }
        }
        let (asked, next) = (Instant::now(), (Instant::now() + pause).min(until));
        while let Some(wait) = next.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero()) {
            for message in talk.hear(wait)? {
                if let Message::Probed(size) = message
                    && let Some(size) = sizes.iter().copied().find(|tried| *tried as u64 == size)
                {
                    talk.note_round_trip(asked.elapsed());
                    came = came.max(Some(size));
                }
            }
            if came == sent.last().copied() {
                break;
            }
        }
        sent.retain(|size| Some(*size) > came);
        left = sent;
        if left.is_empty() {
            break;
        }
    }
    Ok(came)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search finds any limit in a few rounds.
    #[test]
    fn the_search_ends_at_the_size_that_fits() {
        for most in [512, 513, 1472, 1500, 9000, 65_507] {
            for fit in (512..=most).step_by(7).chain([most]) {
                let (mut passes, mut fails, mut rounds) = (512, most + 1, 0);
                while passes + 1 < fails {
                    let sizes = candidates(passes, fails, rounds == 0);
                    assert!(sizes.iter().all(|size| (passes + 1..fails).contains(size)), "{sizes:?}");
                    let came = sizes.iter().copied().filter(|size| *size <= fit).max();
                    (passes, fails) = narrowed(&sizes, came, passes, fails);
                    rounds += 1;
                }
                assert_eq!((passes, rounds <= 7), (fit, true), "{rounds} rounds");
            }
        }
    }
}
