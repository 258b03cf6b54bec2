//! The environment of every operation: threads, kernel, limits and the receiver of progress.

use fec_core::gf256::kernel::Backend;
use fec_core::window::WINDOW_LIMIT;

/// Threads, kernel and limits of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Threads that work at the same time.
    pub threads: usize,
    /// The kernel that computes in GF(2⁸).
    pub backend: Backend,
    /// Map inputs of `encode`, if the fence of [`io::sigbus`](crate::io::sigbus) is installed.
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

/// Settings, and the receiver of progress.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Threads, kernel and limits.
    pub settings: Settings,
    /// The receiver of progress.
    pub progress: &'a dyn Progress,
}

impl Default for Context<'_> {
    fn default() -> Self {
        Context { settings: Settings::new(), progress: &Silent }
    }
}

impl<'a> Context<'a> {
    /// Starts a meter for the bytes of `action`.
    pub fn meter(&self, action: &'static str, total: Option<u64>) -> Box<dyn Meter + 'a> {
        self.progress.begin(action, total)
    }

    /// The same context without progress.
    pub fn silent(&self) -> Context<'static> {
        Context { settings: self.settings, progress: &Silent }
    }
}

/// Receives reports of progress.
pub trait Progress: Sync {
    /// `action` begins. It processes `total` bytes, or a number not known yet.
    fn begin(&self, action: &'static str, total: Option<u64>) -> Box<dyn Meter + '_>;
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
    fn begin(&self, _action: &'static str, _total: Option<u64>) -> Box<dyn Meter + '_> {
        Box::new(Silent)
    }
}

impl Meter for Silent {
    fn add(&self, _bytes: u64) {}
}
