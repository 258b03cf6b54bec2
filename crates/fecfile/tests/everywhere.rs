//! A payload's way through containers and folders of shard files on the disk, on every system: outputs appear whole,
//! replace nothing unasked, and are mended in place.

use fec_base::io::folder::Folder;
use fec_core::block::Code;
use fecfile::io::output::{OWNER_ALONE, write_secret};
use fecfile::io::source::SourceFile;
use fecfile::payload::{Options, Source};
use fecfile::{
    Archive, Class, Context, ErrorKind, Input, Policy, Repair, Result, decode_path, encode, encode_path,
    verify_path,
};
use std::fs;
use std::path::{Path, PathBuf};

fn payload(seed: u32) -> Vec<u8> {
    (0..300_000u32).map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn options() -> Options {
    Options { set_size: Some(20 << 10), ..Options::new(Code::new(5, 4).expect("a code")) }
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name().into_string();
    let mut names: Vec<String> =
        fs::read_dir(folder).expect("a folder").map(|entry| name(entry).expect("a name in UTF-8")).collect();
    names.sort();
    names
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("a file");
}

fn to_container(source: &Path, path: &Path, policy: Policy) -> Result<[u8; 32]> {
    let context = Context::default();
    let source = SourceFile::open(source, &context)?;
    encode::to_file(Source::Payload(&source), path, policy, &options(), &context).map(|written| written.root)
}

fn to_shards(bytes: &[u8], folder: &Path, policy: Policy) -> Result<[u8; 32]> {
    let store = Folder::new(folder, policy);
    encode::to_store(&bytes, b"name", &store, &options(), &Context::default()).map(|written| written.root)
}

/// Mends an encoding in place, and returns the files that were made anew.
fn mend(path: &Path) -> Vec<PathBuf> {
    let context = Context::default();
    let input = Input::of_paths(&[path.to_path_buf()]).expect("an input");
    let archive = Archive::open(&input, None, &context).expect("an encoding");
    archive
        .repair(Repair { out: None, policy: Policy::new(), dry_run: false }, &context)
        .expect("it is mended")
        .files
}

#[test]
fn a_container_is_made_replaced_mended_and_decoded() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    let context = Context::default();
    fs::write(at("one"), payload(1)).expect("a file");
    fs::write(at("two"), payload(2)).expect("a file");
    let one = to_container(&at("one"), &at("c.fec"), Policy::new()).expect("a container");
    let refused = to_container(&at("two"), &at("c.fec"), Policy::new()).expect_err("it is there");
    assert!(matches!(refused.kind, ErrorKind::Exists), "{refused}");
    assert!(verify_path(&at("c.fec"), Some(one), &context).expect("it is read").is_intact());
    let two = to_container(&at("two"), &at("c.fec"), Policy::new().with_force(true)).expect("a container");
    assert_eq!(names(place.path()), ["c.fec", "one", "two"], "nothing temporary is left");
    let whole = fs::read(at("c.fec")).expect("a file");
    flip(&at("c.fec"), 5_000);
    assert!(!verify_path(&at("c.fec"), Some(two), &context).expect("it is read").is_intact());
    assert_eq!(mend(&at("c.fec")), [at("c.fec")]);
    assert!(fs::read(at("c.fec")).expect("a file") == whole && mend(&at("c.fec")).is_empty());
    assert!(decode_path(&at("c.fec"), &at("back"), Some(two), &context).expect("it is restored").is_whole());
    assert!(fs::read(at("back")).expect("a file") == payload(2));
    let refused = decode_path(&at("c.fec"), &at("one"), None, &context).map(drop).expect_err("it is there");
    assert!(matches!(refused.kind, ErrorKind::Exists), "{refused}");
    assert!(fs::read(at("one")).expect("a file") == payload(1));
    let lost = fs::read(at("c.fec")).expect("a file");
    fs::write(at("c.fec"), &lost[..lost.len() / 3]).expect("a file");
    let error =
        decode_path(&at("c.fec"), &at("gone"), None, &context).map(drop).expect_err("too little is left");
    assert_eq!(error.class(), Class::Lost, "{error}");
    assert_eq!(names(place.path()), ["back", "c.fec", "one", "two"]);
}

#[test]
fn a_folder_of_shard_files_is_made_replaced_mended_and_decoded() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    let (context, forced) = (Context::default(), Policy::new().with_force(true));
    fs::create_dir(at("s")).expect("an empty folder");
    to_shards(&payload(1), &at("s"), Policy::new()).expect("an empty folder is filled");
    let refused = to_shards(&payload(2), &at("s"), Policy::new()).expect_err("it is full");
    assert!(matches!(refused.kind, ErrorKind::FolderNotEmpty), "{refused}");
    let root = to_shards(&payload(2), &at("s"), forced).expect("shard files are replaced");
    assert_eq!((names(place.path()), names(&at("s")).len()), (vec!["s".to_owned()], 9));
    let whole: Vec<Vec<u8>> =
        names(&at("s")).iter().map(|name| fs::read(at("s").join(name)).unwrap()).collect();
    flip(&at("s/name.003.shard"), 5_000);
    fs::remove_file(at("s/name.005.shard")).expect("a file");
    assert_eq!(mend(&at("s")), [at("s").join("name.003.shard"), at("s").join("name.005.shard")]);
    let mended: Vec<Vec<u8>> =
        names(&at("s")).iter().map(|name| fs::read(at("s").join(name)).unwrap()).collect();
    assert!(mended == whole);
    for lost in [0, 2, 4, 8] {
        fs::remove_file(at("s").join(format!("name.{lost:03}.shard"))).expect("a file");
    }
    assert!(decode_path(&at("s"), &at("back"), Some(root), &context).expect("it is restored").is_whole());
    assert!(fs::read(at("back")).expect("a file") == payload(2));
    fs::write(at("s/letter"), b"precious").expect("a file");
    let refused = to_shards(&payload(1), &at("s"), forced).expect_err("it holds another file");
    assert!(matches!(&refused.kind, ErrorKind::NotAShardFile(path) if *path == at("s/letter")), "{refused}");
    assert_eq!(fs::read(at("s/letter")).expect("a file"), b"precious");
    assert_eq!(names(place.path()), ["back", "s"]);
}

/// The front door: 100 shard files beside the payload.
#[test]
fn a_path_is_encoded_and_comes_back() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    let context = Context::default();
    fs::write(at("größe.bin"), payload(3)).expect("a file");
    let root = encode_path(&at("größe.bin"), &context).expect("shard files").root;
    let shards = at("größe.bin.shards");
    assert_eq!(names(&shards)[17], "größe.bin.017.shard");
    assert!(verify_path(&shards, Some(root), &context).expect("it is read").is_intact());
    assert!(decode_path(&shards, &at("back"), Some(root), &context).expect("it is restored").is_whole());
    assert!(fs::read(at("back")).expect("a file") == payload(3));
}

/// An unfinished output leaves nothing, and a secret replaces nothing.
#[test]
fn a_refused_output_leaves_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    write_secret(&at("key"), b"secret").expect("a secret");
    write_secret(&at("key"), b"other").expect_err("it is there");
    assert_eq!(
        (fs::read(at("key")).expect("a file"), names(place.path())),
        (b"secret".to_vec(), vec!["key".to_owned()])
    );
    drop(
        fec_base::io::output::FileOut::create(&at("new"), Policy::new().with_permissions(OWNER_ALONE))
            .unwrap(),
    );
    drop(
        fec_base::io::output::FolderOut::create(&at("new"), &["a".into(), "b".into()], Policy::new())
            .unwrap(),
    );
    assert_eq!(names(place.path()), ["key"]);
    fs::write(at("one"), payload(1)).expect("a file");
    if cfg!(windows) {
        for name in ["stream:hidden", "NUL", "com1.fec", "dot.", "space "] {
            to_container(&at("one"), &at(name), Policy::new()).expect_err(name);
            to_shards(&payload(1), &at(name), Policy::new()).expect_err(name);
        }
        assert_eq!(names(place.path()), ["key", "one"]);
    }
}
