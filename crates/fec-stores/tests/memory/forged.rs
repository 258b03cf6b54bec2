//! Headers of shard files that lie about the length of the meta, which the root does not bind.

use crate::{How, Sent, places, store::Memory};
use fec_base::io::Store;
use fec_base::io::memory::MemoryStore;
use fec_base::io::output::Destination;
use fec_core::block::Code;
use fec_core::digest::Digest;
use fec_core::format::shard_file::{Encoding, HEADER_LEN, ShardHeader};
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use fec_stores::mend::StoredRepair;
use fec_stores::stored::Stored;
use fecfile::error::Class;
use fecfile::payload::Options;
use fecfile::seal::{SealedTo, Sealing};
use fecfile::{Context, encode};
use std::ffi::OsStr;
use std::sync::Arc;

const HOW: How = How { places: 5, code: (10, 4), len: 200_000, segment: 120_000, set_size: None };

/// Writes another length of the meta into both headers. Anybody can compute their checksums.
pub(crate) fn forge(file: &mut [u8], meta_len: u32) {
    let header = ShardHeader::parse(file.first_chunk().expect("a header")).expect("a header");
    let forged = ShardHeader { encoding: Encoding { meta_len, ..header.encoding }, ..header }.to_bytes();
    let tail = file.len() - HEADER_LEN;
    file[..HEADER_LEN].copy_from_slice(&forged);
    file[tail..].copy_from_slice(&forged);
}

pub(crate) fn key(root: &Digest, index: usize) -> String {
    format!("{}/{index:03}.shard", fec_base::names::hex(root))
}

/// Forges shards where they stand, or adds forged ones at a place that has none of them.
fn forge_shards(sent: &Sent, indices: &[usize], meta_len: u32, beside: bool) {
    for (root, index) in sent.segments.iter().flat_map(|root| indices.iter().map(move |index| (root, index)))
    {
        let key = key(root, *index);
        let home =
            sent.stores.iter().position(|store| store.objects().contains_key(&key)).expect("it is there");
        let mut file = sent.stores[home].objects()[&key].clone();
        forge(&mut file, meta_len);
        let to = if beside { (home + 1) % sent.stores.len() } else { home };
        sent.stores[to].objects().insert(key, file);
    }
}

/// Restores what has this root.
fn restore(sent: &Sent, root: Digest) -> Vec<u8> {
    let (places, mut out) = (sent.places(), Vec::new());
    let stored = Stored::find(&places, root, None).expect("it is found");
    let restored = stored.restore(None, Destination::writer(&mut out), &Context::default());
    let _ = restored.unwrap_or_else(|e| panic!("{e}"));
    out
}

#[test]
fn a_forged_length_of_the_meta_costs_its_own_shard() {
    let all: Vec<usize> = (0..14).collect();
    for meta_len in [0, 8, 200, 65_536] {
        for (indices, beside) in [
            (&all[..1], false),
            (&all[13..], false),
            (&all[..4], false),
            (&all[10..], false),
            (&all[..], true),
        ] {
            let sent = Sent::new(11, &HOW);
            forge_shards(&sent, indices, meta_len, beside);
            let what = format!("{meta_len} bytes in {indices:?}, beside {beside}");
            assert!(restore(&sent, sent.root) == sent.payload, "{what}");
            assert!(restore(&sent, sent.segments[0]) == sent.payload[..120_000], "{what}");
            let places = sent.places();
            let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
            for deep in [false, true] {
                let verified = stored.verify(deep, &Context::default()).expect("it is looked at");
                assert_eq!(verified.class(), Some(Class::Mendable), "{what}, {deep}: {:?}", verified.trouble);
                assert_eq!(verified.margin(), if beside { 4 } else { 4 - indices.len() as i64 }, "{what}");
            }
            let how = StoredRepair { to: (0..5).collect(), now: true, deep: true, dry_run: false };
            let repaired = stored.repair(&how, &Context::default()).expect("it is repaired");
            assert_eq!(repaired.class(false), None, "{what}");
            let verified = stored.verify(true, &Context::default()).expect("it is looked at");
            assert_eq!(verified.class(), None, "{what}");
        }
    }
}

/// The shard files of a sealed payload in stores, without a manifest. A length of 0 would hide the seal in the meta.
#[test]
fn a_forged_length_of_the_meta_hides_no_seal() {
    let payload = crate::store::bytes_of(12, 60_000);
    let identity = Identity::generate(KeyKind::X25519).expect("a key");
    let sealing = Sealing { to: SealedTo::Recipients(vec![identity.recipient()]), cipher: Cipher::best() };
    let made = MemoryStore::new();
    let options =
        Options { sealing: Some(Arc::new(sealing)), ..Options::new(Code::new(3, 2).expect("a code")) };
    let root =
        encode::to_store(&payload, b"name", &made, &options, &Context::default()).expect("it is made").root;
    let keys = Keys::Identities(vec![identity]);
    for meta_len in [0, 8, 65_536] {
        for forged in [&[][..], &[0], &[0, 1], &[3, 4]] {
            let stores: Vec<Arc<Memory>> = (0..2).map(|nth| Arc::new(Memory::new(nth, 1))).collect();
            for index in 0..5 {
                let file = made.open(OsStr::new(&format!("payload.{index:03}.shard"))).expect("a file");
                let mut bytes = vec![0; file.size().expect("a length") as usize];
                file.read_exact_at(0, &mut bytes).expect("its bytes");
                if forged.contains(&index) {
                    forge(&mut bytes, meta_len);
                }
                stores[index % 2].objects().insert(key(&root, index), bytes);
            }
            let what = format!("{meta_len} bytes in {forged:?}");
            let places = places(&stores, 2);
            let stored = Stored::find(&places, root, None).expect("it is found");
            assert!(stored.manifest().meta.seal.is_some(), "{what}");
            stored.opener(None).map(drop).expect_err(&what);
            let opener = stored.opener(Some(&keys)).expect("the key opens it");
            let mut out = Vec::new();
            let _ = stored
                .restore(opener.as_ref(), Destination::writer(&mut out), &Context::default())
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(out == payload, "{what}");
        }
    }
}

/// Copies of a shard's header in other objects say nothing about the shard's own object.
#[test]
fn a_forged_index_costs_its_own_shard() {
    let how = How { places: 2, code: (2, 2), segment: 200_000, ..HOW };
    for forged in [&[0][..], &[0, 1], &[1, 2]] {
        let sent = Sent::new(13, &how);
        for shard in sent.stores[1].shards() {
            let file = sent.stores[1].objects().remove(&shard).expect("it is there");
            sent.stores[0].objects().insert(shard, file);
        }
        for index in forged {
            let mut objects = sent.stores[0].objects();
            let file = objects.get_mut(&key(&sent.segments[0], *index)).expect("it is there");
            let header = ShardHeader::parse(file.first_chunk().expect("a header")).expect("a header");
            let other = ShardHeader { index: 3, ..header }.to_bytes();
            *file.first_chunk_mut().expect("a header") = other;
            *file.last_chunk_mut().expect("a header") = other;
        }
        assert!(restore(&sent, sent.root) == sent.payload, "{forged:?}");
        let places = sent.places();
        let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
        let verified = stored.verify(true, &Context::default()).expect("it is looked at");
        let state = &verified.segments[0];
        let damaged: Vec<usize> = state.damaged.iter().map(|(index, _)| *index as usize).collect();
        assert_eq!((damaged.as_slice(), state.intact.len()), (forged, 4 - forged.len()));
        assert_eq!((verified.class(), verified.margin()), (Some(Class::Mendable), 2 - forged.len() as i64));
    }
}
