//! A folder of files with its sidecar, and everything that is done to both: damage, edits, and the library's calls.

use fec_base::io::base::Base;
use fec_base::io::output::Policy;
use fec_core::digest::Digest;
use fec_core::format::sidecar::policy::Rules;
use fec_sidecar::Redundancy;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::{Examined, Scope, State, examine};
use fec_sidecar::protect::{Protect, Protected, Prune, protect};
use fec_sidecar::repair::{Mend, Mended, repair};
use fec_sidecar::update::{Updated, update};
use fecfile::{Class, Context, Error, Settings};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

#[path = "../support/files.rs"]
mod files;

pub(crate) use crate::vectors::payload;
pub(crate) use files::*;

pub(crate) fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO can be made");
}

/// The paths to protect, and the way to do it. The sidecar of `d` is `d.fecp`.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    pub(crate) paths: &'a [&'a str],
    pub(crate) output: &'a str,
    pub(crate) base: Option<&'a str>,
    /// Percent of the files.
    pub(crate) redundancy: Option<u32>,
    pub(crate) exclude: &'a [&'a str],
    pub(crate) exclude_caches: bool,
    pub(crate) forget_excludes: bool,
    pub(crate) known: &'a [Digest],
    pub(crate) sha256: bool,
    pub(crate) marks: bool,
    pub(crate) force: bool,
    pub(crate) rules: Option<&'a Rules>,
    pub(crate) prune: Prune,
    pub(crate) appends: bool,
    pub(crate) retired: Option<&'a Path>,
    /// The root that an updated sidecar has to have.
    pub(crate) root: Option<Digest>,
}

/// The usual way.
pub(crate) const USUAL: How<'static> = How {
    paths: &["d"],
    output: "d.fecp",
    base: None,
    redundancy: None,
    exclude: &[],
    exclude_caches: false,
    forget_excludes: false,
    known: &[],
    sha256: false,
    marks: false,
    force: false,
    rules: None,
    prune: Prune::Nothing,
    appends: false,
    retired: None,
    root: None,
};

/// The way that records times of change and inodes.
pub(crate) const MARKED: How<'static> = How { marks: true, ..USUAL };

impl Default for How<'_> {
    fn default() -> Self {
        USUAL
    }
}

impl How<'_> {
    pub(crate) fn forced() -> Self {
        How { force: true, ..How::default() }
    }

    pub(crate) fn of_percent(redundancy: u32) -> Self {
        How { redundancy: Some(redundancy), ..How::default() }
    }
}

/// A repair that writes over edits too.
pub(crate) fn reverting() -> Mend<'static> {
    Mend { revert: true, ..Mend::default() }
}

pub(crate) fn context() -> Context<'static> {
    Context::new(Settings { sync: false, ..Settings::new() })
}

/// A working folder for one test.
pub(crate) struct Arena {
    pub(crate) home: tempfile::TempDir,
}

impl Arena {
    pub(crate) fn new() -> Arena {
        Arena { home: tempfile::tempdir().expect("a scratch folder") }
    }

    /// With a folder `d` with entries of all kinds: six files, one of them of 20 blocks, folders and links.
    pub(crate) fn furnished() -> Arena {
        let arena = Arena::new();
        arena.write("d/large", &payload(1, 20_481));
        arena.write("d/small", &payload(2, 700));
        arena.write("d/empty", b"");
        arena.write("d/sub/deep/nested", &payload(3, 5000));
        arena.write("d/sub/tool", &payload(4, 1024));
        arena.write("d/sub/twin", &payload(1, 20_481));
        set_mode(&arena.path("d/sub/tool"), 0o750);
        fs::create_dir(arena.path("d/void")).unwrap();
        symlink("small", arena.path("d/link")).unwrap();
        symlink("nowhere/at all", arena.path("d/dangling")).unwrap();
        symlink("sub", arena.path("d/way")).unwrap();
        for (seconds, (path, seen)) in seen(&arena.path("d")).iter().enumerate() {
            if !matches!(seen.what, What::Link(_)) {
                age(&arena.path("d").join(path), seconds as u64);
            }
        }
        arena
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the work folder")).expect("a folder");
        fs::write(&path, bytes).expect("a scratch file");
        path
    }

    #[track_caller]
    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Calls `run` with the job that these options stand for.
    pub(crate) fn with_job<T>(&self, how: &How<'_>, run: impl FnOnce(&Protect<'_>) -> T) -> T {
        let paths: Vec<PathBuf> = how.paths.iter().map(|path| self.path(path)).collect();
        let (output, base) = (self.path(how.output), how.base.map(|base| self.path(base)));
        let exclude: Vec<String> = how.exclude.iter().map(|pattern| (*pattern).to_owned()).collect();
        run(&Protect {
            paths: &paths,
            output: &output,
            base: base.as_deref(),
            redundancy: how.redundancy.map(|percent| Redundancy::new(percent * 100).expect("a redundancy")),
            exclude: &exclude,
            exclude_caches: how.exclude_caches,
            forget_excludes: how.forget_excludes,
            known: how.known,
            rules: how.rules,
            prune: how.prune,
            one_file_system: false,
            appends: how.appends,
            retired: how.retired,
            sha256: how.sha256,
            marks: how.marks,
            policy: Policy::new().with_force(how.force).with_sync(false),
            sealing: None,
            keys: None,
        })
    }

    pub(crate) fn try_protect(&self, how: &How<'_>) -> Result<Protected, Error> {
        self.with_job(how, |job| protect(job, &context()))
    }

    #[track_caller]
    pub(crate) fn protect(&self, how: &How<'_>) -> Protected {
        self.try_protect(how).unwrap_or_else(|error| panic!("it is protected: {error}"))
    }

    pub(crate) fn try_update(&self, how: &How<'_>) -> Result<Updated, Error> {
        self.with_job(how, |job| update(job, (how.root, None), &context()))
    }

    /// Runs an update, which must succeed, only read `d`, and leave nothing temporary.
    #[track_caller]
    pub(crate) fn update(&self, how: &How<'_>) -> Updated {
        let before = seen(&self.path("d"));
        let updated = self.try_update(how).unwrap_or_else(|error| panic!("it is updated: {error}"));
        assert!(seen(&self.path("d")) == before, "what is protected is only read");
        self.nothing_temporary();
        updated
    }

    /// Runs something that must be refused with this class, and change nothing. Returns the words of the error.
    #[track_caller]
    pub(crate) fn refuses<T>(&self, class: Class, run: impl FnOnce() -> Result<T, Error>) -> String {
        let before = seen(self.home.path());
        let Err(error) = run() else { panic!("it is not refused") };
        assert_eq!(error.class(), class, "{error}");
        assert!(seen(self.home.path()) == before, "it changed something: {error}");
        error.to_string()
    }

    /// An update that is refused.
    #[track_caller]
    pub(crate) fn refuses_update(&self, how: &How<'_>, class: Class) -> String {
        self.refuses(class, || self.try_update(how))
    }

    #[track_caller]
    pub(crate) fn nothing_temporary(&self) {
        let left: Vec<_> = seen(self.home.path())
            .into_keys()
            .filter(|path| path.to_string_lossy().contains(".fec-"))
            .collect();
        assert!(left.is_empty(), "temporary files are left: {left:?}");
    }

    /// As [`Arena::nothing_temporary`], for somebody who may not read all files.
    #[track_caller]
    pub(crate) fn nothing_temporary_at_top(&self) {
        let names = fs::read_dir(self.home.path()).expect("a folder").map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".fec-")).collect();
        assert!(left.is_empty(), "temporary files are left: {left:?}");
    }

    pub(crate) fn base(&self) -> Base {
        Base::open(self.home.path()).expect("a base")
    }

    pub(crate) fn open(&self, root: Option<Digest>) -> Result<Sidecar, Error> {
        self.open_at("d.fecp", root)
    }

    pub(crate) fn open_at(&self, name: &str, root: Option<Digest>) -> Result<Sidecar, Error> {
        Sidecar::open(&self.path(name), root, &context().settings)
    }

    #[track_caller]
    pub(crate) fn root(&self) -> Digest {
        self.open(None).expect("it opens").root()
    }

    #[track_caller]
    pub(crate) fn examine(&self) -> (Sidecar, Examined) {
        let sidecar = self.open(None).unwrap_or_else(|error| panic!("it opens: {error}"));
        let found = examine(&sidecar, &self.base(), Scope::All, &context());
        let found = found.unwrap_or_else(|error| panic!("it is examined: {error}"));
        (sidecar, found)
    }

    /// The paths and states of entries that are not intact.
    #[track_caller]
    pub(crate) fn states(&self) -> Vec<(String, State)> {
        let (sidecar, found) = self.examine();
        states_of(&sidecar, &found)
    }

    #[track_caller]
    pub(crate) fn is_intact(&self) {
        let (sidecar, found) = self.examine();
        let damage = (&found.sidecar_damage, found.recovery_damaged, found.recovery_displaced);
        assert!(found.is_intact(), "{:?} {damage:?}", states_of(&sidecar, &found));
    }

    /// The lost bytes of a file, as pairs of offsets.
    #[track_caller]
    pub(crate) fn damage(&self, name: &str) -> Vec<(u64, u64)> {
        let (sidecar, found) = self.examine();
        let report = found.entries.iter().find(|report| *path_of(&sidecar, report.entry) == *name);
        let report = report.unwrap_or_else(|| panic!("{name} is intact"));
        report.damage.list().iter().map(|range| (range.start, range.end)).collect()
    }

    pub(crate) fn try_mend(&self, how: &Mend<'_>) -> Result<Mended, Error> {
        self.try_mend_at(None, how)
    }

    /// Repairs by this root.
    pub(crate) fn try_mend_at(&self, root: Option<Digest>, how: &Mend<'_>) -> Result<Mended, Error> {
        repair(&self.open(root)?, &self.base(), how, &context())
    }

    /// A repair that must mend everything, but for what somebody has changed.
    #[track_caller]
    pub(crate) fn mend(&self, how: &Mend<'_>) -> Mended {
        let mended = self.try_mend(how).unwrap_or_else(|error| panic!("it is mended: {error}"));
        assert!(mended.failed.is_empty() && mended.sidecar_left.is_none(), "{mended:?}");
        self.nothing_temporary();
        mended
    }

    /// A repair that must mend all.
    #[track_caller]
    pub(crate) fn mend_all(&self) -> Mended {
        let mended = self.mend(&Mend::default());
        assert!(mended.left.is_empty(), "{:?}", mended.left);
        mended
    }

    /// A repair that mends nothing and leaves what was edited.
    #[track_caller]
    pub(crate) fn leaves(&self, how: &Mend<'_>) -> Mended {
        let before = seen(self.home.path());
        let mended = self.mend(how);
        assert!(seen(self.home.path()) == before, "it changed something");
        mended
    }
}

/// The path of an entry.
pub(crate) fn path_of(sidecar: &Sidecar, entry: usize) -> String {
    let path = &sidecar.catalog().entries[entry].path;
    OsStr::from_bytes(path).to_string_lossy().into_owned()
}

pub(crate) fn states_of(sidecar: &Sidecar, found: &Examined) -> Vec<(String, State)> {
    found.entries.iter().map(|report| (path_of(sidecar, report.entry), report.state)).collect()
}

/// A path and a state, as [`Arena::states`] returns them.
pub(crate) fn pair(path: &str, state: State) -> (String, State) {
    (path.to_owned(), state)
}
