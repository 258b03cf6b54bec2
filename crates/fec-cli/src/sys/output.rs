//! Outputs: files and folders that appear under their name when they are whole, and streams.

use super::cleanup::{Temporary, parent};
use crate::failure::{Exit, Failure, Result, show};
use fec_core::format::shard_file;
use rustix::fs::{AtFlags, CWD, RenameFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How an output may be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// An existing output may be replaced.
    pub(crate) force: bool,
    /// The output is on the disk, not only in the system's cache, before the command ends.
    pub(crate) sync: bool,
}

/// Standard output for payload bytes.
pub(crate) fn stdout_for_data() -> Result<File> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        return Err(Failure::usage("write standard output: it is a terminal, and the bytes are not text")
            .help("send it to a file or a pipe, or name one with -o"));
    }
    let fd = stdout.as_fd().try_clone_to_owned().map_err(|e| Failure::stdout(&e))?;
    Ok(File::from(fd))
}

/// Whether `path` is there and is a device, FIFO or socket: such outputs are written like a stream.
pub(crate) fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| {
        let t = m.file_type();
        t.is_fifo() || t.is_char_device() || t.is_block_device() || t.is_socket()
    })
}

/// Opens a device, FIFO or socket for writing.
pub(crate) fn open_special(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).open(path).map_err(|e| Failure::io("write", path, &e))
}

/// Fails when `path` exists and may not be replaced.
pub(crate) fn check_absent(path: &Path, policy: Policy) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => Err(Failure::usage(format!("write {}: it is a folder", show(path)))),
        Ok(meta) if meta.is_symlink() => {
            Err(Failure::usage(format!("write {}: it is a symbolic link", show(path)))
                .help("name the file that it leads to"))
        }
        Ok(_) if !policy.force => Err(Failure::usage(format!("write {}: it exists", show(path)))
            .help("choose another name with -o, or replace it with -f")),
        _ => Ok(()),
    }
}

/// Fails when the folder that is to hold `path` is not there.
pub(crate) fn check_folder(path: &Path) -> Result<()> {
    fs::metadata(parent(path)).map(|_| ()).map_err(|e| Failure::io("create", path, &e))
}

/// Whether two paths name one place, as far as their folders exist.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    let place =
        |path: &Path| fs::canonicalize(parent(path)).ok().zip(path.file_name().map(ToOwned::to_owned));
    let file = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let same_place = place(a).is_some_and(|a| Some(a) == place(b));
    same_place || file(a).is_some_and(|a| Some(a) == file(b))
}

/// Fails early when the file system that holds `path` has clearly less room than `bytes`.
pub(crate) fn check_room(path: &Path, bytes: u64) -> Result<()> {
    let Ok(stat) = rustix::fs::statvfs(parent(path)) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if stat.f_blocks > 0 && free < bytes {
        let message = format!("write {}: {bytes} bytes are needed and {free} are free", show(path));
        return Err(Failure::new(Exit::Io, message).help("make room, or choose another place with -o"));
    }
    Ok(())
}

/// A regular file that appears under its name only when it is whole.
#[derive(Debug)]
pub(crate) struct FileOut {
    target: PathBuf,
    policy: Policy,
    temporary: Temporary,
    file: File,
}

impl FileOut {
    /// Starts a file that will be `target`.
    pub(crate) fn create(target: &Path, policy: Policy) -> Result<FileOut> {
        check_absent(target, policy)?;
        let open = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let (temporary, file) =
            Temporary::beside(target, open).map_err(|e| Failure::io("create", target, &e))?;
        Ok(FileOut { target: target.to_path_buf(), policy, temporary, file })
    }

    /// The file, to write into.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// A failed write to this output.
    pub(crate) fn failure(&self, cause: &io::Error) -> Failure {
        Failure::io("write", &self.target, cause)
    }

    /// Gives the file its length, its place on the disk and its name.
    pub(crate) fn commit(self, len: u64) -> Result<()> {
        let FileOut { target, policy, temporary, file } = self;
        let fail = |e: io::Error| Failure::io("write", &target, &e);
        file.set_len(len).map_err(fail)?;
        if policy.sync {
            file.sync_all().map_err(fail)?;
        }
        temporary.commit(|from| rename(from, &target, policy.force)).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => check_absent(&target, policy).err().unwrap_or_else(|| fail(e)),
            _ => fail(e),
        })?;
        sync_folder(parent(&target), policy)
    }
}

/// Renames, and without `force` never over anything that is there.
fn rename(from: &Path, to: &Path, force: bool) -> io::Result<()> {
    if force {
        return fs::rename(from, to);
    }
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // A file system without that call: a link never replaces anything either.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            match rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty()) {
                Ok(()) => fs::remove_file(from),
                Err(rustix::io::Errno::EXIST) => Err(io::ErrorKind::AlreadyExists.into()),
                // Folders, and file systems without links: the output was checked before the work.
                Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
                Err(e) => Err(e.into()),
            }
        }
        Err(e) => Err(e.into()),
    }
}

fn sync_folder(folder: &Path, policy: Policy) -> Result<()> {
    if !policy.sync {
        return Ok(());
    }
    let synced = File::open(folder).and_then(|f| f.sync_all());
    match synced {
        // Some file systems cannot sync a folder; the files in it are safe.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other.map_err(|e| Failure::io("sync", folder, &e)),
    }
}

/// A folder of files that appears under its name only when all of them are whole.
#[derive(Debug)]
pub(crate) struct FolderOut {
    target: PathBuf,
    policy: Policy,
    temporary: Temporary,
    files: Vec<File>,
}

impl FolderOut {
    /// Starts a folder that will be `target`, with files of these names.
    pub(crate) fn create(target: &Path, names: &[std::ffi::OsString], policy: Policy) -> Result<FolderOut> {
        FolderOut::check(target, policy)?;
        let fail = |e: io::Error| Failure::io("create", target, &e);
        let (temporary, ()) = Temporary::beside(target, |path| fs::create_dir(path)).map_err(fail)?;
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            let open =
                OpenOptions::new().read(true).write(true).create_new(true).open(temporary.path().join(name));
            files.push(open.map_err(fail)?);
        }
        Ok(FolderOut { target: target.to_path_buf(), policy, temporary, files })
    }

    /// Fails when `target` exists and may not be replaced: without -f anything but an empty folder;
    /// with -f anything but a folder that holds shard files only.
    pub(crate) fn check(target: &Path, policy: Policy) -> Result<()> {
        let Ok(meta) = fs::symlink_metadata(target) else { return Ok(()) };
        if !meta.is_dir() {
            return Err(Failure::usage(format!("write {}: it exists and is not a folder", show(target)))
                .help("choose another name with -o"));
        }
        let entries = fs::read_dir(target).map_err(|e| Failure::io("read", target, &e))?;
        for entry in entries {
            let path = entry.map_err(|e| Failure::io("read", target, &e))?.path();
            if !policy.force {
                return Err(Failure::usage(format!("write {}: the folder is not empty", show(target)))
                    .help("choose another with -o, or replace the shard files in it with -f"));
            }
            if !is_shard_file(&path) {
                let message = format!("replace {}: {} is not a shard file", show(target), show(&path));
                return Err(
                    Failure::usage(message).help("only a folder of shard files is replaced as a whole")
                );
            }
        }
        Ok(())
    }

    /// The files, in the order of the names.
    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// A failed write to this output.
    pub(crate) fn failure(&self, cause: &io::Error) -> Failure {
        Failure::io("write", &self.target, cause)
    }

    /// Puts all files on the disk (on `threads` at once) and gives the folder its name.
    pub(crate) fn commit(self, threads: super::threads::Threads) -> Result<()> {
        use fec_core::executor::Executor as _;
        let FolderOut { target, policy, temporary, files } = self;
        let fail = |e: io::Error| Failure::io("write", &target, &e);
        if policy.sync {
            let first_error = std::sync::Mutex::new(None);
            threads.run(files.len(), &|i| {
                if let Err(e) = files[i].sync_all() {
                    first_error.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
                }
            });
            if let Some(e) = first_error.into_inner().unwrap_or_else(|e| e.into_inner()) {
                return Err(fail(e));
            }
        }
        drop(files);
        sync_folder(temporary.path(), policy)?;
        FolderOut::check(&target, policy)?;
        temporary.commit(|from| replace_folder(from, &target, policy)).map_err(fail)?;
        sync_folder(parent(&target), policy)
    }
}

/// Renames a folder into place; with `force` one that is there already goes away afterwards.
fn replace_folder(from: &Path, to: &Path, policy: Policy) -> io::Result<()> {
    match fs::rename(from, to) {
        // Without -f only an empty folder was there when it was checked: what came since is not ours.
        Err(e) if policy.force && e.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let exchange = || rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE);
            exchange()?;
            // Under the temporary name nobody else finds it: what is in it now is what goes away.
            if FolderOut::check(from, policy).is_err() {
                exchange()?;
                return Err(e);
            }
            fs::remove_dir_all(from)
        }
        other => other,
    }
}

/// Whether `path` is a file that starts like a shard file.
pub(crate) fn is_shard_file(path: &Path) -> bool {
    let mut magic = [0u8; 8];
    let is_file = fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
    is_file
        && File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok()
        && shard_file::has_magic(&magic)
}

/// Writes all of `rows`, one behind the other, from byte `at` on. The list is used up.
pub(crate) fn write_all_vectored_at(file: &File, mut rows: &mut [IoSlice], mut at: u64) -> io::Result<()> {
    while !rows.is_empty() {
        match rustix::io::pwritev(file, rows, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                IoSlice::advance_slices(&mut rows, written);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Writes a small text file under the same rules as any output.
pub(crate) fn write_text(path: &Path, text: &str, policy: Policy) -> Result<()> {
    if is_special(path) {
        return open_special(path)?.write_all(text.as_bytes()).map_err(|e| Failure::io("write", path, &e));
    }
    let out = FileOut::create(path, policy)?;
    out.file().write_all_at(text.as_bytes(), 0).map_err(|e| out.failure(&e))?;
    out.commit(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody puts a file into the output folder between the last check and the rename.
    #[test]
    fn a_folder_that_fills_up_meanwhile_is_not_replaced() {
        for force in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let (from, to) = (place.path().join("from"), place.path().join("to"));
            for folder in [&from, &to] {
                fs::create_dir(folder).unwrap();
            }
            fs::write(to.join("precious"), b"precious").unwrap();
            fs::write(from.join("new"), b"new").unwrap();
            let done = replace_folder(&from, &to, Policy { force, sync: false });
            assert_eq!(done.unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
            assert_eq!(fs::read(to.join("precious")).unwrap(), b"precious");
            assert!(from.join("new").exists());
        }
    }
}
