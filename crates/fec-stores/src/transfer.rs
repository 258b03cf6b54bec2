//! The transfer of a shard file into the local folder.

use super::call::Cancel;
use super::error::StoreError;
use super::keys;
use super::places::Places;
use super::system::private;
use fec_base::context::Gauge;
use fec_base::io::system::write_all_at;
use fec_core::format::shard_file::Encoding;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time after which a transfer's speed is believed.
pub(super) const WARM: Duration = Duration::from_secs(1);

/// A shard file being fetched.
#[derive(Clone)]
pub(super) struct Active {
    pub(super) started: Instant,
    pub(super) cancel: Cancel,
    /// Bytes of it that were here at the start, and that are here now.
    from: u64,
    bytes: Arc<AtomicU64>,
    /// Another transfer was begun because this one is late.
    pub(super) is_late: bool,
    /// Spare bytes taken for the other transfer.
    pub(super) paid: u64,
}

impl Active {
    pub(super) fn new(cancel: Cancel, from: u64) -> Active {
        Active {
            started: Instant::now(),
            cancel,
            from,
            bytes: Arc::new(AtomicU64::new(from)),
            is_late: false,
            paid: 0,
        }
    }

    /// A transfer that began so long ago, and has brought so many bytes.
    #[cfg(test)]
    pub(super) fn under_way(ago: Duration, moved: u64) -> Active {
        let active = Active::new(Cancel::default(), 0);
        active.bytes.store(moved, Ordering::Relaxed);
        Active { started: Instant::now().checked_sub(ago).expect("a moment"), ..active }
    }

    /// Bytes that are here now.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes that came since the start.
    pub(super) fn moved(&self) -> u64 {
        self.bytes() - self.from
    }

    /// Speed in bytes a second; `None`: too early to tell.
    pub(super) fn speed(&self) -> Option<f64> {
        let time = self.started.elapsed();
        (time >= WARM).then(|| self.moved() as f64 / time.as_secs_f64())
    }
}

/// The input of a fetching thread.
pub(super) struct Source<'a> {
    pub(super) places: &'a Places,
    pub(super) encoding: &'a Encoding,
    pub(super) meter: &'a Gauge<'a>,
    /// Shard and place.
    pub(super) key: (u32, usize),
    pub(super) size: u64,
    /// Bytes that are wanted, from the start.
    pub(super) len: u64,
    /// Earlier failures.
    pub(super) tries: u32,
    /// Path until the file is whole, and the final path.
    pub(super) partial: PathBuf,
    pub(super) path: PathBuf,
}

/// How a transfer ended.
pub(super) struct Came {
    pub(super) done: Result<(), StoreError>,
    pub(super) time: Duration,
    /// Bytes that came in this transfer.
    pub(super) moved: u64,
    /// Bytes that are here if the file is not whole.
    pub(super) bytes: u64,
    /// The file came whole, was looked at, and is not the shard.
    pub(super) is_damaged: bool,
}

/// Fetches a shard file. Bytes that came before are not fetched again.
pub(super) fn transfer(source: &Source<'_>, active: &Active) -> Came {
    let call = source.places.call(&active.cancel);
    let is_on = source.tries == 0 || call.pause_before(source.tries);
    let started = Instant::now();
    let done = if is_on { fetch(source, active) } else { Err(StoreError::Cancelled) };
    let done = done.and_then(|()| fs::rename(&source.partial, &source.path).map_err(|e| sink_failed(&e)));
    Came { done, time: started.elapsed(), moved: active.moved(), bytes: active.bytes(), is_damaged: false }
}

fn sink_failed(error: &std::io::Error) -> StoreError {
    StoreError::Sink(error.to_string())
}

fn fetch(source: &Source<'_>, active: &Active) -> Result<(), StoreError> {
    let Source { places, encoding, meter, partial, .. } = source;
    let call = places.call(&active.cancel);
    let (key, store) = (keys::shard(&encoding.root, source.key.0), &places.get(source.key.1).store);
    let mut len = source.len;
    // A list may be out of date.
    if !encoding.has_len(source.size) {
        len = len.min(store.head(&key, &call)?.size);
    }
    // Two places may give the same shard in turn, so the file gets its name only when whole.
    let mut open = File::options();
    let open = open.write(true).create(true).truncate(active.from == 0);
    let file = private(open).open(partial).map_err(|e| sink_failed(&e))?;
    let (mut at, mut left) = (active.from.min(len), places.options.retries);
    loop {
        let before = at;
        let mut sink = |part: &[u8]| {
            write_all_at(&file, part, at)?;
            at += part.len() as u64;
            active.bytes.store(at, Ordering::Relaxed);
            meter.add(part.len() as u64);
            Ok(())
        };
        let done = store.get(&key, before..len, &mut sink, &call);
        match done {
            Err(error) if error.is_worth_retrying() && at > before => {
                if at == len {
                    return Ok(());
                }
                // Silence took the whole timeout. Other objects are tried before this one is asked for again.
                if left == 0 || matches!(error, StoreError::Silent(_)) {
                    return Err(error);
                }
                left -= 1;
            }
            done => return done,
        }
    }
}
