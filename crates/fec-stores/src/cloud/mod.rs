//! S3, Google, Azure and HTTPS by the crate `object_store`, which signs requests and reads lists. This module adds the
//! layers above and below it. Each call is a single attempt; it ends when it is cancelled, or when nothing comes or
//! goes for too long.
//!
//! Credentials come from the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY
//! and the services' other variables), for S3 also from the files of AWS, which are read anew when they change, and on
//! machines of these clouds from the service there. Without credentials requests go unsigned, which is enough to read
//! public buckets. HTTPS_PROXY and NO_PROXY set proxies.
//!
//! A call works on its caller's thread, which must not belong to a tokio runtime.

mod check;
mod connect;
mod listing;
mod profile;
mod renewed;
mod transport;
mod watch;

use super::call::{Call, CallOptions};
use super::error::StoreError;
use super::object::{Each, ObjectInfo, ObjectStore, Put, Removed, Sink, Wanted};
use super::target::Target;
use bytes::Bytes;
use connect::Service;
use fec_base::io::ReadAt;
use fec_base::program::guarded::catch;
use fec_base::program::interrupt::Unfinished;
use fec_core::executor::lock;
use futures_util::StreamExt;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use watch::{PIECE, Watch};

/// Objects up to this many bytes go in a single request.
const WHOLE: u64 = PART;
/// Bytes of a part of a larger object, unless the parts would be too many.
const PART: u64 = 6 << 20;
/// Most parts that services take.
const MAX_PARTS: u64 = 10_000;
/// Most wanted objects of a list.
const MAX_OBJECTS: usize = 10_000;
/// A wait of this length or more is due to the rate limit.
const HELD: Duration = Duration::from_millis(1);
/// Time for the service to drop an unfinished upload.
const ABORT: Duration = Duration::from_secs(5);

/// Opens a place; nothing is sent to it yet.
pub(super) fn open(target: &Target, _options: &CallOptions) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let opened = catch(|| connect::connect(target));
    let service = opened.unwrap_or_else(|| {
        Err(StoreError::Denied("it cannot be opened with what the environment says".into()))
    })?;
    let prefix = match &service.parts {
        Some(_) => target.bucket_and_prefix().1,
        None => "",
    };
    Ok(Arc::new(CloudStore {
        name: target.url.clone(),
        prefix: prefix.to_owned(),
        service,
        no_conditions: AtomicBool::new(false),
    }))
}

/// A prefix in a bucket, or a folder of a server.
struct CloudStore {
    name: String,
    /// Prefix of all keys, without a trailing slash.
    prefix: String,
    service: Service,
    /// The service has said that it knows no conditional puts.
    no_conditions: AtomicBool,
}

impl CloudStore {
    fn path(&self, key: &str) -> Result<Path, StoreError> {
        if !listing::is_plain(key) {
            return Err(StoreError::Failed(format!("{key:?} cannot be a key here")));
        }
        let path = match self.prefix.as_str() {
            "" => Path::parse(key),
            prefix => Path::parse(format!("{prefix}/{key}")),
        };
        path.map_err(|_| StoreError::Failed(format!("{key:?} cannot be a key here")))
    }

    /// Sends a request, or a few that belong together.
    fn ask<T>(
        &self,
        watch: &Arc<Watch>,
        call: &Call<'_>,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, StoreError> {
        watch.run(call, work)?.map_err(|error| self.explain(watch, &error))
    }

    fn explain(&self, watch: &Watch, error: &object_store::Error) -> StoreError {
        match watch.trouble() {
            Some(StoreError::Denied(text)) => StoreError::Denied(match self.service.unsigned {
                Some(hint) => format!("{text}; {hint}"),
                None => text,
            }),
            Some(trouble) => trouble,
            // With a status the answer was not understood; without one nothing was sent, for lack of credentials.
            None if watch.status() != 0 => StoreError::Failed(transport::root_of(error)),
            None => StoreError::Denied(transport::root_of(error)),
        }
    }

    fn head_at(&self, path: &Path, call: &Call<'_>) -> Result<ObjectMeta, StoreError> {
        let watch = Arc::default();
        self.ask(&watch, call, self.service.objects.head(path))
    }

    /// As [`head_at`](Self::head_at); if that is refused, asks for the first byte instead. The answer to a head has no
    /// room for a reason, and some services know no heads.
    fn head_or_get(&self, path: &Path, call: &Call<'_>) -> Result<ObjectMeta, StoreError> {
        let refused = match self.head_at(path, call) {
            Err(error @ (StoreError::Denied(_) | StoreError::Failed(_))) => error,
            other => return other,
        };
        let watch = Arc::new(Watch::of_range(0..1));
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        let first = async { self.service.objects.get_opts(path, options).await.map(|first| first.meta) };
        let is_told = |why: &StoreError| !matches!(why, StoreError::Failed(_)) || watch.status() >= 400;
        match self.ask(&watch, call, first) {
            Err(StoreError::Failed(_)) if watch.status() == 416 => {
                let last_modified = std::time::UNIX_EPOCH.into();
                Ok(ObjectMeta { location: path.clone(), last_modified, size: 0, e_tag: None, version: None })
            }
            Err(why) if is_told(&why) => Err(why),
            // The second answer is unusable, so the first one counts.
            Err(_) => Err(refused),
            found => found,
        }
    }

    /// Tells whether an object is there, as far as visible. Without the right to list, "denied" is the answer for
    /// missing objects.
    fn is_there(&self, path: &Path, call: &Call<'_>) -> Result<bool, StoreError> {
        match self.head_at(path, call) {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound | StoreError::Denied(_)) => Ok(false),
            // Only another request tells the reason.
            Err(StoreError::Failed(_)) => match self.head_or_get(path, call) {
                Err(StoreError::NotFound | StoreError::Denied(_)) => Ok(false),
                other => other.map(|_| true),
            },
            Err(error) => Err(error),
        }
    }

    fn put_whole(&self, path: &Path, body: &Bytes, call: &Call<'_>) -> Result<Put, StoreError> {
        let payload = payload_of(body);
        // Services like S3 may ignore conditions without an error.
        if self.service.is_like_s3 && self.is_there(path, call)? {
            return Ok(Put::Existed);
        }
        if !self.no_conditions.load(Ordering::Relaxed) {
            let watch = Arc::default();
            let options = PutOptions::from(PutMode::Create);
            let put = self.service.objects.put_opts(path, payload.clone(), options);
            match self.ask(&watch, call, put) {
                Ok(_) => return Ok(Put::Created),
                Err(StoreError::Failed(_)) if matches!(watch.status(), 304 | 412) => return Ok(Put::Existed),
                Err(StoreError::Failed(text)) if watch.status() == 409 => {
                    // The object is there, or another client is just putting or deleting it.
                    return match self.is_there(path, call)? {
                        true => Ok(Put::Existed),
                        false => Err(StoreError::Unavailable(text)),
                    };
                }
                Err(StoreError::Failed(_)) if watch.status() == 501 => {
                    self.no_conditions.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        if !self.service.is_like_s3 && self.is_there(path, call)? {
            return Ok(Put::Existed);
        }
        let watch = Arc::default();
        self.ask(&watch, call, self.service.objects.put_opts(path, payload, PutOptions::default()))?;
        Ok(Put::Created)
    }

    fn put_parts(
        &self,
        parts: &dyn MultipartStore,
        path: &Path,
        body: &dyn ReadAt,
        len: u64,
        call: &Call<'_>,
    ) -> Result<Put, StoreError> {
        if call.retry(|| self.is_there(path, call))? {
            return Ok(Put::Existed);
        }
        // The end of the process waits until the upload is dropped.
        let _unfinished = Unfinished::new();
        let upload = call.retry(|| self.ask(&Arc::default(), call, parts.create_multipart(path)))?;
        let done = self.send_parts(parts, path, &upload, body, len, call);
        // An unfinished upload is dropped, because the service would keep and charge for it. A finished one no longer
        // exists as an upload.
        if !matches!(done, Ok(Put::Created)) {
            let watch: Arc<Watch> = Arc::default();
            let dropped = watch.run_briefly(ABORT, parts.abort_multipart(path, &upload));
            tracing::debug!("dropped an unfinished upload: {}", matches!(dropped, Ok(Ok(()))));
        }
        done
    }

    fn send_parts(
        &self,
        parts: &dyn MultipartStore,
        path: &Path,
        upload: &String,
        body: &dyn ReadAt,
        len: u64,
        call: &Call<'_>,
    ) -> Result<Put, StoreError> {
        let size = part_size(len);
        let mut sent: Vec<PartId> = Vec::new();
        for at in (0..len).step_by(size as usize) {
            let bytes = read(body, at, size.min(len - at))?;
            let payload = payload_of(&bytes);
            let part = call.retry(|| {
                self.ask(&Arc::default(), call, parts.put_part(path, upload, sent.len(), payload.clone()))
            })?;
            sent.push(part);
        }
        let mut attempts = 0;
        let mut create = !self.no_conditions.load(Ordering::Relaxed);
        call.retry(|| {
            attempts += 1;
            loop {
                let watch = Arc::new(Watch::of_completion(create));
                match self.ask(&watch, call, parts.complete_multipart(path, upload, sent.clone())) {
                    Err(StoreError::Failed(_)) if watch.status() == 412 => return Ok(Put::Existed),
                    Err(StoreError::Failed(_)) if create && watch.status() == 501 => create = false,
                    // S3 may send status 200 first and report an error in the body.
                    Err(StoreError::Failed(text)) if matches!(watch.status(), 200 | 409) => {
                        return Err(StoreError::Unavailable(text));
                    }
                    // The attempt before may have succeeded and its answer been lost.
                    Err(StoreError::NotFound) if attempts > 1 => {
                        return match self.head_at(path, call)?.size == len {
                            true => Ok(Put::Created),
                            false => Err(StoreError::NotFound),
                        };
                    }
                    other => return other.map(|_| Put::Created),
                }
            }
        })
    }
}

impl ObjectStore for CloudStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn list_wanted(
        &self,
        prefix: &str,
        wanted: Wanted,
        call: &Call<'_>,
    ) -> Result<Vec<ObjectInfo>, StoreError> {
        let mut out = Vec::new();
        let mut each = |object| {
            if out.len() == MAX_OBJECTS {
                return Err(StoreError::Failed(format!(
                    "more than {MAX_OBJECTS} objects are below {prefix:?}"
                )));
            }
            out.push(object);
            Ok(())
        };
        self.walk(prefix, wanted, &mut each, call)?;
        Ok(out)
    }

    fn walk(
        &self,
        prefix: &str,
        wanted: Wanted,
        each: &mut Each<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError> {
        if self.service.parts.is_none() {
            return Err(StoreError::Unsupported("list what it has"));
        }
        let below = match prefix.trim_end_matches('/') {
            "" if self.prefix.is_empty() => None,
            "" => Some(self.path_of_prefix()?),
            prefix => Some(self.path(prefix)?),
        };
        let start = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        let watch = Arc::new(Watch::of_list(wanted));
        self.ask(&watch, call, async {
            let mut found = self.service.objects.list(below.as_ref());
            while let Some(object) = found.next().await {
                let object = object?;
                let key = object.location.as_ref().strip_prefix(start.as_str());
                let Some(key) = key.filter(|key| key.starts_with(prefix) && wanted(key)) else { continue };
                let info = ObjectInfo { key: key.to_owned(), size: object.size, etag: object.e_tag };
                if let Err(why) = each(info) {
                    watch.fail(why);
                    return Err(object_store::Error::Generic { store: "", source: "it is over".into() });
                }
            }
            Ok(())
        })
    }

    fn head(&self, key: &str, call: &Call<'_>) -> Result<ObjectInfo, StoreError> {
        let meta = self.head_or_get(&self.path(key)?, call)?;
        Ok(ObjectInfo { key: key.to_owned(), size: meta.size, etag: meta.e_tag })
    }

    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        sink: &mut Sink<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError> {
        let path = self.path(key)?;
        if range.is_empty() {
            return Ok(());
        }
        let watch = Arc::new(Watch::of_range(range.clone()));
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        watch.run(call, async {
            let found = self.service.objects.get_opts(&path, options).await;
            let found = found.map_err(|error| match self.explain(&watch, &error) {
                StoreError::Failed(text) if (200..300).contains(&watch.status()) => {
                    StoreError::WrongRange(text)
                }
                StoreError::Failed(_) if watch.status() == 416 => too_short(&range),
                error => error,
            })?;
            if found.range.end < range.end {
                return Err(too_short(&range));
            }
            // The answer is the object from its start, so bytes behind the range are no error.
            let is_whole = watch.is_whole.load(Ordering::Relaxed);
            let mut skip = if is_whole { range.start } else { 0 };
            let mut left = range.end - range.start;
            let mut chunks = found.into_stream();
            while let Some(chunk) = chunks.next().await {
                let mut chunk = chunk.map_err(|error| self.explain(&watch, &error))?;
                let came = Instant::now();
                call.bytes(chunk.len() as u64)?;
                // A wait for the rate limit here does not make the service slow.
                if came.elapsed() >= HELD {
                    watch.progress();
                }
                let skipped = skip.min(chunk.len() as u64);
                skip -= skipped;
                chunk = chunk.slice(skipped as usize..);
                let taken = left.min(chunk.len() as u64);
                if taken < chunk.len() as u64 && !is_whole {
                    return Err(StoreError::WrongRange("more bytes".into()));
                }
                if taken > 0 {
                    sink(&chunk[..taken as usize]).map_err(|e| StoreError::Sink(e.to_string()))?;
                }
                left -= taken;
                if left == 0 && is_whole {
                    break;
                }
                if call.cancel.is_cancelled() {
                    return Err(StoreError::Cancelled);
                }
            }
            if left == 0 { Ok(()) } else { Err(StoreError::WrongRange(format!("{left} bytes fewer"))) }
        })?
    }

    fn put(&self, key: &str, body: &dyn ReadAt, len: u64, call: &Call<'_>) -> Result<Put, StoreError> {
        let Some(parts) = &self.service.parts else { return Err(StoreError::Unsupported("be written to")) };
        let path = self.path(key)?;
        if len > WHOLE {
            return self.put_parts(parts.as_ref(), &path, body, len, call);
        }
        self.put_whole(&path, &read(body, 0, len)?, call)
    }

    fn delete(&self, key: &str, call: &Call<'_>) -> Result<(), StoreError> {
        self.remove(key, call).map(drop)
    }

    fn remove(&self, key: &str, call: &Call<'_>) -> Result<Removed, StoreError> {
        if self.service.parts.is_none() {
            return Err(StoreError::Unsupported("be written to"));
        }
        let path = self.path(key)?;
        let watch: Arc<Watch> = Arc::default();
        match self.ask(&watch, call, self.service.objects.delete(&path)) {
            Ok(()) if watch.is_hidden.load(Ordering::Relaxed) => Ok(Removed::Hidden),
            Ok(()) | Err(StoreError::NotFound) => Ok(Removed::Gone),
            // Azure gets a batch of deletions, and its answer about a single one is lost on the way.
            Err(StoreError::Failed(text)) => match self.head_at(&path, call) {
                Err(StoreError::NotFound) => Ok(Removed::Gone),
                _ => Err(StoreError::Failed(text)),
            },
            Err(error) => Err(error),
        }
    }
}

impl CloudStore {
    fn path_of_prefix(&self) -> Result<Path, StoreError> {
        Path::parse(&self.prefix).map_err(|_| StoreError::Failed("its prefix cannot be a key".into()))
    }
}

fn too_short(range: &Range<u64>) -> StoreError {
    StoreError::Short(range.end)
}

fn part_size(len: u64) -> u64 {
    PART.max(len.div_ceil(MAX_PARTS).next_multiple_of(1 << 20))
}

/// Unused buffers of parts. Freed by ever new threads, they would add up in the allocator.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
/// Most buffers kept.
const MOST_SPARE: usize = 32;

/// A part whose buffer is reused.
struct Part(Vec<u8>);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        let mut spare = lock(&SPARE);
        if spare.len() < MOST_SPARE && buffer.capacity() as u64 <= PART {
            spare.push(buffer);
        }
    }
}

fn read(body: &dyn ReadAt, at: u64, len: u64) -> Result<Bytes, StoreError> {
    let spare = lock(&SPARE).pop();
    let mut part = Part(spare.unwrap_or_else(|| Vec::with_capacity(len.max(PART) as usize)));
    part.0.resize(len as usize, 0);
    body.read_exact_at(at, &mut part.0).map_err(|e| StoreError::Sink(e.to_string()))?;
    Ok(Bytes::from_owner(part))
}

/// Splits a body into pieces, so that progress of each is seen.
fn payload_of(bytes: &Bytes) -> PutPayload {
    (0..bytes.len()).step_by(PIECE).map(|at| bytes.slice(at..bytes.len().min(at + PIECE))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_too_many_parts() {
        assert_eq!(part_size(17 << 20), PART);
        for len in [80_000_u64 << 20, 80_001 << 20, 5 << 40] {
            assert!(len.div_ceil(part_size(len)) <= MAX_PARTS);
        }
    }
}
