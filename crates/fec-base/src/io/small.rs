//! Small files that a user names: keys, lists, signatures. The name may belong to a pipe, as `<(…)` of a shell makes
//! it, or to a device that never ends. A bounded number of bytes is read, and a missing writer is not waited for
//! without end.

use super::system;
use std::fs::File;
use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Time for a writer to open a FIFO.
const PATIENCE: Duration = Duration::from_secs(3);
/// Interval of the checks for a writer.
const PAUSE: Duration = Duration::from_millis(10);
/// Initial buffer, in bytes, for a file of unknown length.
const LEAST_ROOM: usize = 64 << 10;

/// The bytes of a file, from its start.
pub type Bytes = Chain<Cursor<Vec<u8>>, File>;

/// Opens a file that is read from start to end. A FIFO without a writer is an error after three seconds; an ordinary
/// open would wait for ever. A writer that has it open may take any time.
///
/// # Errors
/// Those of the system; [`TimedOut`](ErrorKind::TimedOut) for such a FIFO.
pub fn open(path: &Path) -> io::Result<Bytes> {
    let file = system::open_at_once(path)?;
    let head = if system::is_fifo(&file.metadata()?) { first_byte(&file)? } else { Vec::new() };
    system::wait_from_now_on(&file)?;
    Ok(Cursor::new(head).chain(file))
}

/// The first byte of a FIFO, if it has arrived. Only a read tells a silent writer from a missing one.
fn first_byte(mut fifo: &File) -> io::Result<Vec<u8>> {
    let end = Instant::now() + PATIENCE;
    let mut byte = [0];
    loop {
        match fifo.read(&mut byte) {
            Ok(0) if Instant::now() < end => std::thread::sleep(PAUSE),
            Ok(0) => {
                return Err(io::Error::new(ErrorKind::TimedOut, "it is a FIFO, and nobody writes to it"));
            }
            Ok(_) => return Ok(byte.to_vec()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The whole file, if it has at most `most` bytes; `None` if it is longer. The bytes may be secret, so they are
/// overwritten when dropped.
///
/// # Errors
/// Those of [`open`].
pub fn read(path: &Path, most: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let file = open(path)?;
    // The buffer gets its full size first, because a growing one would leave copies behind. A pipe does not tell its
    // length.
    let len = usize::try_from(file.get_ref().1.metadata()?.len()).unwrap_or(most);
    let room = len.clamp(LEAST_ROOM.min(most), most);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room + 1));
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= most).then_some(bytes))
}

/// As [`read`], for a file of text; invalid UTF-8 is an error.
///
/// # Errors
/// Those of [`read`]; [`InvalidData`](ErrorKind::InvalidData) for a file that is longer than `most` bytes, or no text.
pub fn read_text(path: &Path, most: usize) -> io::Result<Zeroizing<String>> {
    let refused = |why: String| io::Error::new(ErrorKind::InvalidData, why);
    let bytes = read(path, most)?.ok_or_else(|| refused(format!("it has more than {most} bytes")))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| refused("it is not text (UTF-8)".to_owned()))?;
    Ok(Zeroizing::new(text.to_owned()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    fn fifo(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
        path
    }

    #[test]
    fn what_never_ends_is_not_read_to_its_end() {
        assert!(read(Path::new("/dev/zero"), 1 << 20).expect("it can be read").is_none());
        let error = read_text(Path::new("/dev/zero"), 100).expect_err("it is too long");
        assert_eq!(error.to_string(), "it has more than 100 bytes");
        assert!(
            read(Path::new("/dev/null"), 0).expect("it can be read").is_some_and(|bytes| bytes.is_empty())
        );
    }

    #[test]
    fn the_bound_is_the_last_length_that_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 100]).expect("a file");
        assert_eq!(read(&path, 100).expect("it can be read").as_deref(), Some(&vec![7; 100]));
        assert!(read(&path, 99).expect("it can be read").is_none());
    }

    #[test]
    fn a_fifo_without_a_writer_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = read(&fifo(folder.path()), 10).expect_err("nobody is there");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_writer_that_comes_late_and_is_slow_is_heard() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = fifo(folder.path());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(PAUSE * 5);
                let mut writer = File::options().write(true).open(&path).expect("a reader is there");
                std::thread::sleep(PAUSE * 5);
                for byte in b"secret" {
                    io::Write::write_all(&mut writer, &[*byte]).expect("it is written");
                    std::thread::sleep(PAUSE);
                }
            });
            let bytes = read(&path, 100).expect("it can be read").expect("it is short");
            assert_eq!(*bytes, b"secret");
        });
    }
}
