//! The environment of every operation: threads, kernel, limits, the receiver of progress, and a way to end it.

use crate::error::{Action, Error, ErrorKind, Result};
use fec_core::gf256::kernel::Backend;
use fec_core::window::WINDOW_LIMIT;
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

/// Settings, the receiver of progress, and what may end the operation early.
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
    /// The receiver of progress.
    pub progress: &'a dyn Progress,
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
    /// These settings, without progress, and with nothing that could end the operation.
    pub fn new(settings: Settings) -> Context<'a> {
        Context { settings, progress: &Silent, cancel: None }
    }

    /// The same context with a receiver of progress.
    pub fn with_progress(self, progress: &'a dyn Progress) -> Context<'a> {
        Context { progress, ..self }
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
        Gauge { action, meter: self.progress.begin(action, total), context: *self }
    }

    /// The same context without progress.
    pub fn silent(&self) -> Context<'a> {
        Context { progress: &Silent, ..*self }
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

/// Receives reports of progress.
pub trait Progress: Sync {
    /// `action` begins. It processes `total` bytes, or a number not known yet.
    fn begin(&self, action: Action, total: Option<u64>) -> Box<dyn Meter + '_>;
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

/// Progress that goes nowhere.
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
