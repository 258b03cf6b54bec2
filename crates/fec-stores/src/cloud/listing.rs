//! Filters lists of objects as services send them, before they are parsed.

use crate::object::Wanted;
use memchr::memmem;

/// Most bytes of an object's entry, and most bytes kept of a page.
const MAX_OBJECT: usize = 64 << 10;
const MAX_KEPT: usize = 8 << 20;
/// Tags around an object and around its key: at S3 and Google, and at Azure.
const OBJECTS: [[&[u8]; 4]; 2] =
    [[b"<Contents>", b"</Contents>", b"<Key>", b"</Key>"], [b"<Blob>", b"</Blob>", b"<Name>", b"</Name>"]];

/// A page of a list, as it comes. Objects with unwanted keys are removed, and those whose keys are no plain paths, on
/// which the crate `object_store` would fail the whole list.
pub(super) struct Page {
    wanted: Wanted,
    kept: Vec<u8>,
    /// Bytes not yet filtered, which may end within an object.
    rest: Vec<u8>,
}

impl Page {
    /// An empty page.
    pub(super) fn new(wanted: Wanted) -> Page {
        Page { wanted, kept: Vec::new(), rest: Vec::new() }
    }

    /// Takes the next bytes; false if they are too many to keep.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = &self.rest[at..];
            let begins = OBJECTS.iter().filter_map(|tags| Some((memmem::find(rest, tags[0])?, tags)));
            let Some((before, [open, close, key_open, key_close])) = begins.min_by_key(|(at, _)| *at) else {
                // The opening tag of an object may be cut here.
                let end = self.rest.len().saturating_sub(OBJECTS[0][0].len() - 1).max(at);
                self.kept.extend_from_slice(&self.rest[at..end]);
                at = end;
                break;
            };
            self.kept.extend_from_slice(&rest[..before]);
            at += before;
            let object = &rest[before..];
            let Some(len) = memmem::find(object, close).map(|at| at + close.len()) else { break };
            let inside = &object[open.len()..len - close.len()];
            let key = between(inside, key_open, key_close).and_then(|key| std::str::from_utf8(key).ok());
            if key.is_some_and(|key| is_plain(key) && !has_control(key) && (self.wanted)(end_of(key))) {
                self.kept.extend_from_slice(&object[..len]);
            }
            at += len;
        }
        self.rest.drain(..at);
        self.rest.len() <= MAX_OBJECT && self.kept.len() <= MAX_KEPT
    }

    /// The filtered page. A cut page stays cut, so it does not look whole.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.kept.append(&mut self.rest);
        self.kept
    }
}

fn between<'a>(text: &'a [u8], open: &[u8], close: &[u8]) -> Option<&'a [u8]> {
    let behind = &text[memmem::find(text, open)? + open.len()..];
    Some(&behind[..memmem::find(behind, close)?])
}

/// The last two parts of a key, without the place's prefix. Wanted keys have at most two parts.
fn end_of(key: &str) -> &str {
    key.rmatch_indices('/').nth(1).map_or(key, |(at, _)| &key[at + 1..])
}

/// Tells whether a key is a path of parts that are neither empty nor `.` or `..`, without control characters.
pub(super) fn is_plain(key: &str) -> bool {
    !key.chars().any(char::is_control) && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Tells whether a key in XML has control characters as numeric references. Most such references are quotation marks.
fn has_control(key: &str) -> bool {
    key.split("&#").skip(1).any(|behind| {
        let number = behind.split(';').next().unwrap_or_default();
        let (digits, radix) = number.strip_prefix(['x', 'X']).map_or((number, 10), |hex| (hex, 16));
        u32::from_str_radix(digits, radix).ok().and_then(char::from_u32).is_none_or(char::is_control)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filters a list; pieces of all lengths give the same result.
    fn filter(list: &str, wanted: Wanted) -> String {
        let of_pieces = |len: usize| {
            let mut page = Page::new(wanted);
            assert!(list.as_bytes().chunks(len).all(|piece| page.push(piece)));
            String::from_utf8(page.end()).expect("text")
        };
        let whole = of_pieces(list.len());
        (1..40).for_each(|len| assert_eq!(of_pieces(len), whole, "{len}"));
        whole
    }

    fn list(keys: &[&str]) -> String {
        let object = |key: &&str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let objects: String = keys.iter().map(object).collect();
        format!("<ListBucketResult><Prefix>a//</Prefix>{objects}<Token>x</Token></ListBucketResult>")
    }

    #[test]
    fn odd_keys_go() {
        let odd = ["a/b", "a//b", "a/", "/a", "a/../b", "./a", "a&#10;b", "a&#x9;", "it&#39;s &amp; d"];
        assert_eq!(filter(&list(&odd), |_| true), list(&["a/b", "it&#39;s &amp; d"]));
        let azure = "<Blobs><Blob><Name>x//y</Name></Blob><Blob><Name>x</Name></Blob></Blobs>";
        assert_eq!(filter(azure, |_| true), "<Blobs><Blob><Name>x</Name></Blob></Blobs>");
        for cut in ["<Contents><Key>cut", "<Conten"] {
            assert_eq!(filter(cut, |_| true), cut, "what is cut must not look whole");
        }
    }

    #[test]
    fn what_nobody_wants_goes_as_it_comes() {
        let keys = ["p/q/root/000.shard", "root/000.shard", "root/x/000.shard", "000.shard", "root/other"];
        let left = filter(&list(&keys), |key| key == "root/000.shard");
        assert_eq!(left, list(&["p/q/root/000.shard", "root/000.shard"]));
        let mut page = Page::new(|_| false);
        let object = format!("<Contents><Key>{}</Key></Contents>", "k".repeat(900));
        for _ in 0..100_000 {
            assert!(page.push(object.as_bytes()) && page.kept.len() + page.rest.capacity() < 100_000);
        }
        let mut page = Page::new(|_| true);
        assert!(!(0..100_000).all(|_| page.push(b"<Contents><Key>")), "an object without an end");
        let mut page = Page::new(|_| true);
        assert!(!(0..100_000).all(|_| page.push(object.as_bytes())), "more than can be kept");
    }
}
