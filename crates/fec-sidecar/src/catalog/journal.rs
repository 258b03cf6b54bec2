//! The list of everything that a repair is about to write to, beside its sidecar (docs/FORMAT.md, section 17.10). With
//! it an interrupted repair can run again: a half-mended file has another time, and would otherwise look like an edit.
//!
//! Anybody who may write to the folder can plant such a list. A list is therefore read only if it is a file of one's
//! own. It is believed about a file only if that file changed after the list and has the bytes that a repair leaves
//! (`begun.rs`).

use crate::Sidecar;
use crate::catalog::fingerprint::changed;
use crate::error::SidecarError;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::output::write_own;
use fec_base::io::own::{Stands, look};
use fec_base::io::read_only::{Access, access_to, make_writable};
use fec_base::io::temporary::parent;
use fec_base::names::hex;
use fec_core::digest::HashKind;
use rustix::fs::Stat;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata, OpenOptions};
use std::io::{ErrorKind as IoKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The start of the list; the root follows.
const HEAD: &str = "fec repair of ";
/// An upper bound for the bytes of the first line.
const MOST_OF_HEAD: u64 = 128;
/// The longest list that is written or read. It bounds the memory for both, too: the text while it is written, and
/// about as much for the pieces that were read.
const MOST: u64 = 64 << 20;
/// Bytes of a piece, unless blocks are shorter.
pub(crate) const PIECE: u64 = 4096;

/// The first bytes of the BLAKE3 of a piece.
pub(crate) type PieceDigest = [u8; 8];

pub(crate) fn piece_digest(bytes: &[u8]) -> PieceDigest {
    *HashKind::Blake3.digest(bytes).first_chunk().expect("a digest is longer")
}

/// Pieces of a file by their offsets, as they were before the repair wrote anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces(pub(crate) Vec<(u64, PieceDigest)>);

impl Pieces {
    /// Adds a piece behind all others.
    pub(crate) fn push(&mut self, offset: u64, digest: PieceDigest) {
        self.0.push((offset, digest));
    }

    pub(crate) fn at(&self, offset: u64) -> Option<PieceDigest> {
        let at = self.0.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
        Some(self.0[at].1)
    }
}

/// The entries that a list names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    /// Files that are mended in place.
    pub(crate) files: BTreeMap<usize, Pieces>,
    /// Folders and symbolic links that are made, and get their times and permissions at the end.
    pub(crate) made: HashSet<usize>,
    /// Read-only files and folders that are made writable for the moment.
    pub(crate) closed: Closed,
}

/// The permissions of read-only files and folders. Each is named by the number of an entry, and the bytes of its path
/// that are meant: all of them, those of a folder around it, or none for the base.
pub(crate) type Closed = BTreeMap<(usize, usize), u32>;

impl List {
    /// The numbers of all entries that it names. Nothing says that the sidecar has them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> {
        let closed = self.closed.keys().map(|(entry, _)| entry);
        self.files.keys().chain(&self.made).chain(closed).copied()
    }

    /// Reads the lines below the first, and skips lines of another form.
    fn parse(text: &str, piece: u64) -> List {
        let mut list = List::default();
        for line in text.lines() {
            match (line.strip_prefix('+'), line.strip_prefix('-')) {
                (Some(made), _) => list.made.extend(number(made).map(|made| made as usize)),
                (_, Some(closed)) => list.closed.extend(parse_closed(closed)),
                _ => list.files.extend(parse_line(line, piece)),
            }
        }
        list
    }
}

/// The lines of a list that is about to be written, as far as there is room for them: the text is all that is kept.
#[derive(Debug, Default)]
pub(crate) struct Lines(String);

impl Lines {
    /// Adds a folder or a symbolic link that is made.
    pub(crate) fn add_made(&mut self, entry: usize) {
        self.add(|text, _| text.push_str(&format!("+{entry}")));
    }

    /// Adds a read-only file or folder that is made writable.
    pub(crate) fn add_closed(&mut self, (entry, len): (usize, usize), mode: u32) {
        self.add(|text, _| text.push_str(&format!("-{entry}:{len}:{mode:o}")));
    }

    /// Adds a file with its damaged pieces of `piece` bytes. No more of them are taken than there is room for.
    pub(crate) fn add_file(
        &mut self,
        entry: usize,
        pieces: impl IntoIterator<Item = (u64, PieceDigest)>,
        piece: u64,
    ) {
        self.add(|text, most| {
            text.push_str(&entry.to_string());
            let mut next = None;
            for (offset, digest) in pieces {
                if next != Some(offset) {
                    text.push_str(&format!(" {offset}:"));
                }
                text.push_str(&hex(&digest));
                next = Some(offset + piece);
                if text.len() > most {
                    break;
                }
            }
        });
    }

    /// Adds a line, unless there is no room for it.
    fn add(&mut self, write: impl FnOnce(&mut String, usize)) {
        let most = (MOST - MOST_OF_HEAD) as usize - 1;
        let start = self.0.len();
        write(&mut self.0, most);
        if self.0.len() > most {
            self.0.truncate(start);
        } else {
            self.0.push('\n');
        }
    }
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn parse_closed(line: &str) -> Option<((usize, usize), u32)> {
    let mut words = line.split(':');
    let (entry, len, mode) = (number(words.next()?)?, number(words.next()?)?, words.next()?);
    let is_octal = mode.len() <= 4 && mode.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let mode = u32::from_str_radix(mode, 8).ok().filter(|_| is_octal && words.next().is_none())?;
    Some(((entry as usize, len as usize), mode))
}

fn parse_line(line: &str, piece: u64) -> Option<(usize, Pieces)> {
    const DIGITS: usize = 2 * size_of::<PieceDigest>();
    let mut words = line.split(' ');
    let entry = number(words.next()?)?;
    let mut pieces = Pieces::default();
    let mut end = 0;
    for word in words {
        let (offset, digests) = word.split_once(':')?;
        let mut offset = number(offset).filter(|offset| *offset >= end && offset % piece == 0)?;
        if digests.is_empty() || digests.len() % DIGITS > 0 || !digests.is_ascii() {
            return None;
        }
        for digits in digests.as_bytes().chunks(DIGITS) {
            let digits = std::str::from_utf8(digits).ok()?;
            let value = u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
            pieces.push(offset, value.to_be_bytes());
            offset = offset.checked_add(piece)?;
        }
        end = offset;
    }
    Some((entry as usize, pieces))
}

/// The list beside a sidecar.
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    /// The root of the sidecar.
    root: String,
    /// Bytes of a piece.
    pub(crate) piece: u64,
    /// The list that was found, if it has this root.
    pub(crate) list: List,
    /// The root in the list that was found.
    of: Option<String>,
    /// The time of change of the list.
    changed: Option<(i64, i64)>,
    /// Why the file at the list's path is not used.
    wrong: Option<&'static str>,
    /// Files that an interrupted repair has half mended, each with the fingerprint it had when its bytes proved that.
    pub(crate) own: BTreeMap<usize, u64>,
    /// Files whose whole damage is in the list.
    pub(crate) listed: HashSet<usize>,
    /// Entries of the list that the system did not let be looked at, and that may be half mended: each with whether it
    /// was changed later than the list, if its stat tells.
    pub(crate) unseen: BTreeMap<usize, Option<bool>>,
}

/// The path of the list of a sidecar.
pub(crate) fn path_of(sidecar: &Path) -> PathBuf {
    // A link may name the sidecar, so the real path counts.
    let place = fs::canonicalize(sidecar).unwrap_or_else(|_| sidecar.to_path_buf());
    let mut path = place.into_os_string();
    path.push(".repairing");
    path.into()
}

/// The root in the first line of a list.
fn root_of(text: &str) -> Option<&str> {
    let root = text.lines().next()?.strip_prefix(HEAD)?;
    let is_root = root.len() == 64 && root.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_root.then_some(root)
}

/// Fails when a repair of the sidecar at `path` was interrupted: its half-mended files would be protected as they are.
/// The owner of the list does not matter, since the list only makes this fail.
pub(crate) fn check_none(path: &Path, action: Action) -> Result<()> {
    let list = path_of(path);
    if !fs::symlink_metadata(&list).is_ok_and(|meta| meta.is_file()) {
        return Ok(());
    }
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let mut head = Vec::new();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&list);
    match file.and_then(|file| file.take(MOST_OF_HEAD).read_to_end(&mut head)) {
        Err(e) if e.kind() == IoKind::NotFound => return Ok(()),
        read => read.map_err(|e| Error::io(Action::Read, list.as_path(), e))?,
    };
    match root_of(&String::from_utf8_lossy(&head)) {
        Some(root) => Err(begun(path, root, list, action)),
        None => Ok(()),
    }
}

fn begun(sidecar: &Path, root: &str, list: PathBuf, action: Action) -> Error {
    Error::at(action, sidecar, SidecarError::RepairBegun { root: root.to_owned(), list })
}

fn changed_at(meta: &Metadata) -> (i64, i64) {
    (meta.ctime(), meta.ctime_nsec())
}

impl Journal {
    /// The list of an interrupted repair of this sidecar, or an empty one.
    ///
    /// # Errors
    /// Those of the list: without it, half-mended files would pass for edits.
    pub(crate) fn of(sidecar: &Sidecar) -> Result<Journal> {
        let path = path_of(sidecar.path());
        let fail = |e| Error::io(Action::Read, path.as_path(), e);
        let mut journal = Journal {
            root: hex(&sidecar.root()),
            piece: PIECE.min(sidecar.catalog.block.into()),
            list: List::default(),
            of: None,
            changed: None,
            wrong: None,
            own: BTreeMap::new(),
            listed: HashSet::new(),
            unseen: BTreeMap::new(),
            path: path.clone(),
        };
        let (file, meta) = match look(&path).map_err(fail)? {
            Stands::Nothing => return Ok(journal),
            Stands::Other(wrong) => {
                journal.wrong = Some(wrong);
                return Ok(journal);
            }
            Stands::Own(file, meta) => (file, meta),
        };
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes).map_err(fail)?;
        journal.changed = Some(changed_at(&meta));
        let text = String::from_utf8(bytes).unwrap_or_default();
        let Some(root) = root_of(&text) else {
            // A loss of power leaves an empty list.
            journal.wrong = (meta.len() > 0).then_some("it is no list of a repair");
            return Ok(journal);
        };
        journal.of = Some(root.to_owned());
        if root == journal.root {
            let below = text.split_once('\n').map_or("", |(_, below)| below);
            journal.list = List::parse(below, journal.piece);
        }
        Ok(journal)
    }

    /// Tells whether something changed after the list did.
    pub(crate) fn is_older_than(&self, stat: &Stat) -> bool {
        self.changed.is_some_and(|written| changed(stat) > written)
    }

    /// Fails when a repair with another root was interrupted: its half-mended files would be forgotten.
    pub(crate) fn check(&self, sidecar: &Sidecar, action: Action) -> Result<()> {
        match self.of.as_deref().filter(|_| !self.is_there()) {
            Some(root) => Err(begun(sidecar.path(), root, self.path.clone(), action)),
            None => Ok(()),
        }
    }

    /// Fails when something else than a list of one's own is at its path: nobody knows whom it serves.
    pub(crate) fn check_place(&self) -> Result<()> {
        match self.wrong {
            Some(wrong) => Err(Error::at(Action::Write, self.path.as_path(), ErrorKind::NotOwn(wrong))),
            None => Ok(()),
        }
    }

    /// Tells whether a list is there, or can be written.
    pub(crate) fn can_be(&self) -> bool {
        self.is_there() || access_to(parent(&self.path)).is_ok_and(|access| access != Access::NotYours)
    }

    /// Tells whether a repair with the root of this sidecar was interrupted.
    pub(crate) fn is_there(&self) -> bool {
        self.of.as_ref().is_some_and(|root| self.root == *root)
    }

    /// Tells whether the list that was found has all of these entries.
    pub(crate) fn has(
        &self,
        mut files: impl Iterator<Item = usize>,
        made: &HashSet<usize>,
        closed: &Closed,
    ) -> bool {
        self.is_there()
            && files.all(|entry| self.listed.contains(&entry))
            && made.is_subset(&self.list.made)
            && closed.iter().all(|(key, mode)| self.list.closed.get(key) == Some(mode))
    }

    /// Entries of the old list whose state is unknown, or half mended, and that are not in `files` or `made`.
    pub(crate) fn carried(&self, files: &HashSet<usize>, made: &HashSet<usize>) -> (Vec<usize>, Vec<usize>) {
        let is_open = |entry: &usize| self.unseen.contains_key(entry) || self.own.contains_key(entry);
        let of_files =
            self.list.files.keys().copied().filter(|entry| is_open(entry) && !files.contains(entry));
        let of_made = self.list.made.iter().copied().filter(|entry| is_open(entry) && !made.contains(entry));
        (of_files.collect(), of_made.collect())
    }

    /// Writes a list before any file is written to.
    ///
    /// # Errors
    /// Those of the list.
    pub(crate) fn begin(&mut self, lines: Lines) -> Result<()> {
        let mut text = lines.0;
        text.insert_str(0, &format!("{HEAD}{}\n", self.root));
        let fail = |e| Error::io(Action::Write, self.path.as_path(), e);
        let made = make_writable(parent(&self.path)).map_err(fail)?;
        write_own(&self.path, &text, true)?;
        drop(made);
        let fail = |e| Error::io(Action::Read, self.path.as_path(), e);
        if let Stands::Own(_, meta) = look(&self.path).map_err(fail)? {
            self.changed = Some(changed_at(&meta));
            wait_until_after(changed_at(&meta));
        }
        self.of = Some(self.root.clone());
        Ok(())
    }

    /// Removes the list after everything is written, unless it names something that could not be looked at.
    pub(crate) fn end(&self) {
        if !self.unseen.is_empty() {
            return;
        }
        let mut head = Vec::new();
        let Ok(Stands::Own(file, _)) = look(&self.path) else { return };
        let read = file.take(MOST_OF_HEAD).read_to_end(&mut head);
        // A list that can no longer be read was written or read before, so it is one's own.
        if read.is_err() || root_of(&String::from_utf8_lossy(&head)) == Some(&self.root) {
            let _made = make_writable(parent(&self.path));
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits until later changes get a later time of change, since the system's clock for it goes in steps.
fn wait_until_after(time: (i64, i64)) {
    const MOST_STEPS: u32 = 30;
    for _ in 0..MOST_STEPS {
        std::thread::sleep(Duration::from_millis(1));
        #[cfg(target_os = "linux")]
        {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
            if (now.tv_sec, now.tv_nsec) > time {
                return;
            }
        }
    }
    let _ = time;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(files: &[(usize, &[u64])], made: &[usize]) -> List {
        let pieces = |offsets: &[u64]| {
            let mut pieces = Pieces::default();
            offsets.iter().for_each(|offset| pieces.push(*offset, (offset * 31 + 7).to_be_bytes()));
            pieces
        };
        List {
            files: files.iter().map(|(entry, offsets)| (*entry, pieces(offsets))).collect(),
            made: made.iter().copied().collect(),
            closed: Closed::from([((0, 0), 0o555), ((7, 3), 0o2444)]),
        }
    }

    #[test]
    fn lists_come_back() {
        let whole = list(&[(3, &[0, 4096, 12_288]), (7, &[]), (9, &[1 << 40])], &[0, 11]);
        let mut lines = Lines::default();
        [0, 11].into_iter().for_each(|entry| lines.add_made(entry));
        whole.files.iter().for_each(|(entry, pieces)| lines.add_file(*entry, pieces.0.iter().copied(), 4096));
        whole.closed.iter().for_each(|(key, mode)| lines.add_closed(*key, *mode));
        let text = lines.0;
        let first = "3 0:0000000000000007000000000001f007 12288:000000000005d007";
        assert_eq!(
            text,
            format!("+0\n+11\n{first}\n7\n9 1099511627776:00001f0000000007\n-0:0:555\n-7:3:2444\n")
        );
        assert_eq!(List::parse(&text, 4096), whole);
    }

    /// A file with terabytes of damage takes no more memory than the longest list, and the others keep their lines.
    #[test]
    fn what_does_not_fit_is_left_out_before_it_is_collected() {
        let mut lines = Lines::default();
        let mut taken = 0u64;
        lines.add_file(1, [(0, [1; 8])], 4096);
        let endless = (0..).map(|nth| (nth * 4096, [7; 8])).inspect(|_| taken += 1);
        lines.add_file(2, endless, 4096);
        lines.add_made(3);
        assert!(taken * 16 <= MOST + 16, "{taken} pieces");
        assert_eq!(lines.0, "1 0:0101010101010101\n+3\n");
        assert!(lines.0.capacity() as u64 <= 2 * MOST);
    }

    #[test]
    fn a_list_begins_with_a_root() {
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(root_of(&format!("{HEAD}{digits}\n1\n")), Some(&*digits));
        for root in [
            "",
            "x",
            &digits[1..],
            &format!("{digits}0"),
            &digits.replace('0', "g"),
            &digits.to_uppercase(),
            "../../etc",
        ] {
            assert_eq!(root_of(&format!("{HEAD}{root}\n")), None, "{root}");
        }
    }

    #[test]
    fn what_is_no_line_says_nothing() {
        let digest = "0123456789abcdef";
        for line in [
            "",
            "x",
            "-1",
            "+",
            "++1",
            "-1:2",
            "-1:2:",
            "-1:2:8",
            "-1:2:+7",
            "-1:2:17777",
            "-1:2:555:",
            "--1:2:555",
            "-1:-2:555",
            "+-1",
            "18446744073709551616",
            "1 ",
            "1 0",
            "1 0:",
            "1 :0123456789abcdef",
            "1 0:0123456789abcde",
            "1 0:+123456789abcdef",
            "1 0:0123456789abcdeg",
            "1 0:0123456789abcdéf",
            "1 1:0123456789abcdef",
            "1 18446744073709547520:0123456789abcdef",
            "since 1",
        ] {
            assert_eq!(List::parse(line, 4096), List::default(), "{line:?}");
        }
        // The same offset twice, and offsets out of order.
        for offsets in [[0, 0], [4096, 0]] {
            let line = format!("1 {}:{digest} {}:{digest}", offsets[0], offsets[1]);
            assert_eq!(List::parse(&line, 4096), List::default());
        }
    }
}
