//! A sidecar's account of files: catalogs, and the times and permissions behind them. Accepted ones are written as the
//! same bytes.
#![no_main]

use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::stat::Stats;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (mut entries, block) = match Catalog::parse(bytes) {
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
            (catalog.entries, catalog.block)
        }
        Err(error) => {
            fec_fuzz::look_at(&error);
            let count = usize::from(bytes.first().copied().unwrap_or(0));
            (vec![file(u64::from(bytes.get(1).copied().unwrap_or(0)) << 10); count], 1024)
        }
    };
    for count in [entries.len(), bytes.len() / 16] {
        entries.resize(count, file(8192));
        if let Ok(stats) = Stats::parse(bytes, &entries, block) {
            assert_eq!(stats.to_bytes(), bytes, "written as it was read");
        }
    }
});

/// A file of this size.
fn file(size: u64) -> Entry {
    let (runs, sha256) = (Vec::new(), None);
    let kind =
        EntryKind::File(FileEntry { size, blake3: [0; 32], sha256, is_executable: false, runs, tail: 0 });
    Entry { path: b"f"[..].into(), kind }
}
