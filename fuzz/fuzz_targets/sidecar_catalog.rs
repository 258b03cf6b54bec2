//! A sidecar's account of files: catalogs, and the times and permissions behind them. Accepted ones are written as the
//! same bytes.
#![no_main]

use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::stat::Stats;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let entries = match Catalog::parse(bytes) {
        Ok((catalog, digests, anchors)) => {
            let mut written = catalog.head_bytes();
            written.extend_from_slice(digests.as_flattened());
            written.extend_from_slice(anchors.as_flattened());
            assert_eq!(written, bytes, "written as it was read");
            assert_eq!(digests.len() as u64, catalog.digests());
            for (extent, block) in catalog.extents.iter().map(|extent| (extent, u64::from(catalog.block))) {
                let end = extent.start + extent.len(block).expect("the extent was checked");
                let last = extent.piece(u64::from(extent.pieces) - 1, block);
                assert!(last + u64::from(extent.piece_len) <= end, "pieces stand in their extent");
            }
            catalog.entries.len()
        }
        Err(error) => {
            fec_fuzz::look_at(&error);
            usize::from(bytes.first().copied().unwrap_or(0))
        }
    };
    for entries in [entries, bytes.len() / 16] {
        if let Ok(stats) = Stats::parse(bytes, entries) {
            assert_eq!(stats.to_bytes(), bytes, "written as it was read");
        }
    }
});
