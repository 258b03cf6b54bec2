//! Encoding again to an output that exists: what is intact is kept, and nothing else is.

use crate::made::*;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::annex;
use fecfile::error::EncodingError;
use fecfile::keep::{self, Fate, Output};
use fecfile::payload::{Grouping, Options};
use fecfile::seal::SealError;
use fecfile::{Class, ErrorKind, Policy, Result};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// A file: its bytes, when it was written, and its inode.
type State = (Vec<u8>, (i64, i64), u64);

/// A folder with shard files in `s`, and a container `c.fec`, of the same payload.
struct Kept {
    home: tempfile::TempDir,
    bytes: Vec<u8>,
    options: Options,
}

impl Kept {
    fn new() -> Kept {
        let bytes = payload(81, 200_000);
        let options = options(Grouping::Auto);
        let kept = Kept { home: tempfile::tempdir().unwrap(), bytes, options };
        for is_folder in [true, false] {
            assert!(matches!(kept.run(is_folder).unwrap(), Fate::Made));
        }
        kept
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run_by(&self, is_folder: bool, bytes: &[u8], options: &Options, policy: Policy) -> Result<Fate> {
        let (folder, file) = (self.at("s"), self.at("c.fec"));
        let output = if is_folder { Output::Folder(&folder, b"name") } else { Output::File(&file) };
        keep::encode(&bytes.to_vec(), output, policy, options, &context()).map(|(_, fate)| fate)
    }

    fn run(&self, is_folder: bool) -> Result<Fate> {
        self.run_by(is_folder, &self.bytes, &self.options, POLICY)
    }

    fn forced(&self, is_folder: bool) -> Result<Fate> {
        self.run_by(is_folder, &self.bytes, &self.options, POLICY.with_force(true))
    }

    /// All files with their bytes, and when each was written.
    fn state(&self) -> BTreeMap<PathBuf, State> {
        let mut found = BTreeMap::new();
        for folder in [self.home.path(), &self.at("s")] {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                if meta.is_file() {
                    found.insert(
                        path.clone(),
                        (fs::read(&path).unwrap(), (meta.mtime(), meta.mtime_nsec()), meta.ino()),
                    );
                }
            }
        }
        found
    }

    /// All files with their bytes.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.state().into_iter().map(|(path, (bytes, ..))| (path, bytes)).collect()
    }

    /// A run that must be refused and change nothing.
    #[track_caller]
    fn refuses(&self, class: Class, run: impl FnOnce() -> Result<Fate>) -> fecfile::Error {
        let before = self.state();
        let Err(error) = run() else { panic!("it is not refused") };
        assert_eq!(error.class(), class, "{error}");
        assert!(self.state() == before, "it changed something: {error}");
        error
    }
}

fn completed(fate: Fate) -> Vec<PathBuf> {
    match fate {
        Fate::Completed(files) => files,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_intact_encoding_is_kept() {
    let kept = Kept::new();
    let before = kept.state();
    for is_folder in [true, false] {
        for policy in [POLICY, POLICY.with_force(true), POLICY.with_sync(true)] {
            let fate = kept.run_by(is_folder, &kept.bytes, &kept.options, policy).unwrap();
            assert!(matches!(fate, Fate::Kept), "{fate:?}");
        }
    }
    assert!(kept.state() == before, "nothing is written, not even the same bytes");
}

#[test]
fn only_shards_that_are_missing_or_damaged_are_made_anew() {
    let kept = Kept::new();
    let home = kept.home.path();
    let before = kept.state();
    let signed = [fs::read(shard(home, 8)).unwrap(), annex::write(1 << 31, b"signed")].concat();
    fs::write(shard(home, 8), &signed).unwrap();
    fs::write(kept.at("s/notes"), b"mine").unwrap();
    fs::remove_file(shard(home, 0)).unwrap();
    flip(&shard(home, 3), 20_000);
    fs::write(shard(home, 5), b"").unwrap();
    let cut = fs::read(shard(home, 6)).unwrap();
    fs::write(shard(home, 6), &cut[..cut.len() - 1]).unwrap();
    let mut made = completed(kept.run(true).unwrap());
    made.sort();
    assert_eq!(made, [0, 3, 5, 6].map(|index| shard(home, index)));
    let after = kept.state();
    for index in [1, 2, 4, 7] {
        assert!(after[&shard(home, index)] == before[&shard(home, index)], "{index} is not written");
    }
    assert!(after[&shard(home, 8)].0 == signed, "annexes are kept");
    assert!(after[&kept.at("s/notes")].0 == b"mine");
    fs::remove_file(kept.at("s/notes")).unwrap();
    fs::write(shard(home, 8), &before[&shard(home, 8)].0).unwrap();
    let contents: BTreeMap<_, _> = before.into_iter().map(|(path, (bytes, ..))| (path, bytes)).collect();
    assert!(kept.contents() == contents);
    // Even when the remaining shard could restore no payload.
    (0..8).for_each(|index| fs::remove_file(shard(home, index)).unwrap());
    assert_eq!(completed(kept.run(true).unwrap()).len(), 8);
    assert!(kept.contents() == contents);
    // Another file has the name of a missing shard: only force replaces it.
    fs::write(shard(home, 7), b"not a shard").unwrap();
    kept.refuses(Class::Usage, || kept.run(true));
    kept.forced(true).unwrap();
    assert!(kept.contents() == contents);
}

/// A shard that is made anew may take the name of a file that holds another shard: all files are examined first.
#[test]
fn shards_under_the_names_of_others() {
    let kept = Kept::new();
    let home = kept.home.path();
    let [three, four] = [3, 4].map(|index| fs::read(shard(home, index)).unwrap());
    fs::write(shard(home, 3), &four).unwrap();
    fs::write(shard(home, 4), &three).unwrap();
    assert!(matches!(kept.run(true).unwrap(), Fate::Kept));
    // Only the header of shard 3 is left, and its name belongs to shard 4.
    fs::write(shard(home, 4), &three[..300]).unwrap();
    kept.refuses(Class::Usage, || kept.run(true));
    kept.forced(true).unwrap();
    assert!(fs::read(shard(home, 3)).unwrap() == three && fs::read(shard(home, 4)).unwrap() == four);
    // A shard file that stands twice.
    fs::copy(shard(home, 2), kept.at("s/again")).unwrap();
    let fate = kept.run(true).unwrap();
    assert!(!matches!(fate, Fate::Made), "{fate:?}");
}

#[test]
fn a_damaged_container_is_made_anew() {
    for grouping in [Grouping::Auto, Grouping::Sets(2)] {
        let kept = Kept { options: options(grouping), ..Kept::new() };
        kept.forced(false).unwrap();
        let whole = fs::read(kept.at("c.fec")).unwrap();
        let mut gap = whole.clone();
        gap[3000..9000].fill(0);
        for damaged in [
            gap,
            whole[..whole.len() - 5000].to_vec(),
            [&whole[..], b"something else"].concat(),
            whole[..whole.len() - 1].to_vec(),
            [&whole[..9], &whole].concat(),
        ] {
            fs::write(kept.at("c.fec"), &damaged).unwrap();
            assert_eq!(completed(kept.run(false).unwrap()), [kept.at("c.fec")]);
            assert!(fs::read(kept.at("c.fec")).unwrap() == whole);
        }
    }
}

/// An intact encoding of other bytes, with the same length, name and parameters.
#[test]
fn an_encoding_of_another_payload_is_never_kept() {
    let kept = Kept::new();
    for at in [0, 100_000, 199_999] {
        let mut other = kept.bytes.clone();
        other[at] ^= 1;
        for is_folder in [true, false] {
            let error = kept.refuses(Class::Usage, || kept.run_by(is_folder, &other, &kept.options, POLICY));
            let Some(EncodingError::OtherEncoding(found)) = error.cause() else { panic!("{error}") };
            assert_eq!((found.roots.len(), found.differences.as_deref()), (1, Some(&[][..])));
            assert!(!found.roots.contains(&found.wanted));
        }
    }
    // No part of it is used, damaged or not. With force all of it goes away.
    let other = payload(82, 200_000);
    fs::remove_file(shard(kept.home.path(), 1)).unwrap();
    kept.refuses(Class::Usage, || kept.run_by(true, &other, &kept.options, POLICY));
    for is_folder in [true, false] {
        let run = |policy| kept.run_by(is_folder, &other, &kept.options, policy);
        assert!(matches!(run(POLICY.with_force(true)).unwrap(), Fate::Made));
        assert!(matches!(run(POLICY).unwrap(), Fate::Kept));
    }
}

#[test]
fn an_encoding_with_other_parameters_is_named_and_left() {
    let kept = Kept::new();
    let base = || kept.options.clone();
    let code = |k, m| Options { code: Code::new(k, m).unwrap(), ..base() };
    for (is_folder, options, what) in [
        (true, code(5, 3), vec!["m"]),
        (true, Options { hash: HashKind::Sha256, ..base() }, vec!["hash"]),
        (true, Options { set_size: Some(40 << 10), ..base() }, vec!["shard bytes"]),
        (false, code(4, 4), vec!["k", "shard bytes"]),
        (false, Options { grouping: Grouping::Sets(2), ..base() }, vec!["shard bytes"]),
    ] {
        let error = kept.refuses(Class::Usage, || kept.run_by(is_folder, &kept.bytes, &options, POLICY));
        let Some(EncodingError::OtherEncoding(found)) = error.cause() else { panic!("{error}") };
        let differing: Vec<_> =
            found.differences.iter().flatten().map(|difference| difference.what).collect();
        assert_eq!(differing, what, "{error}");
    }
    // A payload of another length, and another name.
    let error = kept.refuses(Class::Usage, || kept.run_by(true, &kept.bytes[..190_000], &base(), POLICY));
    assert!(error.to_string().contains("payload bytes: 200000 there, 190000 wanted"), "{error}");
    let folder = kept.at("s");
    let output = Output::Folder(&folder, b"other");
    let named = || keep::encode(&kept.bytes, output, POLICY, &base(), &context()).map(|(_, fate)| fate);
    let error = kept.refuses(Class::Usage, named);
    assert!(error.to_string().contains("name: name there, other wanted"), "{error}");
    // A form in the place of the other.
    fs::rename(kept.at("c.fec"), kept.at("away")).unwrap();
    fs::rename(shard(kept.home.path(), 0), kept.at("c.fec")).unwrap();
    let error = kept.refuses(Class::Usage, || kept.run(false));
    assert!(!error.to_string().is_empty());
}

#[test]
fn what_is_no_encoding_is_left() {
    let kept = Kept::new();
    fs::write(kept.at("c.fec"), b"a letter").unwrap();
    kept.refuses(Class::Usage, || kept.run(false));
    assert!(matches!(kept.forced(false).unwrap(), Fate::Made));
    fs::remove_dir_all(kept.at("s")).unwrap();
    fs::create_dir(kept.at("s")).unwrap();
    fs::write(kept.at("s/letter"), b"a letter").unwrap();
    kept.refuses(Class::Usage, || kept.run(true));
    kept.refuses(Class::Usage, || kept.forced(true));
    fs::remove_file(kept.at("s/letter")).unwrap();
    assert!(matches!(kept.run(true).unwrap(), Fate::Made), "an empty folder holds nothing");
    // A file in the place of the folder, and links in the place of both.
    fs::rename(kept.at("s"), kept.at("real")).unwrap();
    fs::write(kept.at("s"), b"a letter").unwrap();
    let error = kept.refuses(Class::Usage, || kept.forced(true));
    assert!(matches!(error.kind, ErrorKind::NotAFolder), "{error}");
    fs::remove_file(kept.at("s")).unwrap();
    symlink("real", kept.at("s")).unwrap();
    kept.refuses(Class::Usage, || kept.forced(true));
    fs::rename(kept.at("c.fec"), kept.at("real.fec")).unwrap();
    symlink("real.fec", kept.at("c.fec")).unwrap();
    kept.refuses(Class::Usage, || kept.run(false));
    assert!(Path::new(&kept.at("real.fec")).exists());
}

/// Two encodings in one place can be told apart only by a root, so the output is not kept as it is.
#[test]
fn an_output_that_also_holds_another_is_not_kept() {
    let kept = Kept::new();
    let (other, _) = shard_files(&payload(9, 50_000), &kept.options);
    fs::copy(shard(other.path(), 1), kept.at("s/stray")).unwrap();
    let whole = fs::read(kept.at("c.fec")).unwrap();
    let stray = container(&payload(9, 50_000), &kept.options).0;
    fs::write(kept.at("c.fec"), [&whole[..], &stray].concat()).unwrap();
    for is_folder in [true, false] {
        let error = kept.refuses(Class::Usage, || kept.run(is_folder));
        assert!(matches!(error.cause(), Some(EncodingError::HoldsAnother)), "{error}");
        assert!(matches!(kept.forced(is_folder).unwrap(), Fate::Made));
    }
    assert!(fs::read(kept.at("c.fec")).unwrap() == whole && !kept.at("s/stray").exists());
}

/// A sealed encoding has a new key each time, so it can never be kept.
#[test]
fn what_is_sealed_is_not_kept() {
    let kept = Kept::new();
    let sealed = Options { sealing: Some(sealing().0), ..kept.options.clone() };
    for is_folder in [true, false] {
        let error = kept.refuses(Class::Usage, || kept.run_by(is_folder, &kept.bytes, &sealed, POLICY));
        assert!(matches!(error.cause(), Some(SealError::Kept)), "{error}");
    }
}
