//! The subject and the conditions of a measurement.

use crate::error::{Error, Result};
use crate::model::CacheHierarchy;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::gf256::kernel::Backend;
use fec_core::window::Profile;
use fec_live::loss::Loss;
use fecfile::Settings;
use std::path::PathBuf;
use std::time::Duration;

/// A kind of work to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A set in memory through encode, digests and tree, and back: phase by phase, for hashes and thread counts.
    Reference,
    /// Every backend: products, matrices, transforms and packet additions, in each cache and in memory.
    Kernels,
    /// Many short sets, singly and in batches, with one plan and with a plan for each.
    Batch,
    /// A sweep over k, m and the length of shards.
    Sets,
    /// Hash trees node by node and level by level, and whole sets of short shards.
    Tree,
    /// Real files through encode, verify and decode: read, code, hash, write, sync.
    Files,
    /// The best that the machine can do: memory by cache level, hashes, writing to the page cache.
    Roof,
    /// The cache model alone, beside a fixed number of rounds that an outside simulator can count.
    Model,
    /// Checks that the settings of this processor are within 5 % of the best: each other setting runs against them, in
    /// turn.
    Tuning,
    /// The sliding-window packet code over windows and blocks: packet additions of a row, and speed.
    Window,
    /// Live streams through lossy lines: encode, decode, recovery beside an ideal code; and the transport alone.
    Stream,
    /// Sealing: the ciphers on chunks, beside OpenSSL, and the cost of each recipient.
    Seal,
    /// Key encapsulation: one key a call and several, on one thread and on all.
    Kem,
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 13] = [
        Preset::Reference,
        Preset::Kernels,
        Preset::Batch,
        Preset::Sets,
        Preset::Tree,
        Preset::Files,
        Preset::Roof,
        Preset::Model,
        Preset::Tuning,
        Preset::Window,
        Preset::Stream,
        Preset::Seal,
        Preset::Kem,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Reference => "reference",
            Preset::Kernels => "kernels",
            Preset::Batch => "batch",
            Preset::Sets => "sets",
            Preset::Tree => "tree",
            Preset::Files => "files",
            Preset::Roof => "roof",
            Preset::Model => "model",
            Preset::Tuning => "tuning",
            Preset::Window => "window",
            Preset::Stream => "stream",
            Preset::Seal => "seal",
            Preset::Kem => "kem",
        }
    }
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns for a terminal.
    Table,
    /// A JSON object.
    Json,
    /// Comma-separated values, a block for each table.
    Csv,
    /// Markdown.
    Markdown,
    /// A row of the table in docs/boards.md, for [`Reference`](Preset::Reference).
    Board,
}

/// The subject and the conditions of a measurement. [`Options::new`] has the usual ones.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kind of work.
    pub preset: Preset,
    /// Threads, kernel and limits.
    pub settings: Settings,
    /// True if an earlier run kept the kernel's settings, so that they are not the usual ones.
    pub tuning_is_kept: bool,
    /// Presets that compare kernels measure only the one of `settings`.
    pub only_this_backend: bool,
    /// Presets that compare numbers of threads measure only that of `settings`.
    pub only_these_threads: bool,
    /// The hash of digests and roots; `None` is both, one after the other.
    pub hash: Option<HashKind>,
    /// Original shards of the set.
    pub k: u16,
    /// Recovery shards of the set.
    pub m: u16,
    /// Payload bytes of the set, or of the file for [`Files`](Preset::Files). `None` is a size that suits the preset.
    pub set_size: Option<u64>,
    /// Most slices of each figure, or rounds to run for [`Model`](Preset::Model).
    pub rounds: Option<u32>,
    /// Seconds that the run may take, about.
    pub budget: u32,
    /// Finishes within ten seconds, whatever the budget; presets with many figures take a part of them.
    pub quick: bool,
    /// Most bytes that the user allows for data; `None` is what suits the preset and the machine.
    pub max_memory: Option<u64>,
    /// The caches to be modelled.
    pub model: CacheHierarchy,
    /// A live stream with this profile in place of a set, for [`Model`](Preset::Model).
    pub profile: Option<Profile>,
    /// The folder of files with temporary names.
    pub folder: PathBuf,
    /// The losses of [`Stream`](Preset::Stream), one after the other; none are the usual three.
    pub losses: Vec<Loss>,
    /// The arguments of the command, which the report repeats.
    pub arguments: Vec<String>,
}

impl Options {
    /// A preset on this machine: 33 + 67 shards, 30 seconds, this machine's caches, files in the current folder.
    pub fn new(preset: Preset) -> Options {
        Options {
            preset,
            settings: Settings::new(),
            only_this_backend: false,
            only_these_threads: false,
            hash: None,
            k: 33,
            m: 67,
            set_size: None,
            rounds: None,
            budget: 30,
            quick: false,
            max_memory: None,
            model: CacheHierarchy::host(),
            profile: None,
            tuning_is_kept: false,
            folder: ".".into(),
            losses: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Time that the run may take.
    pub fn time(&self) -> Duration {
        // Five of the ten seconds that `quick` promises: warm-up and checks come on top.
        Duration::from_secs(if self.quick { 5 } else { self.budget.into() })
    }

    /// The kernels to be compared.
    pub(crate) fn backends(&self) -> Vec<Backend> {
        match self.only_this_backend {
            true => vec![self.settings.backend],
            false => Backend::available().collect(),
        }
    }

    /// The code of k and m.
    pub(crate) fn code(&self) -> Result<Code> {
        let (k, m) = (self.k, self.m);
        Code::new(k.into(), m.into()).map_err(|cause| Error::Code { k, m, cause })
    }
}
