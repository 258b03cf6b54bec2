//! The guards of `protect`, `update` and `repair` by calls: files that change while they are read, space that is not
//! there, times to the nanosecond, permissions, and the length at which a sidecar is made anew.

use crate::bytes;
use fec_base::context::{Meter, Progress};
use fec_base::error::Action;
use fec_base::io::base::Base;
use fec_base::io::output::Policy;
use fec_sidecar::Redundancy;
use fec_sidecar::examine::{Scope, State, examine};
use fec_sidecar::protect::{Protect, protect};
use fec_sidecar::repair::{Mend, Mended, repair};
use fec_sidecar::update::{Anew, Updated, update};
use fec_sidecar::{Sidecar, SidecarError};
use fecfile::{Class, Context, Error, ErrorKind};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder `d`, and the place of its sidecar.
struct Place {
    home: tempfile::TempDir,
    paths: [PathBuf; 1],
    output: PathBuf,
}

impl Place {
    /// With a file for each name, of this length.
    fn new(names: &[&str], len: usize) -> Place {
        let home = tempfile::tempdir().expect("a folder");
        let (folder, output) = (home.path().join("d"), home.path().join("d.fecp"));
        fs::create_dir(&folder).expect("a folder");
        for (name, seed) in names.iter().zip(1..) {
            fs::write(folder.join(name), bytes(seed, len)).expect("a file");
        }
        Place { home, paths: [folder], output }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.paths[0].join(name)
    }

    fn job(&self, redundancy: Option<Redundancy>) -> Protect<'_> {
        Protect {
            redundancy,
            policy: Policy::new().with_sync(false),
            ..Protect::new(&self.paths, &self.output)
        }
    }

    fn protect(&self) {
        let _ = protect(&self.job(Redundancy::new(2_500)), &Context::default()).expect("it is protected");
    }

    fn update(&self) -> Updated {
        update(&self.job(None), (None, None), &Context::default()).expect("it is updated")
    }

    fn states(&self) -> Vec<State> {
        let sidecar = Sidecar::open(&self.output, None, &Context::default().settings).expect("it opens");
        let base = Base::open(self.home.path()).expect("a base");
        let found = examine(&sidecar, &base, Scope::All, &Context::default()).expect("it is examined");
        found.entries.iter().map(|entry| entry.state).collect()
    }

    fn repair(&self, how: &Mend<'_>) -> Result<Mended, Error> {
        let sidecar = Sidecar::open(&self.output, None, &Context::default().settings)?;
        repair(&sidecar, &Base::open(self.home.path()).expect("a base"), how, &Context::default())
    }

    /// The names beside the folder: nothing but the sidecar may stand there.
    fn beside(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
        let mut names: Vec<String> = names.filter(|name| name != "d").collect();
        names.sort();
        names
    }
}

/// Writes to a file and gives it this time back, as a rotting disk or a careful writer does.
fn write_with_time(path: &Path, at: u64, new: &[u8], time: SystemTime) {
    let file = File::options().write(true).open(path).expect("a file");
    file.write_all_at(new, at).expect("it is written");
    file.set_modified(time).expect("a time");
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|meta| meta.modified()).expect("a time")
}

/// Calls `act` when an action of this name has done all of its bytes.
struct AtTheEnd<'a> {
    action: Action,
    act: &'a (dyn Fn() + Sync),
}

struct Count<'a> {
    left: AtomicU64,
    act: Option<&'a (dyn Fn() + Sync)>,
}

impl Progress for AtTheEnd<'_> {
    fn begin(&self, action: Action, total: Option<u64>) -> Box<dyn Meter + '_> {
        let act = (action == self.action).then_some(self.act);
        Box::new(Count { left: AtomicU64::new(total.unwrap_or(0)), act })
    }
}

impl Meter for Count<'_> {
    fn add(&self, bytes: u64) {
        let left = self.left.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        if let Some(act) = self.act.filter(|_| left == 0) {
            act();
        }
    }
}

/// Runs `work` while `act` happens once, at the end of its action.
fn changed_meanwhile(
    action: Action,
    act: &(dyn Fn() + Sync),
    work: impl FnOnce(&Context<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let once = std::sync::Once::new();
    let act = || once.call_once(act);
    let done = work(&Context::default().with_progress(&AtTheEnd { action, act: &act }));
    assert!(once.is_completed(), "it happened");
    done
}

/// Whatever is done to a file that was read already: it is read again.
#[test]
fn a_file_that_changes_after_it_was_read_is_protected_as_it_is() {
    type Act = fn(&Path);
    let acts: [Act; 4] = [
        |path| fs::write(path, b"shorter").expect("it is written"),
        |path| write_with_time(path, 17, b"new", modified(path)),
        |path| {
            let other = path.with_extension("other");
            fs::write(&other, bytes(1, 30_000)).expect("it is written");
            File::options()
                .write(true)
                .open(&other)
                .and_then(|file| file.set_modified(modified(path)))
                .expect("a time");
            fs::rename(&other, path).expect("it is renamed");
        },
        |path| {
            let file = File::options().append(true).open(path).expect("a file");
            file.write_all_at(b"x", 30_000).expect("it grows");
        },
    ];
    for act in acts {
        let place = Place::new(&["a", "b"], 30_000);
        changed_meanwhile(Action::Protect, &|| act(&place.path("a")), |context| {
            protect(&place.job(None), context).map(drop)
        })
        .expect("it is read again");
        assert_eq!((place.beside(), place.states()), (vec!["d.fecp".to_owned()], vec![]));
        // An update reads the new file alone; the other one may not change either.
        let sidecar = fs::read(&place.output).expect("the sidecar");
        fs::write(place.path("c"), bytes(3, 10_000)).expect("a file");
        let updated = changed_meanwhile(Action::Update, &|| act(&place.path("b")), |context| {
            update(&place.job(None), (None, None), context).map(drop)
        });
        assert_eq!(place.beside(), ["d.fecp"]);
        if updated.is_ok() {
            // An edit that keeps the time of the file, whose mark is not recorded, is none.
            assert!(place.states().iter().all(|state| *state == State::Rotten), "{:?}", place.states());
            continue;
        }
        // Bytes that the first attempt had written behind the end do not count.
        assert!(updated.is_err_and(|error| error.class() == Class::Mendable));
        assert!(fs::read(&place.output).expect("the sidecar").starts_with(&sidecar));
    }
}

/// A sidecar that is larger than the disk does not begin: each block has 127 times as many bytes of recovery data.
#[test]
fn there_is_room_before_anything_is_read() {
    const BLOCK: u64 = 8 << 10;
    let place = Place::new(&[], 0);
    let free = rustix::fs::statvfs(place.home.path()).expect("the file system answers");
    let blocks = free.f_bavail * free.f_frsize / (127 * BLOCK) + 10;
    let file = File::create(place.path("sparse")).expect("a file");
    if blocks > 50_000 || file.set_len(17 << 30).is_err() {
        println!("skipped: the disk is too large, or has no files of 17 GiB");
        return;
    }
    (0..blocks).for_each(|nth| file.write_all_at(&[1], nth * BLOCK * 2).expect("a byte"));
    let error =
        protect(&place.job(Redundancy::new(1_270_000)), &Context::default()).expect_err("it does not fit");
    assert!(matches!(error.kind, ErrorKind::NoRoom { .. }), "{error}");
    assert_eq!(place.beside(), [""; 0]);
}

/// Times count to the nanosecond: a file with another one is read again.
#[test]
fn times_are_compared_to_the_nanosecond() {
    let place = Place::new(&["a", "b"], 20_000);
    let time = UNIX_EPOCH + Duration::new(1_600_000_000, 123_456_789);
    for name in ["a", "b"] {
        write_with_time(&place.path(name), 0, b"", time);
    }
    place.protect();
    write_with_time(&place.path("a"), 5_000, b"other", time + Duration::from_nanos(1));
    write_with_time(&place.path("b"), 0, b"", time + Duration::from_nanos(1));
    assert_eq!(place.states(), [State::Edited]);
    let updated = place.update();
    assert_eq!((updated.changed, updated.unchanged), (1, 1));
    assert!(place.states().is_empty());
    let sidecar = Sidecar::open(&place.output, None, &Context::default().settings).expect("it opens");
    let nanos: Vec<_> = sidecar.stats().entries.iter().map(|stat| stat.nanos).collect();
    assert!(nanos.ends_with(&[123_456_790, 123_456_790]), "{nanos:?}");
}

/// A file and a folder that nobody may write to come back as they were, time and permissions too.
#[test]
fn what_nobody_may_write_to_comes_back_as_it_was() {
    let place = Place::new(&["a", "b"], 20_000);
    let inner = place.path("inner");
    fs::create_dir(&inner).expect("a folder");
    let time = UNIX_EPOCH + Duration::new(1_500_000_000, 5);
    for (name, mode) in [("inner/run", 0o555), ("inner/kept", 0o444)] {
        fs::write(place.path(name), bytes(9, 3_000)).expect("a file");
        fs::set_permissions(place.path(name), Permissions::from_mode(mode)).expect("its mode");
        File::open(place.path(name)).and_then(|file| file.set_modified(time)).expect("a time");
    }
    File::open(&inner).and_then(|file| file.set_modified(time)).expect("a time");
    fs::set_permissions(&inner, Permissions::from_mode(0o555)).expect("its mode");
    place.protect();
    fs::set_permissions(&inner, Permissions::from_mode(0o755)).expect("its mode");
    fs::remove_dir_all(&inner).expect("it is removed");
    let mended = place.repair(&Mend::default()).expect("it is mended");
    assert!(mended.failed.is_empty() && mended.left.is_empty());
    for (name, mode) in [("inner", 0o555), ("inner/run", 0o555), ("inner/kept", 0o444)] {
        let meta = fs::metadata(place.path(name)).expect("it is back");
        assert_eq!((meta.mode() & 0o7777, meta.modified().ok()), (mode, Some(time)), "{name}");
    }
    assert!(place.states().is_empty());
}

/// A folder that cannot be made anew keeps nothing of a failed repair.
#[test]
fn a_folder_that_lost_too_much_is_not_dressed() {
    let place = Place::new(&["a", "b"], 60_000);
    let folder = place.paths[0].clone();
    place.protect();
    let (time, mode) = (UNIX_EPOCH + Duration::from_secs(1_400_000_000), 0o711);
    for name in ["a", "b"] {
        fs::remove_file(place.path(name)).expect("it is removed");
    }
    File::open(&folder).and_then(|file| file.set_modified(time)).expect("a time");
    fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("its mode");
    let error = place.repair(&Mend::default()).expect_err("too much is lost");
    assert!(matches!(error.cause(), Some(SidecarError::BeyondRepair { .. })), "{error}");
    let meta = fs::metadata(&folder).expect("the folder");
    assert_eq!((meta.mode() & 0o7777, meta.modified().ok()), (mode, Some(time)));
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0);
}

/// Updates append until the sidecar would be more than twice as long as a new one.
#[test]
fn a_sidecar_that_grew_too_long_is_made_anew() {
    let place = Place::new(&["a", "b", "c"], 40_000);
    place.protect();
    let new_len = fs::metadata(&place.output).expect("the sidecar").len();
    let mut anew = None;
    for round in 0..60u8 {
        fs::write(place.path("a"), bytes(100 + round, 40_000)).expect("a file");
        let updated = place.update();
        let len = fs::metadata(&place.output).expect("the sidecar").len();
        assert!(
            updated.written && len <= 2 * new_len + 8192,
            "round {round}: {len} bytes, and {new_len} of a new one"
        );
        assert!(place.states().is_empty());
        if updated.anew.is_some() {
            assert_eq!(len, new_len);
            anew = updated.anew;
            break;
        }
    }
    assert!(matches!(anew, Some(Anew::Long | Anew::Weak(_))), "{anew:?}");
}

/// Files that lost zeros alone have no damaged block. They get their length back, whatever they are cut to.
#[test]
fn zeros_that_were_cut_off_come_back() {
    let place = Place::new(&["noise"], 30_000);
    let files = [("zeros", vec![0; 700]), ("sparse", [bytes(5, 3_000), vec![0; 20_000]].concat())];
    for (name, content) in &files {
        fs::write(place.path(name), content).expect("a file");
    }
    place.protect();
    for (name, content) in &files {
        for len in [content.len() as u64 - 1, 300, 0] {
            if *name == "sparse" && len < 3_000 {
                continue;
            }
            File::options()
                .write(true)
                .open(place.path(name))
                .and_then(|file| file.set_len(len))
                .expect("it is cut");
            let mended = place.repair(&Mend { revert: true, ..Mend::default() }).expect("it is mended");
            assert!(mended.failed.is_empty() && mended.left.is_empty(), "{name} of {len} bytes");
            assert!(&fs::read(place.path(name)).expect("a file") == content, "{name} of {len} bytes");
            assert!(place.states().is_empty(), "{name} of {len} bytes");
        }
    }
}

/// Zeros that were cut off one file are known, and help to mend another in the same set.
#[test]
fn zeros_that_were_cut_off_mend_others() {
    let place = Place::new(&["noise"], 30_000);
    let zeros = [bytes(5, 3_000), vec![0; 2_700]].concat();
    fs::write(place.path("zeros"), &zeros).expect("a file");
    place.protect();
    let file = File::options().write(true).open(place.path("zeros")).expect("a file");
    // The block at the cut holds bytes and the first zeros.
    file.set_len(3_000).expect("it is cut");
    write_with_time(&place.path("noise"), 5_000, &[7; 2_000], modified(&place.path("noise")));
    let mended = place.repair(&Mend::default()).expect("it is mended");
    assert_eq!((mended.mended.len(), mended.left.len()), (1, 1));
    assert!(fs::read(place.path("noise")).expect("a file") == bytes(1, 30_000));
}

/// A set that does not fit into the allowed memory is refused, with the bytes that it needs.
#[test]
fn a_set_needs_the_memory_of_its_blocks() {
    let place = Place::new(&["a", "b"], 30_000);
    let within = |bytes| Context::new(Context::default().settings.with_memory(Some(bytes)));
    let protected = protect(&place.job(None), &within(1 << 20)).expect("it fits");
    let need = (protected.code.0 + protected.code.1) as u64 * u64::from(protected.block);
    fs::remove_file(&place.output).expect("the sidecar");
    let error = protect(&place.job(None), &within(need - 1)).expect_err("it does not fit");
    assert!(
        matches!(error.kind, ErrorKind::SetMemory { need: n, most } if (n, most) == (need, need - 1)),
        "{error}"
    );
    let _ = protect(&place.job(None), &within(need)).expect("it just fits");
    // An error about an existing sidecar names the action that was asked for.
    let error = protect(&place.job(None), &Context::default()).expect_err("it exists");
    assert!(matches!(error.kind, ErrorKind::Exists) && error.action == Action::Protect, "{error}");
    fs::rename(&place.output, place.home.path().join("away")).expect("it is renamed");
    std::os::unix::fs::symlink("away", &place.output).expect("a link");
    let error = update(&place.job(None), (None, None), &Context::default()).expect_err("a link");
    assert_eq!(error.action, Action::Update, "{error}");
}

/// A folder that a repair makes shows the names in it to nobody who may not read the sidecar.
#[test]
fn a_new_folder_is_as_private_as_the_sidecar() {
    let place = Place::new(&["a"], 9_000);
    fs::set_permissions(place.path("a"), Permissions::from_mode(0o600)).expect("its mode");
    place.protect();
    for (mode, expected) in [(0o600, 0o700), (0o640, 0o750)] {
        fs::set_permissions(&place.output, Permissions::from_mode(mode)).expect("its mode");
        let out = place.home.path().join(format!("out{mode}"));
        let mended = place.repair(&Mend { out: Some(&out), ..Mend::default() }).expect("it is written");
        assert!(mended.failed.is_empty());
        assert_eq!(fs::metadata(&out).expect("a folder").mode() & 0o777, expected);
    }
}
