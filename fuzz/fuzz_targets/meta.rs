//! The meta of a payload: accepted meta is written as the same bytes.
#![no_main]

use fec_core::digest::HashKind;
use fec_core::format::meta::Meta;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Meta::parse(bytes) {
        Ok(meta) => {
            assert_eq!(meta.to_bytes(), bytes, "written as it was read");
            for hash in [HashKind::Blake3, HashKind::Sha256] {
                assert_eq!(Meta::open(hash, &hash.digest(bytes), bytes), Ok(meta.clone()));
            }
        }
        Err(error) => fec_fuzz::look_at(&error),
    }
});
