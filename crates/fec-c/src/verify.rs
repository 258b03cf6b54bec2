//! Looks at shards and containers without restoring them.

use crate::border::{Bytes, Done, Failure, Status, guarded, must_take, set};
use crate::{context, input, root_at};
use fecfile::Archive;
use fecfile::report::{ShardState, Verified};
use std::ffi::c_char;

/// The description of a shard.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ShardInfo {
    /// Its number: below `k` it is a part of the payload.
    pub index: u32,
    /// Shards that restore the payload.
    pub k: u32,
    /// Recovery shards.
    pub m: u32,
    /// Bytes of the payload.
    pub payload_len: u64,
}

/// Checks every byte of a single shard against a root of 32 bytes, without any other shard. FEC_STATUS_OK: it is as it
/// was made. FEC_STATUS_UNTRUE: it is damaged, or of another root. FEC_STATUS_LOST: nothing of a shard is left in it.
///
/// `info` gets what it is, and may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_verify_shard(
    root: *const u8,
    shard: *const u8,
    shard_len: usize,
    info: *mut ShardInfo,
    why: *mut *mut c_char,
) -> Status {
    let work = || -> Done {
        must_take(root, "root")?;
        // SAFETY: the caller vouches for what it gives.
        let root = unsafe { root_at(root) };
        let bytes = Bytes { data: shard, len: shard_len };
        // SAFETY: `bytes` is a local, and the caller vouches for what it names until this call ends.
        let (input, _) = unsafe { input(&bytes, 1) }?;
        let context = context(0);
        let archive = Archive::open(&input, root, &context)?;
        if !archive.is_one_shard() {
            return Err(Failure::usage("it is a container, not a shard"));
        }
        let verified = archive.verify(false, &context)?;
        status_of(&verified)?;
        let code = verified.shape.code;
        let found = ShardInfo {
            index: verified.found.shards.first().map_or(0, |shard| shard.index),
            k: code.k() as u32,
            m: code.m() as u32,
            payload_len: verified.payload_len.unwrap_or(0),
        };
        // SAFETY: the caller vouches for what it waits for.
        unsafe { set(info, found) };
        Ok(Status::Ok)
    };
    // SAFETY: the caller vouches for `why`.
    unsafe { guarded(why, work) }
}

/// The findings about an encoding.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The root; zeros if it is not known, as that of a container that was cut.
    pub root: [u8; 32],
    /// Shards that restore the payload.
    pub k: u32,
    /// Recovery shards.
    pub m: u32,
    /// Shards that are intact, every byte of them.
    pub intact: u32,
    /// Shards of which a byte is missing or wrong.
    pub damaged: u32,
    /// Shards of which nothing is here.
    pub missing: u32,
    /// Further shards that may be lost, whichever they are; -1 if the payload cannot be restored.
    pub may_still_lose: i32,
    /// Bytes of the payload; UINT64_MAX if they are not known.
    pub payload_len: u64,
}

/// Checks every byte of inputs as `fec_decode` takes them. FEC_STATUS_OK: all shards are there and intact.
/// FEC_STATUS_DAMAGED: not all are, and the payload can be restored. FEC_STATUS_LOST: it cannot.
///
/// `report` gets what was found with these three, and may be NULL. A single shard is checked by `fec_verify_shard`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_verify(
    inputs: *const Bytes,
    count: usize,
    root: *const u8,
    report: *mut Report,
    why: *mut *mut c_char,
) -> Status {
    let work = || -> Done {
        // SAFETY: the caller vouches for what it gives, until this call ends.
        let (input, _) = unsafe { input(inputs, count) }?;
        // SAFETY: the caller vouches for what it gives.
        let root = unsafe { root_at(root) };
        let context = context(0);
        let mut archive = Archive::open(&input, root, &context)?;
        if archive.is_one_shard() {
            archive = Archive::open(&input.as_several(), root, &context)?;
        }
        let verified = archive.verify(false, &context)?;
        let of = |state| verified.found.shards.iter().filter(|shard| shard.state == state).count() as u32;
        let found = Report {
            root: verified.root.unwrap_or_default(),
            k: verified.shape.code.k() as u32,
            m: verified.shape.code.m() as u32,
            intact: of(ShardState::Intact),
            damaged: of(ShardState::Damaged),
            missing: of(ShardState::Missing),
            may_still_lose: verified.may_still_lose().map_or(-1, |may| may as i32),
            payload_len: verified.payload_len.unwrap_or(u64::MAX),
        };
        // SAFETY: the caller vouches for what it waits for.
        unsafe { set(report, found) };
        status_of(&verified)
    };
    // SAFETY: the caller vouches for `why`.
    unsafe { guarded(why, work) }
}

/// The status of what was found, as the exit code of `fec verify`.
fn status_of(verified: &Verified) -> Done {
    let status = match (verified.is_restorable, verified.is_intact()) {
        (None | Some(true), true) => return Ok(Status::Ok),
        (None, false) => Status::Untrue,
        (Some(true), false) => Status::Damaged,
        (Some(false), _) => return Err(Failure::new(verified.leftovers.class().into(), words_of(verified))),
    };
    Err(Failure::new(status, words_of(verified)))
}

fn words_of(verified: &Verified) -> String {
    let found = &verified.found;
    let of = |state| found.shards.iter().filter(|shard| shard.state == state).count();
    let mut words = format!(
        "{} of {} shards intact, {} damaged, {} missing",
        of(ShardState::Intact),
        found.shards.len(),
        of(ShardState::Damaged),
        of(ShardState::Missing)
    );
    let first = found.shards.iter().flat_map(|shard| &shard.damage).map(|damage| &damage.what).next();
    if let Some(what) = first.or(found.damage.first()) {
        words.push_str(&format!("; first: {what}"));
    }
    words
}
