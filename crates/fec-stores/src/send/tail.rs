//! The long tail of transfers: the slowest are given up once enough have arrived.

use crate::call::Cancel;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The others are waited for at least so long.
const LEAST: Duration = Duration::from_secs(1);

/// Hands on messages until all senders are gone. `take` tells whether enough have arrived: the others get half the time
/// that these took, and are then stopped by `cancel`. Their messages come all the same.
pub(super) fn gather<T>(told: &Receiver<T>, cancel: &Cancel, mut take: impl FnMut(T) -> bool) {
    let began = Instant::now();
    let (mut end, mut is_over) = (None, false);
    loop {
        let next = match end.filter(|_| !is_over) {
            Some(end) => told.recv_timeout(end - Instant::now().min(end)),
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(message) => {
                if take(message) {
                    end.get_or_insert_with(|| Instant::now() + (began.elapsed() / 2).max(LEAST));
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                cancel.cancel();
                is_over = true;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// A message that comes in time counts, and one whose sender waits for the stop comes behind it.
    #[test]
    fn the_rest_is_stopped_once_enough_is_there() {
        for is_enough in [true, false] {
            let (telling, told) = channel();
            let cancel = Cancel::default();
            let mut taken = Vec::new();
            std::thread::scope(|scope| {
                let slow = (telling.clone(), &cancel);
                scope.spawn(move || {
                    let (telling, cancel) = slow;
                    let most = Instant::now() + if is_enough { LEAST * 20 } else { LEAST * 2 };
                    while !cancel.is_cancelled() && Instant::now() < most {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    telling
                        .send(if cancel.is_cancelled() { "stopped" } else { "slow" })
                        .expect("it is taken");
                });
                for quick in ["one", "two"] {
                    telling.send(quick).expect("it is taken");
                }
                drop(telling);
                gather(&told, &cancel, |message| {
                    taken.push(message);
                    is_enough && taken.len() >= 2
                });
            });
            assert_eq!(taken, ["one", "two", if is_enough { "stopped" } else { "slow" }]);
        }
    }
}
