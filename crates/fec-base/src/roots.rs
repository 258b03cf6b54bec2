//! Roots as text: a single root, or a list with a line for each encoding, like the list of files that `sha256sum`
//! makes.

use crate::names::{self, hex};
use fec_core::Root;
use fec_core::digest::Digest;
use std::path::{Path, PathBuf};

/// A line of a list of roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The root.
    pub root: Digest,
    /// The path of the encoding; `None` for a root without one.
    pub path: Option<PathBuf>,
}

/// Adds a line with a digest, two spaces, and a path as raw bytes. A path with a line feed, a carriage return or a
/// backslash is escaped, and its line begins with a backslash, as in the output of `sha256sum` and `b3sum`. The line of
/// a blank path begins with a backslash too, since it would look like a root alone.
pub fn put_line(out: &mut Vec<u8>, digest: &Digest, path: &Path) {
    let path = path.as_os_str().as_encoded_bytes();
    let escape = |byte: &u8| match byte {
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\\' => Some(b'\\'),
        _ => None,
    };
    if path.trim_ascii().is_empty() || path.iter().any(|byte| escape(byte).is_some()) {
        out.push(b'\\');
    }
    out.extend_from_slice(hex(digest).as_bytes());
    out.extend_from_slice(b"  ");
    for byte in path {
        match escape(byte) {
            Some(escaped) => out.extend_from_slice(&[b'\\', escaped]),
            None => out.push(*byte),
        }
    }
    out.push(b'\n');
}

/// The root that 64 hexadecimal digits stand for.
pub fn parse_root(text: &[u8]) -> Option<Digest> {
    Some(std::str::from_utf8(text).ok()?.parse::<Root>().ok()?.0)
}

/// Parses a line of [`put_line`] or a root alone, without the line feed.
pub fn parse_line(line: &[u8]) -> Option<Line> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (is_escaped, line) = match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (digits, rest) = line.split_at_checked(64)?;
    let root = parse_root(digits)?;
    if !is_escaped && rest.trim_ascii().is_empty() {
        return Some(Line { root, path: None });
    }
    // `sha256sum` may write a star in place of the second space.
    let path = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"))?;
    let path = if is_escaped { unescaped(path)? } else { path.to_vec() };
    if path.is_empty() {
        return None;
    }
    Some(Line { root, path: Some(names::of_path(path)?) })
}

fn unescaped(path: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            other => *other,
        });
    }
    Some(out)
}

/// The lines of a text that holds only roots; `None` for any other bytes. With `is_cut` more text may follow, and the
/// last line is left out since it may be incomplete.
pub fn parse(text: &[u8], is_cut: bool) -> Option<Vec<Line>> {
    let text = match (is_cut, text.iter().rposition(|byte| *byte == b'\n')) {
        (true, Some(end)) => &text[..end],
        (true, None) => return None,
        (false, _) => text,
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let lines: Option<Vec<Line>> = lines.map(parse_line).collect();
    lines.filter(|lines| !lines.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        for path in ["a.fec", "with  spaces ", "a\\b", "two\nlines\r", "*", " ", "  \t"] {
            let mut text = Vec::new();
            put_line(&mut text, &[0xab; 32], Path::new(path));
            let expected = Line { root: [0xab; 32], path: Some(path.into()) };
            assert_eq!(parse(&text, false), Some(vec![expected]), "{path:?}");
        }
    }

    #[test]
    fn roots_have_64_digits_and_nothing_else_around_them() {
        let root = "Ab".repeat(32);
        let alone = Line { root: [0xab; 32], path: None };
        for text in [root.clone(), format!("{root}\n"), format!("\n{root}\r\n\n")] {
            assert_eq!(parse(text.as_bytes(), false), Some(vec![alone.clone()]), "{text:?}");
        }
        assert_eq!(parse(format!("{root}\n{}", &root[..10]).as_bytes(), true), Some(vec![alone]));
        for text in [
            "",
            "\n",
            &root[..63],
            &format!("{root}0"),
            &format!("{root} a"),
            &format!("{root}\nx"),
            &"g".repeat(64),
        ] {
            assert_eq!(parse(text.as_bytes(), false), None, "{text:?}");
        }
        assert_eq!(parse(root.as_bytes(), true), None);
    }
}
