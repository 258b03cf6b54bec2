//! Copies of an encoding at the places of `--from`: whole shard files, or the container. Each is proved by the root
//! before it gets its name.

use super::mirrors::mirrors;
use crate::line::Repair;
use crate::run::target::made_of_inputs;
use crate::say::failure::Result;
use crate::say::mirrors::Fetched;
use crate::settings::Settings;
use fec_base::context::Context;
use fec_base::io::output::{FileOut, Policy};
use fec_base::io::temporary::parent;
use fec_base::names::{is_plain, show};
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::params::Form;
use fec_sidecar::repair::{self, Mirror, NoAnswer, OfMirror};
use fecfile::error::{Action, Error, ErrorKind};
use fecfile::report::{ShardReport, ShardState};
use fecfile::within::file_name;
use fecfile::{Archive, Input, Object};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of a request.
const PIECE: u64 = 2 << 20;
/// Objects that are fetched at the same time.
const TOGETHER: usize = 8;
/// A copy is left after as many wrong objects, or failures in a row.
const MOST_WRONG: u64 = 2;
const MOST_FAILURES: u32 = 3;

/// Fetches as many shard files as an encoding lacks, or the container if too little of it is left. Each takes its place
/// as soon as it is proved, so an interrupted run goes on. Returns what was fetched, and whether anything was.
///
/// # Errors
/// Those of the encoding, and of the files that are written. It is no error that a copy gives nothing.
pub(crate) fn complete(
    archive: &Archive,
    args: &Repair,
    (settings, context): (&Settings, &Context<'_>),
) -> Result<(Fetched, bool)> {
    let nothing = || Fetched::new(repair::Fetched::default());
    let Some(root) = archive.root() else { return Ok((nothing(), false)) };
    let found = archive.examine(context)?;
    let encoded = archive.encoded();
    let (k, payload) = (encoded.shape().code.k() as u32, encoded.known_len());
    let lacking = k.saturating_sub(found.weakest) as usize;
    let objects = match archive.form() {
        _ if lacking == 0 && encoded.payload_len.is_some() => Vec::new(),
        Form::Container => vec![container(args)],
        _ => shard_files(archive, args, &found.shards),
    };
    let need = if archive.form() == Form::Container { objects.len() } else { objects.len().min(lacking) };
    if need == 0 {
        return Ok((nothing(), false));
    }
    let list = mirrors(args, payload, settings)?;
    let told = |name: &str| {
        let of = OfMirror { name: name.to_owned(), ..OfMirror::default() };
        Told { of, failures: 0 }
    };
    let copies = Copies {
        told: Mutex::new(list.iter().map(|mirror| told(mirror.name())).collect()),
        list,
        root,
        // A container has recovery data too.
        most: payload.saturating_mul(8).saturating_add(1 << 30),
        policy: made_of_inputs(settings.policy(false), &args.inputs),
        context,
        error: Mutex::default(),
    };
    let done = copies.fetch(&objects, need);
    if let Some(error) = into_value(copies.error) {
        return Err(error.into());
    }
    let mirrors: Vec<OfMirror> = into_value(copies.told).into_iter().map(|told| told.of).collect();
    let taken: u64 = mirrors.iter().map(|of| of.taken).sum();
    let lacking = (need - done) as u64 * (payload / u64::from(k)).max(1);
    let fetched = repair::Fetched { wanted: taken + lacking, kept: 0, lacking, mirrors };
    Ok((Fetched::new(fetched), done > 0))
}

/// An object that is lacking.
struct Lacking {
    /// The path that it gets.
    path: PathBuf,
    /// The keys that it may have in a copy.
    keys: Vec<Vec<u8>>,
    /// The number of the shard; `None` for a container.
    shard: Option<u32>,
    /// True if a damaged file of this encoding stands there.
    replaces: bool,
}

/// The container that was named.
fn container(args: &Repair) -> Lacking {
    let path = args.inputs[0].clone();
    let name = path.file_name().unwrap_or_default().as_bytes().to_vec();
    Lacking { keys: vec![Vec::new(), name], path, shard: None, replaces: true }
}

/// The shard files that are missing or damaged, missing ones first.
fn shard_files(archive: &Archive, args: &Repair, shards: &[ShardReport]) -> Vec<Lacking> {
    let name = archive.name().unwrap_or_else(|| b"payload".to_vec());
    if !is_plain(&name) {
        return Vec::new();
    }
    let input = &args.inputs[0];
    let folder = if input.is_dir() { input.as_path() } else { parent(input) };
    let folder_name = folder.canonicalize().unwrap_or_default();
    let folder_name = folder_name.file_name().unwrap_or_default().as_bytes();
    let lacking = |shard: &ShardReport| {
        let file = file_name(&name, shard.index as usize);
        let path = folder.join(&file);
        let keys = vec![file.as_bytes().to_vec(), [folder_name, b"/", file.as_bytes()].concat()];
        let replaces = shard.files.contains(&show(&path));
        Lacking { path, keys, shard: Some(shard.index), replaces }
    };
    let of = |state| shards.iter().filter(move |shard| shard.state == state).map(lacking);
    of(ShardState::Missing).chain(of(ShardState::Damaged)).collect()
}

/// The record of a copy.
struct Told {
    of: OfMirror,
    failures: u32,
}

/// Copies, and how they are asked.
struct Copies<'a> {
    list: Vec<Box<dyn Mirror>>,
    told: Mutex<Vec<Told>>,
    root: Digest,
    /// Most bytes of an object.
    most: u64,
    policy: Policy,
    context: &'a Context<'a>,
    error: Mutex<Option<Error>>,
}

impl Copies<'_> {
    /// Fetches `need` of the objects, on several threads. Returns how many came.
    fn fetch(&self, objects: &[Lacking], need: usize) -> usize {
        // A thread claims one of those that are needed, and gives the claim back when no copy has the object.
        let (next, claimed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let threads = need.min(TOGETHER);
        Threads(threads).run(threads, &|_| {
            while lock(&self.error).is_none() {
                if claimed.fetch_add(1, Ordering::SeqCst) >= need {
                    claimed.fetch_sub(1, Ordering::SeqCst);
                    return;
                }
                let nth = next.fetch_add(1, Ordering::SeqCst);
                let has = objects.get(nth).map(|object| self.fetch_one(nth, object));
                if has != Some(true) {
                    claimed.fetch_sub(1, Ordering::SeqCst);
                }
                if has.is_none() {
                    return;
                }
            }
        });
        claimed.into_inner()
    }

    /// Fetches an object from the first copy that has it. Copies are asked in turn.
    fn fetch_one(&self, nth: usize, object: &Lacking) -> bool {
        let mut mirrors = (0..self.list.len()).map(|at| (nth + at) % self.list.len());
        mirrors.any(|mirror| {
            let is_left = lock(&self.told)[mirror].of.left.is_some();
            !is_left && self.fetch_from(mirror, object)
        })
    }

    /// Fetches an object from a copy, and notes how that went.
    fn fetch_from(&self, mirror: usize, object: &Lacking) -> bool {
        let absent = || Err(NoAnswer::Absent);
        let mut keys = object.keys.iter().map(|key| self.download(mirror, object, key));
        let done = keys.find(|done| !matches!(done, Err(NoAnswer::Absent))).unwrap_or_else(absent);
        let told = &mut lock(&self.told)[mirror];
        match done {
            Err(NoAnswer::Failed(why) | NoAnswer::Denied(why)) => {
                told.failures += 1;
                if told.failures >= MOST_FAILURES {
                    told.of.left = Some(why);
                }
            }
            Err(NoAnswer::Absent | NoAnswer::Short | NoAnswer::Broken(_) | NoAnswer::Cancelled) => {}
            Ok(None) => {
                told.of.wrong += 1;
                if told.of.wrong >= MOST_WRONG {
                    told.of.left = Some("its bytes are not those that are asked for".to_owned());
                }
            }
            Ok(Some(taken)) => {
                told.failures = 0;
                told.of.taken += taken;
                return true;
            }
        }
        false
    }

    /// Downloads an object, and gives it its name if it is right. `None`: it is not.
    fn download(
        &self,
        mirror: usize,
        object: &Lacking,
        key: &[u8],
    ) -> std::result::Result<Option<u64>, NoAnswer> {
        let cancel = self.context.cancel.cloned().unwrap_or_default();
        let of = &self.list[mirror];
        self.count(mirror, 0);
        let len = of.len(key, &cancel)?;
        if len > self.most {
            return Err(NoAnswer::Failed(format!("{len} bytes are too many")));
        }
        let policy = self.policy.with_force(object.replaces);
        let out = FileOut::create(&object.path, policy).map_err(|error| self.fails(error))?;
        let mut bytes = vec![0; PIECE.min(len) as usize];
        for at in (0..len).step_by(PIECE as usize) {
            let piece = &mut bytes[..PIECE.min(len - at) as usize];
            of.read(key, at, piece, &cancel)?;
            self.count(mirror, piece.len() as u64);
            out.put(at, piece).map_err(|error| self.fails(error))?;
        }
        if !self.is_right(&out, len, object).map_err(|error| self.fails(error))? {
            return Ok(None);
        }
        out.commit(len).map_err(|error| self.fails(error))?;
        Ok(Some(len))
    }

    /// Counts a request and the bytes that came.
    fn count(&self, mirror: usize, bytes: u64) {
        let told = &mut lock(&self.told)[mirror];
        told.of.requests += 1;
        told.of.received += bytes;
    }

    /// Tells whether a download is the shard that it should be, whole, or a container that can be restored.
    fn is_right(&self, out: &FileOut, len: u64, object: &Lacking) -> fecfile::Result<bool> {
        let fail = |e| Error::io(Action::Read, object.path.as_path(), e);
        out.file().set_len(len).map_err(fail)?;
        let file = out.file().try_clone().map_err(fail)?;
        let input = Input::One(Object::new(&object.path, Arc::new(file)).map_err(fail)?);
        let context = self.context.silent();
        let Ok(archive) = Archive::open(&input, Some(self.root), &context) else { return Ok(false) };
        let verified = archive.verify(false, &context)?;
        let is_it = |shard: &ShardReport| Some(shard.index) == object.shard;
        Ok(match object.shard {
            Some(_) => {
                archive.is_one_shard() && verified.is_intact() && verified.found.shards.iter().all(is_it)
            }
            None => archive.form() == Form::Container && verified.is_restorable == Some(true),
        })
    }

    /// Notes an error that ends the work. A file that stands in the way of one shard is none of the others.
    fn fails(&self, error: Error) -> NoAnswer {
        if !matches!(error.kind, ErrorKind::Exists) {
            lock(&self.error).get_or_insert(error);
        }
        NoAnswer::Cancelled
    }
}
