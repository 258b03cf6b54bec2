//! The paths in a list, as `--files-from` reads them.

use crate::say::failure::{Failure, Result, misuse};
use fec_base::names::of_path;
use std::path::{Path, PathBuf};

/// The longest path that the system takes, in bytes.
const LONGEST_PATH: usize = 4095;
/// Most bytes of a list.
pub(crate) const MOST_LISTED: u64 = 256 << 20;
/// Most paths in a list.
const MOST_PATHS: usize = 4 << 20;

/// The paths in the content of a list: zero-terminated if `is_null` or if there is a zero byte, else one per line.
///
/// # Errors
/// Wrong use: the list is too long, or lists nothing.
pub(crate) fn paths(list: &Path, bytes: &[u8], is_null: bool) -> Result<Vec<PathBuf>> {
    let wrong = |why: String| -> Failure { misuse("read", list, &why) };
    let advice = "name a list of files, a line each";
    if bytes.len() as u64 > MOST_LISTED {
        return Err(wrong(format!("it never ends, or has more than {} MiB", MOST_LISTED >> 20)).help(advice));
    }
    let separator = if is_null || bytes.contains(&0) { 0 } else { b'\n' };
    // On Unix a carriage return may end a name; on Windows no name has one, and it ends lines.
    let unended = |line| if cfg!(windows) { <[u8]>::strip_suffix(line, b"\r").unwrap_or(line) } else { line };
    let lines = || bytes.split(|b| *b == separator).map(unended);
    if let Some(nth) = lines().position(|path| path.len() > LONGEST_PATH) {
        return Err(wrong(format!("entry {} is longer than a path may be", nth + 1)));
    }
    let paths = || lines().filter(|path| !path.is_empty());
    if paths().nth(MOST_PATHS).is_some() {
        return Err(wrong(format!("it has more than {MOST_PATHS} entries")));
    }
    if paths().next().is_none() {
        return Err(wrong("it lists nothing".to_owned()).help(advice));
    }
    let no_path = |nth: usize| wrong(format!("entry {} is not UTF-8, as paths are here", nth + 1));
    let lines = lines().enumerate().filter(|(_, path)| !path.is_empty());
    lines.map(|(nth, path)| of_path(path.to_vec()).ok_or_else(|| no_path(nth))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_or_zeros_end_paths() {
        let list = Path::new("list");
        let read = |bytes: &[u8], is_null| paths(list, bytes, is_null).expect("paths");
        assert_eq!(read(b"a\n\nb c\n", false), [Path::new("a"), Path::new("b c")]);
        assert_eq!(read(b"a\nb\0c", false), [Path::new("a\nb"), Path::new("c")]);
        assert_eq!(read(b"a\nb", true), [Path::new("a\nb")]);
    }

    #[test]
    fn lists_that_hold_no_paths_are_refused() {
        let long = vec![b'x'; LONGEST_PATH + 1];
        let many = b"x\n".repeat(MOST_PATHS + 1);
        for (bytes, why) in [
            (&b""[..], "read list: it lists nothing"),
            (b"\n\n", "read list: it lists nothing"),
            (&long, "read list: entry 1 is longer than a path may be"),
            (&many, "read list: it has more than 4194304 entries"),
        ] {
            assert_eq!(paths(Path::new("list"), bytes, false).expect_err(why).message, why);
        }
    }
}
