//! Encoding to an output that may exist already: its intact shards are kept, and only the others are made anew. A job
//! can therefore run again after any interruption.
//!
//! An output is kept only if every byte of it leads to the root that the payload has now. That root comes from encoding
//! the payload to nowhere: names, times and sizes prove nothing, and shards prove only that they belong to a root of
//! their own. Missing and damaged shards are made from the payload too, so it does not matter how little is left.

use crate::archive::Archive;
use crate::encode::{root_of_container, root_of_shards, to_file, to_store};
use crate::error::{Action, Difference, EncodingError, Error, ErrorKind, OtherEncoding, Result};
use crate::forms::encoded::Encoded;
use crate::input::{Content, Input};
use crate::leftovers::Leftovers;
use crate::payload::{Options, Payload, Source};
use crate::report::Written;
use crate::seal::error::SealError;
use fec_base::context::Context;
use fec_base::io::folder::Folder;
use fec_base::io::list;
use fec_base::io::output::{FolderOut, Policy, check_absent, sync};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::names::show_bytes;
use fec_core::params::Form;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The place of the encoding.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// Shard files in a folder, which record a name.
    Folder(&'a Path, &'a [u8]),
    /// A container.
    File(&'a Path),
}

/// The outcome for the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The output was intact, and nothing was written.
    Kept,
    /// These files of the output were missing or damaged, and were made anew.
    Completed(Vec<PathBuf>),
    /// The whole output was written.
    Made,
}

/// The most tries when others change the output at the same time.
const ATTEMPTS: usize = 8;

/// Makes `output` hold the encoding of `payload`: keeps intact shards, makes missing and damaged ones anew, and encodes
/// if nothing is there. Removes files that killed processes left beside the output. Takes the time of encoding without
/// writing plus the time of reading the output; twice that, if anything is made anew.
///
/// # Errors
/// When something else stands there: [`OtherEncoding`](EncodingError::OtherEncoding),
/// [`HoldsAnother`](EncodingError::HoldsAnother), and the errors of encoding for an output that exists. With `force`,
/// whatever encoding may replace is replaced instead. Those of payload and output.
pub fn encode(
    payload: &dyn Payload,
    output: Output<'_>,
    policy: Policy,
    options: &Options,
    context: &Context<'_>,
) -> Result<(Written, Fate)> {
    if options.sealing.is_some() {
        return Err(Error::at(Action::Keep, payload.place(), SealError::Kept));
    }
    remove_stale(parent(output.path()), context.progress);
    let mut wanted = None;
    let mut completed = Vec::new();
    for _ in 1..ATTEMPTS {
        if !output.is_there(context)? {
            match output.make(payload, policy, options, context) {
                // Another process made the output first.
                Err(error) if is_in_the_way(&error) && output.is_there(context)? => continue,
                made => return Ok((made?, Fate::Made)),
            }
        }
        let written = match wanted {
            Some(written) => written,
            None => *wanted.insert(output.root(payload, options, context)?),
        };
        let mut intact = 0;
        match output.complete(payload, &written, policy, &mut intact, context) {
            Ok(None) if completed.is_empty() => return Ok((written, Fate::Kept)),
            Ok(None) => return Ok((written, Fate::Completed(completed))),
            // The whole output is examined again: a new file may have taken the name of one that held another shard.
            Ok(Some(files)) => {
                completed.retain(|file| !files.contains(file));
                completed.extend(files);
            }
            Err(error) if policy.force && is_for_force(&error) => break,
            // A file that was missing exists now. If more of the output is intact than before, another process is
            // writing it.
            Err(error) if is_in_the_way(&error) && output.intact(&written, context) > intact => {}
            Err(error) => return Err(error),
        }
    }
    if !policy.force {
        // The files made anew are damaged each time: another process writes to them, or the disk does not keep them.
        return Err(Error::at(Action::Keep, output.path(), ErrorKind::Changed));
    }
    Ok((output.make(payload, policy, options, context)?, Fate::Made))
}

/// Tells whether an output could not be made because something stands there, or somebody else has made it meanwhile.
fn is_in_the_way(error: &Error) -> bool {
    match &error.kind {
        ErrorKind::Exists | ErrorKind::FolderNotEmpty | ErrorKind::Overtaken => true,
        ErrorKind::Io(e) => {
            matches!(e.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
        }
        _ => false,
    }
}

/// Tells whether the output is not the wanted one, or cannot be completed.
fn is_for_force(error: &Error) -> bool {
    let is_other = matches!(
        error.cause(),
        Some(EncodingError::OtherEncoding(_) | EncodingError::HoldsAnother | EncodingError::MetaLost)
    );
    is_other || matches!(error.kind, ErrorKind::Exists | ErrorKind::FolderNotEmpty)
}

impl Output<'_> {
    fn path(&self) -> &Path {
        match self {
            Output::Folder(path, _) | Output::File(path) => path,
        }
    }

    fn form(&self) -> Form {
        match self {
            Output::Folder(..) => Form::Shards,
            Output::File(_) => Form::Container,
        }
    }

    /// Tells whether anything stands at the output's path, once leftovers of killed processes in it are removed.
    ///
    /// # Errors
    /// When it is of another kind than the output, or cannot be read.
    fn is_there(&self, context: &Context<'_>) -> Result<bool> {
        let path = self.path();
        let fail = |e| Error::io(Action::Read, path, e);
        let meta = match fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            meta => meta.map_err(fail)?,
        };
        match self {
            Output::File(_) => {
                check_absent(path, Policy::new().with_force(true).with_sync(false)).map(|()| true)
            }
            Output::Folder(..) if !meta.is_dir() => {
                Err(Error::at(Action::Write, path, ErrorKind::NotAFolder))
            }
            Output::Folder(..) => {
                remove_stale(path, context.progress);
                Ok(!list(path).map_err(fail)?.is_empty())
            }
        }
    }

    fn make(
        &self,
        payload: &dyn Payload,
        policy: Policy,
        options: &Options,
        context: &Context<'_>,
    ) -> Result<Written> {
        match self {
            Output::Folder(path, name) => {
                to_store(payload, name, &Folder::new(*path, policy), options, context)
            }
            Output::File(path) => to_file(Source::Payload(payload), path, policy, options, context),
        }
    }

    /// Root, geometry and bytes that [`make`](Output::make) would write.
    fn root(&self, payload: &dyn Payload, options: &Options, context: &Context<'_>) -> Result<Written> {
        match self {
            Output::Folder(_, name) => root_of_shards(payload, name, options, context),
            Output::File(_) => root_of_container(payload, options, context),
        }
    }

    /// The output as an input.
    fn input(&self) -> Result<Input> {
        let input = Input::of_paths(&[self.path().to_path_buf()])?;
        if let Input::Several(objects) = &input {
            for object in objects {
                // An unreadable file may be any shard, which is no reason to make one anew.
                if let Content::Unreadable(e) = &object.content {
                    return Err(Error::io(
                        Action::Read,
                        object.place.as_path(),
                        io::Error::new(e.kind(), e.to_string()),
                    ));
                }
            }
        }
        Ok(input)
    }

    /// Checks every byte of the output, and makes anew whatever does not lead to the root of `wanted`; `None` if all
    /// does. `intact` receives the number of shards that were intact before.
    fn complete(
        &self,
        payload: &dyn Payload,
        wanted: &Written,
        policy: Policy,
        intact: &mut usize,
        context: &Context<'_>,
    ) -> Result<Option<Vec<PathBuf>>> {
        let input = self.input()?;
        let archive = match Archive::open(&input, Some(wanted.root), context) {
            Ok(archive) => archive,
            Err(error) => {
                let Some(EncodingError::NothingFound(found)) = error.cause() else { return Err(error) };
                self.check_read(&found.leftovers, policy)?;
                return Err(self.other(&input, wanted, found.others.clone(), context));
            }
        };
        // Two encodings in one place can be told apart only by a root, which a later reader may not have.
        if !archive.others().is_empty() || !archive.leftovers().others.is_empty() {
            return Err(Error::at(Action::Keep, self.path(), EncodingError::HoldsAnother));
        }
        let found = archive.examine(context)?;
        *intact = found.intact();
        if !found.is_intact() {
            self.check_read(archive.leftovers(), policy)?;
            let completed = archive.complete(payload, &found, policy, context);
            return completed.map(Some).map_err(|error| match error.cause() {
                Some(EncodingError::MetaLost) => Error::at(Action::Keep, self.path(), error.kind),
                _ => error,
            });
        }
        if policy.sync {
            self.sync(&input)?;
        }
        payload.check_unchanged()?;
        Ok(None)
    }

    /// Fails if something that may not be replaced could not be read: it may be intact, and another try may read it.
    fn check_read(&self, leftovers: &Leftovers, policy: Policy) -> Result<()> {
        let why = leftovers.unreadable.first().filter(|_| !policy.force);
        why.map_or(Ok(()), |why| Err(Error::io(Action::Read, self.path(), io::Error::other(why.clone()))))
    }

    /// The number of shards that are intact now.
    fn intact(&self, wanted: &Written, context: &Context<'_>) -> usize {
        let archive = self.input().and_then(|input| Archive::open(&input, Some(wanted.root), context));
        archive.and_then(|archive| archive.examine(context)).map_or(0, |found| found.intact())
    }

    /// Writes the kept files to the disk: their writer may not have waited for that.
    fn sync(&self, input: &Input) -> Result<()> {
        match input {
            Input::Several(objects) => {
                let files = objects.iter().filter(|object| matches!(object.content, Content::Bytes(..)));
                files.map(|object| object.place.as_path()).try_for_each(sync)?;
                sync(self.path())?;
            }
            Input::One(object) => sync(&object.place)?,
        }
        sync(parent(self.path()))
    }

    /// The error when nothing leads to the root of `wanted`.
    fn other(
        &self,
        input: &Input,
        wanted: &Written,
        others: Vec<fec_core::digest::Digest>,
        context: &Context<'_>,
    ) -> Error {
        if others.is_empty() {
            // The output holds no encoding, or none of which anything is left.
            let policy = Policy::new().with_sync(false);
            let refused = match self {
                Output::Folder(path, _) => FolderOut::check(path, policy),
                Output::File(path) => check_absent(path, policy),
            };
            return refused.err().unwrap_or_else(|| Error::at(Action::Read, self.path(), ErrorKind::Changed));
        }
        let archive = Archive::open(input, None, &context.silent());
        let differences = archive.ok().map(|archive| self.differences(&archive, wanted));
        let other = OtherEncoding { roots: others, wanted: wanted.root, differences };
        Error::at(Action::Keep, self.path(), EncodingError::OtherEncoding(Box::new(other)))
    }

    /// The parameters in which the encoding in the output differs.
    fn differences(&self, archive: &Archive, wanted: &Written) -> Vec<Difference> {
        let encoded: Encoded<'_> = archive.encoded();
        let (is, would_be) = (encoded.shape(), wanted.geometry.shape());
        let number = |number: u64| number.to_string();
        let mut differences = vec![
            ("form", archive.form().name().to_owned(), self.form().name().to_owned()),
            ("k", number(is.code.k() as u64), number(would_be.code.k() as u64)),
            ("m", number(is.code.m() as u64), number(would_be.code.m() as u64)),
            ("hash", is.hash.name().to_owned(), would_be.hash.name().to_owned()),
        ];
        if let Some(len) = encoded.payload_len {
            differences.push(("payload bytes", number(len), number(wanted.geometry.payload_len())));
            if len == wanted.geometry.payload_len() {
                let bytes = |shard_len: usize| number(shard_len as u64);
                differences.push(("shard bytes", bytes(is.shard_len), bytes(would_be.shard_len)));
            }
        }
        if let (Output::Folder(_, name), Some(recorded)) = (self, encoded.name()) {
            differences.push(("name", show_bytes(recorded), show_bytes(name)));
        }
        let differing = differences.into_iter().filter(|(_, is, would_be)| is != would_be);
        differing.map(|(what, is, would_be)| Difference { what, is, would_be }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Bytes that change once this many were read; the time stamp does not show it.
    struct Changing {
        bytes: Vec<u8>,
        read: AtomicU64,
        until: u64,
        /// The time stamp stays the same for this many checks.
        unchanged: AtomicU64,
    }

    impl Payload for Changing {
        fn size(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
            let before = self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
            out.copy_from_slice(&self.bytes[offset as usize..][..out.len()]);
            if before >= self.until {
                out[0] ^= 1;
            }
            Ok(())
        }

        fn check_unchanged(&self) -> Result<()> {
            let less = |times: u64| times.checked_sub(1);
            let is_unchanged = self.unchanged.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            is_unchanged.map(|_| ()).map_err(|_| Error::new(Action::Read, ErrorKind::Changed))
        }
    }

    fn state(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// The root comes from one pass over the payload and the missing shards from another; if the passes differ, nothing
    /// is written.
    #[test]
    fn a_payload_that_changes_between_the_passes() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, file) = (scratch.path().join("s"), scratch.path().join("c.fec"));
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i >> 3) as u8).collect();
        let options = Options { set_size: Some(20 << 10), ..Options::new(Code::new(4, 2).unwrap()) };
        let policy = Policy::new().with_sync(false);
        let context = Context::default();
        for output in [Output::Folder(&folder, b"name"), Output::File(&file)] {
            let run = |payload: &dyn Payload| encode(payload, output, policy, &options, &context);
            let (made, fate) = run(&bytes).unwrap();
            assert_eq!(fate, Fate::Made);
            match output {
                Output::Folder(..) => fs::remove_file(folder.join("name.001.shard")).unwrap(),
                Output::File(_) => {
                    let whole = fs::read(&file).unwrap();
                    fs::write(&file, &whole[..whole.len() - 9000]).unwrap();
                }
            }
            let at = if matches!(output, Output::File(_)) { scratch.path() } else { &folder };
            let list = || {
                if at == scratch.path() { vec![(file.clone(), fs::read(&file).unwrap())] } else { state(at) }
            };
            let before = list();
            let changing = |until, unchanged| Changing {
                bytes: bytes.clone(),
                read: AtomicU64::new(0),
                until,
                unchanged: AtomicU64::new(unchanged),
            };
            let error = run(&changing(bytes.len() as u64, u64::MAX)).unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Changed), "{error}");
            assert!(list() == before, "nothing is written");
            // Only the time stamp shows the change, after the first pass.
            let touched = || changing(u64::MAX, 1);
            assert!(matches!(run(&touched()).unwrap_err().kind, ErrorKind::Changed));
            assert!(list() == before, "nothing is written");
            let (completed, fate) = run(&bytes).unwrap();
            assert!(matches!(fate, Fate::Completed(files) if files.len() == 1));
            assert_eq!(completed.root, made.root);
            assert_eq!(run(&bytes).unwrap().1, Fate::Kept);
            let kept = run(&touched());
            assert!(
                kept.is_err_and(|error| matches!(error.kind, ErrorKind::Changed)),
                "what is kept is of before"
            );
        }
    }
}
