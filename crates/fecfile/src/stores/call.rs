//! How calls on stores are made: how long one may take, how often it is repeated, how fast bytes may go, and how it is stopped.

use super::error::StoreError;
use fec_core::executor::lock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The first pause before another attempt; each next one is up to twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Attempts of a call that may end because nothing was heard: each has taken as long as it may.
const SILENCES: u32 = 3;
/// How long a pause takes to notice that it is to end.
const NOTICE: Duration = Duration::from_millis(10);

/// What calls are held to.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// A request ends when nothing comes or goes for so long.
    pub timeout: Duration,
    /// So many times a request is repeated that failed for a reason that may pass.
    pub retries: u32,
    /// Most bytes a second, up and down together; `None`: as fast as it goes.
    pub rate: Option<u64>,
}

impl Default for CallOptions {
    fn default() -> CallOptions {
        CallOptions { timeout: Duration::from_secs(30), retries: 5, rate: None }
    }
}

/// Stops calls, from any thread. Clones are the same.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Its own flag is the last one; those before it stop it as well.
    flags: Vec<Arc<AtomicBool>>,
}

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel { flags: vec![Arc::default()] }
    }
}

impl Cancel {
    /// Stops all calls that have this one, or one that was made of it.
    pub fn cancel(&self) {
        if let Some(own) = self.flags.last() {
            own.store(true, Ordering::Relaxed);
        }
    }

    /// One that stops with this one, and by itself.
    pub fn child(&self) -> Cancel {
        Cancel { flags: self.flags.iter().cloned().chain([Arc::default()]).collect() }
    }

    /// Whether it was stopped, or the process is to end.
    pub fn is_cancelled(&self) -> bool {
        self.flags.iter().any(|flag| flag.load(Ordering::Relaxed)) || crate::interrupt::interrupted()
    }
}

/// One call, or several that belong together.
pub struct Call<'a> {
    /// What it is held to.
    pub options: &'a CallOptions,
    /// Stops it.
    pub cancel: &'a Cancel,
    /// Shared by all calls: the rate is theirs together.
    pub pace: &'a Pace,
    /// Permissions of what is put where objects are files, less those that the process withholds.
    pub permissions: u32,
}

impl Call<'_> {
    /// Does what may fail, and repeats it after a pause that grows, with jitter, while that may help.
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

    /// Waits before attempt number `tries`, from 1 on, is made again: longer each time, up to a bound, and with jitter. Tells whether
    /// it did, and was not stopped.
    pub fn pause_before(&self, tries: u32) -> bool {
        let doublings = tries.saturating_sub(1).min(LONGEST_PAUSE.as_millis().ilog2());
        let pause = (FIRST_PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE);
        // Between a half and the whole: many that failed at once do not come back at once.
        self.pause(pause.mul_f64(0.5 + 0.5 * self.pace.random()))
    }

    /// Waits; tells whether it did, and was not stopped.
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

    /// Waits until so many bytes may go, and counts them.
    ///
    /// # Errors
    /// [`StoreError::Cancelled`].
    pub fn bytes(&self, bytes: u64) -> Result<(), StoreError> {
        let wait = self.options.rate.map_or(Duration::ZERO, |rate| self.pace.take(bytes, rate));
        self.pace.bytes.fetch_add(bytes, Ordering::Relaxed);
        if wait.is_zero() || self.pause(wait) { Ok(()) } else { Err(StoreError::Cancelled) }
    }
}

/// What all calls of an operation share.
#[derive(Debug, Default)]
pub struct Pace {
    /// When the bytes that were taken until now will have gone.
    gone_at: Mutex<Option<Instant>>,
    bytes: AtomicU64,
    seed: AtomicU64,
}

impl Pace {
    /// Bytes of bodies that went up or came down.
    pub fn moved(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How long bytes have to wait at `rate` bytes a second.
    fn take(&self, bytes: u64, rate: u64) -> Duration {
        let now = Instant::now();
        let mut gone_at = lock(&self.gone_at);
        let start = gone_at.map_or(now, |at| at.max(now));
        *gone_at = Some(start + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64));
        start - now
    }

    /// Between 0 and 1. It only spreads pauses: nobody minds who foresees it.
    fn random(&self) -> f64 {
        let mut x = self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x ^= u64::from(std::process::id()) << 17;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
