//! Keeps the files that a repair is about to write over: a tar archive of them as they are, which any tar restores.

use crate::Sidecar;
use crate::repair::actions::EntryAction;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Error, Result};
use fec_base::io::ReadAt;
use fec_base::io::bad_blocks::fill_readable;
use fec_base::io::base::{Base, file_type};
use fec_base::io::output::{FileOut, Policy, check_room};
use fec_base::io::temporary::{parent, remove_stale};
use rustix::fs::{FileType, Stat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// Writes the archive `path` of everything below `base` that these actions write over, if there is anything. Unreadable
/// bytes of a file are zeros in it.
///
/// # Errors
/// Those of the archive; and when a file cannot be opened.
pub(crate) fn keep(
    path: &Path,
    sidecar: &Sidecar,
    base: &Base,
    actions: &[EntryAction],
    context: &Context<'_>,
) -> Result<()> {
    let mut kept = Vec::new();
    for (entry, action) in sidecar.catalog.entries.iter().zip(actions) {
        if *action != EntryAction::Leave
            && let Ok(stat) = base.stat(&entry.path)
        {
            kept.push((&*entry.path, stat));
        }
    }
    if kept.is_empty() {
        return Ok(());
    }
    let policy = Policy::new().with_sync(context.settings.sync);
    let is_file = |(_, stat): &&(&[u8], Stat)| file_type(stat) == FileType::RegularFile;
    // The integer type differs between systems.
    #[allow(clippy::unnecessary_cast)]
    let mode = |kept: &(&[u8], Stat)| is_file(&kept).then_some(kept.1.st_mode as u32);
    let modes = kept.iter().map(|kept| (kept.0, mode(kept)));
    remove_stale(parent(path), context.progress);
    let out = FileOut::create(path, policy.made_of_tree(base, modes, path))?;
    let total: u64 = kept.iter().filter(is_file).map(|(_, stat)| stat.st_size as u64).sum();
    check_room(path, total)?;
    let meter = context.meter(Action::Keep, Some(total));
    let mut archive = Builder::new(BufWriter::with_capacity(256 << 10, out.file()));
    for (path, stat) in &kept {
        meter.check()?;
        let place = base.place(path);
        let fail = |e: io::Error| match e.kind() {
            // The archive, not the file, is out of room.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                out.failure(e)
            }
            _ => Error::io(Action::Keep, place.as_path(), e),
        };
        let added = match file_type(stat) {
            FileType::RegularFile => {
                base.read(path).and_then(|file| add_file(&mut archive, path, stat, &file, &meter))
            }
            FileType::Symlink => {
                base.link_target(path).and_then(|target| add_link(&mut archive, path, stat, &target))
            }
            // A folder that is in the way is removed only if it is empty; other kinds hold nothing.
            _ => Ok(()),
        };
        added.map_err(fail)?;
    }
    let ended = archive.into_inner().and_then(|mut writer| writer.flush());
    let len = ended.and_then(|()| Ok(out.file().metadata()?.len())).map_err(|e| out.failure(e))?;
    meter.finish();
    out.commit(len)
}

// The integer types differ between systems.
#[allow(clippy::unnecessary_cast)]
fn header(stat: &Stat) -> (Header, String) {
    let mut header = Header::new_gnu();
    header.set_mode(stat.st_mode as u32 & 0o7777);
    header.set_uid(stat.st_uid.into());
    header.set_gid(stat.st_gid.into());
    header.set_mtime((stat.st_mtime as i64).max(0) as u64);
    (header, format!("{}.{:09}", stat.st_mtime as i64, stat.st_mtime_nsec as u32))
}

fn add_file(
    archive: &mut Builder<BufWriter<&File>>,
    path: &[u8],
    stat: &Stat,
    file: &File,
    meter: &Gauge<'_>,
) -> io::Result<()> {
    let (mut header, modified) = header(stat);
    let len = file.size()?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(len);
    archive.append_pax_extensions([("mtime", modified.as_bytes())])?;
    archive.append_data(&mut header, OsStr::from_bytes(path), Lenient { file, at: 0, len, meter })
}

fn add_link(
    archive: &mut Builder<BufWriter<&File>>,
    path: &[u8],
    stat: &Stat,
    target: &[u8],
) -> io::Result<()> {
    let (mut header, modified) = header(stat);
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    archive.append_pax_extensions([("mtime", modified.as_bytes())])?;
    archive.append_link(&mut header, OsStr::from_bytes(path), OsStr::from_bytes(target))
}

/// Exactly `len` bytes of a file, with zeros for bytes that are unreadable or gone.
struct Lenient<'a> {
    file: &'a File,
    at: u64,
    len: u64,
    meter: &'a Gauge<'a>,
}

impl Read for Lenient<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = (self.len - self.at).min(out.len() as u64) as usize;
        let out = &mut out[..count];
        let filled = fill_readable(self.file, self.at, out, |_, _| ());
        out[filled..].fill(0);
        self.at += count as u64;
        self.meter.add(count as u64);
        Ok(count)
    }
}
