//! The times when each file was last examined: a text file beside or away from the sidecar, which belongs to the
//! scheduler.
//!
//! ```text
//! fec scrub state 1
//! 1764000000 0 ok 0011223344556677 photos/2019/a.jpg
//! ```
//!
//! A line has the seconds since 1970 (0: never), the chunk to go on from, the finding, the first half of a digest, and
//! the path. A backslash, a line feed and a carriage return in the path are escaped by a backslash. The digest of a
//! file is its BLAKE3. The line of the sidecar has no path, and its root as the digest. The finding is `ok`, `damaged`
//! or `recheck`: `damaged` if the last whole pass or the current one found damage, `recheck` if only the last whole
//! pass did; with `-lost` behind it, that damage could not be mended. Lines that do not fit the sidecar, or lie in the
//! future, count as never examined.

use crate::Sidecar;
use crate::error::SidecarError;
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::{FileOut, Policy, check_own, set_mode_if_any};
use fec_base::names::hex;
use fec_core::digest::Digest;
use fec_core::format::sidecar::EntryKind;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const HEAD: &[u8] = b"fec scrub state 1";
/// The longest line that is read: a path with each byte escaped, and the fields before it.
const LINE: u64 = 2 * 4096 + 128;

/// The finding on a file, or on the sidecar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Finding {
    /// No damage.
    #[default]
    Ok,
    /// Damage in the last whole pass, or in the current one.
    Damaged,
    /// Damage in the last whole pass, and none so far in the current one.
    Recheck,
}

/// The record of a file, or of the sidecar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// When all of it was last examined, in seconds since 1970; 0: never.
    pub(crate) time: u64,
    /// The chunk or job that the next run goes on from.
    pub(crate) next: u64,
    pub(crate) finding: Finding,
    /// True if damage was found that could not be mended.
    pub(crate) is_lost: bool,
}

impl Known {
    /// Begins a pass at the first chunk.
    pub(crate) fn begin(&mut self) {
        self.next = 0;
        if self.finding == Finding::Damaged {
            self.finding = Finding::Recheck;
        }
    }

    /// Ends a pass at the last chunk.
    pub(crate) fn end(&mut self, now: u64) {
        (self.time, self.next) = (now, 0);
        if self.finding == Finding::Recheck {
            (self.finding, self.is_lost) = (Finding::Ok, false);
        }
    }

    /// Tells whether damage was found that no later pass has seen mended.
    pub(crate) fn is_damaged(&self) -> bool {
        self.finding != Finding::Ok
    }
}

/// The records of all files, and of the sidecar.
#[derive(Debug)]
pub(crate) struct State {
    /// Records by entry; entries other than files have empty ones.
    pub(crate) files: Vec<Known>,
    pub(crate) sidecar: Known,
}

impl State {
    /// A state in which nothing was ever examined.
    pub(crate) fn new(sidecar: &Sidecar) -> State {
        State { files: vec![Known::default(); sidecar.catalog.entries.len()], sidecar: Known::default() }
    }

    /// Reads a state; a missing file is an empty state.
    ///
    /// # Errors
    /// [`SidecarError::NotAState`] when the file is something else, [`ErrorKind::NotOwn`](fec_base::ErrorKind::NotOwn)
    /// when it is not one's own, [`SidecarError::OtherState`] when it names files and none of these; those of the file.
    pub(crate) fn load(path: &Path, sidecar: &Sidecar, now: u64) -> Result<State> {
        let mut state = State::new(sidecar);
        let fail = |e| Error::io(Action::Read, path, e);
        // The state of somebody else could claim that everything was examined.
        let file = match check_own(path, Action::UseState)? {
            None => return Ok(state),
            Some((file, _)) => file,
        };
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        let mut is_head = true;
        let (mut lines_of_files, mut known) = (0u64, 0u64);
        loop {
            line.clear();
            let read = io::Read::take(&mut lines, LINE).read_until(b'\n', &mut line).map_err(fail)?;
            if is_head {
                if line.strip_suffix(b"\n") != Some(HEAD) {
                    return Err(Error::at(Action::Read, path, SidecarError::NotAState));
                }
                is_head = false;
            } else if read == 0 {
                return match (lines_of_files, known) {
                    (1.., 0) => Err(Error::at(Action::Read, path, SidecarError::OtherState)),
                    _ => Ok(state),
                };
            } else if let Some((of, digest, path)) = parse(&line) {
                lines_of_files += u64::from(!path.is_empty());
                known += u64::from(state.add(of, digest, &path, sidecar, now));
            }
        }
    }

    /// Takes over a line if it fits the sidecar. Returns whether its path is one of the sidecar's.
    fn add(&mut self, known: Known, digest: &[u8], path: &[u8], sidecar: &Sidecar, now: u64) -> bool {
        let is_past = known.time <= now;
        if path.is_empty() {
            if is_past && digest == half(&sidecar.root()).as_bytes() {
                self.sidecar = known;
            }
            return false;
        }
        let entries = &sidecar.catalog.entries;
        let Ok(nth) = entries.binary_search_by(|entry| (*entry.path).cmp(path)) else { return false };
        if let EntryKind::File(file) = &entries[nth].kind
            && is_past
            && digest == half(&file.blake3).as_bytes()
        {
            self.files[nth] = known;
        }
        true
    }

    /// Writes the state, and replaces the old one after everything is written.
    pub(crate) fn save(&self, path: &Path, sidecar: &Sidecar, sync: bool) -> Result<()> {
        let policy = Policy::new().with_force(true).with_sync(sync).made_of_paths([sidecar.path()]);
        check_own(path, Action::UseState)?;
        let out = FileOut::create(path, policy)?;
        // The old file may have been readable to more people.
        let now = out.file().metadata().map_err(|e| out.failure(e))?.permissions().mode();
        set_mode_if_any(out.file(), now & policy.permissions & 0o777).map_err(|e| out.failure(e))?;
        let mut writer = io::BufWriter::new(out.file());
        let mut len = 0;
        let mut put = |line: &[u8]| -> io::Result<()> {
            len += line.len() as u64 + 1;
            writer.write_all(line)?;
            writer.write_all(b"\n")
        };
        let written = put(HEAD)
            .and_then(|()| put(&line(&self.sidecar, &sidecar.root(), b"")))
            .and_then(|()| {
                let known = sidecar.catalog.files().map(|(nth, file)| (nth, file, &self.files[nth]));
                let mut told = known.filter(|(_, _, known)| **known != Known::default());
                told.try_for_each(|(nth, file, known)| {
                    put(&line(known, &file.blake3, &sidecar.catalog.entries[nth].path))
                })
            })
            .and_then(|()| writer.flush());
        drop(writer);
        written.map_err(|e| out.failure(e))?;
        out.commit(len)
    }
}

fn half(digest: &Digest) -> String {
    hex(&digest[..8])
}

fn line(known: &Known, digest: &Digest, path: &[u8]) -> Vec<u8> {
    let word = match known.finding {
        Finding::Ok => "ok",
        Finding::Damaged => "damaged",
        Finding::Recheck => "recheck",
    };
    let lost = if known.is_lost { "-lost" } else { "" };
    let mut line = format!("{} {} {word}{lost} {} ", known.time, known.next, half(digest)).into_bytes();
    for byte in path {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            byte => line.push(*byte),
        }
    }
    line
}

/// The record of a line, with its digest and path.
fn parse(line: &[u8]) -> Option<(Known, &[u8], Vec<u8>)> {
    let line = line.strip_suffix(b"\n")?;
    let mut words = line.splitn(5, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
    let (time, next) = (number()?, number()?);
    let word = words.next()?;
    let is_lost = word.ends_with(b"-lost");
    let finding = match word.strip_suffix(b"-lost").unwrap_or(word) {
        b"ok" if !is_lost => Finding::Ok,
        b"damaged" => Finding::Damaged,
        b"recheck" => Finding::Recheck,
        _ => return None,
    };
    let (digest, escaped) = (words.next()?, words.next()?);
    let mut path = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some((Known { time, next, finding, is_lost }, digest, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        for (is_lost, word) in [(false, "damaged"), (true, "damaged-lost")] {
            let known = Known { time: 1_764_000_000, next: 7, finding: Finding::Damaged, is_lost };
            let path = b"a b/\\n\n\xff \r";
            let mut text = line(&known, &[0xab; 32], path);
            let words = format!("1764000000 7 {word} abababababababab a b/").into_bytes();
            assert_eq!(text, [&words, &b"\\\\n\\n\xff \\r"[..]].concat());
            text.push(b'\n');
            assert_eq!(parse(&text), Some((known, &b"abababababababab"[..], path.to_vec())));
        }
    }

    #[test]
    fn what_is_no_line_is_none() {
        for text in [
            "",
            "\n",
            "1 2 ok aa\n",
            "1 2 fine aa b\n",
            "1 2 ok-lost aa b\n",
            "-1 2 ok aa b\n",
            "1 2 ok aa \\x\n",
            "1 2 ok aa b",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
