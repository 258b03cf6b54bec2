//! Manifests of stores: an accepted one is written as the same bytes.
#![no_main]

use fec_core::format::manifest::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fec_fuzz::with_and_without_checksum(bytes, check);
    // The length is in front, and each segment is the header of a shard file with a checksum of its own.
    if bytes.len() >= 64 {
        let mut restored = bytes.to_vec();
        let len = (bytes.len() as u32).to_le_bytes();
        restored[16..20].copy_from_slice(&len);
        restored[64..].chunks_exact_mut(192).for_each(fec_fuzz::restore_header);
        fec_fuzz::restore_header(&mut restored);
        check(&restored);
    }
});

fn check(bytes: &[u8]) {
    match Manifest::parse(bytes) {
        Ok(manifest) => {
            assert_eq!(manifest.to_bytes(), bytes, "written as it was read");
            assert_eq!(Manifest::open(&manifest.root(), bytes).as_ref(), Ok(&manifest));
            assert!(manifest.segment_start(manifest.segments.len() - 1) <= manifest.payload_len());
            assert!(manifest.targets.iter().all(|target| target.is_plain()));
        }
        Err(error) => fec_fuzz::look_at(&error),
    }
}
