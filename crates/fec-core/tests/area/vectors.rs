//! The golden vectors, which the independent implementation wrote.

use crate::{encode, noise};
use fec_core::area::AreaCode;
use fec_core::digest::HashKind;
use fec_core::executor::Inline;
use fec_core::gf256::kernel::Backend;
use serde_json::Value;

/// A block with noise in the first and the last symbol alone.
fn sparse(seed: u64) -> Vec<u8> {
    let mut block = vec![0; 128];
    [block[0], block[63], block[64], block[127]] = noise(4, seed).try_into().unwrap();
    block
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn recovery_blocks_are_those_of_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/area.json");
    let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() >= 15);
    for vector in vectors {
        let number = |field: &str| vector[field].as_u64().unwrap();
        let (k, m, block) = (number("k"), number("m") as usize, number("block") as usize);
        let is_sparse = vector["sparse"].as_bool().unwrap();
        let code = AreaCode::new(k as usize, m).unwrap();
        let block = |i: u64| if is_sparse { sparse(1000 * k + i) } else { noise(block, 1000 * k + i) };
        for backend in Backend::available() {
            let all = encode(code, (0..k).map(block).collect(), backend, k, &Inline);
            if is_sparse {
                let digest = HashKind::Sha256.digest(&all[..m].concat());
                assert_eq!(vector["sha256"], hex(&digest), "{code:?} on {}", backend.name());
            } else {
                let blocks: Vec<String> = all[..m].iter().map(|block| hex(block)).collect();
                assert_eq!(vector["recovery"], Value::from(blocks), "{code:?} on {}", backend.name());
            }
        }
    }
}
