//! The files that a repair writes: damaged ones in place, missing ones under a temporary name until they are whole.

mod finishing;
mod holes;
mod owner;
mod placing;
mod room;

use owner::own_room;
pub(crate) use owner::{Given, give_new_folder};
pub(crate) use room::remove_old_rooms;

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::permissions::umask;
use crate::catalog::positions::{PositionReader, Positions, Span};
use crate::examine::findings::Cause;
use crate::examine::rebuild::Sink;
use crate::examine::written::Written;
use crate::repair::actions::{EntryAction, Owner};
use crate::repair::left_out::{Dressed, LeftOut, Part, is_of_name};
use fec_base::context::{Gauge, Progress};
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::{self, Base};
use fec_base::io::look::{Look, Over};
use fec_base::io::output::if_any;
use fec_base::io::temporary::{Temporary, remove_stale};
use fec_core::digest::{HashKind, blocks};
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};
use std::collections::{HashMap, HashSet, hash_map};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Takes a recovery shard: its group, its number there, and its bytes.
pub(crate) type PutRecovery<'a> = dyn FnMut(usize, u64, &[u8]) -> Result<()> + 'a;

/// The most values that are kept for all new files.
const MOST_VALUES: u64 = 1 << 18;

/// Files that are kept open: few enough to leave descriptors for reading others.
fn most_open() -> usize {
    const MOST: u64 = 256;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit / 4).clamp(1, MOST) as usize
}

/// The way that files are written.
pub(crate) struct Writing {
    /// True if everything is on the disk before the repair ends.
    pub(crate) sync: bool,
    /// The user and the group that made entries get from root, if they are given.
    pub(crate) owner: Given,
    /// True if the target folder holds only files of an earlier repair.
    pub(crate) is_copy: bool,
    /// The folder that new files are made in first, below the target folder.
    pub(crate) room: Box<[u8]>,
    /// For each entry, whether it takes computed bytes. Files whose own bytes are all right keep them.
    pub(crate) wants: Vec<bool>,
    /// The owners of the entries that are written over.
    pub(crate) owners: HashMap<u32, Owner>,
}

/// The files that are written.
pub(crate) struct Targets<'a> {
    sidecar: &'a Sidecar,
    positions: &'a Positions,
    /// The folder that they are written below.
    base: &'a Base,
    pub(crate) actions: Vec<EntryAction>,
    open: HashMap<u32, File>,
    most_open: usize,
    /// Files that were written to.
    begun: Bits,
    /// Hashes of new files.
    values: HashMap<u32, Written<'a>>,
    /// The number of values that may still be kept.
    room_for_values: u64,
    /// A temporary folder for new files, which are named by the numbers of their entries.
    room: Option<(Temporary, Base)>,
    /// The number of folders that were made in the room.
    folders: usize,
    how: Writing,
    meter: &'a Gauge<'a>,
    /// The receiver of notices.
    progress: &'a dyn Progress,
    /// The folder on another file system that leftovers were last removed from.
    tidied: PathBuf,
    umask: u32,
    /// Takes recovery shards for the sidecar itself.
    recovery: &'a mut PutRecovery<'a>,
    /// Bytes of files that were written.
    pub(crate) written: u64,
    /// The error of the first file that could not be made or read again.
    pub(crate) cause: Option<Error>,
    /// Entries, or parts of them, that the target cannot hold.
    pub(crate) left_out: Vec<LeftOut>,
    /// Entries that are left out whole.
    out: HashSet<usize>,
}

impl<'a> Targets<'a> {
    pub(crate) fn new(
        sidecar: &'a Sidecar,
        positions: &'a Positions,
        base: &'a Base,
        actions: Vec<EntryAction>,
        (how, meter, progress): (Writing, &'a Gauge<'a>, &'a dyn Progress),
        recovery: &'a mut PutRecovery<'a>,
    ) -> Targets<'a> {
        Targets {
            sidecar,
            positions,
            base,
            begun: Bits::new(actions.len() as u64),
            actions,
            open: HashMap::new(),
            most_open: most_open(),
            values: HashMap::new(),
            room_for_values: MOST_VALUES,
            room: None,
            folders: 0,
            how,
            meter,
            progress,
            tidied: PathBuf::new(),
            umask: umask(),
            recovery,
            written: 0,
            cause: None,
            left_out: Vec::new(),
            out: HashSet::new(),
        }
    }

    /// Leaves out long files that the target cannot hold, before anything is computed for them.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn leave_out_long(&mut self) -> Result<()> {
        /// All file systems hold files of this many bytes.
        const SHORT: u64 = i32::MAX as u64;
        for (nth, of) in self.sidecar.catalog.files() {
            if !matches!(self.actions[nth], EntryAction::Make { .. }) || of.size <= SHORT {
                continue;
            }
            let made = self.file(nth as u32).map(|_| ());
            if let Err(error) = made {
                let Some(cause) = is_of_name(&error) else { return Err(error) };
                self.leave_out(nth, cause);
                self.actions[nth] = EntryAction::Leave;
                self.how.wants[nth] = false;
                // The room is removed together with its files.
                self.open.remove(&(nth as u32));
            }
        }
        Ok(())
    }

    /// For each entry, whether it takes computed bytes.
    pub(crate) fn wants(&self) -> Vec<bool> {
        self.how.wants.clone()
    }

    fn leave_out(&mut self, entry: usize, cause: Cause) {
        self.left_out.push(LeftOut { entry, what: Part::Entry, cause });
        self.out.insert(entry);
    }

    /// The cause, if an error says that the target cannot hold an entry, or a folder around it.
    fn cannot_hold(&self, entry: usize, error: &Error) -> Option<Cause> {
        let entries = &self.sidecar.catalog.entries;
        if !matches!(self.actions[entry], EntryAction::Make { .. }) {
            return None;
        }
        let (path, kind) = (&entries[entry].path, &entries[entry].kind);
        let is_out = |at: usize| {
            let folder = entries.binary_search_by(|entry| (*entry.path).cmp(&path[..at]));
            folder.is_ok_and(|folder| self.out.contains(&folder))
        };
        let mut around = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        // Somebody else may have removed a new file from the room.
        let is_in_room = || match &self.room {
            Some((_, room)) => room.stat(entry.to_string().as_bytes()).is_ok(),
            None => false,
        };
        let is_none = |_: &Cause| match kind {
            EntryKind::HardLink(of) => self.out.contains(&(*of as usize)),
            EntryKind::File(_) if !is_in_room() => false,
            // Some file systems report a name that they cannot have as missing, although its folder exists.
            _ => around.any(is_out) || self.base.holder(path).is_ok(),
        };
        is_of_name(error).or_else(|| Cause::of(error, libc::ENOENT).filter(is_none))
    }

    fn note_undressed(&mut self, entry: usize, dressed: Dressed) {
        let parts = [(Part::Permissions, dressed.permissions), (Part::Time, dressed.time)];
        let parts = parts.into_iter().filter_map(|(what, cause)| Some((what, cause?)));
        self.left_out.extend(parts.map(|(what, cause)| LeftOut { entry, what, cause }));
    }

    fn entry(&self, entry: u32) -> (&'a [u8], Option<&'a FileEntry>) {
        let entry = &self.sidecar.catalog.entries[entry as usize];
        match &entry.kind {
            EntryKind::File(file) => (&entry.path, Some(file)),
            _ => (&entry.path, None),
        }
    }

    fn fail(&self, entry: u32) -> impl Fn(io::Error) -> Error + use<> {
        let place = self.base.place(self.entry(entry).0);
        move |e| Error::io(Action::Write, place.as_path(), e)
    }

    /// The folder for new files. It lies in the base, so that they can be renamed from there.
    fn room(&mut self) -> Result<&Base> {
        if self.room.is_none() {
            let around = self.base.place(&self.how.room);
            let fail = |e| Error::io(Action::Create, around.as_path(), e);
            let named = |path: &Path| {
                let name = path.file_name().unwrap_or_default().as_bytes();
                if self.how.room.is_empty() { name.to_vec() } else { [&*self.how.room, b"/", name].concat() }
            };
            remove_stale(&around, self.progress);
            if !self.how.room.is_empty() {
                remove_old_rooms(&self.base.folder(&self.how.room).map_err(fail)?);
            }
            let make = |path: &Path| self.base.holder(&named(path))?.create_folder(0o700);
            let (temporary, ()) = Temporary::beside(&around.join("x"), make).map_err(fail)?;
            // The room is opened below the base, since somebody may have put a link at its path.
            let room = self.base.folder(&named(temporary.path())).and_then(own_room).map_err(fail)?;
            self.room = Some((temporary, room));
        }
        Ok(&self.room.as_ref().expect("it was just made").1)
    }

    /// The open file of an entry that is mended or made.
    fn file(&mut self, entry: u32) -> Result<&File> {
        if !self.open.contains_key(&entry) {
            if self.open.len() >= self.most_open {
                self.open.clear();
            }
            let (path, of) = self.entry(entry);
            let size = of.map_or(0, |of| of.size);
            let fail = self.fail(entry);
            let file = match self.actions[entry as usize] {
                EntryAction::Make { .. } => {
                    let name = entry.to_string();
                    let room = self.room()?;
                    match room.write(name.as_bytes()) {
                        Err(e) if e.kind() == io::ErrorKind::NotFound => {
                            let file =
                                room.holder(name.as_bytes()).and_then(|holder| holder.create_file(0o600));
                            let file = file.map_err(&fail)?;
                            file.set_len(size).map_err(&fail)?;
                            file
                        }
                        opened => opened.map_err(&fail)?,
                    }
                }
                _ => self.base.write_own(path).map_err(&fail)?,
            };
            self.open.insert(entry, file);
        }
        Ok(&self.open[&entry])
    }

    fn put(&mut self, span: &Span, bytes: &[u8]) -> Result<()> {
        if self.actions[span.entry as usize] == EntryAction::Mend {
            let write = |file: &File, _| holes::write_over(file, bytes, span.offset);
            return self.write_in_place(span.entry, span.offset..span.offset + span.len, write);
        }
        let fail = self.fail(span.entry);
        let file = self.file(span.entry)?;
        match span.is_packed {
            // A tail may be put twice.
            true => file.write_all_at(bytes, span.offset).map_err(fail)?,
            false => holes::write_new(file, bytes, span.offset).map_err(fail)?,
        }
        self.note(span, bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Makes bytes of a file that is mended in place zeros.
    pub(crate) fn clear(&mut self, entry: u32, range: Range<u64>) -> Result<()> {
        self.write_in_place(entry, range.clone(), |file, len| {
            holes::clear(file, range.start..range.end.min(len))
        })
    }

    /// Writes to a file that is mended in place, unless somebody else has. `write` gets the length that it had.
    fn write_in_place(
        &mut self,
        entry: u32,
        range: Range<u64>,
        write: impl FnOnce(&File, u64) -> io::Result<()>,
    ) -> Result<()> {
        let fail = self.fail(entry);
        let len = Look::of_file(self.file(entry)?).map_err(&fail)?.size;
        let Some(before) = self.begin(entry)? else { return Ok(()) };
        let stat = self.sidecar.stats.entries[entry as usize];
        let file = self.file(entry)?;
        write(file, len).map_err(&fail)?;
        // With its recorded time the file counts as rotten, and a later writer changes that time.
        if_any(base::set_modified(file, stat.seconds, stat.nanos)).map_err(&fail)?;
        let look = Look::of_file(file).map_err(&fail)?;
        // Somebody else may have made the file longer or shorter meanwhile.
        let is_ours = look.size == before.size.max(range.end);
        if !is_ours {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            if_any(base::set_modified(file, now.as_secs() as i64, now.subsec_nanos())).map_err(&fail)?;
        }
        self.how.owners.insert(entry, if is_ours { Owner::Repair(look) } else { Owner::Other });
        self.written += range.end - range.start;
        Ok(())
    }

    /// The look of a file that is mended in place, if nobody else has written to it since the examination or this
    /// repair's last write, as far as size and time tell. `None` means that the file must not be written to.
    fn ours(&mut self, entry: u32) -> Result<Option<Look>> {
        let fail = self.fail(entry);
        let look = Look::of_file(self.file(entry)?).map_err(fail)?;
        let is_ours = matches!(self.how.owners.get(&entry), Some(Owner::Repair(then)) if *then == look);
        self.how.owners.insert(entry, if is_ours { Owner::Repair(look) } else { Owner::Other });
        Ok(is_ours.then_some(look))
    }

    /// Like [`Targets::ours`], but sets the recorded length before the first write.
    fn begin(&mut self, entry: u32) -> Result<Option<Look>> {
        let Some(look) = self.ours(entry)? else { return Ok(None) };
        if self.begun.get(entry.into()) {
            return Ok(Some(look));
        }
        self.begun.set(entry.into());
        let size = self.entry(entry).1.map_or(look.size, |of| of.size);
        if look.size == size {
            return Ok(Some(look));
        }
        let fail = self.fail(entry);
        let stat = self.sidecar.stats.entries[entry as usize];
        let file = self.file(entry)?;
        let cut = file.set_len(size).and_then(|()| {
            if_any(base::set_modified(file, stat.seconds, stat.nanos))?;
            Look::of_file(file)
        });
        let look = cut.map_err(fail)?;
        self.how.owners.insert(entry, Owner::Repair(look));
        Ok(Some(look))
    }

    /// The thing that a made entry may replace at its path. `None` if something else stands there than was examined.
    fn replaceable(&self, entry: u32) -> io::Result<Option<Over>> {
        if self.how.is_copy {
            return Ok(Some(Over::Anything));
        }
        match (self.base.stat(self.entry(entry).0), self.how.owners.get(&entry)) {
            (Err(e), _) if e.kind() == io::ErrorKind::NotFound => Ok(Some(Over::Nothing)),
            (Err(e), _) => Err(e),
            (Ok(stat), Some(Owner::Repair(look))) => {
                Ok((Look::of(&stat) == *look).then_some(Over::Known(*look)))
            }
            (Ok(_), _) => Ok(None),
        }
    }

    /// Keeps the values of the written bytes of a new file.
    fn note(&mut self, span: &Span, bytes: &[u8]) {
        let (EntryAction::Make { .. }, Some(of)) =
            (self.actions[span.entry as usize], self.entry(span.entry).1)
        else {
            return;
        };
        let block = u64::from(self.sidecar.catalog.block);
        let blocks: u64 = of.runs.iter().map(|run| run.count).sum();
        let written = match self.values.entry(span.entry) {
            hash_map::Entry::Occupied(written) => written.into_mut(),
            // A file of one block and a tail counts two.
            hash_map::Entry::Vacant(place) => match self.room_for_values.checked_sub(blocks + 1) {
                Some(left) => {
                    self.room_for_values = left;
                    place.insert(Written::new(of))
                }
                // Without values the file will be read again.
                None => return,
            },
        };
        if span.is_packed {
            if bytes.len() as u64 == of.tail_len(block) {
                written.tail = Some(match span.offset {
                    0 => HashKind::Blake3.digest(bytes),
                    _ => blocks::tail_value(bytes, span.offset),
                });
            }
            return;
        }
        written.add(bytes, span.offset, block);
    }

    /// Fills a new file with its known bytes; the rest is computed. `erased` marks lost positions. `None` stands for a
    /// file that is whole where it is, although others may have lost bytes in a block that they share with it.
    pub(crate) fn fill(
        &mut self,
        entry: u32,
        reader: &mut PositionReader<'_>,
        erased: Option<&Bits>,
    ) -> Result<()> {
        let is_erased = |position: u64| erased.is_some_and(|erased| erased.get(position));
        let block = u64::from(self.sidecar.catalog.block);
        let most = ((1 << 20) / block).max(1);
        let mut bytes = vec![0; (most * block) as usize];
        let Some(of) = self.entry(entry).1 else { return Ok(()) };
        for range in of.runs.iter().map(|run| run.start..run.start + run.count) {
            let mut at = range.start;
            while at < range.end {
                if is_erased(at) {
                    at += 1;
                    continue;
                }
                let count = (at..range.end.min(at + most))
                    .take_while(|position| !is_erased(*position))
                    .count() as u64;
                let bytes = &mut bytes[..(count * block) as usize];
                // Bytes that became unreadable show when the file is compared with its digest.
                let _ = reader.fill(at, bytes, |_, _| Ok::<(), ()>(()));
                let spans: Vec<Span> = self.positions.within(at..at + count).collect();
                for span in spans.iter().filter(|span| span.entry == entry) {
                    self.put(span, &bytes[(span.at - at * block) as usize..][..span.len as usize])?;
                }
                at += count;
            }
        }
        let (tail, tail_len) = (of.tail / block, of.tail_len(block));
        let is_known = || reader.has_elsewhere(of.tail..of.tail + tail_len);
        if tail_len > 0 && (!is_erased(tail) || is_known()) {
            // Many files may share the position, so only the file's own span is read.
            let span = self.positions.within(tail..tail + 1).find(|span| span.entry == entry);
            let span = span.expect("it lies there");
            let bytes = &mut bytes[..span.len as usize];
            if reader.read(&span, bytes).is_ok() {
                self.put(&span, bytes)?;
            }
        }
        Ok(())
    }

    /// Tells whether one of these entries is half mended by this repair, or by an interrupted one (`was_begun`), and
    /// nobody else has written to it.
    pub(crate) fn are_half_mended(&self, failed: &[usize], was_begun: impl Fn(&usize) -> bool) -> bool {
        let is_ours = |entry: u32| matches!(self.how.owners.get(&entry), Some(Owner::Repair(_)));
        let mut mends = failed.iter().filter(|entry| self.actions[**entry] == EntryAction::Mend);
        mends.any(|entry| is_ours(*entry as u32) && (self.begun.get(*entry as u64) || was_begun(entry)))
    }

    /// Removes the room for new files, and syncs the folder that was named.
    pub(crate) fn end(self) -> Result<()> {
        if let Some((temporary, room)) = self.room {
            drop(room);
            drop(temporary);
        }
        if self.how.sync {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::open(self.base.place(self.base.named()), flags, Mode::empty());
            if let Ok(folder) = folder {
                let _ = fec_base::io::system::sync_folder(folder);
            }
        }
        Ok(())
    }
}

impl Sink for Targets<'_> {
    fn position(&mut self, position: u64, bytes: &[u8]) -> Result<()> {
        self.positions(position, bytes, self.sidecar.catalog.block)
    }

    fn positions(&mut self, first: u64, bytes: &[u8], block: u32) -> Result<()> {
        let base = first * u64::from(block);
        let count = bytes.len() as u64 / u64::from(block);
        let spans: Vec<Span> = self.positions.within(first..first + count).collect();
        for span in spans {
            if self.how.wants[span.entry as usize] {
                self.put(&span, &bytes[(span.at - base) as usize..][..span.len as usize])?;
            }
        }
        Ok(())
    }

    fn recovery(&mut self, group: usize, shard: u64, bytes: &[u8]) -> Result<()> {
        (self.recovery)(group, shard, bytes)
    }
}
