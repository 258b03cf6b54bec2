//! The bytes equal those of another implementation.

use fec_core::block::Code;
use fec_core::gf256::kernel::Backend;
use reed_solomon_erasure::galois_8::ReedSolomon;

use super::encoded;

const SHAPES: [(usize, usize); 16] = [
    (1, 1),
    (1, 255),
    (2, 1),
    (3, 2),
    (4, 2),
    (10, 4),
    (17, 3),
    (33, 67),
    (50, 50),
    (85, 15),
    (86, 14),
    (100, 100),
    (128, 128),
    (200, 10),
    (200, 56),
    (255, 1),
];

#[test]
fn recovery_is_that_of_reed_solomon_erasure() {
    for (k, m) in SHAPES {
        let peer = ReedSolomon::new(k, m).unwrap();
        for backend in Backend::available() {
            let set = encoded(Code::new(k, m).unwrap(), 320, backend);
            let mut expected: Vec<Vec<u8>> = set.iter().map(<[u8]>::to_vec).collect();
            expected[k..].iter_mut().for_each(|row| row.fill(0));
            peer.encode(&mut expected).unwrap();
            for (i, (ours, theirs)) in set.iter().zip(&expected).enumerate() {
                assert!(ours == theirs, "shard {i} of {k}+{m} by {backend:?}");
            }
        }
    }
}
