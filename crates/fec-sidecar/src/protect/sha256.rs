//! SHA-256 of files, which takes another reading.

use crate::catalog::seen::Seen;
use crate::protect::coding::admit;
use fec_base::context::{Context, Gauge, Progress};
use fec_base::error::{Action, Result};
use fec_base::io::base::Base;
use fec_base::threads::Threads;
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::{Entry, EntryKind};
use std::io::{self, Read};
use std::sync::Mutex;

/// Makes room for the SHA-256 of files.
pub(crate) fn make_room_for_sha256(entries: &mut [Entry], of: impl Fn(usize) -> bool) {
    for (_, entry) in entries.iter_mut().enumerate().filter(|(nth, _)| of(*nth)) {
        if let EntryKind::File(file) = &mut entry.kind {
            file.sha256 = Some(Box::new([0; 32]));
        }
    }
}

/// Reads files once more, for their SHA-256.
pub(crate) fn add_sha256(
    catalog: &mut Catalog,
    base: &Base,
    seen: &Seen,
    of: &dyn Fn(usize) -> bool,
    context: &Context<'_>,
) -> Result<()> {
    let files: Vec<usize> = catalog.files().map(|(nth, _)| nth).filter(|nth| of(*nth)).collect();
    let total = catalog.files().filter(|(nth, _)| of(*nth)).map(|(_, file)| file.size).sum();
    let meter = context.meter(Action::Sha256, Some(total));
    let found: Mutex<Vec<(usize, Result<Digest>)>> = Mutex::new(Vec::new());
    Threads(context.settings.threads).run(files.len(), &|job| {
        if meter.is_cancelled() {
            return;
        }
        let nth = files[job];
        let path = &catalog.entries[nth].path;
        let digest = sha256(base, path, (nth, seen), (&meter, context.progress));
        lock(&found).push((nth, digest.map_err(|e| seen.fail(base, path, e))));
    });
    meter.check()?;
    for (nth, digest) in into_value(found) {
        if let EntryKind::File(file) = &mut catalog.entries[nth].kind {
            file.sha256 = Some(Box::new(digest?));
        }
    }
    meter.finish();
    Ok(())
}

fn sha256(
    base: &Base,
    path: &[u8],
    (nth, seen): (usize, &Seen),
    (meter, progress): (&Gauge<'_>, &dyn Progress),
) -> io::Result<Digest> {
    let mut file = base.read(path)?;
    admit(seen, nth as u32, &file, || base.place(path), progress)?;
    let mut hasher = PlainHasher::new(HashKind::Sha256);
    let mut bytes = vec![0; 256 << 10];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(n) => {
                hasher.update(&bytes[..n]);
                meter.add(n as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
