//! Rewrites a damaged container, bit for bit.

use super::census::Census;
use super::census::chains::{Chain, Links};
use super::copies::Copies;
use super::placed::{self, GroupPlace};
use crate::error::{Action, EncodingError, Error, Result};
use crate::forms::encode_job::SpareRooms;
use crate::forms::repair::{DecodedSets, NewFile, NewFiles, RepairJob};
use fec_base::io::{NewObjects, ReadAt};
use fec_core::format::annex;
use fec_core::format::container::{GroupId, MetaFrame};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rewrites the container of a chain that was found in `object`, which is at `place`. Returns its path.
///
/// # Errors
/// When the meta is lost, and those of the files.
pub(super) fn repair(
    (census, links): (&Census, &Links),
    chain: &Chain,
    (place, object): (&Path, &Arc<dyn ReadAt>),
    job: &RepairJob<'_>,
) -> Result<Vec<PathBuf>> {
    let path = job.out.unwrap_or(place).to_path_buf();
    let meta = census
        .meta(chain, links)
        .ok_or_else(|| Error::new(Action::Repair, EncodingError::MetaLost))?
        .to_bytes();
    let groups = census.groups(chain, links);
    let shape = *groups.largest();
    let geometry = chain.geometry.expect("a chain that can be restored has an end");
    let replaces = job.out.is_none() || job.policy.force;
    let examined = job.out.is_none().then(|| object.clone());
    let files = [NewFile { path, replaces, examined, old: Some(object.clone()) }];
    job.check(&files, shape.set_bytes())?;
    if job.dry_run {
        let [file] = files;
        return Ok(vec![file.path]);
    }
    let mut out = Box::new(NewFiles::create(&files, job)?);
    let encoded = census.encoded(chain, links, Some(object.as_ref()));
    let meter = job.context.meter(Action::Repair, Some(geometry.payload_len()));
    let front = if meta.is_empty() { Vec::new() } else { MetaFrame::to_bytes(&shape, &meta) };
    let mut before = shape.hash.digest(&meta);
    let mut at = front.len() as u64;
    // A container that was written without copies gets none, to be the same bit for bit.
    let mut copies = census.copies(chain, links);
    let mut trees = Vec::new();
    let spare = SpareRooms::default();
    for group in groups.iter() {
        let records = encoded.records.as_ref();
        let source = DecodedSets { records, group, decode: job.decode };
        let id = GroupId { geometry: group.geometry, root: [0; 32], before };
        let place = GroupPlace { start: at, copies: std::mem::replace(&mut copies, Copies::NONE) };
        let (id, tree) =
            placed::group((&source, &spare), id, out.as_ref(), place, &meter, &job.of_encoder())?;
        place.put_copies(&id, &front, out.as_ref())?;
        before = id.root;
        at = place.end(&id);
        trees.push(tree);
    }
    meter.finish();
    job.check_root(before, chain.root.unwrap_or_default())?;
    let len = placed::ends(geometry, trees, (&meta, &front), out.as_ref(), at)?;
    // If the end of a container is lost, its last bytes are copies of the meta, which stand between the records.
    out.keep_annexes(&files, (len, &[annex::META_COPY]), &census.signatures.list)?;
    out.commit()?;
    let [file] = files;
    Ok(vec![file.path])
}
