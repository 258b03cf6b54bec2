//! Limits of calls on stores: time, attempts, rate, and a way to stop them.
//!
//! An [`ObjectStore`](super::ObjectStore) tries each verb once. A `Call` decides how often, how long and how fast. A
//! body of less than 512 bytes a second counts as silent, and a call that meets silence three times is over.

use super::error::StoreError;
pub use fec_base::context::Cancel;
use fec_core::executor::lock;
use fec_core::random::SplitMix64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first pause before another attempt; each next one is up to twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Attempts of a call, and transfers of an object, that may end in silence. Each of them takes the whole timeout.
pub(super) const SILENCES: u32 = 3;
/// Longest time that a stopped pause goes on.
const NOTICE: Duration = Duration::from_millis(10);

/// Limits of calls.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// A request ends after this time without a byte in either direction.
    pub timeout: Duration,
    /// How often a request is repeated after a transient failure.
    pub retries: u32,
    /// Most bytes a second, up and down together; `None`: no limit.
    pub rate: Option<u64>,
}

impl Default for CallOptions {
    fn default() -> CallOptions {
        CallOptions { timeout: Duration::from_secs(30), retries: 5, rate: None }
    }
}

/// A call, or several that belong together.
pub struct Call<'a> {
    /// Its limits.
    pub options: &'a CallOptions,
    /// Stops the call.
    pub cancel: &'a Cancel,
    /// All calls of an operation share it, and with it the rate.
    pub pace: &'a Pace,
    /// Permissions of new objects that are files, less those that the process's umask withholds.
    pub permissions: u32,
}

impl Call<'_> {
    /// Runs `attempt`, and repeats it while that may help. The pauses between attempts grow and have jitter.
    ///
    /// # Errors
    /// The last one.
    pub fn retry<T>(&self, mut attempt: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut silences = 0;
        for left in (0..=self.options.retries).rev() {
            if self.cancel.is_cancelled() {
                return Err(StoreError::Cancelled);
            }
            let done = attempt();
            silences += u32::from(matches!(done, Err(StoreError::Silent(_))));
            match done {
                Err(error) if error.is_worth_retrying() && left > 0 && silences < SILENCES => {
                    tracing::debug!("{error}; {left} more attempts");
                    if !self.pause_before(self.options.retries - left + 1) {
                        return Err(StoreError::Cancelled);
                    }
                }
                done => return done,
            }
        }
        Err(StoreError::Cancelled)
    }

    /// Waits before repetition number `tries`, which counts from 1. The pause doubles each time, up to a bound, and has
    /// jitter. False if the pause was stopped.
    pub fn pause_before(&self, tries: u32) -> bool {
        let doublings = tries.saturating_sub(1).min(LONGEST_PAUSE.as_millis().ilog2());
        let pause = (FIRST_PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE);
        // The jitter spreads calls that failed at the same moment.
        self.pause(pause.mul_f64(0.5 + 0.5 * self.pace.random()))
    }

    /// Waits for this time; false if the pause was stopped.
    pub fn pause(&self, length: Duration) -> bool {
        let end = Instant::now() + length;
        loop {
            if self.cancel.is_cancelled() {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NOTICE));
        }
    }

    /// Waits until the rate allows these bytes, and counts them.
    ///
    /// # Errors
    /// [`StoreError::Cancelled`].
    pub fn bytes(&self, bytes: u64) -> Result<(), StoreError> {
        let wait = self.options.rate.map_or(Duration::ZERO, |rate| self.pace.take(bytes, rate));
        self.pace.bytes.fetch_add(bytes, Ordering::Relaxed);
        if wait.is_zero() || self.pause(wait) { Ok(()) } else { Err(StoreError::Cancelled) }
    }
}

/// State that all calls of an operation share: rate, count of bytes, jitter.
#[derive(Debug, Default)]
pub struct Pace {
    /// The moment at which all bytes taken up to now have passed at the rate.
    gone_at: Mutex<Option<Instant>>,
    bytes: AtomicU64,
    /// Random numbers drawn.
    drawn: AtomicU64,
}

impl Pace {
    /// Bytes of bodies that went up or came down.
    pub fn moved(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The time that these bytes have to wait at `rate` bytes a second.
    fn take(&self, bytes: u64, rate: u64) -> Duration {
        let now = Instant::now();
        let mut gone_at = lock(&self.gone_at);
        let start = gone_at.map_or(now, |at| at.max(now));
        *gone_at = Some(start + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64));
        start - now
    }

    /// A number between 0 and 1. It only spreads pauses, so it may be predictable.
    fn random(&self) -> f64 {
        let nth = self.drawn.fetch_add(1, Ordering::Relaxed);
        let draw = SplitMix64::new(nth ^ u64::from(std::process::id()) << 32).next();
        (draw >> 11) as f64 / (1u64 << 53) as f64
    }
}
