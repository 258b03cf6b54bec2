//! The golden vectors of sidecars.

use super::*;

/// The metadata of the first generation of a sidecar in its place, or the first error on the way to it.
fn metadata(bytes: &[u8]) -> Result<Option<(Piece, Vec<u8>)>, FormatError> {
    let Some(head) = bytes.first_chunk().and_then(|start| bytes.get(..piece_head_len(start))) else {
        return Ok(None);
    };
    if head[..8] != *b"\x89fecP\r\n\x1a" {
        return Ok(None);
    }
    let first = Piece::parse(head)?;
    let (of, layout) = (first.of, first.of.layout);
    let (geometry, shape) = (of.geometry, *of.geometry.shape());
    let extent = Extent {
        start: layout.start,
        blocks: layout.blocks,
        pieces: of.pieces() as u32,
        piece_len: of.piece_len() as u32,
    };
    if geometry.payload_len() > bytes.len() as u64 {
        return Ok(None);
    }
    let mut payload = vec![0; geometry.payload_len() as usize];
    for (index, set) in (0..shape.code.n() as u32).flat_map(|i| (0..shape.sets).map(move |s| (i, s))) {
        let at = extent.piece(of.ordinal(set, index), layout.block.into()) as usize;
        let Some(whole) = bytes.get(at..).and_then(|bytes| bytes.get(..of.piece_len() as usize)) else {
            return Ok(None);
        };
        let (head, body) = whole.split_at(of.head_len());
        let piece = match Piece::parse(head) {
            Ok(piece) => piece,
            // This piece is lost, and the first is whole.
            Err(_) => return Ok(None),
        };
        assert_eq!(piece, Piece { set, index, of });
        let mut again = vec![0xff; head.len()];
        piece.proof_mut(&mut again).copy_from_slice(piece.proof(head));
        piece.seal(&mut again);
        assert_eq!(again, head);
        let tree = tree_of_shard(&geometry, set, index, body, piece.proof(head));
        if !tree.is_some_and(|tree| of.is_proved_by(&tree)) {
            return Err(FormatError::Damaged("the proof of a piece"));
        }
        if (index as usize) < shape.code.k() {
            let (to, len) = (
                geometry.shard_offset(set, index as usize) as usize,
                geometry.shard_payload(set, index as usize),
            );
            payload[to..to + len].copy_from_slice(&body[..len]);
            if body[len..].iter().any(|byte| *byte != 0) {
                return Err(FormatError::NotCanonical("the padding of the metadata"));
            }
        }
    }
    Ok(Some((first, payload)))
}

/// Opens metadata: the catalog, which must name the extent of its pieces, and the bytes behind it. Returns the root,
/// and whether this crate writes the same bytes of the head.
fn open(piece: &Piece, bytes: &[u8], metadata: &[u8]) -> Result<([u8; 32], bool), FormatError> {
    let (of, layout) = (piece.of, piece.of.layout);
    let (catalog_bytes, behind) = metadata.split_at(layout.catalog_len as usize);
    let (catalog, digests, anchors) = Catalog::parse(catalog_bytes)?;
    let stats = Stats::parse(behind, &catalog.entries, catalog.block)?;
    assert_eq!(stats.to_bytes(), behind);
    assert_eq!((digests.len() as u64, anchors.len() as u64), (catalog.digests(), catalog.anchors()));
    let (pieces, piece_len) = (of.pieces() as u32, of.piece_len() as u32);
    let extent = Extent { start: layout.start, blocks: layout.blocks, pieces, piece_len };
    if catalog.extents.last() != Some(&extent) {
        return Err(FormatError::Catalog("the extent is not that of the layout"));
    }
    // Recovery shards stand where the catalog says, and have the catalog's digests.
    let block = u64::from(catalog.block);
    let mut digests = digests;
    let mut intact = true;
    for group in &catalog.groups {
        let (_, behind) = digests.split_at(group.positions() as usize);
        let (recovery, behind) = behind.split_at(group.recovery() as usize);
        let extent = catalog.extents[group.extent as usize];
        for (nth, digest) in (0..).zip(recovery) {
            let (at, _) = extent.block(group.first + nth, block);
            let shard = bytes.get(at as usize..).and_then(|bytes| bytes.get(..block as usize));
            intact &= shard.is_some_and(|shard| shortened(blake3::hash(shard).as_bytes()) == *digest);
        }
        digests = behind;
    }
    let mut again = catalog.head_bytes();
    again.extend_from_slice(catalog_bytes.get(again.len()..).unwrap_or_default());
    Ok((Catalog::root(catalog_bytes), intact && again == catalog_bytes))
}

/// These parsers do not know the rules that compare more than one generation, shards with one another, or positions
/// with digests.
const OF_READERS: [&str; 6] =
    ["lost-", "not-a-codeword", "layout-block", "layout-start-2", "first-two-extents", "difference"];

#[test]
fn sidecars() {
    let all = vectors("sidecar.json");
    let mut tried = 0;
    let given = |vector: &&Value| vector["root"].is_null() || vector["name"] == "good-root";
    for vector in list(&all["errors"], 300).iter().filter(given) {
        let (name, rule, class) = (str_of(vector, "name"), str_of(vector, "rule"), vector["class"].as_str());
        let is_of_parsers = name.starts_with("good")
            || ["§17.2", "§17.3", "§17.4", "§4.1"].iter().any(|of| rule.starts_with(of));
        if !is_of_parsers || OF_READERS.iter().any(|of| name.starts_with(of)) {
            continue;
        }
        let bytes = read(&golden(str_of(vector, "path")));
        let got = match metadata(&bytes) {
            Ok(None) => continue,
            Ok(Some((piece, metadata))) => open(&piece, &bytes, &metadata),
            Err(error) => Err(error),
        };
        let is = got.as_ref().err().map(class_of);
        assert!(is == class || class == Some("damaged") && got.is_ok(), "{name}, {rule}: {class:?} {got:?}");
        if name.starts_with("good") {
            // Only paths that could be shorter, and a feature that nothing uses, are written differently.
            let (root, is_same) = got.expect("it is good");
            assert_eq!(is_same, !["good-shared-less", "good-shared-by-none"].contains(&name), "{name}");
            assert!(name != "good-root" || root == root_of(vector));
        }
        tried += 1;
    }
    assert!(tried >= 200, "{tried}");
}
