//! Copies of an encoding at the places of `--from`: whole shard files, or the container. Each is proved by the root
//! before it gets its name, and gets the signatures that are here.
//!
//! Nothing that is here is written over. A damaged shard file is made anew by the ordinary repair, from a copy that
//! lies beside it until then. A container of which too little is left is moved aside: it may hold something else too.

use super::mirrors::mirrors;
use crate::line::Repair;
use crate::run::target::made_of_inputs;
use crate::say::failure::{Failure, Result};
use crate::say::mirrors::Fetched;
use crate::settings::Settings;
use fec_base::context::Context;
use fec_base::io::look::Over;
use fec_base::io::output::{FileOut, Policy, check_room};
use fec_base::io::system::rename;
use fec_base::io::temporary::parent;
use fec_base::names::{is_plain, show};
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::annex;
use fec_core::params::Form;
use fec_keys::sign::Signatures;
use fec_sidecar::mirrors::{self, Mirror, NoAnswer, OfMirror};
use fecfile::error::{Action, Error, ErrorKind};
use fecfile::report::{ShardReport, ShardState};
use fecfile::within::file_name;
use fecfile::{Archive, Input, Object};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Bytes of a request.
const PIECE: u64 = 2 << 20;
/// Objects that are fetched at the same time.
const TOGETHER: usize = 8;
/// A copy is left after as many wrong objects, or failures in a row.
const MOST_WRONG: u64 = 2;
const MOST_FAILURES: u32 = 3;
const WRONG: &str = "its bytes are not those that are asked for";
/// Bytes that an object may have beside those of its payload.
const LEAST_ROOM: u64 = 4 << 20;

/// The files that came from copies.
pub(crate) struct Completed {
    pub(crate) fetched: Fetched,
    /// The files that came.
    pub(crate) files: Vec<PathBuf>,
    /// Those of them that lie beside damaged ones until these are made anew.
    beside: Vec<PathBuf>,
    /// The path of the damaged container now.
    pub(crate) aside: Option<PathBuf>,
}

impl Completed {
    /// Removes the files that were needed by the repair alone.
    pub(crate) fn end(&self) {
        self.beside.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}

/// Fetches as many shard files as an encoding lacks, or the container if too little of it is left.
///
/// # Errors
/// Those of the encoding, and of the files that are written. It is no error that a copy gives nothing.
pub(crate) fn complete(
    archive: &Archive,
    args: &Repair,
    (settings, context): (&Settings, &Context<'_>),
) -> Result<Completed> {
    let nothing =
        Completed { fetched: Fetched::default(), files: Vec::new(), beside: Vec::new(), aside: None };
    let Some(root) = archive.root() else { return Ok(nothing) };
    let found = archive.examine(context)?;
    let encoded = archive.encoded();
    let (code, payload) = (encoded.shape().code, encoded.known_len());
    let (k, n) = (code.k() as u64, code.n() as u64);
    let lacking = k.saturating_sub(found.weakest.into()) as usize;
    let is_container = archive.form() == Form::Container;
    let objects = match is_container {
        _ if lacking == 0 && encoded.payload_len.is_some() => Vec::new(),
        true => container(args).into_iter().collect(),
        false => shard_files(archive, args, &found.shards),
    };
    let need = if is_container { objects.len() } else { objects.len().min(lacking) };
    if need == 0 {
        return Ok(nothing);
    }
    let list = mirrors(args, payload, settings)?;
    let told = |name: &str| {
        let of = OfMirror { name: name.to_owned(), ..OfMirror::default() };
        Told { of, failures: 0, why: None }
    };
    let copies = Copies {
        told: Mutex::new(list.iter().map(|mirror| told(mirror.name())).collect()),
        list,
        root,
        signatures: archive.signatures(),
        // Proofs, outlines and seals take far less than as much again. A container that was cut has any length.
        most: match encoded.payload_len {
            None => u64::MAX,
            Some(payload) if is_container => LEAST_ROOM + 2 * (payload.saturating_mul(n) / k),
            Some(payload) => LEAST_ROOM + 2 * (payload / k),
        },
        policy: made_of_inputs(settings.policy(false), &args.inputs),
        context,
        error: Mutex::default(),
        came: Mutex::default(),
    };
    copies.fetch(&objects, need);
    let mut came = into_value(copies.came);
    let is_beside = |path: &&PathBuf| objects.iter().any(|object| object.is_beside && object.path == **path);
    let beside: Vec<PathBuf> = came.iter().filter(is_beside).cloned().collect();
    if let Some(error) = into_value(copies.error) {
        beside.iter().for_each(|path| drop(fs::remove_file(path)));
        return Err(error.into());
    }
    let aside = match came.first_mut().filter(|_| is_container) {
        Some(came) => Some(put_in_place(std::mem::replace(came, args.inputs[0].clone()), &args.inputs[0])?),
        None => None,
    };
    let mirrors: Vec<OfMirror> = into_value(copies.told).into_iter().map(Told::concluded).collect();
    let beside = if is_container { Vec::new() } else { beside };
    let each = if is_container { payload } else { payload / k }.max(1);
    let lacking = (need - came.len()) as u64 * each;
    let wanted = mirrors.iter().map(|of| of.taken).sum::<u64>() + lacking;
    let fetched = Fetched::new(mirrors::Fetched { wanted, kept: 0, lacking, mirrors });
    Ok(Completed { fetched, files: came, beside, aside })
}

/// Moves a damaged container aside, and gives its name to the one that was fetched. Returns the path that it has now.
fn put_in_place(fetched: PathBuf, path: &Path) -> Result<PathBuf> {
    let aside = with_ending(path, ".damaged");
    let moved = match aside.symlink_metadata() {
        Ok(_) => {
            let what = format!("repair: {} is in the way of the damaged container", show(&aside));
            Err(Failure::usage(what).help("move it, and run the command again"))
        }
        // A file that somebody puts there meanwhile keeps its name.
        Err(_) => rename(path, &aside, Over::Nothing)
            .and_then(|()| {
                let named = rename(&fetched, path, Over::Nothing);
                named.inspect_err(|_| drop(rename(&aside, path, Over::Nothing)))
            })
            .map_err(|e| Failure::io(Action::Replace, path, e)),
    };
    if moved.is_err() {
        let _ = fs::remove_file(&fetched);
    }
    moved.map(|()| aside)
}

/// A path with an ending behind its name.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// An object that is lacking.
struct Lacking {
    /// The path that it gets.
    path: PathBuf,
    /// The keys that it may have in a copy.
    keys: Vec<Vec<u8>>,
    /// The number of the shard; `None` for a container.
    shard: Option<u32>,
    /// True if it lies beside a damaged file of this shard.
    is_beside: bool,
}

/// The container that was named, if it is a file of its own.
fn container(args: &Repair) -> Option<Lacking> {
    let [path] = &args.inputs[..] else { return None };
    let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    let name = path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
    let path = with_ending(path, ".fetched");
    is_file.then(|| Lacking { keys: vec![Vec::new(), name], path, shard: None, is_beside: true })
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
    let folder_name = folder_name.file_name().unwrap_or_default().as_encoded_bytes();
    let lacking = |shard: &ShardReport| {
        let file = file_name(&name, shard.index as usize);
        let is_beside = shard.state == ShardState::Damaged;
        let path = with_ending(&folder.join(&file), if is_beside { ".fetched" } else { "" });
        let keys =
            vec![file.as_encoded_bytes().to_vec(), [folder_name, b"/", file.as_encoded_bytes()].concat()];
        Lacking { path, keys, shard: Some(shard.index), is_beside }
    };
    let of = |state| shards.iter().filter(move |shard| shard.state == state).map(lacking);
    of(ShardState::Missing).chain(of(ShardState::Damaged)).collect()
}

/// The record of a copy.
struct Told {
    of: OfMirror,
    failures: u32,
    /// Why it gave nothing the last time.
    why: Option<String>,
}

impl Told {
    /// The part of the copy, with the reason if it gave nothing.
    fn concluded(self) -> OfMirror {
        let why = self.why.filter(|_| self.of.taken == 0);
        OfMirror { left: self.of.left.or(why), ..self.of }
    }
}

/// Copies, and how they are asked.
struct Copies<'a> {
    list: Vec<Box<dyn Mirror>>,
    told: Mutex<Vec<Told>>,
    root: Digest,
    /// The signatures that are here.
    signatures: &'a Signatures,
    /// Most bytes of an object.
    most: u64,
    policy: Policy,
    context: &'a Context<'a>,
    error: Mutex<Option<Error>>,
    /// The files that came.
    came: Mutex<Vec<PathBuf>>,
}

impl Copies<'_> {
    /// Fetches `need` of the objects, on several threads.
    fn fetch(&self, objects: &[Lacking], need: usize) {
        // The objects that were taken, and how many of them came or may still come.
        let taken = Mutex::new((0, 0));
        let take = || {
            let mut taken = lock(&taken);
            let object = objects.get(taken.0).filter(|_| taken.1 < need)?;
            *taken = (taken.0 + 1, taken.1 + 1);
            Some(object)
        };
        let threads = need.min(TOGETHER);
        Threads(threads).run(threads, &|_| {
            while let Some(object) = take().filter(|_| lock(&self.error).is_none()) {
                match self.fetch_one(object) {
                    true => lock(&self.came).push(object.path.clone()),
                    false => lock(&taken).1 -= 1,
                }
            }
        });
    }

    /// Fetches an object from the first copy that has it. Copies are asked in turn.
    fn fetch_one(&self, object: &Lacking) -> bool {
        let nth = object.shard.unwrap_or(0) as usize;
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
            Err(NoAnswer::Failed(why) | NoAnswer::Denied(why) | NoAnswer::Broken(why)) => {
                told.failures += 1;
                if told.failures >= MOST_FAILURES {
                    told.of.left = Some(why.clone());
                }
                told.why = Some(why);
            }
            Err(NoAnswer::Absent | NoAnswer::Short | NoAnswer::Cancelled) => {}
            Ok(None) => {
                told.of.wrong += 1;
                told.why = Some(WRONG.to_owned());
                if told.of.wrong >= MOST_WRONG {
                    told.of.left = Some(WRONG.to_owned());
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
        check_room(&object.path, len).map_err(|error| NoAnswer::Failed(error.to_string()))?;
        let out = FileOut::create(&object.path, self.policy).map_err(|error| self.fails(error))?;
        let mut bytes = vec![0; PIECE.min(len) as usize];
        for at in (0..len).step_by(PIECE as usize) {
            let piece = &mut bytes[..PIECE.min(len - at) as usize];
            of.read(key, at, piece, &cancel)?;
            self.count(mirror, piece.len() as u64);
            // Nothing of it is proved: a lie may be larger than the disk.
            out.put(at, piece).map_err(|error| NoAnswer::Failed(error.to_string()))?;
        }
        let right = self.right(&out, len, object).map_err(|error| self.fails(error))?;
        let Some(annexes) = right else { return Ok(None) };
        out.put(len, &annexes).map_err(|error| self.fails(error))?;
        out.commit(len + annexes.len() as u64).map_err(|error| self.fails(error))?;
        Ok(Some(len))
    }

    /// Counts a request and the bytes that came.
    fn count(&self, mirror: usize, bytes: u64) {
        let told = &mut lock(&self.told)[mirror];
        told.of.requests += 1;
        told.of.received += bytes;
    }

    /// The annexes with the signatures that are here and not in a download, if it is the shard that it should be,
    /// whole, or a container that can be restored.
    fn right(&self, out: &FileOut, len: u64, object: &Lacking) -> fecfile::Result<Option<Vec<u8>>> {
        let fail = |e| Error::io(Action::Read, object.path.as_path(), e);
        out.file().set_len(len).map_err(fail)?;
        let file = out.file().try_clone().map_err(fail)?;
        let input = Input::One(Object::new(&object.path, Arc::new(file)).map_err(fail)?);
        let context = self.context.silent();
        let Ok(archive) = Archive::open(&input, Some(self.root), &context) else { return Ok(None) };
        let verified = archive.verify(false, &context)?;
        let is_it = |shard: &ShardReport| Some(shard.index) == object.shard;
        let is_right = match object.shard {
            Some(_) => {
                archive.is_one_shard() && verified.is_intact() && verified.found.shards.iter().all(is_it)
            }
            None => archive.form() == Form::Container && verified.is_restorable == Some(true),
        };
        let lacking = self.signatures.iter().filter(|signature| !archive.signatures().has(signature));
        let annexes =
            lacking.flat_map(|signature| annex::write(annex::SIGNATURE, signature.text().as_bytes()));
        Ok(is_right.then(|| annexes.collect()))
    }

    /// Notes an error of the system, which ends the work. A file that stands in the way of one shard is none of the
    /// others.
    fn fails(&self, error: Error) -> NoAnswer {
        if matches!(error.kind, ErrorKind::Io(_) | ErrorKind::NoRoom { .. } | ErrorKind::NotSynced(_)) {
            lock(&self.error).get_or_insert(error);
        }
        NoAnswer::Cancelled
    }
}
