//! Copies of protected files at the places of `--from`: a mirror for each.

use super::commands::{explain, targets};
use crate::line::Repair;
use crate::plan::stores::some;
use crate::say::failure::{Failure, Result as Outcome};
use crate::settings::Settings;
use fec_base::context::Cancel;
use fec_base::io::spool::Spool;
use fec_core::executor::lock;
use fec_sidecar::mirrors::{LocalMirror, MOST_MIRRORS, Mirror, NoAnswer};
use fec_stores::StoreError;
use fec_stores::call::CallOptions;
use fec_stores::places::Places;
use fec_stores::target::{Scheme, Target};
use percent_encoding::percent_decode_str;
use std::io;
use std::path::PathBuf;
use std::str;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The mirrors that `--from` names. Nothing is sent to them yet. `longest` is the length of the longest file that
/// is asked for.
pub(crate) fn mirrors(args: &Repair, longest: u64, settings: &Settings) -> Outcome<Vec<Box<dyn Mirror>>> {
    let targets = some(targets(&args.from.urls)?)?;
    if targets.len() > MOST_MIRRORS {
        let what = format!("{} copies are named, and {MOST_MIRRORS} are asked at most", targets.len());
        return Err(Failure::usage(format!("repair --from: {what}")));
    }
    if let Some(target) = targets.iter().find(|target| target.has_domain()) {
        let what = format!("repair --from: {}: domain= does nothing with copies of files", target.name());
        return Err(Failure::usage(what));
    }
    let open = |target: &Target| -> Outcome<Box<dyn Mirror>> {
        Ok(match &target.scheme {
            Scheme::Folder(path) => Box::new(LocalMirror::new(target.name(), path)),
            _ => Box::new(RemoteMirror::open(target, (args, longest), settings)?),
        })
    };
    targets.iter().map(open).collect()
}

/// A copy behind a network.
struct RemoteMirror {
    name: String,
    /// The last part of the address, as a name.
    last_part: String,
    /// The place at the address, and the one around it, in which the address may be that of an object.
    places: Places,
    /// Bytes that were asked for.
    asked: AtomicU64,
    /// The server knows no ranges, and each file is downloaded as a whole.
    is_whole: AtomicBool,
    /// The last whole download.
    whole: Mutex<Option<Whole>>,
    /// The folder for whole downloads, and the most bytes of one.
    spool: Option<PathBuf>,
    most: u64,
}

/// The number of the place at the address, and of the one around it.
const BELOW: usize = 0;
const AROUND: usize = 1;

/// An object that was downloaded as a whole.
struct Whole {
    place: usize,
    key: String,
    size: u64,
    spool: Spool,
}

impl RemoteMirror {
    fn open(target: &Target, (args, longest): (&Repair, u64), settings: &Settings) -> Outcome<RemoteMirror> {
        /// A file may have been longer when it was copied.
        const LONGER: u64 = 64 << 20;
        let limits = &args.network.limits;
        let options = CallOptions { timeout: limits.timeout, retries: limits.retries, rate: limits.limit };
        let (_, path) = target.bucket_and_prefix();
        let (mut all, mut last_part) = (vec![target.clone()], String::new());
        if let Some((around, last)) = target.url.rsplit_once('/').filter(|_| !path.is_empty()) {
            all.push(Target { url: around.to_owned(), ..target.clone() });
            // The URL of a website has escapes, and a key has none.
            last_part = match target.scheme == Scheme::Http {
                true => percent_decode_str(last).decode_utf8_lossy().into_owned(),
                false => last.to_owned(),
            };
        }
        Ok(RemoteMirror {
            name: target.name(),
            last_part,
            places: Places::open(&all, options, settings.library.sync).map_err(explain("repair"))?,
            asked: AtomicU64::new(0),
            is_whole: AtomicBool::new(false),
            whole: Mutex::new(None),
            spool: args.network.spool.clone(),
            most: longest.saturating_mul(2).saturating_add(LONGER),
        })
    }

    /// The place of the object at a key, and its key there.
    fn object<'k>(&'k self, key: &'k [u8]) -> Result<(usize, &'k str), NoAnswer> {
        match key {
            [] if self.places.len() > AROUND => Ok((AROUND, self.last_part.as_str())),
            [] => Err(NoAnswer::Absent),
            // Services have names in UTF-8 alone.
            key => str::from_utf8(key).map(|key| (BELOW, key)).map_err(|_| NoAnswer::Absent),
        }
    }

    /// Tells whether far more came than was asked for: a server that knows no ranges sends each file from its start.
    fn ignores_ranges(&self) -> bool {
        /// Bytes that may come beside those that were asked for.
        const BESIDE: u64 = 16 << 20;
        let asked = self.asked.load(Ordering::Relaxed);
        self.places.moved() > asked.saturating_mul(2).saturating_add(BESIDE)
    }

    /// Reads bytes of an object by a request for them alone.
    fn read_range(
        &self,
        (place, key): (usize, &str),
        offset: u64,
        out: &mut [u8],
        cancel: &Cancel,
    ) -> Result<(), StoreError> {
        let range = offset..offset + out.len() as u64;
        let mut filled = 0;
        self.places.look(place, cancel, |store, call| {
            filled = 0;
            self.asked.fetch_add(range.end - range.start, Ordering::Relaxed);
            let mut sink = |part: &[u8]| {
                let room = out.get_mut(filled..filled + part.len()).ok_or(io::ErrorKind::InvalidData)?;
                room.copy_from_slice(part);
                filled += part.len();
                Ok(())
            };
            store.get(key, range.clone(), &mut sink, call)
        })?;
        match filled == out.len() {
            true => Ok(()),
            false => Err(StoreError::Failed("its answer was cut short".to_owned())),
        }
    }

    /// Reads bytes of an object from a download of all of it, which is kept for the next calls.
    fn read_whole(
        &self,
        (place, key): (usize, &str),
        offset: u64,
        out: &mut [u8],
        cancel: &Cancel,
    ) -> Result<(), StoreError> {
        let mut whole = lock(&self.whole);
        if whole.as_ref().is_none_or(|whole| (whole.place, whole.key.as_str()) != (place, key)) {
            *whole = None;
            *whole = Some(self.download((place, key), cancel)?);
        }
        let whole = whole.as_ref().expect("it was just downloaded");
        let end = offset + out.len() as u64;
        if end > whole.size {
            return Err(StoreError::Short(end));
        }
        whole.spool.get(offset, out).map_err(|e| StoreError::Sink(e.to_string()))
    }

    fn download(&self, (place, key): (usize, &str), cancel: &Cancel) -> Result<Whole, StoreError> {
        let size = self.places.look(place, cancel, |store, call| store.head(key, call))?.size;
        if size > self.most {
            let why = format!("it sends whole files in place of parts, and {size} bytes are too many");
            return Err(StoreError::Failed(why));
        }
        let spool = Spool::within(self.spool.as_deref()).map_err(|e| StoreError::Sink(e.to_string()))?;
        self.places.look(place, cancel, |store, call| {
            let mut at = 0;
            let mut sink = |part: &[u8]| {
                spool.put(at, part).map_err(|e| io::Error::other(e.to_string()))?;
                at += part.len() as u64;
                Ok(())
            };
            if size > 0 { store.get(key, 0..size, &mut sink, call) } else { Ok(()) }
        })?;
        Ok(Whole { place, key: key.to_owned(), size, spool })
    }
}

impl Mirror for RemoteMirror {
    fn name(&self) -> &str {
        &self.name
    }

    fn last_part(&self) -> &[u8] {
        self.last_part.as_bytes()
    }

    fn len(&self, key: &[u8], cancel: &Cancel) -> Result<u64, NoAnswer> {
        let (place, key) = self.object(key)?;
        let found = self.places.look(place, cancel, |store, call| store.head(key, call));
        found.map(|found| found.size).map_err(no_answer)
    }

    fn read(&self, key: &[u8], offset: u64, out: &mut [u8], cancel: &Cancel) -> Result<(), NoAnswer> {
        let object = self.object(key)?;
        let is_whole = self.is_whole.load(Ordering::Relaxed) || self.ignores_ranges();
        self.is_whole.store(is_whole, Ordering::Relaxed);
        let done = match is_whole {
            true => self.read_whole(object, offset, out, cancel),
            false => self.read_range(object, offset, out, cancel),
        };
        done.map_err(no_answer)
    }
}

/// The error of a store, as one of a mirror.
fn no_answer(error: StoreError) -> NoAnswer {
    match error {
        StoreError::NotFound => NoAnswer::Absent,
        StoreError::Short(_) => NoAnswer::Short,
        StoreError::Cancelled => NoAnswer::Cancelled,
        StoreError::Denied(why) => NoAnswer::Denied(why),
        error => NoAnswer::Failed(error.to_string()),
    }
}
