//! Rewrites damaged and missing shard files, bit for bit.

use super::gather::ShardSet;
use super::writer::{NO_NAME, NewShards, file_name};
use crate::error::{Action, EncodingError, Error, ErrorKind, Result};
use crate::forms::encode_job::SpareRooms;
use crate::forms::repair::{DecodedSets, NewFile, NewFiles, RepairJob};
use crate::report::{Examination, ShardReport, ShardState};
use fec_base::io::folder::open_file;
use fec_base::io::system::create_folders;
use fec_base::io::{NewObjects, ReadAt};
use fec_base::names::{is_plain, show};
use fec_core::format::annex;
use fec_core::format::outline::Outlines;
use fec_core::format::shard_file::{HEADER_LEN, ShardHeader};
use fec_keys::sign::Signatures;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rewrites the damaged and missing files of `set`, with the remaining signatures; `others` are the files of other
/// roots. Returns the paths of the new files.
///
/// # Errors
/// When the name or every copy of the meta is lost, when a file also belongs to another root, and those of the files.
pub(super) fn repair(
    set: &ShardSet,
    others: [&[ShardSet]; 2],
    (found, signatures): (&Examination, &Signatures),
    job: &RepairJob<'_>,
) -> Result<Vec<PathBuf>> {
    let geometry = set.encoding.geometry;
    let mut indices = Vec::new();
    let mut files = Vec::new();
    for shard in found.shards.iter().filter(|shard| shard.state != ShardState::Intact) {
        for file in new_files(set, others, shard, job)? {
            indices.push(shard.index as usize);
            files.push(file);
        }
    }
    // A file without read permission may be intact.
    let denied = files.iter().filter(|file| file.old.is_none() && is_denied(&file.path));
    let denied: Vec<PathBuf> = denied.map(|file| file.path.clone()).collect();
    if !denied.is_empty() {
        return Err(Error::new(Action::Repair, ErrorKind::NotAllowed(denied)));
    }
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    if files.is_empty() {
        return Ok(paths);
    }
    let meta =
        set.meta.as_ref().ok_or_else(|| Error::new(Action::Repair, EncodingError::MetaLost))?.to_bytes();
    job.check(&files, geometry.shape().set_bytes())?;
    if job.dry_run {
        return Ok(paths);
    }
    if let Some(folder) = job.out {
        let made = create_folders(folder, job.policy.of_folder());
        made.map_err(|e| Error::io(Action::Create, folder, e))?;
    }
    let mut out = Box::new(NewFiles::create(&files, job)?);
    let encoded = set.encoded();
    let meter = job.context.meter(Action::Repair, Some(geometry.payload_len()));
    let source =
        DecodedSets { records: encoded.records.as_ref(), group: encoded.groups.get(0), decode: job.decode };
    let mut members = set.members.iter().flatten();
    let outlines = Outlines::new(geometry.shape()).filter(|_| members.any(|member| member.file.has_outlines));
    let shards = NewShards { out: out.as_ref(), indices: &indices, outlines };
    let encoding =
        shards.write((&source, &SpareRooms::default()), &geometry, &meta, &meter, &job.of_encoder())?;
    meter.finish();
    job.check_root(encoding.root, set.encoding.root)?;
    let (len, written): (u64, &[u32]) = match outlines {
        Some(_) => (set.encoding.outlined_len(), &[annex::OUTLINES]),
        None => (set.encoding.layout().file_len, &[]),
    };
    out.keep_annexes(&files, (len, written), signatures)?;
    out.commit()?;
    Ok(paths)
}

/// Tells whether a file is there that may not be read.
fn is_denied(path: &Path) -> bool {
    open_file(path).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
}

/// Tells whether a header at either end of a file says that it was this shard, although too little is left to count as
/// one.
fn is_rest_of(file: &dyn ReadAt, set: &ShardSet, index: u32) -> bool {
    let tail = file.size().unwrap_or(0).saturating_sub(HEADER_LEN as u64);
    let header = ShardHeader { index, encoding: set.encoding }.to_bytes();
    [0, tail].into_iter().any(|at| {
        let mut bytes = [0; HEADER_LEN];
        file.read_exact_at(at, &mut bytes).is_ok() && bytes == header
    })
}

/// Tells whether a file is empty or contains only zeros, as after a crash: nothing is lost with it. A crash leaves no
/// more than the `most` bytes of a shard file, and a hole of any length costs its maker nothing.
fn holds_nothing(file: &dyn ReadAt, most: u64) -> bool {
    const PIECE: usize = 64 << 10;
    if file.size().map_or(true, |len| len > most) {
        return false;
    }
    let (mut at, mut piece) = (0, vec![0; PIECE]);
    loop {
        match file.read_at(at, &mut piece) {
            Ok(0) => return true,
            Ok(len) if piece[..len].iter().all(|byte| *byte == 0) => at += len as u64,
            _ => return false,
        }
    }
}

/// The new files for a shard: replacements of the damaged files that claim it, or a file for a missing shard.
fn new_files(
    set: &ShardSet,
    others: [&[ShardSet]; 2],
    shard: &ShardReport,
    job: &RepairJob<'_>,
) -> Result<Vec<NewFile>> {
    let in_folder = |folder: &Path, place: &Path| place.file_name().map(|name| folder.join(name));
    let members = &set.members[shard.index as usize];
    if members.is_empty() {
        let name = set
            .meta
            .as_ref()
            .ok_or_else(|| Error::new(Action::Repair, EncodingError::MetaLost))?
            .name
            .as_deref();
        let name = name.unwrap_or(NO_NAME);
        // A name from the payload's own file is safe.
        if job.payload.is_none() && !is_plain(name) {
            return Err(Error::new(Action::Repair, EncodingError::NameNotPlain));
        }
        let beside = set.members.iter().flatten().next().and_then(|member| member.file.place.parent());
        let folder = job.out.or(beside).unwrap_or(Path::new(""));
        let path = folder.join(file_name(name, shard.index as usize));
        let is_rest = |file: &Arc<dyn ReadAt>| {
            is_rest_of(file, set, shard.index)
                || job.out.is_none() && holds_nothing(file, set.encoding.outlined_len())
        };
        let examined = open_file(&path).ok().flatten().filter(is_rest);
        let replaces = job.policy.force || examined.is_some();
        return Ok(vec![NewFile { path, replaces, examined, old: None }]);
    }
    let is_damaged = |place: &Path| shard.damage.iter().any(|damage| damage.file == show(place));
    let mut files = Vec::new();
    for file in members.iter().map(|member| &member.file).filter(|file| is_damaged(&file.place)) {
        let mut claims =
            others.iter().flat_map(|sets| sets.iter()).flat_map(|set| set.members.iter().flatten());
        if job.out.is_none() && claims.any(|other| other.file.place == file.place) {
            return Err(Error::at(Action::Repair, file.place.as_path(), EncodingError::HoldsAnother));
        }
        let path = match job.out {
            Some(folder) => in_folder(folder, &file.place).unwrap_or_else(|| folder.join("shard")),
            None => file.place.clone(),
        };
        let replaces = job.out.is_none() || job.policy.force;
        let examined = job.out.is_none().then(|| file.bytes.clone());
        files.push(NewFile { path, replaces, examined, old: Some(file.bytes.clone()) });
    }
    Ok(files)
}
