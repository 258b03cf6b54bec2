//! Shards in memory: a payload to shards, and back.

use crate::border::{Bytes, Done, Failure, Hash, Status};
use crate::border::{from_c, given, guarded, into_c, must_take, set, slice};
use crate::{context, input, root_at};
use fec_base::context::Context;
use fec_base::error::{Action, Error, Place};
use fec_base::io::Store;
use fec_base::io::memory::{MemoryObject, MemoryStore};
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::executor::{into_value, lock};
use fecfile::error::EncodingError;
use fecfile::payload::{Grouping, Options as EncodeOptions};
use fecfile::{Archive, Destination, Wish, encode};
use std::ffi::{CString, OsString, c_char};
use std::io;
use std::sync::Mutex;

/// The name that shards record if none is given.
const NO_NAME: &[u8] = b"payload";

/// How a payload is encoded. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Original shards, 1 to 256; any k shards restore the payload. 0 with an `m` of 0: 33, and 67 for `m`.
    pub k: u32,
    /// Recovery shards; k + m is at most 256.
    pub m: u32,
    /// A `fec_hash`.
    pub hash: u32,
    /// Threads that work at the same time. 0: one for each core. 1: callbacks are called by the calling thread.
    pub threads: u32,
    /// About as many bytes of payload are a set, which is coded as a whole. 0: what suits k and m, 4 MiB at most.
    pub set_size: u64,
    /// Sets of a group of a container, which is held in memory. 0: as many as take 48 MiB.
    pub group_sets: u32,
    /// The file name of the payload, without folders, which shards record and the root binds. Empty: "payload".
    /// Containers record none.
    pub name: Bytes,
}

impl Options {
    pub(crate) const DEFAULT: Options = Options {
        k: 0,
        m: 0,
        hash: Hash::Blake3 as u32,
        threads: 0,
        set_size: 0,
        group_sets: 0,
        name: Bytes { data: std::ptr::null(), len: 0 },
    };

    pub(crate) fn of_library(&self) -> Result<EncodeOptions, Failure> {
        let mut options = match (self.k, self.m) {
            (0, 0) => EncodeOptions::default(),
            (k, m) => {
                let code = Code::new(k as usize, m as usize).map_err(|e| Failure::usage(e.to_string()))?;
                EncodeOptions::new(code)
            }
        };
        options.hash = match self.hash {
            hash if hash == Hash::Blake3 as u32 => HashKind::Blake3,
            hash if hash == Hash::Sha256 as u32 => HashKind::Sha256,
            other => return Err(Failure::usage(format!("there is no hash {other}"))),
        };
        options.set_size = (self.set_size > 0).then_some(self.set_size);
        if self.group_sets > 0 {
            options.grouping = Grouping::Sets(self.group_sets);
        }
        Ok(options)
    }
}

/// The shards of a payload. Given back with `fec_free_shards`.
pub struct Shards {
    shards: Vec<(CString, MemoryObject)>,
}

/// Encodes a payload to k + m shards in memory: the bytes of the shard files that `fec encode` writes. Shards below k
/// are parts of the payload.
///
/// `root` gets the 32 bytes of the root, and may be NULL. `options` may be NULL. FEC_STATUS_REFUSED: a limit of the
/// format, such as a set that is too small for k.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encode(
    payload: *const u8,
    payload_len: usize,
    options: *const Options,
    root: *mut u8,
    shards: *mut *mut Shards,
    why: *mut *mut c_char,
) -> Status {
    let work = || -> Done {
        must_take(shards, "shards")?;
        // SAFETY: the caller vouches for what it gives.
        let payload = unsafe { slice(payload, payload_len, "payload") }?;
        // SAFETY: the caller vouches for what it gives.
        let options = unsafe { given(options) }.unwrap_or(Options::DEFAULT);
        // SAFETY: the caller vouches for what it gives.
        let name = unsafe { slice(options.name.data, options.name.len, "name") }?;
        let name = if name.is_empty() { NO_NAME } else { name };
        let store = MemoryStore::new();
        let context = context(options.threads);
        let written = encode::to_store(&payload, name, &store, &options.of_library()?, &context)?;
        let made = Shards { shards: all_of(&store)? };
        // SAFETY: the caller vouches for what it waits for.
        unsafe { set(root.cast(), written.root) };
        // SAFETY: the caller vouches for what it waits for.
        unsafe { set(shards, Box::into_raw(Box::new(made))) };
        Ok(Status::Ok)
    };
    // SAFETY: the caller vouches for `why`.
    unsafe { guarded(why, work) }
}

/// The shards in a store, in the order of their numbers, which their names end with.
fn all_of(store: &MemoryStore) -> Result<Vec<(CString, MemoryObject)>, Failure> {
    let names = store.list().map_err(|e| Error::io(Action::ListStore, Place::Nowhere, e))?;
    let shard = |name: OsString| {
        // Names with control characters are refused before.
        Some((CString::new(name.as_encoded_bytes()).ok()?, store.get(&name)?))
    };
    Ok(names.into_iter().filter_map(shard).collect())
}

/// The number of shards: k + m; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_shards_count(shards: *const Shards) -> usize {
    // SAFETY: the caller vouches that it is NULL or of `fec_encode`.
    unsafe { shards.as_ref() }.map_or(0, |shards| shards.shards.len())
}

/// The bytes of shard `index`, which last until the shards are given back. NULL and 0 if there is no such shard.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_shards_get(shards: *const Shards, index: usize) -> Bytes {
    // SAFETY: the caller vouches that it is NULL or of `fec_encode`.
    let shards = unsafe { shards.as_ref() };
    match shards.and_then(|shards| shards.shards.get(index)) {
        Some((_, bytes)) => Bytes { data: bytes.as_ptr(), len: bytes.len() },
        None => Bytes { data: std::ptr::null(), len: 0 },
    }
}

/// The name that `fec encode` gives the file of shard `index`, such as "photo.jpg.007.shard", which lasts until the
/// shards are given back. NULL if there is no such shard.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_shards_name(shards: *const Shards, index: usize) -> *const c_char {
    // SAFETY: the caller vouches that it is NULL or of `fec_encode`.
    let shards = unsafe { shards.as_ref() };
    shards.and_then(|shards| shards.shards.get(index)).map_or(std::ptr::null(), |(name, _)| name.as_ptr())
}

/// Gives shards back. NULL may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_free_shards(shards: *mut Shards) {
    if !shards.is_null() {
        // SAFETY: the caller vouches that `fec_encode` made it, and that it was not given back.
        drop(unsafe { Box::from_raw(shards) });
    }
}

/// Restores a payload from any k of its shards, in any order, with foreign bytes and damaged shards among them; or from
/// a container, which is one input. With a `root` of 32 bytes only its payload comes out. If it is NULL, the inputs
/// must hold one encoding only.
///
/// `payload` gets the bytes, given back with `fec_free_bytes`, and `payload_len` their number. FEC_STATUS_LOST: too
/// little is left. FEC_STATUS_UNTRUE: it is of another root.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decode(
    inputs: *const Bytes,
    count: usize,
    root: *const u8,
    payload: *mut *mut u8,
    payload_len: *mut usize,
    why: *mut *mut c_char,
) -> Status {
    let work = || -> Done {
        must_take(payload, "payload")?;
        must_take(payload_len, "payload_len")?;
        // SAFETY: the caller vouches for what it gives, until this call ends.
        let (input, all) = unsafe { input(inputs, count) }?;
        // SAFETY: the caller vouches for what it gives.
        let root = unsafe { root_at(root) };
        let context = context(0);
        let archive = Archive::open(&input, root, &context)?;
        // A sealed payload is refused, since there are no keys.
        archive.opener(None)?;
        let (data, len) = into_c(restored(&archive, all, &context)?);
        // SAFETY: the caller vouches for what it waits for.
        unsafe { set(payload, data) };
        // SAFETY: the caller vouches for what it waits for.
        unsafe { set(payload_len, len) };
        Ok(Status::Ok)
    };
    // SAFETY: the caller vouches for `why`.
    unsafe { guarded(why, work) }
}

/// The payload of an archive that was found in `all` bytes.
fn restored(archive: &Archive, all: u64, context: &Context<'_>) -> Result<Vec<u8>, Failure> {
    // The k shards that a set is restored from have at least its bytes, so a longer payload is not here: it is an error
    // without memory for what some header claims.
    let Some(len) = archive.encoded().payload_len.filter(|len| *len <= all) else {
        let _ = archive.restore(Destination::writer(&mut io::sink()), Wish::default(), context)?;
        return Err(Failure::new(Status::Lost, "the payload is longer than what is here"));
    };
    let bytes = Mutex::new(vec![0; len as usize]);
    let put = |offset: u64, part: &[u8]| {
        lock(&bytes)[offset as usize..][..part.len()].copy_from_slice(part);
        Ok(())
    };
    let restored = archive.restore_by(&put, context)?;
    if !(restored.is_whole() && restored.written) {
        return Err(Error::new(Action::Decode, EncodingError::Lost(Box::new(restored))).into());
    }
    Ok(into_value(bytes))
}

/// Gives bytes of `fec_decode` back. NULL may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_free_bytes(bytes: *mut u8, len: usize) {
    // SAFETY: the caller vouches that `fec_decode` gave both, and that they were not given back.
    unsafe { from_c(bytes, len) };
}
