//! Names and numbers as people read them.

use crate::io::system;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names that are not told, each with the words in its place.
static CONCEALED: OnceLock<BTreeMap<Vec<u8>, String>> = OnceLock::new();

/// Makes [`show`] tell other words in place of these names, which may be secrets. The first call counts, for the whole
/// process.
pub fn conceal(names: BTreeMap<Vec<u8>, String>) {
    CONCEALED.get_or_init(|| names);
}

/// The name of a file that these bytes are; `None` if this system has no such name, or would take it for something
/// else. On Unix any bytes are one.
pub fn of_file(bytes: Vec<u8>) -> Option<OsString> {
    system::name_of(bytes)
}

/// The path that these bytes are; `None` if this system has no such path. On Unix any bytes are one.
pub fn of_path(bytes: Vec<u8>) -> Option<PathBuf> {
    system::path_of(bytes)
}

/// A path or recorded name for people. Control characters and broken UTF-8 are escaped, so that no name can trick a
/// terminal.
pub fn show(path: impl AsRef<Path>) -> String {
    show_bytes(path.as_ref().as_os_str().as_encoded_bytes())
}

/// [`show`] for an input: `-` is standard input.
pub fn show_input(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    if path.as_os_str() == "-" { "standard input".to_owned() } else { show(path) }
}

/// [`show`] for a name that is raw bytes.
pub fn show_bytes(name: &[u8]) -> String {
    if let Some(instead) = CONCEALED.get().and_then(|concealed| concealed.get(name)) {
        return instead.clone();
    }
    let mut out = String::new();
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || is_bidi(c) {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Tells whether a recorded name is safe as a path: it has no characters that trick a terminal, a shell, or another
/// system's paths.
pub fn is_plain(name: &[u8]) -> bool {
    let has_tricks =
        std::str::from_utf8(name).is_ok_and(|name| name.chars().any(|c| c.is_control() || is_bidi(c)));
    let is_control = |byte: &u8| byte.is_ascii_control() || *byte == b'\\';
    !(has_tricks || name.iter().any(is_control) || name.starts_with(b"-"))
}

/// Tells whether a character changes the direction of the text around it, which can make a name look like another.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A number with its noun, which takes an s unless the number is 1.
pub fn counted(count: impl TryInto<u64>, name: &str) -> String {
    match count.try_into() {
        Ok(1) => format!("1 {name}"),
        Ok(count) => format!("{count} {name}s"),
        Err(_) => format!("many {name}s"),
    }
}

/// A number of bytes for people, in powers of 2 and rounded down.
pub fn bytes(count: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| count >= *unit) {
        None => counted(count, "byte"),
        Some((unit, name)) => {
            let tenths = (u128::from(count) * 10 / u128::from(*unit)) as u64;
            match tenths % 10 {
                0 => format!("{} {name}", tenths / 10),
                _ => format!("{}.{} {name}", tenths / 10, tenths % 10),
            }
        }
    }
}

/// Bytes as lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_said() {
        assert_eq!((counted(1u32, "set"), counted(0u64, "set")), ("1 set".to_owned(), "0 sets".to_owned()));
        let expected = [(1, "1 byte"), (1023, "1023 bytes"), (1024, "1 KiB"), (12_710_400, "12.1 MiB")];
        for (count, text) in expected {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(bytes(u64::MAX), "16777215.9 TiB");
    }

    #[test]
    fn plain_names_are_those_without_tricks() {
        for plain in [&b"a.tar"[..], b".hidden", b"a-b", b"\xff", "größe".as_bytes()] {
            assert!(is_plain(plain), "{plain:?}");
        }
        for tricky in [&b"a\x1b[2J"[..], b"a\n", b"-rf", b"..\\..\\x", b"\x7f", "a\u{202e}b".as_bytes()] {
            assert!(!is_plain(tricky), "{tricky:?}");
        }
    }

    #[test]
    fn names_cannot_play_tricks_with_a_terminal() {
        assert_eq!(show_bytes(b"a\x1b[2Jb\xff\n"), "a\\u{1b}[2Jb\\xff\\n");
    }

    #[test]
    fn a_concealed_name_is_told_in_other_words_and_nothing_else_is() {
        conceal(BTreeMap::from([(b"hunter2".to_vec(), "(hidden)".to_owned())]));
        assert_eq!((show("hunter2"), show_input("hunter2")), ("(hidden)".to_owned(), "(hidden)".to_owned()));
        assert_eq!(
            (show("hunter2.fec"), show("x/hunter2")),
            ("hunter2.fec".to_owned(), "x/hunter2".to_owned())
        );
    }
}
