//! Positions of shards in their files, and headers that lie about them.

use super::*;
use crate::archive::Archive;
use crate::encode;
use crate::input::Input;
use crate::payload::Options;
use crate::restore::Wish;
use fec_base::context::Context;
use fec_base::io::Store;
use fec_base::io::memory::MemoryStore;
use fec_base::io::output::Destination;
use fec_core::block::Code;
use std::ffi::OsStr;

/// If bytes are lost, one of two positions is wrong. A decode that tries the wrong one first reads and hashes every
/// shard twice.
#[test]
fn the_likeliest_position_comes_first() {
    let store = MemoryStore::new();
    let options = Options::new(Code::new(3, 2).unwrap());
    encode::to_store(&vec![7u8; 40_000], b"name", &store, &options, &Context::default()).unwrap();
    let object = store.open(OsStr::new("name.001.shard")).unwrap();
    let mut whole = vec![0; object.size().unwrap() as usize];
    object.read_exact_at(0, &mut whole).unwrap();
    let cut = 100;
    let cases = [
        ("whole", whole.clone(), vec![0]),
        ("without its end", whole[..whole.len() - cut].to_vec(), vec![0, -(cut as i128)]),
        ("without its beginning", whole[cut..].to_vec(), vec![-(cut as i128), 0]),
    ];
    for (what, bytes, expected) in cases {
        let mut gathered = Gathered::default();
        store.put("file", bytes);
        let file = store.open(OsStr::new("file")).unwrap();
        gathered.add(&Object::new("file", Arc::from(file)).unwrap());
        let set = gathered.sets.values().next().expect("a header is left");
        let bases: Vec<i128> = set.members[1][0].positions.iter().map(|position| position.base).collect();
        assert_eq!(bases, expected, "{what}");
    }
}

const N: usize = 5;

/// Shard files of a payload, and their root. Any three of five restore it.
fn made() -> (Vec<u8>, Digest, Vec<Vec<u8>>) {
    let (store, payload) = (MemoryStore::new(), (0..40_000u32).map(|i| (i >> 5) as u8).collect::<Vec<_>>());
    let options = Options::new(Code::new(3, N - 3).unwrap());
    let written = encode::to_store(&payload, b"name", &store, &options, &Context::default()).unwrap();
    let file = |index: usize| {
        let object = store.open(OsStr::new(&format!("name.{index:03}.shard"))).unwrap();
        let mut bytes = vec![0; object.size().unwrap() as usize];
        object.read_exact_at(0, &mut bytes).unwrap();
        bytes
    };
    (payload, written.root, (0..N).map(file).collect())
}

/// The same file whose headers state another length of the meta. Anybody can compute their checksums.
fn with_meta_len(file: &[u8], meta_len: u32) -> Vec<u8> {
    let mut file = file.to_vec();
    let header = ShardHeader::parse(file.first_chunk().unwrap()).unwrap();
    let forged = ShardHeader { encoding: Encoding { meta_len, ..header.encoding }, ..header }.to_bytes();
    let tail = file.len() - HEADER_LEN;
    file[..HEADER_LEN].copy_from_slice(&forged);
    file[tail..].copy_from_slice(&forged);
    file
}

/// Restores and verifies these files with and without their root. The number of shards without any damage comes back.
fn restored(files: &[Vec<u8>], root: Digest, payload: &[u8], has_meta: bool, what: &str) -> usize {
    let (store, mut intact) = (MemoryStore::new(), Vec::new());
    files.iter().enumerate().for_each(|(nth, file)| store.put(format!("{nth:03}"), file.clone()));
    for wanted in [None, Some(root)] {
        let context = Context::default();
        let archive = Archive::open(&Input::of_store(&store).unwrap(), wanted, &context).unwrap();
        let mut out = Vec::new();
        let done = archive.restore(Destination::writer(&mut out), Wish::default(), &context);
        let done = done.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(done.is_whole() && out == payload, "{what}");
        let verified = archive.verify(true, &context).unwrap();
        assert_eq!(verified.is_restorable, Some(true), "{what}");
        assert_eq!(verified.meta.is_some(), has_meta, "{what}");
        intact.push(verified.found.intact());
    }
    assert_eq!(intact[0], intact[1], "{what}");
    intact[0]
}

/// The root does not bind the length of the meta. A forged length costs the files that state it, and no others.
#[test]
fn a_forged_length_of_the_meta_costs_its_own_file() {
    let (payload, root, files) = made();
    for meta_len in [0, 6, 8, 65, 200, 65_536] {
        let forged: Vec<Vec<u8>> = files.iter().map(|file| with_meta_len(file, meta_len)).collect();
        for first in [true, false] {
            let what = format!("{meta_len} bytes, first {first}");
            let join = |forged: &[Vec<u8>], files: &[Vec<u8>]| match first {
                true => [forged, files].concat(),
                false => [files, forged].concat(),
            };
            // The longest meta leaves no room for a shard, so such a file is none.
            let intact = |hit: usize| if meta_len == 65_536 { N } else { N - hit };
            // Beside the true file of the shard, in place of as many as may be lost, and as the majority.
            assert_eq!(restored(&join(&forged[..1], &files), root, &payload, true, &what), intact(1));
            assert_eq!(restored(&join(&forged[..2], &files[2..]), root, &payload, true, &what), N - 2);
            let many: Vec<Vec<u8>> = forged.iter().cycle().take(3 * N).cloned().collect();
            assert_eq!(restored(&join(&many, &files), root, &payload, true, &what), intact(N));
        }
    }
}

/// Without a copy of the meta each file is read as its own header says.
#[test]
fn a_forged_length_of_a_lost_meta_costs_its_own_file() {
    let (payload, root, mut files) = made();
    for file in &mut files {
        let layout = ShardHeader::parse(file.first_chunk().unwrap()).unwrap().encoding.layout();
        layout.metas().into_iter().for_each(|at| file[at as usize] ^= 1);
    }
    let forged = with_meta_len(&files[0], 200);
    for many in [[&[forged.clone()][..], &files[1..]].concat(), [&files[1..], &[forged]].concat()] {
        restored(&many, root, &payload, false, "the meta is lost");
    }
}

/// The beginning of a header is the rest of a shard file: damage, and no foreign file.
#[test]
fn the_beginning_of_a_header_is_damage() {
    let (_, _, files) = made();
    for (len, is_damage) in [(7, false), (8, true), (163, true), (HEADER_LEN - 1, true)] {
        let store = MemoryStore::new();
        store.put("rest", files[0][..len].to_vec());
        files.iter().enumerate().for_each(|(nth, file)| store.put(format!("{nth}"), file.clone()));
        let archive = Archive::open(&Input::of_store(&store).unwrap(), None, &Context::default()).unwrap();
        let verified = archive.verify(true, &Context::default()).unwrap();
        assert_eq!(verified.is_restorable, Some(true), "{len}");
        assert_eq!(verified.leftovers.rejected.len(), usize::from(is_damage), "{len}");
        assert_eq!(verified.leftovers.foreign.len(), usize::from(!is_damage), "{len}");
        assert!(!verified.is_given_intact(), "{len}");
    }
}
