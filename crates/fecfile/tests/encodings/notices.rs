//! Notices go to the context of their operation, and to no other of the process.

use fec_base::context::{Meter, Notice, Progress, Silent};
use fec_base::error::Action;
use fec_base::io::folder::Folder;
use fec_base::program::lease::is_open_for_writing;
use fec_core::block::Code;
use fecfile::forms::Beginning;
use fecfile::keep::Output;
use fecfile::payload::{Options, Source};
use fecfile::pipe::{self, Pipe};
use fecfile::{Archive, Context, Destination, Input, PayloadRange, Policy, Repair, Wish, encode, keep};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

const POLICY: Policy = Policy::new().with_sync(false).with_force(true);

/// Paths of notices; those of removed leftovers with their bytes.
#[derive(Default)]
struct Told(Mutex<Vec<(PathBuf, Option<u64>)>>);

impl Told {
    fn take(&self) -> Vec<(PathBuf, Option<u64>)> {
        let mut told = std::mem::take(&mut *self.0.lock().expect("a list"));
        told.sort();
        told
    }
}

impl Progress for Told {
    fn begin(&self, _action: Action, _total: Option<u64>) -> Box<dyn Meter + '_> {
        Box::new(Silent)
    }

    fn note(&self, notice: Notice<'_>) {
        self.0.lock().expect("a list").push(match notice {
            Notice::Removed { path, bytes } => (path.into(), Some(bytes)),
            Notice::OpenElsewhere { path } => (path.into(), None),
            other => panic!("{other:?}"),
        });
    }
}

/// Writes the temporary file of a process that is gone.
fn leave(folder: &Path, bytes: u64) -> PathBuf {
    let mut list = Command::new(std::env::current_exe().expect("this one"));
    let mut child = list.arg("--list").stdout(Stdio::null()).spawn().expect("a process");
    child.wait().expect("it ends");
    let path = folder.join(format!(".fec-{}-0.tmp", child.id()));
    fs::write(&path, vec![1; bytes as usize]).expect("a file");
    path
}

#[test]
fn two_users_of_one_process_get_their_own_notices_alone() {
    std::thread::scope(|scope| {
        for user in 1..=2 {
            scope.spawn(move || {
                let folder = tempfile::tempdir().expect("a folder");
                let source = folder.path().join("source");
                // The writer goes on while the source is encoded.
                let writer = File::create(&source).expect("a file");
                writer.set_len(1000).expect("there is room");
                let left = leave(folder.path(), user);
                let mut own = vec![(left, Some(user))];
                if is_open_for_writing(&File::open(&source).expect("it is there")) {
                    own.push((source.clone(), None));
                } else {
                    eprintln!("no leases here");
                }
                let told = Told::default();
                let context = Context::default().with_progress(&told);
                let _ = fecfile::encode_path(&source, &context).expect("shard files");
                assert_eq!(told.take(), own, "user {user}");
            });
        }
    });
}

/// A silent context passes notices on too: it is the context of an operation within another one.
#[test]
fn every_operation_removes_leftovers_beside_what_it_makes_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let told = Told::default();
    let context = Context::default().with_progress(&told).silent();
    let payload = vec![7u8; 50_000];
    let options = Options::new(Code::new(3, 2).expect("a code"));
    let (shards, container) = (at("shards"), at("container"));
    let open = |path: &Path| {
        Archive::open(&Input::of_paths(&[path.into()]).expect("an input"), None, &context).expect("one")
    };
    let says = |what: &str, folder: &Path, operation: &dyn Fn()| {
        let left = leave(folder, 5);
        operation();
        assert_eq!(told.take(), [(left.clone(), Some(5))], "{what}");
        assert!(!left.exists(), "{what}");
    };
    says("shard files", folder.path(), &|| {
        let store = Folder::new(shards.clone(), POLICY);
        let _ = encode::to_store(&payload, b"name", &store, &options, &context).expect("shard files");
    });
    says("a container", folder.path(), &|| {
        let source = Source::Payload(&payload);
        let _ = encode::to_file(source, &container, POLICY, &options, &context).expect("a container");
    });
    for of in [folder.path(), &shards] {
        says("kept shard files", of, &|| {
            let output = Output::Folder(&shards, b"name");
            let kept = keep::encode(&payload, output, POLICY, &options, &context).expect("they are kept");
            assert_eq!(kept.1, keep::Fate::Kept);
        });
    }
    let out = at("out");
    says("restoring", folder.path(), &|| {
        let destination = Destination::File(&out, POLICY);
        let _ = open(&shards).restore(destination, Wish::default(), &context).expect("the payload");
    });
    says("restoring a part", folder.path(), &|| {
        let (range, destination) = (PayloadRange::ALL, Destination::File(&out, POLICY));
        let _ = open(&shards).restore_range(range, None, destination, &context).expect("the payload");
    });
    says("restoring from a pipe", folder.path(), &|| {
        let input = File::open(&container).expect("a container");
        let (place, beginning) = (Path::new("-"), Beginning::Other);
        let pipe = Pipe { input, place, beginning, wanted: None, keys: None };
        let _ = pipe::restore(pipe, Destination::File(&out, POLICY), &context).expect("the payload");
    });
    fs::remove_file(shards.join("name.001.shard")).expect("a shard");
    let new = at("new");
    fs::create_dir(&new).expect("a folder");
    for (what, out, of) in [("repairing elsewhere", Some(&*new), &new), ("repairing", None, &shards)] {
        says(what, of, &|| {
            let how = Repair { out, policy: POLICY, dry_run: false };
            assert_eq!(open(&shards).repair(how, &context).expect("a shard").files.len(), 1, "{what}");
        });
    }
}
