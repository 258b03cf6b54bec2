//! Manifests beside those of the second implementation, `scripts/oracle_stores.py`.

use fec_core::digest::HashKind;
use fec_core::error::Class;
use fec_core::format::manifest::Manifest;
use serde_json::Value;

fn bytes_of(vector: &Value, field: &str) -> Vec<u8> {
    let hex = vector[field].as_str().expect("a field in hexadecimal");
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("digits")).collect()
}

#[test]
fn manifests_of_the_other_implementation() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/manifest.json");
    let vectors: Vec<Value> =
        serde_json::from_slice(&std::fs::read(file).expect("the vectors are there")).expect("they are JSON");
    assert!(vectors.len() >= 35);
    for vector in &vectors {
        let name = vector["name"].as_str().expect("a name");
        let bytes = bytes_of(vector, "bytes");
        let parsed = Manifest::parse(&bytes);
        let class = parsed.as_ref().err().map(|error| match error.class() {
            Class::Damaged => "damaged",
            Class::Invalid => "invalid",
            Class::Refused => "refused",
        });
        assert_eq!(class, vector["error"].as_str(), "{name}: {:?}", parsed.err());
        let Ok(manifest) = parsed else { continue };
        let root: [u8; 32] = bytes_of(vector, "root").try_into().expect("32 bytes");
        assert_eq!((manifest.root(), manifest.to_bytes()), (root, bytes.clone()), "{name}");
        assert_eq!(Manifest::open(&root, &bytes).as_ref(), Ok(&manifest), "{name}");
        let number = |field: &str| vector[field].as_u64().expect("a number");
        assert_eq!(manifest.segment_len, number("segment_len"));
        assert_eq!(manifest.payload_len(), number("payload_len"));
        assert_eq!(manifest.segments.len() as u64, number("segments"));
        assert_eq!(manifest.hash == HashKind::Blake3, number("hash") == 1);
        let targets = vector["targets"].as_array().expect("a list");
        assert_eq!(manifest.targets.len(), targets.len());
        for (target, pair) in manifest.targets.iter().zip(targets) {
            assert_eq!((Some(&*target.url), Some(&*target.domain)), (pair[0].as_str(), pair[1].as_str()));
        }
        let changed = [&bytes[..], b"x"].concat();
        assert!(Manifest::open(&root, &changed).is_err());
    }
}
