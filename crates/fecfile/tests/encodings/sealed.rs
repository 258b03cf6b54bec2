//! The golden vectors of sealed payloads, written by the independent implementation in `scripts/oracle` from the
//! specification: right ones open with their keys only, and every rule refuses its violations before any byte of
//! plaintext, from files and from pipes.

use crate::vectors::{exit_of, golden, payload, read, str_of};
use fec_keys::age::{Identity, KeyKind, Keys, Passphrase, identities_of};
use fecfile::error::Place;
use fecfile::forms::Beginning;
use fecfile::pipe::{self, Pipe};
use fecfile::{Archive, Context, Destination, Error, Input, PayloadRange, Result, Settings, Wish};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

fn context() -> Context<'static> {
    Context::new(Settings { sync: false, ..Settings::new() })
}

/// The key of a vector: the identity of all, or their passphrase.
fn keys_of(vectors: &Value, vector: &Value) -> Keys {
    if vector["passphrase"] == true {
        let text = Zeroizing::new(str_of(vectors, "passphrase").to_owned());
        return Keys::Passphrase(Passphrase::new(text).expect("a passphrase"));
    }
    let text = str_of(vectors, "identity").as_bytes();
    Keys::Identities(identities_of(text, &mut || None).expect("an identity"))
}

fn path_of(vector: &Value) -> PathBuf {
    golden().join(str_of(vector, "path"))
}

/// Opens and restores: the whole payload, and a range of all of it. In order and without temporary files, the same
/// comes out.
fn restored(path: &Path, keys: Option<&Keys>) -> (Result<()>, Vec<u8>, Vec<u8>) {
    let (mut whole, mut range) = (Vec::new(), Vec::new());
    let context = context();
    let mut open = || -> Result<()> {
        let archive = Archive::open(&Input::of_paths(&[path.to_path_buf()])?, None, &context)?;
        let opener = archive.opener(keys)?;
        let wish = Wish { opener: opener.as_ref(), ..Wish::default() };
        let all = PayloadRange::ALL;
        let _ = archive.restore(Destination::writer(&mut whole), wish, &context)?;
        archive.restore_range(all, opener.as_ref(), Destination::writer(&mut range), &context).map(drop)
    };
    let done = open();
    let mut in_order = Vec::new();
    let again = Archive::open(&Input::of_paths(&[path.to_path_buf()]).expect("a vector"), None, &context)
        .and_then(|archive| {
            let opener = archive.opener(keys)?;
            archive
                .restore_in_order(
                    PayloadRange::ALL,
                    opener.as_ref(),
                    (&mut in_order, Place::Nowhere),
                    &context,
                )
                .map(drop)
        });
    let class = |done: &Result<()>| done.as_ref().map_err(Error::class).err();
    assert!(class(&done) == class(&again) && in_order == whole, "{}: {again:?}", path.display());
    (done, whole, range)
}

fn piped(path: &Path, keys: &Keys) -> (Result<()>, Vec<u8>) {
    let mut out = Vec::new();
    let pipe = Pipe {
        input: File::open(path).expect("a vector"),
        place: Path::new("-"),
        beginning: Beginning::Other,
        wanted: None,
        keys: Some(keys),
    };
    (pipe::restore(pipe, Destination::writer(&mut out), &context()).map(drop), out)
}

#[test]
fn what_is_right_opens_with_its_key_alone() {
    let vectors = read("sealed.json");
    let other = Keys::Identities(vec![Identity::generate(KeyKind::X25519).expect("a key")]);
    let right = ["valid", "again"].iter().flat_map(|list| vectors[*list].as_array().expect("a list"));
    let right = right.filter(|vector| vector["path"].is_string());
    let mut opened = 0;
    for vector in right {
        let (name, path, keys) = (str_of(vector, "name"), path_of(vector), keys_of(&vectors, vector));
        let len = vector["payload_len"].as_u64().expect("a length") as usize;
        let plain = payload(vector["seed"].as_u64().expect("a seed"), len);
        let (done, whole, range) = restored(&path, Some(&keys));
        done.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(whole == plain && range == plain, "{name}");
        if path.is_file() {
            let (done, out) = piped(&path, &keys);
            done.unwrap_or_else(|e| panic!("{name}, a pipe: {e}"));
            assert!(out == plain, "{name}, a pipe");
        }
        if vector["passphrase"] != true {
            let (done, out, _) = restored(&path, Some(&other));
            assert_eq!((exit_of(done.expect_err(name).class()), out.len()), (5, 0), "{name}, another key");
        }
        opened += 1;
    }
    assert!(opened >= 14, "only {opened}");
}

#[test]
fn every_rule_of_seals_refuses_its_violations() {
    let vectors = read("sealed.json");
    let errors = vectors["errors"].as_array().expect("a list");
    assert!(errors.len() >= 48, "only {}", errors.len());
    for vector in errors {
        let rule = format!("{}: {}", str_of(vector, "name"), str_of(vector, "rule"));
        let (path, keys) = (path_of(vector), keys_of(&vectors, vector));
        let refused = |done: Result<()>, out: &[u8], way: &str| {
            let class = |error: Error| exit_of(error.class());
            let exit = done.err().map(class);
            assert_eq!((exit, out.len()), (vector["exit"].as_i64(), 0), "{rule}, {way}");
        };
        let (done, whole, range) = restored(&path, Some(&keys));
        refused(done, &[whole, range].concat(), "a file");
        if vector["passphrase"] != true {
            let (done, out) = piped(&path, &keys);
            refused(done, &out, "a pipe");
        }
    }
}
