//! Tells a framed byte stream from shard files and containers, by what stands in it (docs/FORMAT.md, section 16).

use super::frame::{DELIMITER, find_frame};
use crate::sys::salvage::is_bad_place;
use fec_core::format::container::{INDEX_MAGIC, RECORD_MAGIC};
use fec_core::format::packet::MAGIC;
use fec_core::format::shard_file;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// So many bytes are looked through when the first ones tell nothing.
const LOOK: usize = 128 << 10;
/// What every magic fits in.
const START: usize = 8;

/// Whether bytes that start like `head` are a stream; `None` if that cannot be told yet.
fn is_stream(head: &[u8], at_end: bool) -> Option<bool> {
    let is_other = |bytes: &[u8]| {
        bytes.starts_with(&RECORD_MAGIC) || bytes.starts_with(&INDEX_MAGIC) || shard_file::has_magic(bytes)
    };
    if head.len() < START && !at_end {
        return None;
    }
    if find_frame(head, &MAGIC) == Some(0) {
        return Some(true);
    }
    if is_other(head) {
        return Some(false);
    }
    if head.len() < LOOK && !at_end {
        return None;
    }
    // Another delimiter in front is what a stream begins with whose first packet is damaged.
    let others = memchr::memchr_iter(RECORD_MAGIC[0], head).any(|at| is_other(&head[at..]));
    Some(find_frame(head, &MAGIC).is_some() && (head.starts_with(&DELIMITER) || !others))
}

/// Whether a file is a stream. What cannot be read is none.
pub(crate) fn file(file: &File) -> io::Result<bool> {
    let mut head = vec![0; LOOK];
    let mut filled = 0;
    loop {
        match file.read_at(&mut head[filled..], filled as u64) {
            Ok(0) => return Ok(is_stream(&head[..filled], true).unwrap_or(false)),
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if is_bad_place(&e) => return Ok(false),
            Err(e) => return Err(e),
        }
        if let Some(told) = is_stream(&head[..filled], false) {
            return Ok(told);
        }
    }
}

/// Reads the beginning of a pipe, as little as it takes, and tells whether it is a stream.
pub(crate) fn pipe(mut input: &File) -> io::Result<(Vec<u8>, bool)> {
    let mut head = vec![0; LOOK];
    let mut filled = 0;
    loop {
        let at_end = match input.read(&mut head[filled..]) {
            Ok(n) => {
                filled += n;
                n == 0
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if let Some(told) = is_stream(&head[..filled], at_end) {
            head.truncate(filled);
            return Ok((head, told));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_where_they_can() {
        let frame = [&DELIMITER[..], &[99], &MAGIC, b"rest"].concat();
        let damaged = [&DELIMITER[..], b"damaged", &frame].concat();
        let container = [&RECORD_MAGIC[..], &frame].concat();
        assert_eq!(is_stream(&frame, false), Some(true));
        assert_eq!(is_stream(&frame[..6], false), None);
        assert_eq!(is_stream(&container, false), Some(false));
        assert_eq!(is_stream(&damaged, false), None);
        assert_eq!(is_stream(&damaged, true), Some(true));
        assert_eq!(
            is_stream(&[b"x", &container[..]].concat(), true),
            Some(false),
            "a payload of a damaged container"
        );
        assert_eq!(
            is_stream(&[&damaged[..], &container].concat(), true),
            Some(true),
            "a payload of a damaged stream"
        );
        assert_eq!(is_stream(b"", true), Some(false));
        assert_eq!(is_stream(&[0; LOOK], false), Some(false));
    }
}
