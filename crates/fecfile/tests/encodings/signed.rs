//! Signatures over roots, and the facts that an archive tells: whose encoding it is, what else lies there, and what can
//! be asked of it.

use crate::made::*;
use fec_core::digest::Digest;
use fec_core::format::seal::SealedKind;
use fec_core::params::Form;
use fec_keys::sign::{SecretKey, SignError, Signature, Trust};

use fecfile::error::EncodingError;
use fecfile::forms::Beginning;
use fecfile::payload::{Grouping, Options};
use fecfile::{Archive, Class, Destination, Input, Result, Wanted, Wish, check_only_stream};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LEN: usize = 60_000;

fn signed_by(key: &Arc<SecretKey>) -> Options {
    Options { signing: Some(key.clone()), ..options(Grouping::Sets(3)) }
}

fn trust(keys: &[&SecretKey]) -> Trust {
    Trust { signers: keys.iter().map(|key| key.signer()).collect(), detached: Vec::new() }
}

fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::generate().expect("a key"))
}

fn input(path: &Path) -> Input {
    Input::of_paths(&[path.to_path_buf()]).expect("it is there")
}

fn open_signed(path: &Path, root: Option<Digest>, trust: &Trust) -> Result<Archive> {
    Archive::open(&input(path), Wanted::from(root).signed_by(Some(trust)), &context())
}

fn bytes_of(archive: &Archive) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = archive.restore(Destination::writer(&mut out), Wish::default(), &context()).expect("it is whole");
    out
}

#[track_caller]
fn is_unsigned(done: Result<Archive>) {
    let Err(error) = done else { panic!("it is taken for signed") };
    assert!(matches!(error.cause(), Some(SignError::Unsigned(_))), "{error}");
    assert_eq!(error.class(), Class::Untrue);
}

/// A signature by a trusted key stands for the root, in every form. No other key does, nor a root of another encoding.
#[test]
fn an_encoding_is_its_signers() {
    let (bytes, own, other) = (payload(1, LEN), key(), key());
    let (home, root) = shard_files(&bytes, &signed_by(&own));
    let (made, of_container) = container(&bytes, &signed_by(&own));
    let path = home.path().join("c.fec");
    fs::write(&path, &made).unwrap();
    let one = shard(home.path(), 3);
    for (path, root) in [(home.path().join("s"), root), (path.clone(), of_container), (one.clone(), root)] {
        for trust in [trust(&[&own]), trust(&[&other, &own])] {
            for wanted in [None, Some(root)] {
                let archive = open_signed(&path, wanted, &trust).unwrap();
                let signed = archive.signed().expect("it is told");
                assert_eq!((signed.root, signed.key), (root, own.signer().id()), "{}", path.display());
                assert_eq!((archive.root(), archive.signatures().iter().count() > 0), (Some(root), true));
                if path != one {
                    assert!(bytes_of(&archive) == bytes);
                }
                assert_eq!(archive.is_one_shard(), path == one, "{}", path.display());
            }
        }
        is_unsigned(open_signed(&path, None, &trust(&[&other])));
        is_unsigned(open_signed(&path, Some(root), &trust(&[&other])));
        let error = open_signed(&path, Some([7; 32]), &trust(&[&own])).err().expect("another root");
        assert_eq!(error.class(), Class::Untrue, "{error}");
        // Without a wish nothing is checked, and the signature is told.
        let archive = open(&path, None).unwrap();
        assert!(archive.signed().is_none() && archive.signatures().iter().count() > 0);
        assert!(!archive.is_one_shard(), "only a root proves a file alone");
    }
    // The same of a pipe.
    let piped = |trust: Option<&Trust>, root: Option<Digest>| {
        let wanted = Wanted::from(root).signed_by(trust);
        Archive::in_pipe(&made[..], Path::new("-"), Beginning::Other, wanted, &context())
    };
    let trusted = trust(&[&own]);
    assert_eq!(piped(Some(&trusted), None).unwrap().signed().map(|signed| signed.root), Some(of_container));
    is_unsigned(piped(Some(&trust(&[&other])), None));
    assert!(piped(None, Some([7; 32])).is_err() && piped(None, None).unwrap().signed().is_none());
}

/// Without a signature nothing is somebody's. A signature from elsewhere counts as one that is there.
#[test]
fn unsigned_encodings_need_a_signature_from_elsewhere() {
    let (bytes, own) = (payload(1, LEN), key());
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    fs::write(&path, &made).unwrap();
    let signed = trust(&[&own]);
    is_unsigned(open_signed(&path, None, &signed));
    is_unsigned(open_signed(&path, Some(root), &signed));
    let signature = Signature::parse(own.sign_root(&root).text().as_bytes()).unwrap();
    let detached = Trust { detached: vec![signature], ..signed.clone() };
    let archive = open_signed(&path, None, &detached).unwrap();
    assert_eq!(archive.signed().map(|signed| signed.root), Some(root));
    assert!(bytes_of(&archive) == bytes && archive.signatures().iter().count() == 0);
    let of_another = Signature::parse(own.sign_root(&[7; 32]).text().as_bytes()).unwrap();
    is_unsigned(open_signed(&path, None, &Trust { detached: vec![of_another], ..signed.clone() }));
    // A folder without an encoding misses no signature.
    fs::write(&path, b"a letter").unwrap();
    let error = open_signed(&path, None, &signed).err().expect("nothing is there");
    assert!(matches!(error.cause(), Some(EncodingError::NothingFound(_))), "{error}");
}

/// The signed one of several encodings is meant, and the others are told. Two signed ones are as ambiguous as others.
#[test]
fn of_several_encodings_the_signed_one_is_meant() {
    let (own, other) = (key(), key());
    let (one, two) = (payload(1, LEN), payload(2, LEN));
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    let write = |parts: &[&Vec<u8>]| {
        fs::write(&path, parts.iter().flat_map(|part| &***part).copied().collect::<Vec<u8>>()).unwrap()
    };
    let (first, root) = container(&one, &signed_by(&own));
    let (second, root_of_second) = container(&two, &signed_by(&other));
    write(&[&first, &second]);
    for (key, root, bytes) in [(&own, root, &one), (&other, root_of_second, &two)] {
        let archive = open_signed(&path, None, &trust(&[key])).unwrap();
        assert!(bytes_of(&archive) == *bytes);
        assert_eq!((archive.root(), archive.others().len()), (Some(root), 1));
    }
    is_unsigned(open_signed(&path, Some(root_of_second), &trust(&[&own])));
    is_unsigned(open_signed(&path, Some(root), &trust(&[&other])));
    let error = open_signed(&path, None, &trust(&[&own, &other])).err().expect("both are signed");
    assert!(matches!(error.cause(), Some(EncodingError::Ambiguous(roots)) if roots.len() == 2), "{error}");
}

/// An archive tells its form, root, name and files, and what else lies there.
#[test]
fn an_archive_tells_what_it_is() {
    let bytes = payload(1, LEN);
    let (home, root) = shard_files(&bytes, &options(Grouping::Auto));
    let folder = home.path().join("s");
    let archive = open(&folder, None).unwrap();
    assert_eq!((archive.form(), archive.root(), archive.given()), (Form::Shards, Some(root), Some(9)));
    assert_eq!((archive.name().as_deref(), archive.is_one_shard()), (Some(&b"name"[..]), false));
    let all: Vec<PathBuf> = (0..9).map(|index| shard(home.path(), index)).collect();
    assert_eq!((archive.files_of(&root), archive.files_of(&[7; 32])), (all, Vec::new()));
    assert!(archive.others().is_empty() && archive.sealed_kind().is_none());
    drop(archive);
    // Fewer files, and one of another encoding among them.
    let (other, root_of_other) = shard_files(&payload(2, LEN), &options(Grouping::Auto));
    fs::remove_file(shard(home.path(), 4)).unwrap();
    fs::copy(shard(other.path(), 2), folder.join("stray")).unwrap();
    let archive = open(&folder, Some(root)).unwrap();
    assert_eq!((archive.given(), archive.others()), (Some(8), &[root_of_other][..]));
    assert_eq!(archive.files_of(&root_of_other), [folder.join("stray")]);
    assert_eq!(archive.examine(&context()).unwrap().intact(), 8);
    // A file alone is verified by its root; without one it is an encoding of which too little is there.
    let one = open(&shard(home.path(), 3), Some(root)).unwrap();
    assert!(one.is_one_shard() && one.given() == Some(1));
    let error = open(&shard(home.path(), 3), Some(root_of_other)).err().expect("another root");
    let Some(EncodingError::NothingFound(found)) = error.cause() else { panic!("{error}") };
    assert!(!found.is_shard_file && error.class() == Class::Untrue);
    let torn = fs::read(shard(home.path(), 3)).unwrap()[..200].to_vec();
    fs::write(home.path().join("torn"), &torn).unwrap();
    let error = open(&home.path().join("torn"), Some(root)).err().expect("nothing in it is whole");
    let Some(EncodingError::NothingFound(found)) = error.cause() else { panic!("{error}") };
    assert!(found.is_shard_file, "{error}");

    let path = home.path().join("c.fec");
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    fs::write(&path, &made).unwrap();
    let archive = open(&path, None).unwrap();
    assert_eq!((archive.form(), archive.root(), archive.given()), (Form::Container, Some(root), None));
    assert!(archive.files_of(&root).is_empty() && archive.is_restorable() == Some(true));
    assert!(!archive.is_one_shard());
}

/// A seal says what it seals. Keys open what is sealed, and nothing else is taken for it.
#[test]
fn an_archive_tells_what_is_sealed() {
    let (sealing, keys) = sealing();
    let bytes = payload(1, LEN);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    let how = Options { sealing: Some(sealing), ..options(Grouping::Sets(3)) };
    fs::write(&path, container(&bytes, &how).0).unwrap();
    let archive = open(&path, None).unwrap();
    assert_eq!(archive.sealed_kind(), Some(SealedKind::Payload));
    assert!(archive.opener(Some(&keys)).unwrap().is_some());
    let error = archive.opener_of(Some(&keys), SealedKind::Sidecar).map(drop).expect_err("it is a payload");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    let error = archive.opener(None).map(drop).expect_err("it takes a key");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    fs::write(&path, container(&bytes, &options(Grouping::Sets(3))).0).unwrap();
    let archive = open(&path, None).unwrap();
    assert!(archive.opener(None).unwrap().is_none() && archive.opener(Some(&keys)).is_err());
}

/// The index alone leads to the records, and where it does not, all is searched.
#[test]
fn an_index_leads_and_does_not_mislead() {
    let bytes = payload(1, LEN);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    for changed in [made.clone(), made[..made.len() - 1].to_vec(), [&made[..], b"more"].concat()] {
        fs::write(&path, &changed).unwrap();
        for wanted in [None, Some(root)] {
            let archive = Archive::open_by_index(&input(&path), wanted, &context()).unwrap();
            assert!(archive.root() == Some(root) && bytes_of(&archive) == bytes);
        }
        let error = Archive::open_by_index(&input(&path), Some([7; 32]), &context()).err();
        assert_eq!(error.expect("another root").class(), Class::Untrue);
    }
}

/// A live stream may have anything in it; an encoding beside it is told, since it would not come out.
#[test]
fn a_stream_that_holds_an_encoding_is_told() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("stream");
    let (made, _) = container(&payload(1, LEN), &options(Grouping::Sets(3)));
    let check = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        check_only_stream(&input(&path), &context())
    };
    check(b"packets").unwrap();
    // Records that restore nothing are no encoding.
    check(&made[..made.len() / 3]).unwrap();
    let error = check(&[&b"packets"[..], &made].concat()).expect_err("it holds one");
    let Some(EncodingError::StreamAndEncodings(roots)) = error.cause() else { panic!("{error}") };
    assert_eq!(roots.len(), 1);
    assert!(error.to_string().contains("stream"), "{error}");
}
