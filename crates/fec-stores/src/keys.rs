//! Keys of objects. Their contents never change, because each key begins with the root that proves them.

use fec_base::roots::parse_root;
use fec_core::digest::Digest;
use std::fmt::Write;

/// The prefix of all keys of a root.
pub(super) fn prefix(root: &Digest) -> String {
    let mut out = String::with_capacity(65);
    root.iter().for_each(|byte| {
        let _ = write!(out, "{byte:02x}");
    });
    out.push('/');
    out
}

/// Key of the manifest with this root.
pub(super) fn manifest(root: &Digest) -> String {
    prefix(root) + MANIFEST
}

/// Key of a shard file of the segment with this root.
pub(super) fn shard(root: &Digest, index: u32) -> String {
    format!("{}{index:03}.shard", prefix(root))
}

/// Index of the shard file that a key names, if it is one of the segment with this root.
pub(super) fn shard_index(root: &Digest, key: &str) -> Option<u32> {
    index_of(key.strip_prefix(prefix(root).as_str())?)
}

/// Index of the shard file with this name, under any root.
fn index_of(name: &str) -> Option<u32> {
    let index = name.strip_suffix(".shard")?;
    let is_plain = index.len() == 3 && index.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| index.parse::<u8>().ok()).flatten().map(u32::from)
}

/// Name of the manifest below its root.
const MANIFEST: &str = "manifest";

/// Tells whether a key may be that of a shard file or manifest, under any root.
pub(super) fn is_ours(key: &str) -> bool {
    parsed(key).is_some()
}

/// As [`is_ours`], for the list of a whole place: the folder of a root leads to what is ours.
pub(super) fn leads_to_ours(key: &str) -> bool {
    is_ours(key) || key.strip_suffix('/').and_then(root_of).is_some()
}

/// The root that a key begins with, and the index of its shard file; `None` in its place for a manifest.
pub(super) fn parsed(key: &str) -> Option<(Digest, Option<u32>)> {
    let (root, name) = key.split_once('/')?;
    let root = root_of(root)?;
    if name == MANIFEST { Some((root, None)) } else { index_of(name).map(|index| (root, Some(index))) }
}

/// A root as keys have it: 64 digits in lower case.
fn root_of(text: &str) -> Option<Digest> {
    let is_root = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    parse_root(text.as_bytes()).filter(|_| is_root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_back() {
        let root = [0xab; 32];
        assert_eq!(manifest(&root), format!("{}/manifest", "ab".repeat(32)));
        assert_eq!(shard_index(&root, &shard(&root, 17)), Some(17));
        for key in ["17.shard", "0017.shard", "+17.shard", "017.shard.tmp", "x/017.shard"] {
            assert_eq!(shard_index(&root, &(prefix(&root) + key)), None, "{key}");
        }
        assert_eq!(shard_index(&[1; 32], &shard(&root, 17)), None);
    }

    #[test]
    fn only_what_may_be_ours_is_ours() {
        let root = [0xab; 32];
        assert!(is_ours(&manifest(&root)) && is_ours(&shard(&root, 0)) && is_ours(&shard(&root, 255)));
        for name in ["256.shard", "17.shard", "+17.shard", "017.shard.tmp", "x/017.shard", "manifests", ""] {
            assert!(!is_ours(&(prefix(&root) + name)), "{name}");
        }
        assert!(!is_ours("manifest") && !is_ours("x/manifest"));
        assert_eq!(parsed(&manifest(&root)), Some((root, None)));
        assert_eq!(parsed(&shard(&root, 7)), Some((root, Some(7))));
        assert_eq!(parsed(&manifest(&root).to_uppercase()), None, "another key than ours");
        assert!(leads_to_ours(&prefix(&root)) && leads_to_ours(&shard(&root, 7)));
        assert!(["lost+found/", "ab/", &prefix(&root)[..64]].iter().all(|key| !leads_to_ours(key)));
    }
}
