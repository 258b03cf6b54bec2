//! Published vectors of hashes, sums and the format.

use fec_base::names::hex;
use fec_core::digest::{HashKind, Tag};

/// SHA-256: FIPS 180-4, examples one and two, and the empty message of NIST's CAVP.
const SHA256: [(&[u8], &str); 3] = [
    (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
        b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ),
    (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
];

/// BLAKE3's `test_vectors.json`: inputs of so many bytes 0, 1, …, 250, 0, 1, …
const BLAKE3: [(usize, &str); 4] = [
    (0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
    (1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"),
    (1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"),
    (102_400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"),
];

/// The node function of `docs/FORMAT.md`, section 3: first bytes for two nodes of zeros, by BLAKE3 and SHA-256.
const NODES: [(Tag, &str, &str); 5] = [
    (Tag::Leaf, "47f14ed8ec24427b", "b316e2a03520c77f"),
    (Tag::Node, "cb93fe97b2a24448", "8c83cd242cead87c"),
    (Tag::Set, "9061fa1ce070b018", "fab9bb1432072c6d"),
    (Tag::Link, "e3284e362b7a55aa", "ace267f98780f128"),
    (Tag::Group, "2304111eae4ad5e2", "d6b6f91501715a24"),
];

/// Name, right ones and total of each gate.
pub(crate) fn right() -> Vec<(&'static str, u64, u64)> {
    let count = |right: &mut dyn Iterator<Item = bool>| right.filter(|right| *right).count() as u64;
    let sha256 =
        count(&mut SHA256.iter().map(|(input, digest)| hex(&HashKind::Sha256.digest(input)) == *digest));
    let blake3 = count(&mut BLAKE3.iter().map(|(len, digest)| {
        let input: Vec<u8> = (0..*len).map(|i| (i % 251) as u8).collect();
        hex(&HashKind::Blake3.digest(&input)) == *digest
    }));
    let zeros = [0; 32];
    let node =
        |hash: HashKind, tag: Tag, start: &str| hex(&hash.node(tag, &zeros, &zeros)).starts_with(start);
    let nodes = count(&mut NODES.iter().flat_map(|(tag, blake3, sha256)| {
        [node(HashKind::Blake3, *tag, blake3), node(HashKind::Sha256, *tag, sha256)]
    }));
    vec![
        ("published SHA-256 vectors", sha256, SHA256.len() as u64),
        ("published BLAKE3 vectors", blake3, BLAKE3.len() as u64),
        ("node functions of the specification", nodes, 2 * NODES.len() as u64),
    ]
}
