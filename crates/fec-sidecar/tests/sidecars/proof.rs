//! Proofs of sidecars, and sidecars that contradict themselves.

use crate::bytes;
use crate::recode::Recoded;
use fec_base::io::base::Base;
use fec_base::io::output::Policy;
use fec_keys::age::Keys;
use fec_keys::sign::{SecretKey, Signature, Trust};
use fec_sidecar::Redundancy;
use fec_sidecar::examine::{Examined, Scope, State, examine, examine_deep};
use fec_sidecar::protect::{Protect, Protected, protect};
use fec_sidecar::repair::{Mend, Mended, repair};
use fec_sidecar::update::update;
use fec_sidecar::{Proof, Sidecar};
use fecfile::{Class, Context, Error};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A folder `d` with a large, a small and a private file, and its sidecar.
struct Place {
    home: tempfile::TempDir,
    protected: Protected,
}

const LEN: usize = 40_000;

impl Place {
    fn new() -> Place {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("d");
        fs::create_dir(&folder).expect("a folder");
        for (name, seed, len) in [("large", 1, LEN), ("small", 2, 300), ("private", 3, 500)] {
            fs::write(folder.join(name), bytes(seed, len)).expect("a file");
        }
        fs::set_permissions(folder.join("private"), fs::Permissions::from_mode(0o600)).expect("its mode");
        let protected = run_protect(home.path().join("d.fecp"), folder, false).expect("it is protected");
        Place { home, protected }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    fn recode(&self, change: impl FnOnce(Recoded) -> Recoded) {
        let bytes = change(Recoded::of(&self.read("d.fecp"))).build();
        fs::write(self.path("d.fecp"), bytes).expect("the sidecar");
    }

    /// Flips a bit of a file as a rotting disk does: the file's time stays.
    fn rot(&self, name: &str, at: u64) {
        let file = File::options().read(true).write(true).open(self.path(name)).expect("a file");
        let modified = file.metadata().and_then(|meta| meta.modified()).expect("a time");
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("a byte");
        file.write_all_at(&[byte[0] ^ 1], at).expect("a byte");
        file.set_modified(modified).expect("a time");
    }

    /// Makes the sidecar younger than the file's change time. A change by the test sets that time; rot of a disk would
    /// not.
    fn age(&self, name: &str) {
        let (file, sidecar) = (self.path(name), self.path("d.fecp"));
        let changed =
            |path: &PathBuf| fs::metadata(path).map(|meta| (meta.ctime(), meta.ctime_nsec())).unwrap();
        while changed(&sidecar) <= changed(&file) {
            std::thread::sleep(Duration::from_millis(2));
            fs::set_permissions(&sidecar, fs::metadata(&sidecar).unwrap().permissions()).unwrap();
        }
    }

    fn base(&self) -> Base {
        Base::open(self.home.path()).expect("a base")
    }

    fn open(&self, known: &[[u8; 32]]) -> Sidecar {
        Sidecar::open_known(&self.path("d.fecp"), self.protected.root, known, &Context::default().settings)
            .expect("it opens")
    }

    fn open_signed(&self, signature: &Signature, key: &SecretKey) -> Result<Sidecar, Error> {
        let trust = Trust { signers: vec![key.signer()], detached: vec![signature.clone()] };
        let settings = Context::default().settings;
        Sidecar::open_signed(&self.path("d.fecp"), None, &trust, &settings).map(|(sidecar, _)| sidecar)
    }

    fn mend(&self, sidecar: &Sidecar, how: &Mend<'_>) -> Result<Mended, Error> {
        repair(sidecar, &self.base(), how, &Context::default())
    }

    fn deep(&self) -> Result<Examined, Error> {
        let sidecar = Sidecar::open(&self.path("d.fecp"), None, &Context::default().settings)?;
        examine_deep(&sidecar, &self.base(), &Context::default())
    }

    fn mended(&self, how: &Mend<'_>) -> Result<Mended, Error> {
        let sidecar = Sidecar::open(&self.path("d.fecp"), None, &Context::default().settings)?;
        self.mend(&sidecar, how)
    }

    fn nothing_is_left(&self) {
        let names: Vec<_> =
            fs::read_dir(self.home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| name == "d" || name == "d.fecp" || name == "copy"), "{names:?}");
    }
}

fn job(output: &Path, paths: &[PathBuf], force: bool) -> Protect<'static> {
    // The leaked values live as long as the test.
    Protect {
        redundancy: Redundancy::new(10_000),
        policy: Policy::new().with_force(force).with_sync(false),
        keys: None::<&Keys>,
        ..Protect::new(
            Box::leak(paths.to_vec().into_boxed_slice()),
            Box::leak(output.to_path_buf().into_boxed_path()),
        )
    }
}

fn run_protect(output: PathBuf, folder: PathBuf, force: bool) -> Result<Protected, Error> {
    protect(&job(&output, &[folder], force), &Context::default())
}

fn states(place: &Place, sidecar: &Sidecar) -> Vec<State> {
    let found = examine(sidecar, &place.base(), Scope::All, &Context::default()).expect("it is looked at");
    found.entries.iter().map(|report| report.state).collect()
}

/// A user edits a file, and an attacker records the time of the edit in the sidecar, under the same root.
fn edited_and_forged() -> (Place, Vec<u8>) {
    let place = Place::new();
    std::thread::sleep(Duration::from_millis(20));
    let edit = [b"an edit".as_slice(), &bytes(1, LEN)[7..]].concat();
    fs::write(place.path("d/large"), &edit).unwrap();
    let meta = fs::metadata(place.path("d/large")).unwrap();
    place.recode(|sidecar| {
        sidecar.restamped(|path, stat| {
            if path == b"d/large" {
                (stat.seconds, stat.nanos) = (meta.mtime(), meta.mtime_nsec() as u32);
            }
        })
    });
    place.age("d/large");
    (place, edit)
}

#[test]
fn a_forged_time_makes_no_rot_of_an_edit() {
    let (place, edit) = edited_and_forged();
    let e = place.protected.metadata.expect("it is not sealed");
    // No known metadata root is that of the forged metadata.
    for known in [&[][..], &[e]] {
        let sidecar = place.open(known);
        assert_eq!((sidecar.proof(), states(&place, &sidecar)), (Proof::Root, vec![State::Edited]));
        let mended = place.mend(&sidecar, &Mend::default()).unwrap();
        assert_eq!((mended.left.len(), mended.mended.len(), mended.found.unproved), (1, 0, 1));
        assert!(place.read("d/large") == edit);
    }
    // The signature binds other metadata. An old signature binds the root alone.
    let key = SecretKey::generate().unwrap();
    let refused = place.open_signed(&key.sign_sidecar(&place.protected.root, &e), &key).unwrap_err();
    assert_eq!(refused.class(), Class::Untrue, "{refused}");
    let sidecar = place.open_signed(&key.sign_root(&place.protected.root), &key).unwrap();
    assert_eq!((sidecar.proof(), states(&place, &sidecar)), (Proof::Root, vec![State::Edited]));
    // Without a root nothing is proved, and the sidecar is believed as it is.
    let believed = Sidecar::open(&place.path("d.fecp"), None, &Context::default().settings).unwrap();
    assert_eq!((believed.proof(), states(&place, &believed)), (Proof::Nothing, vec![State::Rotten]));
    // The user may order the revert.
    let reverted = place.mend(&place.open(&[]), &Mend { revert: true, ..Mend::default() }).unwrap();
    assert_eq!((reverted.mended.len(), place.read("d/large") == bytes(1, LEN)), (1, true));
    place.nothing_is_left();
}

#[test]
fn rot_is_mended_where_the_time_is_proved() {
    let place = Place::new();
    let e = place.protected.metadata.unwrap();
    let key = SecretKey::generate().unwrap();
    let signature = key.sign_sidecar(&place.protected.root, &e);
    for nth in 0..2 {
        place.rot("d/large", 9000);
        // A change time after the sidecar's means an edit, not rot.
        let open = || match nth {
            0 => place.open(&[[7; 32], e]),
            _ => place.open_signed(&signature, &key).unwrap(),
        };
        let sidecar = open();
        assert_eq!((sidecar.proof(), states(&place, &sidecar)), (Proof::Metadata, vec![State::Edited]));
        place.age("d/large");
        assert_eq!(states(&place, &open()), [State::Rotten]);
        assert_eq!(place.mend(&open(), &Mend::default()).unwrap().mended.len(), 1);
        assert!(place.read("d/large") == bytes(1, LEN));
        place.nothing_is_left();
    }
}

/// A later generation of the same root wins, unless the metadata of an earlier one was signed or is known.
#[test]
fn a_later_generation_of_the_same_root_is_not_what_was_signed() {
    let place = Place::new();
    let (root, e) = (place.protected.root, place.protected.metadata.unwrap());
    let later = Recoded::of(&place.read("d.fecp")).restamped(|_, stat| stat.mode = 0o777).as_later();
    fs::write(place.path("d.fecp"), [place.read("d.fecp"), later].concat()).unwrap();
    assert_eq!(place.open(&[]).generation(), 2);
    assert_eq!((place.open(&[e]).generation(), place.open(&[e]).proof()), (1, Proof::Metadata));
    let key = SecretKey::generate().unwrap();
    assert_eq!(place.open_signed(&key.sign_sidecar(&root, &e), &key).unwrap().generation(), 1);
    assert_eq!(place.open_signed(&key.sign_root(&root), &key).unwrap().generation(), 2);
}

/// An update that is held to a root or a signature reads even files that look unchanged.
#[test]
fn an_update_that_is_held_to_a_root_reads_every_file() {
    let (place, edit) = edited_and_forged();
    let job = job(&place.path("d.fecp"), &[place.path("d")], true);
    let update = |wanted: (Option<[u8; 32]>, Option<&Trust>)| update(&job, wanted, &Context::default());
    let before = place.read("d.fecp");
    let key = SecretKey::generate().unwrap();
    let signature = key.sign_root(&place.protected.root);
    let trust = Trust { signers: vec![key.signer()], detached: vec![signature] };
    for wanted in [(Some(place.protected.root), None), (None, Some(&trust))] {
        let refused = update(wanted).unwrap_err();
        assert_eq!(refused.class(), Class::Mendable, "{refused}");
        assert!(refused.to_string().contains("d/large"), "{refused}");
        assert!(place.read("d.fecp") == before && place.read("d/large") == edit);
    }
    // With a new time the change is an edit.
    File::open(place.path("d/large")).unwrap().set_modified(SystemTime::now()).unwrap();
    let updated = update((Some(place.protected.root), None)).unwrap();
    assert_eq!((updated.changed, updated.unchanged), (1, 2));
    let sidecar =
        Sidecar::open(&place.path("d.fecp"), Some(updated.sidecar.root), &Context::default().settings)
            .unwrap();
    assert!(states(&place, &sidecar).is_empty());
}

/// A large file that was moved is recognized by its time and some of its blocks, or by all of its blocks if a root is
/// asked for.
#[test]
fn a_moved_file_is_read_whole_where_a_root_is_asked_for() {
    for (is_held, is_taken) in [(false, true), (true, false)] {
        let place = Place::new();
        fs::write(place.path("d/huge"), bytes(9, 3 << 20)).unwrap();
        let root = run_protect(place.path("d.fecp"), place.path("d"), true).unwrap().root;
        fs::rename(place.path("d/huge"), place.path("d/moved")).unwrap();
        place.rot("d/moved", 200_000);
        let job = job(&place.path("d.fecp"), &[place.path("d")], false);
        let updated = update(&job, (is_held.then_some(root), None), &Context::default());
        assert_eq!(updated.is_ok(), is_taken, "{updated:?}");
    }
}

/// Restored files are no more open than the record and the umask together, unless the record is proved. They get no
/// bits beyond permissions.
#[test]
fn forged_permissions_open_nothing() {
    let umask = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap().trim().to_owned();
        u32::from_str_radix(&umask, 8).unwrap()
    };
    for is_copy in [false, true] {
        let place = Place::new();
        place.recode(|sidecar| sidecar.restamped(|_, stat| stat.mode = 0o7777));
        fs::remove_dir_all(place.path("d")).unwrap();
        let copy = place.path("copy");
        let how = Mend { out: is_copy.then_some(&copy), ..Mend::default() };
        let (top, sidecar) = (if is_copy { "copy/d" } else { "d" }, place.open(&[]));
        // The whole folder is gone, so all files come from recovery data.
        let _ = place.mend(&sidecar, &how).unwrap();
        let mode = |path: &str| fs::metadata(place.path(path)).unwrap().mode() & 0o7777;
        assert_eq!(mode(&format!("{top}/private")), 0o666 & !umask(), "no right to execute either");
        assert_eq!(mode(top), 0o777 & !umask());
    }
    // Proved permissions are restored exactly, whatever the umask.
    let place = Place::new();
    fs::set_permissions(place.path("d/small"), fs::Permissions::from_mode(0o666)).unwrap();
    let protected = run_protect(place.path("d.fecp"), place.path("d"), true).unwrap();
    fs::remove_file(place.path("d/small")).unwrap();
    let e = protected.metadata.unwrap();
    let sidecar =
        Sidecar::open_known(&place.path("d.fecp"), protected.root, &[e], &Context::default().settings)
            .unwrap();
    let _ = place.mend(&sidecar, &Mend::default()).unwrap();
    assert_eq!(fs::metadata(place.path("d/small")).unwrap().mode() & 0o7777, 0o666);
}

/// Recovery data of other files with correct digests. It is noticed before anything is lost, and afterwards not
/// reported as a system error.
#[test]
fn recovery_data_that_mends_nothing_is_seen() {
    let place = Place::new();
    place.recode(Recoded::misremembered);
    let found = place.deep().unwrap_err();
    assert_eq!(found.class(), Class::Untrue, "{found}");
    // A comparison of digests does not show it.
    let sidecar = Sidecar::open(&place.path("d.fecp"), None, &Context::default().settings).unwrap();
    let quick = examine(&sidecar, &place.base(), Scope::All, &Context::default()).unwrap();
    assert!(quick.is_intact());
    place.rot("d/large", 20_000);
    let rotten = place.read("d/large");
    let copy = place.path("copy");
    for how in [Mend::default(), Mend { out: Some(&copy), ..Mend::default() }] {
        let error = place.mended(&how).unwrap_err();
        assert_eq!(error.class(), Class::Untrue, "{error}");
        assert!(error.to_string().contains("d/large"), "{error}");
        assert!(place.read("d/large") == rotten);
        place.nothing_is_left();
        let _ = fs::remove_dir_all(&copy);
    }
    let partial = place.mended(&Mend { partial: true, ..Mend::default() }).unwrap();
    assert_eq!((partial.failed.len(), partial.contradiction.map(|e| e.class())), (1, Some(Class::Untrue)));
    assert_eq!(place.deep().unwrap_err().class(), Class::Untrue);
    place.nothing_is_left();
}

/// An intact file with a wrong block digest in the sidecar; and files with a wrong BLAKE3, intact, lengthened and
/// rotten.
#[test]
fn what_contradicts_itself_is_seen_whatever_became_of_the_file() {
    let blake3 = |bytes: &[u8]| fec_core::digest::HashKind::Blake3.digest(bytes);
    let place = Place::new();
    place.recode(|sidecar| sidecar.with_digest(1, [5; 16]));
    let sidecar = Sidecar::open(&place.path("d.fecp"), None, &Context::default().settings).unwrap();
    let found = examine(&sidecar, &place.base(), Scope::All, &Context::default()).unwrap_err();
    assert_eq!(found.class(), Class::Untrue, "{found}");
    assert_eq!(place.mended(&Mend::default()).unwrap_err().class(), Class::Untrue);
    for (name, seed, len) in [("d/large", 1, LEN), ("d/small", 2, 300)] {
        let place = Place::new();
        place.recode(|sidecar| sidecar.with(&blake3(&bytes(seed, len)), &[6; 32]));
        let plain = |place: &Place| {
            let sidecar = Sidecar::open(&place.path("d.fecp"), None, &Context::default().settings).unwrap();
            examine(&sidecar, &place.base(), Scope::All, &Context::default()).map_err(|e| e.class())
        };
        assert_eq!(plain(&place).unwrap_err(), Class::Untrue);
        fs::write(place.path(name), [bytes(seed, len), b"more".to_vec()].concat()).unwrap();
        assert_eq!(plain(&place).unwrap_err(), Class::Untrue, "it has become longer");
        fs::write(place.path(name), bytes(seed, len)).unwrap();
        place.rot(name, 100);
        // The contradiction shows only once the lost bytes are computed.
        assert!(plain(&place).is_ok());
        assert_eq!(place.deep().unwrap_err().class(), Class::Untrue);
        assert_eq!(
            place.mended(&Mend { revert: true, ..Mend::default() }).unwrap_err().class(),
            Class::Untrue
        );
        place.nothing_is_left();
        fs::remove_file(place.path(name)).unwrap();
        assert_eq!(place.deep().unwrap_err().class(), Class::Untrue, "it is gone");
        assert_eq!(place.mended(&Mend::default()).unwrap_err().class(), Class::Untrue);
        place.nothing_is_left();
    }
}

/// A position that several intact files share has a wrong digest. A deep examination compares it.
#[test]
fn the_digest_of_packed_bytes_is_compared() {
    let place = Place::new();
    // The shared position follows the whole blocks of the large file.
    place.recode(|sidecar| sidecar.with_digest((LEN / 1024) as u64, [5; 16]));
    let found = place.deep().unwrap_err();
    assert_eq!(found.class(), Class::Untrue, "{found}");
    // The same holds if a file only grew.
    let longer = [place.read("d/small"), b"more".to_vec()].concat();
    fs::write(place.path("d/small"), longer).unwrap();
    let found = place.deep().unwrap_err();
    assert_eq!(found.class(), Class::Untrue, "{found}");
}

/// Two files share a position. The first has grown and has all its bytes, the second is cut short.
#[test]
fn a_longer_neighbour_hides_no_loss() {
    for is_copy in [false, true] {
        let place = Place::new();
        fs::write(place.path("d/small"), [bytes(2, 300), b"more".to_vec()].concat()).unwrap();
        fs::write(place.path("d/private"), &bytes(3, 500)[..100]).unwrap();
        assert!(place.deep().is_ok());
        let copy = place.path("copy");
        let _ =
            place.mended(&Mend { revert: true, out: is_copy.then_some(&copy), ..Mend::default() }).unwrap();
        let top = if is_copy { "copy/d" } else { "d" };
        assert!(place.read(&format!("{top}/small")) == bytes(2, 300));
        assert!(place.read(&format!("{top}/private")) == bytes(3, 500));
    }
}
