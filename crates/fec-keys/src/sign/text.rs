//! The text of minisign's files: comment lines, each followed by a line of base64.

use base64ct::{Base64, Encoding};
use fec_base::io::small;
use std::io;
use std::path::Path;
use zeroize::Zeroizing;

/// The first words of every file.
const UNTRUSTED: &str = "untrusted comment: ";
/// The first words of the third line of a signature.
const TRUSTED: &str = "trusted comment: ";

/// Tells whether a line has no characters that would affect a terminal or other lines.
fn is_plain(line: &str) -> bool {
    line.chars().all(|c| c == '\t' || !c.is_control())
}

/// The lines of a file, if there are exactly `N`. The last may end without a line feed.
pub(super) fn lines<const N: usize>(text: &str) -> Option<[&str; N]> {
    let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let mut out = [""; N];
    for line in &mut out {
        *line = lines.next().filter(|line| is_plain(line))?;
    }
    lines.next().is_none().then_some(out)
}

/// Tells whether a line is the untrusted comment.
pub(super) fn is_untrusted(line: &str) -> bool {
    line.starts_with(UNTRUSTED)
}

/// The comment of a line that the signature covers.
pub(super) fn trusted(line: &str) -> Option<&str> {
    line.strip_prefix(TRUSTED)
}

/// The bytes of a line of base64, if there are exactly `N`: padded, canonical, and in constant time.
pub(super) fn decoded<const N: usize>(line: &str) -> Option<Zeroizing<[u8; N]>> {
    // Base64 is decoded in blocks of three bytes.
    let mut room = Zeroizing::new(vec![0; N.next_multiple_of(3)]);
    let bytes = Base64::decode(line, &mut room).ok()?;
    bytes.try_into().ok().map(Zeroizing::new)
}

/// A line of base64.
pub(super) fn encoded(bytes: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(Base64::encode_string(bytes))
}

/// A file of a comment and a line of base64.
pub(super) fn commented(comment: &str, bytes: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(format!("{UNTRUSTED}{comment}\n{}\n", *encoded(bytes)))
}

/// A signature's file, with the signature of ML-DSA-65 of hybrid keys.
pub(super) fn signature(signed: &[u8], trusted: &str, global: &[u8], post_quantum: Option<&[u8]>) -> String {
    let comment = "signature of a root of fec";
    let fifth = post_quantum.map(|signature| format!("{}\n", *encoded(signature))).unwrap_or_default();
    format!("{}{TRUSTED}{trusted}\n{}\n{fifth}", *commented(comment, signed), *encoded(global))
}

/// The text of a file of at most `most` bytes; `None` for a longer file, and for one that is not UTF-8. Lines may end
/// as on Windows, as minisign allows: an editor or a checkout may have made them so.
pub(super) fn read(path: &Path, most: usize) -> io::Result<Option<Zeroizing<String>>> {
    let Some(bytes) = small::read(path, most)? else { return Ok(None) };
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(None) };
    // There is room for all of it: growing would leave a part of a key in memory.
    let mut lines = Zeroizing::new(String::with_capacity(text.len()));
    for (nth, line) in text.split("\r\n").enumerate() {
        lines.extend((nth > 0).then_some('\n'));
        lines.push_str(line);
    }
    Ok(Some(lines))
}
