//! The examples of the guide (docs/guide/library.md) and of the crate's README, with more shards lost than the code
//! allows. Each ends with an error and leaves no payload.

use fec_base::io::output::Destination;
use fec_core::block::Code;
use fecfile::io::memory::MemoryStore;
use fecfile::payload::Options;
use fecfile::{
    Archive, Class, Context, EncodingError, Input, Result, Root, Wish, decode_path, decode_reader, encode,
    encode_path, encode_proved, encode_reader, verify_path, verify_reader,
};
use std::fs;

fn payload() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Asserts that an operation fails because the payload is lost.
fn is_lost<T>(done: Result<T>) {
    let error = done.err().expect("too much is lost");
    assert_eq!(error.class(), Class::Lost, "{error}");
}

#[test]
fn shards_alone() {
    let originals: Vec<Vec<u8>> = payload().chunks(30_000).map(<[u8]>::to_vec).collect();
    let slices: Vec<&[u8]> = originals.iter().map(Vec::as_slice).collect();
    let recovery = fec_core::encode(10, 4, &slices).unwrap();
    let mut shards: Vec<Option<Vec<u8>>> = originals.iter().chain(&recovery).cloned().map(Some).collect();
    shards[..5].fill(None);
    assert!(fec_core::decode(10, 4, &mut shards).is_err());
    shards[0] = Some(originals[0].clone());
    fec_core::decode(10, 4, &mut shards).unwrap();
    assert!(shards.iter().flatten().eq(originals.iter().chain(&recovery)));
}

#[test]
fn shards_that_prove_themselves() {
    let payload = payload();
    let (root, mut shards) = encode_proved(10, 4, &payload).unwrap();
    let root: Root = root.to_string().parse().unwrap();
    assert_eq!(root.check(&shards[7].shard, &shards[7].proof), Ok(7));
    assert_eq!(root.decode(&shards[4..]).unwrap(), payload);
    shards[7].shard[0] ^= 1;
    assert!(root.check(&shards[7].shard, &shards[7].proof).is_err() && root.decode(&shards[4..]).is_err());
    assert_eq!(root.decode(&shards[3..]).unwrap(), payload);
}

/// The text of a root leads to the encoding that it names.
#[test]
fn a_root_as_text() {
    let (store, options, context) = (MemoryStore::new(), Options::default(), Context::default());
    let written = encode::to_store(&payload(), b"numbers", &store, &options, &context).unwrap();
    let text = Root(written.root).to_string();
    let open = |root: Root| Archive::open(&Input::of_store(&store).unwrap(), root, &context);
    assert_eq!(open(text.parse().unwrap()).unwrap().root(), Some(written.root));
    assert_eq!(open(Root([7; 32])).err().map(|error| error.class()), Some(Class::Untrue));
}

#[test]
fn files_with_a_root() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let context = Context::default();
    fs::write(at("release.bin"), payload()).unwrap();
    let root = encode_path(&at("release.bin"), &context).unwrap().root;
    for index in 0..68 {
        fs::remove_file(at(&format!("release.bin.shards/release.bin.{index:03}.shard"))).unwrap();
    }
    is_lost(decode_path(&at("release.bin.shards"), &at("back.bin"), Some(root), &context));
    assert!(!at("back.bin").exists());
    let verified = verify_path(&at("release.bin.shards"), Some(root), &context).unwrap();
    assert!(!verified.is_intact() && verified.is_restorable == Some(false));
}

#[test]
fn readers_and_writers() {
    let context = Context::default();
    let (mut container, mut back) = (Vec::new(), Vec::new());
    let root = encode_reader(&payload()[..], &mut container, &context).unwrap().root;
    // The code has 100 shards and needs 33 of them. Three quarters are lost here; the index is not.
    let quarter = container.len() / 4;
    container[100..3 * quarter].fill(0);
    is_lost(decode_reader(&container[..], &mut back, Some(root), &context));
    assert!(back.is_empty());
    let verified = verify_reader(&container[..], Some(root), &context).unwrap();
    assert!(!verified.is_intact() && verified.is_restorable == Some(false));
}

#[test]
fn a_store_of_ones_own() {
    let context = Context::default();
    let payload = payload();
    let (store, options) = (MemoryStore::new(), Options::new(Code::new(10, 4).unwrap()));
    let root = encode::to_store(&payload, b"numbers", &store, &options, &context).unwrap().root;
    let archive = || Archive::open(&Input::of_store(&store).unwrap(), Some(root), &context).unwrap();
    let restore =
        |back: &mut Vec<u8>| archive().restore(Destination::writer(back), Wish::default(), &context);
    for index in 0..4 {
        store.remove(format!("numbers.{index:03}.shard")).unwrap();
    }
    let mut back = Vec::new();
    assert!(restore(&mut back).unwrap().is_whole() && back == payload);
    store.remove("numbers.004.shard").unwrap();
    back.clear();
    let error = restore(&mut back).unwrap_err();
    assert!(
        matches!(error.cause(), Some(EncodingError::Lost(left)) if !left.is_whole() && !left.written),
        "{error}"
    );
    assert!(back.is_empty());
    assert_eq!(archive().verify(false, &context).unwrap().is_restorable, Some(false));
}
