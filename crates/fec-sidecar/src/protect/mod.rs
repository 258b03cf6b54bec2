//! Protects files: one pass reads them, hashes them and computes their recovery shards.
//!
//! Rows of several sets go through the kernel and the hash while they are in a cache.

pub(crate) mod attempts;
pub(crate) mod coding;
pub(crate) mod content;
mod excluded;
mod found;
mod job;
pub(crate) mod outputs;
mod policy;
pub(crate) mod sha256;

use crate::catalog::bits::Bits;
use crate::catalog::folder::Made;
use crate::catalog::hashing::room_for_stack;
use crate::catalog::journal;
use crate::catalog::metadata;
use crate::catalog::plan;
use crate::catalog::positions::{self, Positions};
use crate::catalog::seen::Seen;
use crate::catalog::wide;
use crate::error::SidecarError;
use crate::examine::margin;
use crate::kind;
use crate::protect::attempts::Attempts;
use crate::protect::coding::{Coded, Coding, give_digests};
use crate::protect::content::Contents;
pub use crate::protect::excluded::Excluded;
pub(crate) use crate::protect::found::Found;
pub use crate::protect::job::{Protect, Protected, Prune};
use crate::protect::outputs::NewSidecar;
pub use crate::protect::policy::{PRESETS, preset, preset_of, recognised, rules_of, text_of};
use crate::protect::sha256::{add_sha256, make_room_for_sha256};
use crate::redundancy::Redundancy;
use fec_base::context::Context;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_base::io::output::{Policy, check_absent, check_folder, check_room};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::program::stages::{self, Stage};
use fec_core::digest::Digest;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::group::GroupCode;
use fec_core::format::sidecar::piece::Layout;
use fec_core::format::sidecar::stat::Stat;
use fec_core::format::sidecar::{Entry, EntryKind};
use fecfile::seal::SealError;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

/// Protects files by a new sidecar, which appears when it is whole. The files are only read.
///
/// Memory: the buffers of sets, as the settings allow; 48 bytes for each block of the files, and about 200 for each
/// file.
///
/// # Errors
/// [`SidecarError`]; [`SealError::StaysSealed`]; those of the system. A file that cannot be read, or changes each time,
/// is part of the result, unless no file can be read.
pub fn protect(job: &Protect<'_>, context: &Context<'_>) -> Result<Protected> {
    let _made = Made::of(job.output).map_err(|e| Error::io(Action::Create, job.output, e))?;
    check_folder(job.output)?;
    check_absent(job.output, job.policy).map_err(|e| Error { action: Action::Protect, ..e })?;
    let is_there = job.output.exists();
    if is_there && !kind::starts(job.output)? {
        if !kind::is_sealed(job.output)? {
            return Err(Error::at(Action::Replace, job.output, SidecarError::NotASidecar));
        }
        // An unsealed sidecar would reveal names and digests that somebody wanted to hide.
        if job.sealing.is_none() {
            return Err(Error::at(Action::Replace, job.output, SealError::StaysSealed));
        }
    }
    let _lock = if is_there { Some(metadata::lock_file(job.output, Action::Protect)?) } else { None };
    journal::check_none(job.output, Action::Protect)?;
    remove_stale(parent(job.output), context.progress);
    Attempts::run(false, |attempts| {
        let found = Found::of(job, attempts, None)?;
        if is_there && found.tree.entries.iter().all(|entry| entry.kind == EntryKind::Folder) {
            return Err(Error::at(Action::Replace, job.output, SidecarError::NoFiles));
        }
        anew(job, found, job.redundancy.unwrap_or(Redundancy::DEFAULT), job.sha256, &|_| Ok(()), context)
    })
}

/// A value that is another one whenever a file of `job` has changed, has come or has gone. Nothing is read, and a
/// policy that only the sidecar has does not count.
///
/// # Errors
/// Those of the folders.
pub fn look(job: &Protect<'_>) -> Result<u64> {
    let found = Found::of(job, &Attempts::default(), None)?;
    let mut hasher = DefaultHasher::new();
    for (nth, entry) in found.tree.entries.iter().enumerate() {
        (&entry.path, found.tree.seen.fingerprints[nth]).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Makes a sidecar anew. `check` sees all digests of files before the sidecar appears.
pub(crate) fn anew(
    job: &Protect<'_>,
    mut found: Found,
    redundancy: Redundancy,
    sha256: bool,
    check: &dyn Fn(&Catalog) -> Result<()>,
    context: &Context<'_>,
) -> Result<Protected> {
    let refused = |e| Error::new(Action::Protect, ErrorKind::Format(e));
    let mut entries = std::mem::take(&mut found.tree.entries);
    if sha256 {
        // Room for SHA-256 comes first, so that all places are known before any digest is.
        make_room_for_sha256(&mut entries, |_| true);
    }
    let block = block_of(&entries);
    let seen = &found.tree.seen;
    let all: Vec<usize> = (0..entries.len()).collect();
    let contents = Contents { base: &found.base, entries: &entries, seen, block: block.into(), context };
    let mut content = contents.find(&all, &HashMap::new())?;
    content.apart = found.apart(&entries, block, job.appends);
    let own = entries.iter().enumerate().filter(|(nth, _)| job.appends && !content.twins.contains_key(nth));
    found.stacks = own.filter_map(|(nth, entry)| room_for_stack(nth, entry, block)).collect();
    let mut stats = found.stats();
    let stats_len = stats.to_bytes().len() as u64;
    let (mut catalog, geometry) =
        plan::plan(entries, redundancy, stats_len, (block, &content)).map_err(refused)?;
    let extent = catalog.extents[0];
    let sidecar_len = extent.len(catalog.block.into()).unwrap_or(u64::MAX);
    check_room(job.output, sidecar_len)?;
    check_memory(&catalog, context)?;
    // Recovery shards reveal the content of files to somebody who has the others, so the sidecar is no more readable
    // than they are.
    let policy = readers(job, &found.base, &catalog, &stats.entries);
    let out = NewSidecar::new(job.output, policy, job.sealing)?;
    let zeros = content.zeros.values().flatten().map(|zeros| (zeros.end - zeros.start) * u64::from(block));
    let data_len = Positions::of(&catalog).len(0..catalog.positions());
    let meter = context.meter(Action::Protect, Some(data_len + zeros.sum::<u64>()));
    let coded = {
        let put = |at: u64, bytes: &[u8]| out.put(at, bytes);
        Coding::new(&found.base, &catalog, seen, &put, context, &meter).run()?
    };
    let Coded { values, digests, tails, mut anchors } = coded;
    anchors.sort_unstable();
    let anchors = positions::anchors(&catalog, &anchors);
    let (all, stacks) = (&|_| true, &mut stats.stacks);
    let value_of = |position: u64| values[position as usize];
    give_digests(&mut catalog, &content.twins, &value_of, &tails, (all, &meter), stacks)?;
    if sha256 {
        add_sha256(&mut catalog, &found.base, seen, &|_| true, context)?;
    }
    seen.check(&found.base).or_else(|_| check_unchanged(&found.base, &catalog, seen))?;
    check(&catalog)?;
    check_unchanged(&found.base, &catalog, seen)?;
    meter.finish();
    let before = ([0; 32], 1);
    let (metadata, layout, root) = metadata_bytes(&catalog, (&digests, &anchors), &stats.to_bytes(), before);
    let stage = stages::enter(Stage::Write, metadata.len() as u64);
    let put = |at: u64, piece: &[u8]| out.put(at, piece);
    let of = metadata::write(metadata, geometry, layout, &extent, &context.settings, put)?;
    drop(stage);
    let sealed = out.finish(sidecar_len, job.output, policy, context)?;
    let nothing = Bits::new(catalog.positions());
    let margin = margin(&catalog, &Positions::of(&catalog), (&nothing, None), &|_| (0, 0));
    Ok(found.report(&catalog, (root, Some(of.root)), margin.spare).sealed(sealed))
}

/// The policy of a sidecar that nobody can read who cannot read all of its files.
pub(crate) fn readers(job: &Protect<'_>, base: &Base, catalog: &Catalog, stats: &[Stat]) -> Policy {
    let entries = catalog.entries.iter().zip(stats).map(|(entry, stat)| {
        let is_file = matches!(entry.kind, EntryKind::File(_));
        (&*entry.path, is_file.then_some(stat.mode.into()))
    });
    job.policy.made_of_tree(base, entries, job.output)
}

/// Fails when a set does not fit into the allowed memory.
pub(crate) fn check_memory(catalog: &Catalog, context: &Context<'_>) -> Result<()> {
    let group = catalog.groups[catalog.groups.len() - 1];
    let block = u64::from(catalog.block);
    let need = match group.code {
        GroupCode::Small(code) => code.n() as u64 * block,
        GroupCode::Wide(code) => wide::memory(code, block),
    };
    let most = context.settings.max_memory;
    if need > most {
        return Err(Error::new(Action::Protect, ErrorKind::SetMemory { need, most }));
    }
    Ok(())
}

/// The metadata, with its predecessor's E and its own generation; its layout; and the root.
pub(crate) fn metadata_bytes(
    catalog: &Catalog,
    (digests, anchors): (&[ShortDigest], &[u64]),
    stats: &[u8],
    (before, generation): (Digest, u64),
) -> (Vec<u8>, Layout, Digest) {
    let mut bytes = catalog.head_bytes();
    bytes.extend_from_slice(digests.as_flattened());
    anchors.iter().for_each(|anchor| bytes.extend_from_slice(&anchor.to_le_bytes()));
    let root = Catalog::root(&bytes);
    let extent = catalog.extents[catalog.extents.len() - 1];
    let layout = Layout {
        before,
        generation,
        start: extent.start,
        blocks: extent.blocks,
        catalog_len: bytes.len() as u64,
        block: catalog.block,
    };
    bytes.extend_from_slice(stats);
    (bytes, layout, root)
}

/// Fails when an entry has changed since it was found.
pub(crate) fn check_unchanged(base: &Base, catalog: &Catalog, seen: &Seen) -> Result<()> {
    for (nth, entry) in catalog.entries.iter().enumerate() {
        // Only files were read. The times of folders change with their content.
        if !matches!(entry.kind, EntryKind::File(_)) || !seen.has(nth) || seen.is_settled(nth) {
            continue;
        }
        let changed = match std::fs::symlink_metadata(base.place(&entry.path)) {
            Ok(now) if seen.is_as_found(nth, &now) => continue,
            Ok(_) => io::ErrorKind::UnexpectedEof.into(),
            Err(e) => e,
        };
        seen.pass(base, &entry.path, changed)?;
    }
    seen.check(base)
}

/// The block for these files.
fn block_of(entries: &[Entry]) -> u32 {
    let len = entries.iter().map(|entry| match &entry.kind {
        EntryKind::File(file) => file.size,
        _ => 0,
    });
    plan::block_len(len.sum())
}
