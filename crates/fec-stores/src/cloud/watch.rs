//! Supervises a call: follows the bytes that come and go, and ends the call when none do, or when it is cancelled.

use crate::call::Call;
use crate::error::StoreError;
use crate::object::Wanted;
use fec_base::program::guarded::{catch, guard_thread};
use fec_core::executor::lock;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

/// Longest time until a call notices that it has to end.
const NOTICE: Duration = Duration::from_millis(10);
/// Bytes of a body sent at a time.
pub(super) const PIECE: usize = 64 << 10;
/// Most requests of a call; a list needs the most.
const MAX_REQUESTS: u64 = 200;
/// A body that brings fewer bytes a second, over the length of the timeout, counts as silent.
const LEAST_SPEED: f64 = 512.0;
/// Longest time of a list, in timeouts.
const LIST_TIME: u32 = 2;

tokio::task_local! {
    /// The call of the running task.
    static WATCH: Arc<Watch>;
}

/// The state of a call, shared with the code that sends its requests.
#[derive(Debug)]
pub(super) struct Watch {
    start: Instant,
    /// Time of the last progress, in milliseconds since the start.
    seen: AtomicU64,
    /// Bytes of the body that came since then, and the number that counts as progress.
    came: AtomicU64,
    enough: AtomicU64,
    requests: AtomicU64,
    /// The bytes that a `get` asks for.
    pub(super) range: Option<Range<u64>>,
    /// The completion of a multipart upload requires that there is no such object.
    pub(super) create: bool,
    /// The answer is the object from its start instead of the range.
    pub(super) is_whole: AtomicBool,
    /// The service hides what is removed, and keeps its bytes as an older version.
    pub(super) is_hidden: AtomicBool,
    /// The keys wanted from a list; `None`: the call is no list.
    pub(super) keys: Option<Wanted>,
    /// Queries of its pages so far.
    pages: Mutex<BTreeSet<String>>,
    trouble: Mutex<Option<StoreError>>,
    answered: AtomicBool,
    status: AtomicU64,
    upload: Mutex<Upload>,
    wanted: Notify,
}

/// Bytes that an upload may send and asks to send.
#[derive(Debug, Default)]
struct Upload {
    allowed: u64,
    wanted: u64,
    waker: Option<Waker>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            start: Instant::now(),
            seen: AtomicU64::new(0),
            came: AtomicU64::new(0),
            enough: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            range: None,
            create: false,
            is_whole: AtomicBool::new(false),
            is_hidden: AtomicBool::new(false),
            keys: None,
            pages: Mutex::default(),
            trouble: Mutex::default(),
            answered: AtomicBool::new(false),
            status: AtomicU64::new(0),
            upload: Mutex::default(),
            wanted: Notify::new(),
        }
    }
}

impl Watch {
    /// Watches a call that reads these bytes.
    pub(super) fn of_range(range: Range<u64>) -> Watch {
        Watch { range: Some(range), ..Watch::default() }
    }

    /// Watches a call that completes a multipart upload; with `create` only if there is no such object.
    pub(super) fn of_completion(create: bool) -> Watch {
        Watch { create, ..Watch::default() }
    }

    /// Watches a call that lists.
    pub(super) fn of_list(wanted: Wanted) -> Watch {
        Watch { keys: Some(wanted), ..Watch::default() }
    }

    /// Notes the query for a page of a list. Fails if it was asked before: such a list would never end.
    pub(super) fn page(&self, query: &str) -> Result<(), StoreError> {
        if lock(&self.pages).insert(query.to_owned()) {
            return Ok(());
        }
        Err(StoreError::Failed("its list leads back to where it was, and does not come to an end".into()))
    }

    /// The watch of the running task.
    pub(super) fn current() -> Arc<Watch> {
        WATCH.try_with(Arc::clone).unwrap_or_default()
    }

    /// Notes that bytes came or went.
    pub(super) fn progress(&self) {
        self.came.store(0, Ordering::Relaxed);
        self.seen.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Notes bytes of a body that came. Few are no progress.
    pub(super) fn came(&self, bytes: u64) {
        let came = self.came.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if came >= self.enough.load(Ordering::Relaxed) {
            self.progress();
        }
    }

    fn idle(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.seen.load(Ordering::Relaxed)))
    }

    /// Notes a new request, and forgets the trouble of the one before.
    pub(super) fn begin(&self) -> Result<(), StoreError> {
        self.progress();
        *lock(&self.trouble) = None;
        self.status.store(0, Ordering::Relaxed);
        self.answered.store(false, Ordering::Relaxed);
        *lock(&self.upload) = Upload::default();
        if self.requests.fetch_add(1, Ordering::Relaxed) < MAX_REQUESTS {
            return Ok(());
        }
        Err(StoreError::Failed("it does not come to an end".into()))
    }

    /// Notes an answer's status, and its fault.
    pub(super) fn answer(&self, status: u16, trouble: Option<StoreError>) {
        self.progress();
        self.answered.store(true, Ordering::Relaxed);
        self.status.store(status.into(), Ordering::Relaxed);
        *lock(&self.trouble) = trouble;
    }

    /// Notes a failure below HTTP.
    pub(super) fn fail(&self, trouble: StoreError) {
        *lock(&self.trouble) = Some(trouble);
    }

    /// Status of the last answer; 0 before it came.
    pub(super) fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed) as u16
    }

    /// Cause of the call's failure, if it was seen.
    pub(super) fn trouble(&self) -> Option<StoreError> {
        lock(&self.trouble).clone()
    }

    /// Waits until an upload may go on to byte `end`.
    pub(super) fn poll_allowed(&self, end: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut upload = lock(&self.upload);
        if end <= upload.allowed {
            return Poll::Ready(());
        }
        upload.wanted = end;
        upload.waker = Some(context.waker().clone());
        self.wanted.notify_one();
        Poll::Pending
    }

    /// Waits until the rate allows the wanted bytes, then lets the upload go on. The connection waits with it.
    fn allow(&self, call: &Call<'_>) -> Result<(), StoreError> {
        let mut upload = lock(&self.upload);
        let more = upload.wanted.saturating_sub(upload.allowed);
        drop(upload);
        call.bytes(more)?;
        self.progress();
        upload = lock(&self.upload);
        upload.allowed += more;
        let waker = upload.waker.take();
        drop(upload);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Runs the work of a call on this thread. Ends it when it is cancelled, or when nothing comes or goes for too
    /// long.
    pub(super) fn run<T>(
        self: &Arc<Watch>,
        call: &Call<'_>,
        work: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        if call.cancel.is_cancelled() {
            return Err(StoreError::Cancelled);
        }
        let enough = (LEAST_SPEED * call.options.timeout.as_secs_f64()) as u64;
        self.enough.store(enough, Ordering::Relaxed);
        runtime()?.block_on(WATCH.scope(Arc::clone(self), async {
            let mut work = pin!(guarded(work));
            let mut ticks = tokio::time::interval(NOTICE.min(call.options.timeout / 2).max(NOTICE / 10));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    done = &mut work => return done,
                    () = self.wanted.notified() => self.allow(call)?,
                    _ = ticks.tick() => {
                        if call.cancel.is_cancelled() {
                            return Err(StoreError::Cancelled);
                        }
                        if self.keys.is_some() && self.start.elapsed() > LIST_TIME * call.options.timeout {
                            return Err(StoreError::Failed("its list does not come to an end".into()));
                        }
                        if self.idle() > call.options.timeout {
                            return Err(self.silence(call.options.timeout));
                        }
                    }
                }
            }
        }))
    }

    /// Runs work that is needed even after a cancelled call, for at most `longest`.
    pub(super) fn run_briefly<T>(
        self: &Arc<Watch>,
        longest: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let done = runtime()?.block_on(
            WATCH.scope(Arc::clone(self), async { tokio::time::timeout(longest, guarded(work)).await }),
        );
        done.map_err(|_| self.silence(longest))?
    }

    fn silence(&self, timeout: Duration) -> StoreError {
        let what = match (self.answered.load(Ordering::Relaxed), self.came.load(Ordering::Relaxed)) {
            (false, _) => "no answer for".to_owned(),
            (true, 0) => "it went silent for".to_owned(),
            (true, came) => format!("it gave {came} bytes in"),
        };
        StoreError::Silent(format!("{what} {:.1} s", timeout.as_secs_f64()))
    }
}

/// Turns a panic of the work into an error. The crates below trust some values from outside, and panic if they are
/// wrong. Their messages repeat the values, so they are not shown.
async fn guarded<T>(work: impl Future<Output = T>) -> Result<T, StoreError> {
    let mut work = pin!(work);
    poll_fn(|context| match catch(|| work.as_mut().poll(context)) {
        Some(poll) => poll.map(Ok),
        None => Poll::Ready(Err(StoreError::Failed(
            "a request cannot be made, for what it is made of: is something wrong with the endpoint, the region or the credentials?"
                .into(),
        ))),
    })
    .await
}

/// The runtime of all connections has two threads; calls work on their own threads.
fn runtime() -> Result<&'static Runtime, StoreError> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("fec-stores")
            // The waiting call sees if a connection's thread does not finish.
            .on_thread_start(guard_thread)
            .enable_all()
            .build()
    });
    made.as_ref().map_err(|e| StoreError::Failed(format!("cannot start threads: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{CallOptions, Cancel, Pace};

    #[test]
    fn what_panics_below_fails_only() {
        let (options, cancel, pace) = (CallOptions::default(), Cancel::default(), Pace::default());
        let call = Call { options: &options, cancel: &cancel, pace: &pace, permissions: 0o600 };
        let watch: Arc<Watch> = Arc::default();
        let failed: Result<(), _> = watch.run(&call, async { panic!("hunter2") });
        assert!(matches!(&failed, Err(StoreError::Failed(why)) if !why.contains("hunter2")), "{failed:?}");
        let failed: Result<(), _> = watch.run_briefly(Duration::from_secs(1), async { panic!("hunter2") });
        assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
        assert_eq!(watch.run(&call, async { 7 }), Ok(7));
    }
}
