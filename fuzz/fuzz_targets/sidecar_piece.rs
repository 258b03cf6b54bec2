//! The pieces that hold the metadata of a sidecar. An accepted piece is written as the same bytes.
#![no_main]

use fec_core::digest::HashKind;
use fec_core::format::sidecar::piece::{HEADER_LEN, LAYOUT_LEN, PIECE_MAGIC, Piece, piece_head_len};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(header) = bytes.first_chunk::<HEADER_LEN>() else { return };
    let len = piece_head_len(header);
    let Some(head) = bytes.get(..len) else { return };
    fec_fuzz::with_and_without_checksum(head, check);
    // The hash of the layout must be right too.
    let mut restored = head.to_vec();
    restored[..8].copy_from_slice(&PIECE_MAGIC);
    let hash = HashKind::Blake3.digest(&restored[HEADER_LEN..HEADER_LEN + LAYOUT_LEN]);
    restored[96..128].copy_from_slice(&hash);
    fec_fuzz::restore_header(&mut restored);
    check(&restored);
});

fn check(head: &[u8]) {
    let piece = match Piece::parse(head) {
        Ok(piece) => piece,
        Err(error) => return fec_fuzz::look_at(&error),
    };
    assert_eq!(piece.of.head_len(), head.len());
    let mut written = vec![0; head.len()];
    piece.proof_mut(&mut written).copy_from_slice(piece.proof(head));
    piece.seal(&mut written);
    assert_eq!(written, head, "written as it was read");
    assert!(piece.of.ordinal(piece.set, piece.index) < piece.of.pieces());
}
