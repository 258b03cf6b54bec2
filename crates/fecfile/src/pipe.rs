//! A container from a pipe: each group is released once it is proved.
//!
//! Each group names the group before it, but a forged record can do so too. The next group is therefore the first of
//! its rivals of which every set came and which decodes. At most two groups are open: two rivals, or one and the group
//! behind it. A new rival takes the place of the group behind, else of the rival that got no record for the longest
//! time. No record can therefore end the pipe, and groups that could not be released are reported at its end. A group
//! is decoded as soon as every set has k records; its later records are only checked. Groups of a bounded size are held
//! in memory, larger ones in a temporary file. Unless a root was asked for, a census of all records that went by tells
//! whether another chain could have been restored as well.

mod group;

use self::group::{OpenGroup, Room};
use crate::choose::nothing_found;
use crate::error::{Action, EncodingError, Error, ErrorKind, Result, WriteFailure};
use crate::forms::container::census::chains::may_follow;
use crate::forms::container::census::{Census, MAX_BAD_METAS};
use crate::forms::container::metas::Metas;
use crate::forms::container::scan::{Piped, ScanEvent, Taken, scan};
use crate::groups::Groups;
use crate::leftovers::{Beginning, Leftovers};
use crate::report::{Outcome, Restored};
use crate::restore::PayloadOut;
use crate::seal::open::{self, End, Opener, Opening, Unsealed};
use crate::sets::{SetWalk, SpareDecoders, untrue};
use fec_base::context::Context;
use fec_base::io::output::{Destination, FileOut};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::names::hex;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::executor::into_value;
use fec_core::format::container::{GroupId, Index, RecordHeader};
use fec_core::format::meta::Meta;
use fec_core::format::seal::SealedKind;
use fec_core::params::{FileGeometry, GroupGeometry};
use fec_core::set::PlanCache;
use fec_keys::age::Keys;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;

/// A pipe to decode.
pub struct Pipe<'a, R> {
    /// The source of the bytes.
    pub input: R,
    /// The name of the pipe in errors.
    pub place: &'a Path,
    /// Tells whether the pipe starts like a live stream, which holds no encodings.
    pub beginning: Beginning,
    /// The wanted root. Only the end of the pipe tells whether it is there: the bytes written until then may belong to
    /// another encoding.
    pub wanted: Option<Digest>,
    /// The keys that open a sealed payload.
    pub keys: Option<&'a Keys>,
}

/// Decodes a container from a pipe: to a file, which appears when the whole payload is proved, or to a writer, which
/// gets each group once it is proved by itself; a later fault is reported when it comes.
///
/// # Errors
/// Those of pipe and destination; [`NotWhole`](EncodingError::NotWhole), [`Cut`](EncodingError::Cut) and the like.
pub fn restore<R: Read>(
    pipe: Pipe<'_, R>,
    destination: Destination<'_>,
    context: &Context<'_>,
) -> Result<Restored> {
    match destination {
        Destination::File(path, policy) => {
            remove_stale(parent(path), context.progress);
            let out = FileOut::create(path, policy)?;
            let fail = |e| out.failure(e);
            let restored = Receiver::new(&pipe, &mut out.file(), &fail, context).run(pipe.input)?;
            out.commit(restored.opened.or(restored.payload_len).unwrap_or(0))?;
            Ok(restored)
        }
        Destination::Writer(out, place) => {
            let fail = |e| Error::io(Action::Write, place.clone(), e);
            Receiver::new(&pipe, out, &fail, context).run(pipe.input)
        }
    }
}

/// The state of one pipe.
struct Receiver<'a> {
    place: &'a Path,
    wanted: Option<Digest>,
    out: &'a mut dyn Write,
    write_failure: &'a WriteFailure<'a>,
    context: &'a Context<'a>,
    plans: PlanCache,
    /// Rivals for the next release, the one with the latest record last; or a single group, and behind it the group
    /// that follows.
    open: Vec<OpenGroup>,
    /// Memory of the released group, for the next one.
    spare: Vec<u8>,
    /// Decoders of the released group, for the next one.
    decoders: SpareDecoders,
    keys: Option<&'a Keys>,
    /// The opener of a sealed payload, found at its first group, and the progress of opening.
    opener: Option<Opener>,
    opening: Opening,
    /// Bytes of plaintext that went out, if the payload is sealed.
    opened: Option<u64>,
    /// The last released group, and the first.
    released: Option<GroupId>,
    first: Option<GroupId>,
    /// The reason why a group that seemed to be the next was not released.
    failure: Option<Error>,
    /// The reason why a group was not even opened.
    refusal: Option<Error>,
    outcome: Outcome,
    leftovers: Leftovers,
    position: u64,
    /// All records and indexes; `None` when a root was asked for, since other encodings do not matter then.
    census: Option<Census>,
    /// Metas that came, the latest ones.
    metas: Metas<Meta>,
    /// Hashes of invalid metas: no chain with such a meta is restored.
    bad_metas: HashSet<Digest>,
}

/// The most groups that are open at the same time.
const MAX_OPEN: usize = 2;

impl<'a> Receiver<'a> {
    fn new<R>(
        pipe: &Pipe<'a, R>,
        out: &'a mut dyn Write,
        write_failure: &'a WriteFailure<'a>,
        context: &'a Context<'a>,
    ) -> Receiver<'a> {
        let mut leftovers = Leftovers::default();
        leftovers.beginning = pipe.beginning;
        Receiver {
            place: pipe.place,
            wanted: pipe.wanted,
            out,
            write_failure,
            context,
            plans: PlanCache::new(context.settings.backend),
            open: Vec::new(),
            spare: Vec::new(),
            decoders: SpareDecoders::default(),
            keys: pipe.keys,
            opener: None,
            opening: Opening::default(),
            opened: None,
            released: None,
            first: None,
            failure: None,
            refusal: None,
            outcome: Outcome::default(),
            leftovers,
            position: 0,
            census: pipe.wanted.is_none().then(Census::default),
            metas: Metas::default(),
            bad_metas: HashSet::new(),
        }
    }

    fn run(mut self, input: impl Read) -> Result<Restored> {
        let meter = self.context.meter(Action::Decode, None);
        let (place, wanted) = (self.place, self.wanted);
        scan(Piped(input), place, wanted, &meter, |at, found| self.on(at, found))?;
        meter.finish();
        self.end()
    }

    fn on(&mut self, at: u64, found: ScanEvent<'_>) -> Result<Taken> {
        match found {
            ScanEvent::Record { header, tree, proof, body } => {
                self.leftovers.found_version_1();
                if let Some(census) = &mut self.census {
                    census.add_record(&header, &tree, at)?;
                }
                self.record(&header, &tree, proof, body)?;
            }
            ScanEvent::Meta(frame) => {
                // The seal of another chain may stand in no index.
                if let Some(census) = &mut self.census {
                    census.add_meta((*frame).clone(), at);
                }
                self.meta(frame.meta_hash, frame.meta);
            }
            ScanEvent::BadMeta(meta_hash, error) => {
                self.leftovers.reject(|| format!("offset {at}"), error);
                if self.bad_metas.len() < MAX_BAD_METAS {
                    self.bad_metas.insert(meta_hash);
                }
                if let Some(census) = &mut self.census {
                    census.add_bad_meta(meta_hash);
                }
            }
            ScanEvent::Index(index) => self.index(*index),
            ScanEvent::IndexHeader(..) => {
                self.leftovers.found_version_1();
                return Ok(Taken::No { looked_before: false });
            }
            ScanEvent::Annex(..) => {}
            ScanEvent::Rejected(error) => self.leftovers.reject(|| format!("offset {at}"), error),
        }
        Ok(Taken::Yes)
    }

    fn record(&mut self, header: &RecordHeader, tree: &Digest, proof: &[u8], body: &[u8]) -> Result<()> {
        let id = header.group;
        if id.geometry.is_last() && self.wanted.is_some_and(|wanted| wanted != id.root) {
            self.leftovers.other_root(&id.root);
            return Ok(());
        }
        if let Some(place) = self.open.iter().position(|g| g.id.root == id.root) {
            self.open[place].add(header, proof, body)?;
            if self.is_next(&id) {
                let last = self.open.iter().rposition(|g| self.is_next(&g.id)).unwrap_or(place);
                self.open[place..=last].rotate_left(1);
            }
        } else if self.may_open(&id) {
            let most = self.context.settings.max_memory;
            let room = match Room::new(self.place, id.geometry.shape(), most) {
                Ok(room) => room,
                Err(error) => {
                    self.refusal.get_or_insert(error);
                    return Ok(());
                }
            };
            self.make_room();
            let mut group = OpenGroup::new(id, *tree, room, std::mem::take(&mut self.spare));
            group.add(header, proof, body)?;
            self.open.push(group);
        }
        self.release_whole()
    }

    /// Releases the next group as long as every set of it has k records.
    fn release_whole(&mut self) -> Result<()> {
        let next = |receiver: &Receiver<'_>| {
            let is_whole =
                |g: &OpenGroup| g.lacking == 0 && receiver.is_next(&g.id) && receiver.may_be_opened(&g.id);
            receiver.open.iter().position(is_whole)
        };
        while let Some(whole) = next(self) {
            self.release(whole)?;
        }
        Ok(())
    }

    /// Tells whether a group can be released now. The first group of a sealed payload has to wait for its meta, of
    /// which another copy may come.
    fn may_be_opened(&self, id: &GroupId) -> bool {
        let shape = id.geometry.shape();
        self.first.is_some()
            || !shape.is_sealed()
            || self.metas.get(&id.before).is_some()
            || shape.hash.digest(b"") == id.before
    }

    /// Tells whether a group is the first, or follows the last released one.
    fn is_next(&self, id: &GroupId) -> bool {
        match &self.released {
            None => id.geometry.number() == 0 && !self.bad_metas.contains(&id.before),
            Some(released) => id.before == released.root && may_follow(&released.geometry, &id.geometry),
        }
    }

    /// Tells whether a group may be opened: it may be the next, or it follows such a group and there is room.
    fn may_open(&mut self, id: &GroupId) -> bool {
        let mut chain = self.open.iter().map(|g| &g.id).chain(&self.released);
        let Some(before) = chain.find(|before| before.root == id.before) else { return self.is_next(id) };
        if !may_follow(&before.geometry, &id.geometry) {
            let error = FormatError::NotCanonical("a group is not what the geometry of the payload implies");
            self.leftovers.reject(|| format!("group {}", id.geometry.number()), error);
            return false;
        }
        self.is_next(id) || (self.open.len() < MAX_OPEN && self.is_next(before))
    }

    /// Gives up the group behind, or else the rival that got no record for the longest time.
    fn make_room(&mut self) {
        if self.open.len() < MAX_OPEN {
            return;
        }
        let behind = self.open.iter().position(|g| !self.is_next(&g.id));
        let given_up = self.open.remove(behind.unwrap_or(0));
        if let Room::Memory(bytes) = given_up.room {
            self.spare = into_value(bytes);
        }
    }

    /// Decodes an open group and writes it if it is whole; its rivals are dropped then.
    fn release(&mut self, place: usize) -> Result<()> {
        let group = self.open.remove(place);
        let first = self.first.unwrap_or(group.id).geometry;
        let groups = Groups::new(first, group.id.geometry, vec![group.tree]);
        let start = groups.start();
        let held = match &group.room {
            Room::Memory(_) => 2 * group.id.geometry.shape().capacity(),
            Room::File(_) => 0,
        };
        let mut walk = SetWalk::new(self.context, &self.plans);
        walk.budget = walk.budget.saturating_sub(held);
        walk.spare = std::mem::take(&mut self.decoders);
        let put = |offset: u64, bytes: &[u8]| group.put(offset - start, bytes);
        let visitor = PayloadOut { put: &put, partial: false };
        let mut done = walk.run(&group, &groups, &visitor)?;
        self.decoders = walk.spare;
        if let Some(set) = done.untrue.take() {
            self.failure.get_or_insert(untrue(set));
            return Ok(());
        }
        if !done.is_whole() {
            let (lost, leftovers) = (Box::new(done.lost), Box::new(self.leftovers.clone()));
            let kind = EncodingError::NotWhole { position: self.position, lost, leftovers };
            self.failure.get_or_insert(Error::at(Action::Decode, self.place, kind));
            return Ok(());
        }
        self.outcome.absorb(done);
        let len = group.id.geometry.payload_len();
        if self.first.is_none() {
            self.opener = self.find_opener(&group.id)?;
        }
        let opening = std::mem::take(&mut self.opening);
        let mut out = Unsealed::new(self.opener.as_ref(), self.out, opening);
        let end = if group.id.geometry.is_last() { End::Payload } else { End::Nothing };
        let fail = self.write_failure;
        match group.room {
            Room::Memory(bytes) => {
                let bytes = into_value(bytes);
                let mut write = |to: &mut dyn Write| to.write_all(&bytes[..len as usize]).map_err(fail);
                out.release(end, &mut write, fail)?;
                self.spare = bytes;
            }
            Room::File(file) => out.release(end, &mut |to| file.copy_to(len, to, fail), fail)?,
        }
        self.opened = out.plain_len();
        self.opening = out.pause();
        self.position += len;
        self.first.get_or_insert(group.id);
        self.released = Some(group.id);
        self.open.retain(|g| g.id.before == group.id.root);
        tracing::debug!("group {} released, root {}", group.id.geometry.number(), hex(&group.id.root));
        Ok(())
    }

    /// The opener of the payload whose first group is `first`, if it is sealed. The meta has to have come before.
    fn find_opener(&self, first: &GroupId) -> Result<Option<Opener>> {
        let shape = first.geometry.shape();
        let none = Meta::default();
        let is_empty = shape.hash.digest(b"") == first.before;
        let meta = self.metas.get(&first.before).or(is_empty.then_some(&none));
        let opener = open::opener(shape.is_sealed(), meta, self.keys, SealedKind::Payload);
        let opener = opener.map_err(|e| Error::at(Action::Open, self.place, e))?;
        Ok(opener.map(|opener| opener.of(self.place.into())))
    }

    fn meta(&mut self, meta_hash: Digest, meta: Meta) {
        self.leftovers.found_version_1();
        let (first, open) = (&self.first, &self.open);
        let firsts = first.iter().chain(open.iter().map(|group| &group.id));
        self.metas.add(meta_hash, meta, |meta_hash| {
            firsts.clone().any(|id| id.geometry.number() == 0 && id.before == *meta_hash)
        });
    }

    fn index(&mut self, index: Index) {
        self.leftovers.found_version_1();
        if self.wanted.is_some_and(|wanted| wanted != index.header.root) {
            return;
        }
        self.meta(index.header.meta_hash, index.meta.clone());
        if let Some(census) = &mut self.census {
            census.add_index(index);
        }
    }

    /// Ends the input: releases the last groups, and finds the root.
    fn end(mut self) -> Result<Restored> {
        // The rival with the latest record goes first.
        while let Some(next) = self.open.iter().rposition(|g| self.is_next(&g.id)) {
            self.release(next)?;
        }
        let is_whole = self.released.is_some_and(|last| last.geometry.is_last());
        if let Some(error) = self.failure.take().or_else(|| self.refusal.take()).filter(|_| !is_whole) {
            return Err(error);
        }
        let (Some(first), Some(last)) = (self.first, self.released) else {
            if let Some(census) = &mut self.census {
                // The census notes groups that do not follow in its leftovers.
                let _ = census.chains();
                self.leftovers.absorb(&census.leftovers);
            }
            let others = std::mem::take(&mut self.leftovers.others);
            return Err(nothing_found(self.wanted, others, self.leftovers));
        };
        if !last.geometry.is_last() {
            if !self.leftovers.others.is_empty() {
                let others = std::mem::take(&mut self.leftovers.others);
                return Err(nothing_found(self.wanted, others, self.leftovers));
            }
            let (position, leftovers) = (self.position, Box::new(self.leftovers));
            return Err(Error::at(Action::Decode, self.place, EncodingError::Cut { position, leftovers }));
        }
        let root = last.root;
        if self.bad_metas.contains(&first.before) {
            return Err(nothing_found(self.wanted, Vec::new(), self.leftovers));
        }
        if let Some(census) = &mut self.census {
            let (chains, _) = census.chains();
            let others = chains.iter().filter(|c| c.root != Some(root) && c.is_restorable);
            let mut roots = vec![Some(root)];
            roots.extend(others.map(|chain| chain.root));
            if roots.len() > 1 {
                return Err(Error::new(Action::Decode, EncodingError::Ambiguous(roots)));
            }
        }
        let geometry = FileGeometry::of_chain(first.geometry.shape(), &last.geometry)
            .map_err(|e| Error::at(Action::Decode, self.place, ErrorKind::Format(e)))?;
        let sets = |g: GroupGeometry| u64::from(g.shape().sets);
        let is_empty = first.geometry.shape().hash.digest(b"") == first.before;
        let meta = self.metas.get(&first.before).cloned();
        Ok(Restored {
            root: Some(root),
            meta: meta.or(is_empty.then(Meta::default)),
            is_sealed: first.geometry.shape().is_sealed(),
            payload_len: Some(geometry.payload_len()),
            opened: self.opened,
            part: None,
            sets: u64::from(last.geometry.number()) * sets(first.geometry) + sets(last.geometry),
            outcome: self.outcome,
            leftovers: self.leftovers,
            others: Vec::new(),
            written: true,
        })
    }
}
