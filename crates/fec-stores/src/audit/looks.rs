//! The looks of an audit at an object: which ranges they need, and what proves them.

use crate::error::StoreError;
use crate::keys;
use crate::places::Places;
use fec_core::format::outline::{LEAF, Outlines};
use fec_core::format::shard_file::Encoding;
use fec_core::set::shard_is_proved;
use std::ops::Range;

/// Looks that are fetched together: of one object.
const GROUP: usize = 32;
/// Most bytes of the leaves or records of a group, unless it is one.
pub(super) const GROUP_BYTES: u64 = 4 << 20;
/// Ranges that are no farther apart are one request: a request costs as much as so many bytes.
const NEAR: u64 = 4096;
/// The copy of the proofs that is read first: the second one stands near the outlines.
const COPY: usize = 1;

/// An object of the right length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) segment: u32,
    pub(super) index: u32,
    /// Bytes of its shards.
    pub(super) len: u64,
    has_outlines: bool,
}

/// A leaf, or a record of an object without outlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Its object, by its number among those of the place.
    pub(super) object: usize,
    pub(super) set: u32,
    /// Its bytes within the shard.
    pub(super) bytes: Range<u64>,
    /// Bytes in it that were drawn.
    pub(super) drawn: u64,
}

/// The looks at a group.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) wrong: Vec<Look>,
    pub(super) requests: u64,
    pub(super) fetched_bytes: u64,
    /// The place did not answer.
    pub(super) failed: Option<StoreError>,
}

impl Held {
    /// An object of this length; `None` if it is wrong.
    pub(super) fn new(encoding: &Encoding, (segment, index): (u32, u32), size: u64) -> Option<Held> {
        let has_outlines =
            Outlines::new(encoding.geometry.shape()).is_some() && size == encoding.outlined_len();
        let len = encoding.layout().body_len;
        encoding.has_len(size).then_some(Held { segment, index, len, has_outlines })
    }

    fn outlines(&self, encoding: &Encoding) -> Option<Outlines> {
        Outlines::new(encoding.geometry.shape()).filter(|_| self.has_outlines)
    }

    /// Most bytes of a leaf or record.
    pub(super) fn look_len(&self, encoding: &Encoding) -> u64 {
        let shard_len = encoding.layout().shard_len;
        if self.has_outlines { shard_len.min(LEAF as u64) } else { shard_len }
    }

    /// The leaf or record that holds a byte of its shards.
    fn look(&self, encoding: &Encoding, object: usize, byte: u64) -> Look {
        let shard_len = encoding.layout().shard_len;
        let (set, within) = ((byte / shard_len) as u32, byte % shard_len);
        let leaf = within / LEAF as u64 * LEAF as u64;
        let bytes = match self.has_outlines {
            true => leaf..shard_len.min(leaf + LEAF as u64),
            false => 0..shard_len,
        };
        Look { object, set, bytes, drawn: 1 }
    }
}

/// The looks that bytes meet which were drawn, counted over the objects of a place one after the other. They come in
/// groups of one object each.
pub(super) fn groups<'a>(
    drawn: &[u64],
    held: &[Held],
    encoding: impl Fn(&Held) -> &'a Encoding,
) -> Vec<Vec<Look>> {
    let mut groups: Vec<Vec<Look>> = Vec::new();
    let (mut object, mut first, mut bytes) = (0, 0, 0);
    for byte in drawn {
        while byte - first >= held[object].len {
            first += held[object].len;
            object += 1;
        }
        let look = held[object].look(encoding(&held[object]), object, byte - first);
        let len = look.bytes.end - look.bytes.start;
        if let Some(group) = groups.last_mut().filter(|group| group[0].object == object) {
            let last = group.last_mut().expect("no group is empty");
            if (last.set, &last.bytes) == (look.set, &look.bytes) {
                last.drawn += 1;
                continue;
            }
            if group.len() < GROUP && bytes + len <= GROUP_BYTES {
                bytes += len;
                group.push(look);
                continue;
            }
        }
        bytes = len;
        groups.push(vec![look]);
    }
    groups
}

/// The parts of an object that a look needs.
struct Parts {
    bytes: Range<u64>,
    proof: Range<u64>,
    outline: Option<Range<u64>>,
}

impl Parts {
    /// With this copy of the proof.
    fn new(encoding: &Encoding, object: &Held, look: &Look, copy: usize) -> Parts {
        let layout = encoding.layout();
        let shard = layout.shard(look.set);
        let proof = layout.proofs(look.set)[copy];
        let outline = object.outlines(encoding).map(|outlines| {
            let at = layout.file_len + outlines.outline_at(look.set);
            at..at + outlines.outline_len() as u64
        });
        let bytes = shard + look.bytes.start..shard + look.bytes.end;
        Parts { bytes, proof: proof..proof + layout.proof_len, outline }
    }
}

/// The ranges that a group needs, in order; near ones are one.
fn ranges(encoding: &Encoding, object: &Held, group: &[Look], copy: usize) -> Vec<Range<u64>> {
    let parts = group.iter().map(|look| Parts::new(encoding, object, look, copy));
    joined(parts.flat_map(|parts| [parts.bytes, parts.proof].into_iter().chain(parts.outline)).collect())
}

/// Bytes that a group fetches.
pub(super) fn cost(encoding: &Encoding, object: &Held, group: &[Look]) -> u64 {
    ranges(encoding, object, group, COPY).iter().map(|range| range.end - range.start).sum()
}

/// Takes the looks of a group, and each wrong one once more, with the other copy of its proof: the way here may have
/// damaged it.
pub(super) fn take(
    places: &Places,
    place: usize,
    encoding: &Encoding,
    object: &Held,
    group: &[Look],
) -> Done {
    let mut done = Done::default();
    let wrong = tried(places, place, (encoding, object), group, COPY, &mut done);
    for look in wrong {
        if done.failed.is_some() {
            return done;
        }
        let again =
            tried(places, place, (encoding, object), std::slice::from_ref(&look), 1 - COPY, &mut done);
        done.wrong.extend(again);
    }
    done
}

/// Takes looks, and returns those that prove nothing.
fn tried(
    places: &Places,
    place: usize,
    (encoding, object): (&Encoding, &Held),
    group: &[Look],
    copy: usize,
    done: &mut Done,
) -> Vec<Look> {
    let mut pieces = Vec::new();
    for range in ranges(encoding, object, group, copy) {
        done.requests += 1;
        match fetched(places, place, encoding, object.index, range.clone()) {
            Ok(bytes) => {
                done.fetched_bytes += bytes.len() as u64;
                pieces.push((range.start, bytes));
            }
            Err(why) if is_of_object(&why) => {}
            Err(why) => {
                done.failed = Some(why);
                return Vec::new();
            }
        }
    }
    let of = |range: &Range<u64>| part(&pieces, range);
    let (geometry, tree) = (&encoding.geometry, &encoding.tree);
    let is_proved = |look: &Look| {
        let parts = Parts::new(encoding, object, look, copy);
        let (bytes, proof) = (of(&parts.bytes)?, of(&parts.proof)?);
        let is_proved = match (object.outlines(encoding), parts.outline) {
            (Some(outlines), Some(outline)) => {
                let leaves = outlines.leaves_of(&(look.bytes.start as usize..look.bytes.end as usize));
                let proofs = (of(&outline)?, proof);
                outlines.prove((geometry, tree), (look.set, object.index), proofs, leaves, bytes)
            }
            _ => shard_is_proved(geometry, tree, look.set, object.index, bytes, proof),
        };
        is_proved.then_some(())
    };
    group.iter().filter(|look| is_proved(look).is_none()).cloned().collect()
}

/// Tells whether an error says that the object does not have the bytes, and nothing of the place.
fn is_of_object(why: &StoreError) -> bool {
    matches!(
        why,
        StoreError::NotFound | StoreError::Short(_) | StoreError::WrongRange(_) | StoreError::Failed(_)
    )
}

fn fetched(
    places: &Places,
    place: usize,
    encoding: &Encoding,
    index: u32,
    range: Range<u64>,
) -> Result<Vec<u8>, StoreError> {
    let key = keys::shard(&encoding.root, index);
    places.retry(place, &places.cancel, |store, call| {
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        let sink = &mut |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok(())
        };
        store.get(&key, range.clone(), sink, call).map(|()| bytes)
    })
}

/// Ranges that cover all of these, in order; near ones are one.
fn joined(mut wanted: Vec<Range<u64>>) -> Vec<Range<u64>> {
    wanted.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in wanted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + NEAR => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The bytes of a range among the pieces that came, which start at these positions.
fn part<'a>(pieces: &'a [(u64, Vec<u8>)], range: &Range<u64>) -> Option<&'a [u8]> {
    let nth = pieces.partition_point(|(start, _)| *start <= range.start).checked_sub(1)?;
    let (start, bytes) = &pieces[nth];
    bytes.get((range.start - start) as usize..(range.end - start) as usize)
}
