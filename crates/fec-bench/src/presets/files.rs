//! Real files through the library. A file in a temporary folder is encoded, verified and decoded, and the stages of
//! each operation are timed.

use crate::error::{Error, Result};
use crate::lab::{Lab, megabits};
use crate::locate::{self, MEANING, MachineLimits, WhereTime};
use crate::random::Mmix;
use crate::slices::Slices;
use crate::table::{FigureTable, Findings, figure, key};
use fec_base::error::Action;
use fec_base::io::folder::Folder;
use fec_base::io::output::{Destination, Policy};
use fec_base::io::source::SourceFile;
use fec_base::io::temporary::Temporary;
use fec_base::program::stages::{self, Thread, Work};
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fecfile::payload::{Options, Source};
use fecfile::{Archive, Context, Input, Settings, Wish, encode};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// An operation on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileOperation {
    EncodeShards,
    EncodeContainer,
    VerifyShards,
    DecodeShards,
    DecodeContainer,
}

/// Operations by name, in an order in which each finds its input, and whether they wait until outputs are on the disk.
const OPERATIONS: [(&str, FileOperation, bool); 7] = [
    ("encode to shard files", FileOperation::EncodeShards, true),
    ("encode to shard files, no sync", FileOperation::EncodeShards, false),
    ("encode to a container", FileOperation::EncodeContainer, true),
    ("verify shard files", FileOperation::VerifyShards, true),
    ("decode shard files", FileOperation::DecodeShards, true),
    ("decode shard files, no sync", FileOperation::DecodeShards, false),
    ("decode a container", FileOperation::DecodeContainer, true),
];

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    let options = lab.options;
    let code = options.code()?;
    // Several runs of each tell more than one of a larger file.
    let payload = options.set_size.unwrap_or(if options.quick { 16 << 20 } else { 64 << 20 });
    let folder = options.folder.as_path();
    let failed = |e: io::Error| fecfile::Error::io(Action::WriteFilesIn, folder, e);
    let (guard, ()) =
        Temporary::beside(&folder.join("bench"), |path| fs::create_dir(path)).map_err(failed)?;
    let files = Files { folder: guard.path().to_path_buf(), code, settings: *lab.settings };
    files.write_payload(payload).map_err(failed)?;
    let work = Work { code, hash: HashKind::Blake3, backend: lab.settings.backend };
    // On the file system of the files, as `fec bench roof` measures it.
    let trial =
        File::options().read(true).write(true).create_new(true).open(files.at("trial")).map_err(failed)?;
    let limits = MachineLimits::measure(Some(work)).with_file(&trial);
    drop(trial);
    let [mut times, mut stages] = tables(payload, code);
    let mut notes = Vec::new();
    lab.plan(OPERATIONS.len());
    for (name, operation, sync) in OPERATIONS {
        let Some(share) = lab.share(name) else { continue };
        if name == "decode shard files" {
            files.lose(code.n() / 3).map_err(failed)?;
        }
        let (slices, threads) = repeat(lab, share, || files.run(operation, sync))?;
        let Some(time) = lab.note(&slices) else { continue };
        times.row([
            ("command", name.into()),
            ("time_ms", time.scaled(1e3).into()),
            ("megabits_per_second", megabits(payload, time.median).into()),
        ]);
        let told = WhereTime::new(&threads, &limits, Some(work));
        notes.push(format!("{name}: {}", told.verdict));
        add_stages(&mut stages, name, &told.table);
    }
    if !files.came_back() {
        return Err(Error::WrongFile);
    }
    Ok(Findings::new(vec![times, stages], notes))
}

/// Runs an operation until its time is up, at least once: later operations read its output. Returns the times, the
/// first of which is no figure if there is another, and the stages of the last run.
fn repeat(lab: &Lab, share: Duration, operation: impl Fn() -> Result<()>) -> Result<(Slices, Vec<Thread>)> {
    let began = Instant::now();
    let mut slices = Slices::new(1, true);
    loop {
        let mut last = None;
        slices.take(&mut || last = Some(stages::account(&operation)));
        let (done, threads) = last.expect("a slice is one call at least");
        done?;
        if began.elapsed() >= share || lab.stopped() {
            slices.forget_first();
            return Ok((slices, threads));
        }
    }
}

/// The tables of times and of stages, without rows.
fn tables(payload: u64, code: Code) -> [FigureTable; 2] {
    let times = FigureTable::new(
        "files",
        format!(
            "{payload} bytes as {} + {} shards: whole operations, the first third of the shards lost before decoding",
            code.k(),
            code.m()
        ),
        [
            key("command", "command"),
            figure("time_ms", "median ms", 1),
            figure("megabits_per_second", "Mb/s", 0),
        ],
    );
    let stages = FigureTable::new(
        "stages",
        format!("Stages of the last run of each: {MEANING}"),
        [key("command", "command"), key("stage", "stage")].into_iter().chain(locate::columns()),
    );
    [times, stages]
}

/// Adds the stages of an operation.
fn add_stages(stages: &mut FigureTable, name: &str, told: &FigureTable) {
    for row in &told.rows {
        stages.rows.push(row.clone());
        let last = stages.rows.last_mut().expect("it was just added");
        last.insert("command".to_owned(), name.into());
    }
}

/// A folder with a payload and the outputs of operations.
struct Files {
    folder: PathBuf,
    code: Code,
    settings: Settings,
}

impl Files {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write_payload(&self, len: u64) -> io::Result<()> {
        let mut bytes = vec![0; 1 << 20];
        let mut file = File::create(self.at("payload"))?;
        for start in (0..len).step_by(bytes.len()) {
            let piece = bytes.len().min((len - start) as usize);
            Mmix(start + 1).fill(&mut bytes[..piece]);
            file.write_all(&bytes[..piece])?;
        }
        file.sync_all()
    }

    /// Removes `count` of the shard files.
    fn lose(&self, count: usize) -> io::Result<()> {
        let mut files: Vec<_> =
            fs::read_dir(self.at("shards"))?.flatten().map(|entry| entry.path()).collect();
        files.sort_unstable();
        files.iter().take(count).try_for_each(fs::remove_file)
    }

    fn run(&self, operation: FileOperation, sync: bool) -> Result<()> {
        let context = Context::new(Settings { sync, ..self.settings });
        let policy = Policy::new().with_force(true).with_sync(sync);
        let options = Options::new(self.code);
        let payload = || SourceFile::open(&self.at("payload"), &context);
        match operation {
            FileOperation::EncodeShards => {
                let store = Folder::new(self.at("shards"), policy);
                encode::to_store(&payload()?, b"payload", &store, &options, &context)?;
            }
            FileOperation::EncodeContainer => {
                let path = self.at("payload.fec");
                encode::to_file(Source::Payload(&payload()?), &path, policy, &options, &context)?;
            }
            FileOperation::VerifyShards => {
                let verified = self.open("shards", &context)?.verify(false, &context)?;
                return verified.is_intact().then_some(()).ok_or(Error::WrongFile);
            }
            FileOperation::DecodeShards => self.decode("shards", policy, &context)?,
            FileOperation::DecodeContainer => self.decode("payload.fec", policy, &context)?,
        }
        Ok(())
    }

    fn open(&self, name: &str, context: &Context<'_>) -> Result<Archive> {
        Ok(Archive::open(&Input::of_paths(&[self.at(name)])?, None, context)?)
    }

    fn decode(&self, name: &str, policy: Policy, context: &Context<'_>) -> Result<()> {
        let archive = self.open(name, context)?;
        let restored =
            archive.restore(Destination::File(&self.at("back"), policy), Wish::default(), context)?;
        restored.is_whole().then_some(()).ok_or(Error::WrongFile)
    }

    /// Tells whether the last decoding, if there was one, gave the payload.
    fn came_back(&self) -> bool {
        let read = |name: &str| fs::read(self.at(name)).ok();
        !self.at("back").exists() || read("back") == read("payload")
    }
}
