//! A repair replaces the files that it examined, and none that somebody puts in their place while it works.

use crate::made::{POLICY, container, context, options, payload};
use fec_base::context::{Meter, Progress, Silent};
use fec_base::error::{Action, ErrorKind};
use fec_base::io::folder::Folder;
use fec_base::io::look::Over;
use fec_base::io::system::rename;
use fec_core::format::shard_file::HEADER_LEN;
use fecfile::payload::Grouping;
use fecfile::{Archive, Input, Repair, Repaired, Result, encode};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Saves another file under a name once new bytes are made.
struct Saving<'a> {
    path: &'a Path,
    once: Once,
}

impl Progress for Saving<'_> {
    fn begin(&self, action: Action, _total: Option<u64>) -> Box<dyn Meter + '_> {
        if action == Action::Repair { Box::new(Save(self)) } else { Box::new(Silent) }
    }
}

struct Save<'a>(&'a Saving<'a>);

impl Meter for Save<'_> {
    fn add(&self, _bytes: u64) {
        self.0.once.call_once(|| {
            let new = self.0.path.with_extension("new");
            fs::write(&new, b"saved meanwhile").expect("a file");
            rename(&new, self.0.path, Over::Anything).expect("it gets the name");
        });
    }
}

/// Repairs in place while somebody saves a file at `path`.
fn repair_while_saving(inputs: &[PathBuf], path: &Path) -> Result<Repaired> {
    let saving = Saving { path, once: Once::new() };
    let context = context().with_progress(&saving);
    let archive = Archive::open(&Input::of_paths(inputs).expect("an input"), None, &context)?;
    archive.repair(Repair { out: None, policy: POLICY, dry_run: false }, &context)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("a file");
}

#[test]
fn a_container_that_is_made_anew_meanwhile_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.fec");
    fs::write(&path, container(&payload(1, 200_000), &options(Grouping::Auto)).0).expect("a file");
    flip(&path, 5_000);
    let error = repair_while_saving(std::slice::from_ref(&path), &path).expect_err("it is another file");
    assert!(matches!(error.kind, ErrorKind::Overtaken), "{error}");
    assert_eq!(fs::read(&path).expect("a file"), b"saved meanwhile");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_shard_file_that_is_made_anew_meanwhile_stays() {
    let bytes = payload(1, 200_000);
    for (is_damaged, is_there) in [(true, true), (false, false), (false, true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let shards = folder.path().join("x.shards");
        let store = Folder::new(&shards, POLICY);
        let _ =
            encode::to_store(&&*bytes, b"x", &store, &options(Grouping::Auto), &context()).expect("shards");
        let path = shards.join("x.003.shard");
        match (is_damaged, is_there) {
            (true, _) => flip(&path, 5_000),
            (false, false) => fs::remove_file(&path).expect("a file"),
            // A header alone says which shard the file was.
            (false, true) => {
                let bytes = fs::read(&path).expect("a file");
                fs::write(&path, &bytes[..HEADER_LEN]).expect("a file");
            }
        }
        let error = repair_while_saving(std::slice::from_ref(&shards), &path).expect_err("another file");
        assert!(matches!(error.kind, ErrorKind::Overtaken | ErrorKind::Exists), "{error}");
        assert_eq!(fs::read(&path).expect("a file"), b"saved meanwhile");
        assert_eq!(fs::read_dir(&shards).expect("a folder").count(), 9);
    }
}

/// The state of a shard file that is not one any more.
const NOT_SHARDS: [(&[u8], bool); 3] = [(b"", true), (&[0; 5_000], true), (b"a letter", false)];

/// A file without content is made anew; another one is replaced by force alone, and a dry run says so too.
#[test]
fn a_dry_run_refuses_what_a_repair_refuses() {
    for (content, is_nothing) in NOT_SHARDS {
        let folder = tempfile::tempdir().expect("a folder");
        let shards = folder.path().join("s");

        let store = Folder::new(&shards, POLICY);
        let bytes = payload(1, 60_000);
        let _ =
            encode::to_store(&&*bytes, b"x", &store, &options(Grouping::Auto), &context()).expect("shards");
        let path = shards.join("x.001.shard");
        let whole = fs::read(&path).expect("a shard file");
        fs::write(&path, content).expect("a file");
        let repair = |policy, dry_run| {
            let context = context();
            let input = Input::of_paths(std::slice::from_ref(&shards)).expect("an input");
            let archive = Archive::open(&input, None, &context).expect("an encoding");
            archive.repair(Repair { out: None, policy, dry_run }, &context)
        };
        for dry_run in [true, false] {
            match repair(POLICY, dry_run) {
                Ok(repaired) if is_nothing => assert_eq!(repaired.files, [path.as_path()]),
                Err(error) if !is_nothing => assert!(matches!(error.kind, ErrorKind::Exists), "{error}"),
                done => panic!("{content:?}: {done:?}"),
            }
            assert_eq!(fs::read(&path).unwrap() == whole, is_nothing && !dry_run);
        }
        assert_eq!(
            repair(POLICY.with_force(true), true).expect("it may").files.len(),
            usize::from(!is_nothing)
        );
    }
}

/// A hole of any length costs whoever puts it there nothing: it is not read to its end.
#[test]
fn a_file_longer_than_any_shard_file_is_not_looked_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Folder::new(folder.path(), POLICY);
    let bytes = payload(1, 60_000);
    let _ = encode::to_store(&&*bytes, b"x", &store, &options(Grouping::Auto), &context()).expect("shards");
    let path = folder.path().join("x.001.shard");
    fs::write(&path, b"").expect("a file");
    fs::File::options().write(true).open(&path).expect("a file").set_len(1 << 42).expect("a hole");
    let context = context();
    let input = Input::of_paths(&[folder.path().to_path_buf()]).expect("an input");
    let archive = Archive::open(&input, None, &context).expect("an encoding");
    let error = archive.repair(Repair { out: None, policy: POLICY, dry_run: false }, &context);
    assert!(matches!(error.expect_err("it is there").kind, ErrorKind::Exists));
}

#[test]
fn a_dry_run_refuses_to_replace_a_file_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, other] = ["x.fec", "other.fec"].map(|name| folder.path().join(name));
    fs::write(&path, container(&payload(1, 60_000), &options(Grouping::Auto)).0).expect("a file");
    flip(&path, 5_000);
    fs::write(&other, b"a letter").expect("a file");
    for dry_run in [true, false] {
        let context = context();
        let archive =
            Archive::open(&Input::of_paths(std::slice::from_ref(&path)).expect("an input"), None, &context);
        let how = Repair { out: Some(&other), policy: POLICY, dry_run };
        let error = archive.expect("an encoding").repair(how, &context).expect_err("it is there");
        assert!(matches!(error.kind, ErrorKind::Exists), "{error}");
        assert_eq!(fs::read(&other).expect("a file"), b"a letter");
    }
}
