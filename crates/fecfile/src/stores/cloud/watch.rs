//! How a call waits for a service: it follows what comes and goes, and ends when nothing does, or when it is cancelled.

use crate::guarded::{catch, guard_thread};
use crate::stores::call::Call;
use crate::stores::error::StoreError;
use crate::stores::object::Wanted;
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

/// How long a call takes to notice that it is to end.
const NOTICE: Duration = Duration::from_millis(10);
/// Bytes of a body that go up at a time.
pub(super) const PIECE: usize = 64 << 10;
/// Requests of one call: those for a list are the most.
const MAX_REQUESTS: u64 = 200;
/// A body that brings fewer bytes a second, over as long as it may be silent, is as good as silent.
const LEAST_SPEED: f64 = 512.0;
/// So many times as long as it may be silent a list may take.
const LIST_TIME: u32 = 2;

tokio::task_local! {
    /// The call that the running task works for.
    static WATCH: Arc<Watch>;
}

/// One call, as those see it who send its requests.
#[derive(Debug)]
pub(super) struct Watch {
    start: Instant,
    /// When something came or went for the last time, in milliseconds since the start.
    seen: AtomicU64,
    /// Bytes of the body that came since then, and so many as are progress.
    came: AtomicU64,
    enough: AtomicU64,
    requests: AtomicU64,
    /// The bytes that a call of `get` is about.
    pub(super) range: Option<Range<u64>>,
    /// The object must not be there when a multipart upload is completed.
    pub(super) create: bool,
    /// The answer is the object from its start, not the range.
    pub(super) is_whole: AtomicBool,
    /// The keys that a list is about; `None`: it is no list.
    pub(super) keys: Option<Wanted>,
    /// What pages of it were asked for.
    pages: Mutex<BTreeSet<String>>,
    trouble: Mutex<Option<StoreError>>,
    answered: AtomicBool,
    status: AtomicU64,
    upload: Mutex<Upload>,
    wanted: Notify,
}

/// How far an upload may go.
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
    /// Of a call that reads these bytes.
    pub(super) fn of_range(range: Range<u64>) -> Watch {
        Watch { range: Some(range), ..Watch::default() }
    }

    /// Of a call that completes a multipart upload, perhaps only if there is no such object.
    pub(super) fn of_completion(create: bool) -> Watch {
        Watch { create, ..Watch::default() }
    }

    /// Of a list.
    pub(super) fn of_list(wanted: Wanted) -> Watch {
        Watch { keys: Some(wanted), ..Watch::default() }
    }

    /// A page of a list is asked for, by this query: a list that leads back to where it was never ends.
    pub(super) fn page(&self, query: &str) -> Result<(), StoreError> {
        if lock(&self.pages).insert(query.to_owned()) {
            return Ok(());
        }
        Err(StoreError::Failed("its list leads back to where it was, and does not come to an end".into()))
    }

    /// The one of the running task.
    pub(super) fn current() -> Arc<Watch> {
        WATCH.try_with(Arc::clone).unwrap_or_default()
    }

    /// Something came or went.
    pub(super) fn progress(&self) {
        self.came.store(0, Ordering::Relaxed);
        self.seen.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// So many bytes of a body came: few are no progress.
    pub(super) fn came(&self, bytes: u64) {
        let came = self.came.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if came >= self.enough.load(Ordering::Relaxed) {
            self.progress();
        }
    }

    fn idle(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.seen.load(Ordering::Relaxed)))
    }

    /// A request goes out: whatever was wrong with the one before was overcome.
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

    /// What an answer says, and what is wrong with it.
    pub(super) fn answer(&self, status: u16, trouble: Option<StoreError>) {
        self.progress();
        self.answered.store(true, Ordering::Relaxed);
        self.status.store(status.into(), Ordering::Relaxed);
        *lock(&self.trouble) = trouble;
    }

    /// What went wrong below HTTP.
    pub(super) fn fail(&self, trouble: StoreError) {
        *lock(&self.trouble) = Some(trouble);
    }

    /// The last answer's status; 0 before it came.
    pub(super) fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed) as u16
    }

    /// Why the call failed, if that was seen.
    pub(super) fn trouble(&self) -> Option<StoreError> {
        lock(&self.trouble).clone()
    }

    /// Waits until an upload may go as far as `end`.
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

    /// Lets an upload go on, as soon as the rate allows it. It waits here, and the connection with it.
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

    /// Does the work of a call on this thread, and ends it when it is cancelled or nothing comes and goes for too long.
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

    /// Does what has to be done even when the call is cancelled, for so long.
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

/// Work that panics fails instead. The crates below take some values that come from outside for good, and panic when they are not.
/// They say what the values are: nobody gets to see that.
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

/// Connections of all stores are served by two threads; what a call does, it does on its own.
fn runtime() -> Result<&'static Runtime, StoreError> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("fec-stores")
            // What a connection's thread leaves undone, the call that waits for it sees.
            .on_thread_start(guard_thread)
            .enable_all()
            .build()
    });
    made.as_ref().map_err(|e| StoreError::Failed(format!("cannot start threads: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::call::{CallOptions, Cancel, Pace};

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
