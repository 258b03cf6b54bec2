//! The environment of every operation: threads, kernel, limits, the receiver of progress and notices, and a way to end
//! it.

use crate::error::{Action, Error, ErrorKind, Result};
use fec_core::gf256::kernel::Backend;
use fec_core::window::WINDOW_LIMIT;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads, kernel and limits of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Threads that work at the same time.
    pub threads: usize,
    /// The kernel that computes in GF(2⁸).
    pub backend: Backend,
    /// Map inputs of `encode`, if the fence of [`program::sigbus`](crate::program::sigbus) is installed.
    pub map: bool,
    /// End an operation only when its outputs are on the disk, not only in the system's cache.
    pub sync: bool,
    /// The most bytes that the buffers of sets may take.
    pub max_memory: u64,
    /// The most bytes that the window of a live stream may take.
    pub max_window: u64,
}

impl Settings {
    /// The fastest kernel, tuned for this processor; a thread for each core; 96 MiB for the buffers of sets.
    pub fn new() -> Settings {
        let backend = Backend::best();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let settings = Settings {
            threads,
            backend: backend.with_tuning(crate::processor::tuning(backend.tuning())),
            map: true,
            sync: true,
            max_memory: 0,
            max_window: 0,
        };
        settings.with_memory(None)
    }

    /// The same settings with this many bytes for the buffers of sets and of windows; `None` sets the default of each.
    pub fn with_memory(self, bytes: Option<u64>) -> Settings {
        Settings { max_memory: bytes.unwrap_or(96 << 20), max_window: bytes.unwrap_or(WINDOW_LIMIT), ..self }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
}

/// Settings, the receiver of progress and notices, and what may end the operation early.
///
/// ```
/// use fec_base::context::{Cancel, Context, Settings};
/// # use fec_base::error::{Action, ErrorKind};
/// let cancel = Cancel::default();
/// let context = Context::new(Settings { threads: 1, ..Settings::new() }).with_cancel(&cancel);
/// cancel.cancel(); // from any thread
/// assert!(matches!(context.check(Action::Decode).unwrap_err().kind, ErrorKind::Cancelled));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Context<'a> {
    /// Threads, kernel and limits.
    pub settings: Settings,
    /// The receiver of progress and notices.
    pub progress: &'a dyn Progress,
    /// The receiver gets notices alone.
    is_silent: bool,
    /// Ends the operation between two sets, or pieces of at most a few megabytes, with [`ErrorKind::Cancelled`]. No
    /// output appears then, and the next repair ends one in place. Transfers of stores and live streams have a stop of
    /// their own.
    pub cancel: Option<&'a Cancel>,
}

impl Default for Context<'_> {
    fn default() -> Self {
        Context::new(Settings::new())
    }
}

impl<'a> Context<'a> {
    /// These settings, without progress and notices, and with nothing that could end the operation.
    pub fn new(settings: Settings) -> Context<'a> {
        Context { settings, progress: &Silent, is_silent: false, cancel: None }
    }

    /// The same context with a receiver of progress and notices.
    pub fn with_progress(self, progress: &'a dyn Progress) -> Context<'a> {
        Context { progress, is_silent: false, ..self }
    }

    /// The same context with something that may end the operation.
    pub fn with_cancel(self, cancel: &'a Cancel) -> Context<'a> {
        Context { cancel: Some(cancel), ..self }
    }

    /// The same context with other settings.
    pub fn with_settings(self, settings: Settings) -> Context<'a> {
        Context { settings, ..self }
    }

    /// Tells whether the caller has ended the operation. It costs an atomic load.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(Cancel::is_cancelled)
    }

    /// Fails once the caller has ended the operation.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] of `action`.
    pub fn check(&self, action: Action) -> Result<()> {
        if self.is_cancelled() { Err(Error::new(action, ErrorKind::Cancelled)) } else { Ok(()) }
    }

    /// Starts to count the bytes of `action`.
    pub fn meter(&self, action: Action, total: Option<u64>) -> Gauge<'a> {
        let progress: &'a dyn Progress = if self.is_silent { &Silent } else { self.progress };
        Gauge { action, meter: progress.begin(action, total), context: *self }
    }

    /// The same context without progress; notices are passed on.
    pub fn silent(&self) -> Context<'a> {
        Context { is_silent: true, ..*self }
    }
}

/// Counts the bytes of one action for the receiver of progress, and tells whether the caller has ended it. All threads
/// share it.
pub struct Gauge<'a> {
    action: Action,
    meter: Box<dyn Meter + 'a>,
    context: Context<'a>,
}

impl Gauge<'_> {
    /// `bytes` more are done.
    pub fn add(&self, bytes: u64) {
        self.meter.add(bytes);
    }

    /// Describes in a few words how far each part is.
    pub fn tell(&self, parts: &str) {
        self.meter.tell(parts);
    }

    /// All is done.
    pub fn finish(&self) {
        self.meter.finish();
    }

    /// Tells whether the caller has ended the action.
    pub fn is_cancelled(&self) -> bool {
        self.context.is_cancelled()
    }

    /// Fails once the caller has ended the action.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`].
    pub fn check(&self) -> Result<()> {
        self.context.check(self.action)
    }
}

/// Ends operations early, from any thread. Clones share one state.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// The last flag is its own; the flags before it belong to its parents and stop it as well.
    flags: Vec<Arc<AtomicBool>>,
}

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel { flags: vec![Arc::default()] }
    }
}

impl Cancel {
    /// Ends all operations that hold it or a [`child`](Cancel::child) of it.
    pub fn cancel(&self) {
        if let Some(own) = self.flags.last() {
            own.store(true, Ordering::Relaxed);
        }
    }

    /// A cancel that this one ends too, and that can also be ended alone.
    pub fn child(&self) -> Cancel {
        Cancel { flags: self.flags.iter().cloned().chain([Arc::default()]).collect() }
    }

    /// Tells whether it or one of its parents was ended.
    pub fn is_cancelled(&self) -> bool {
        self.flags.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// A fact that an operation came upon, and that does not change its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A leftover of a killed process was removed.
    Removed {
        /// Its path.
        path: &'a Path,
        /// Its length in bytes, or that of the files in it.
        bytes: u64,
    },
    /// A file that is read is open for writing elsewhere. Bytes being written at that moment may be read partly old and
    /// partly new, without a trace.
    OpenElsewhere {
        /// Its path.
        path: &'a Path,
    },
}

/// Receives reports of progress, and notices.
pub trait Progress: Sync {
    /// `action` begins. It processes `total` bytes, or a number not known yet.
    fn begin(&self, action: Action, total: Option<u64>) -> Box<dyn Meter + '_>;
    /// Takes a notice, from any thread and perhaps more than once. Nothing is done with it unless this is implemented.
    fn note(&self, _notice: Notice<'_>) {}
}

/// Counts the bytes of one action. Shared by all threads; it ends when it is dropped.
pub trait Meter: Sync + Send {
    /// `bytes` more are done.
    fn add(&self, bytes: u64);
    /// Describes in a few words how far each part is, where bytes alone say too little.
    fn tell(&self, _parts: &str) {}
    /// All is done.
    fn finish(&self) {}
}

/// Progress and notices that go nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _action: Action, _total: Option<u64>) -> Box<dyn Meter + '_> {
        Box::new(Silent)
    }
}

impl Meter for Silent {
    fn add(&self, _bytes: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Numbers of begun actions and of notices.
    #[derive(Default)]
    struct Counted(AtomicUsize, AtomicUsize);

    impl Progress for Counted {
        fn begin(&self, _action: Action, _total: Option<u64>) -> Box<dyn Meter + '_> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::new(Silent)
        }

        fn note(&self, _notice: Notice<'_>) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_silent_context_passes_notices_on_and_no_progress() {
        let (first, second) = (Counted::default(), Counted::default());
        let context = Context::default().with_progress(&first);
        for context in [context, context.silent(), context.silent().with_progress(&second)] {
            context.meter(Action::Read, None).finish();
            context.progress.note(Notice::OpenElsewhere { path: Path::new("a") });
        }
        let counts = [first, second].map(|counted| (counted.0.into_inner(), counted.1.into_inner()));
        assert_eq!(counts, [(1, 2), (1, 1)]);
    }
}
