//! Shard files: headers, also with the right checksum and root, and the proofs in a file.
#![no_main]

use fec_core::format::meta::Meta;
use fec_core::format::shard_file::{Encoding, HEADER_LEN, Layout, MAGIC, ShardHeader};
use fec_core::params::{Form, GroupGeometry};
use fec_core::set::tree_of_shard;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else { return };
    check(header, rest);
    let mut restored = *header;
    restored[..8].copy_from_slice(&MAGIC);
    fec_fuzz::restore_header(&mut restored);
    check(&restored, rest);
    // The body's length and the root come next after the checksum: both follow from other fields.
    let block: [u8; 32] = restored[32..64].try_into().expect("32 bytes");
    let Ok(geometry) = GroupGeometry::parse(&block, Form::Shards) else { return };
    let digest = |at: usize| -> [u8; 32] { restored[at..at + 32].try_into().expect("32 bytes") };
    let meta_len = u32::from_le_bytes(restored[20..24].try_into().expect("four bytes"));
    let body_len = Layout::new(&geometry, meta_len).body_len;
    let root = geometry.root(&digest(96), &digest(128));
    restored[24..32].copy_from_slice(&body_len.to_le_bytes());
    restored[64..96].copy_from_slice(&root);
    fec_fuzz::restore_header(&mut restored);
    check(&restored, rest);
});

fn check(bytes: &[u8; HEADER_LEN], rest: &[u8]) {
    let header = match ShardHeader::parse(bytes) {
        Ok(header) => header,
        Err(error) => return fec_fuzz::look_at(&error),
    };
    assert_eq!(header.to_bytes(), *bytes, "written as it was read");
    let Encoding { geometry, meta_len, meta_hash, .. } = header.encoding;
    let layout = header.encoding.layout();
    let parts = [
        HEADER_LEN as u64,
        layout.head_meta,
        layout.head_proofs,
        layout.body,
        layout.tail_proofs,
        layout.tail_meta,
        layout.tail_header,
        layout.file_len,
    ];
    assert!(parts.is_sorted(), "the parts stand one after the other: {layout:?}");
    let shape = geometry.shape();
    assert_eq!(layout.shard(shape.sets - 1) + layout.shard_len, layout.tail_proofs);
    let at = |position: u64, len: u64| {
        let from = usize::try_from(position.checked_sub(HEADER_LEN as u64)?).ok()?;
        rest.get(from..from.checked_add(usize::try_from(len).ok()?)?)
    };
    if let Some(meta) = at(layout.head_meta, meta_len.into()) {
        let _ = Meta::open(shape.hash, &meta_hash, meta);
    }
    for set in 0..shape.sets.min(4) {
        let Some(shard) = at(layout.shard(set), layout.shard_len) else { break };
        for proof in layout.proofs(set).into_iter().filter_map(|position| at(position, layout.proof_len)) {
            // A proved tree is the root's, or the proof is of another encoding.
            let _ = tree_of_shard(&geometry, set, header.index, shard, proof);
        }
        assert_eq!(
            tree_of_shard(&geometry, set, header.index, &shard[1..], &[]),
            None,
            "a short shard proves nothing"
        );
    }
}
