//! Patterns of what is left out, and the tags of caches (docs/FORMAT.md, section 17.3).

use crate::error::SidecarError;
use fec_base::io::ReadAt;
use fec_base::io::base::Base;
use fec_core::format::sidecar::parts::Exclusion;
use fec_core::format::sidecar::policy::{Rules, Words};
use std::cell::{Cell, OnceCell};

/// The beginning of a file that tags its folder as a cache (<https://bford.info/cachedir/>).
const TAG: &[u8; 43] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// The exclusion in force, and what it has left out so far.
pub(crate) struct Patterns<'a> {
    exclusion: &'a Exclusion,
    patterns: Vec<Pattern<'a>>,
    /// The patterns of what the policy leaves out, and the folder that they count from.
    policy: Vec<(Words, Pattern<'a>)>,
    policy_anchor: &'a [u8],
    /// Paths that were left out; of a folder, only the folder counts.
    left_out: Cell<u64>,
    /// The first path that says that a program is at work.
    busy: OnceCell<Box<[u8]>>,
}

pub(super) struct Pattern<'a> {
    text: &'a str,
    glob: String,
    /// True if only the last part of a path counts.
    is_name: bool,
    is_folder: bool,
    has_matched: Cell<bool>,
}

impl<'a> Patterns<'a> {
    /// The patterns of an exclusion, and those of what a policy leaves out.
    pub(crate) fn of(exclusion: &'a Exclusion, policy: &'a Rules) -> Patterns<'a> {
        let is_out = |words: Words| words.has(Words::OUT) || words.has(Words::BUSY);
        let rules = policy.rules.iter().filter(|rule| is_out(rule.words));
        Patterns {
            exclusion,
            patterns: exclusion.patterns.iter().map(|text| Pattern::of(text)).collect(),
            policy: rules.map(|rule| (rule.words, Pattern::of(&rule.pattern))).collect(),
            policy_anchor: &policy.anchor,
            left_out: Cell::new(0),
            busy: OnceCell::new(),
        }
    }

    /// Tells whether a path is left out, and notes by which patterns.
    pub(crate) fn leave_out(&self, base: &Base, path: &[u8], is_folder: bool) -> bool {
        let mut is_out = false;
        for pattern in &self.patterns {
            let matches = pattern.matches(path, &self.exclusion.anchor, is_folder);
            pattern.has_matched.set(pattern.has_matched.get() | matches);
            is_out |= matches;
        }
        for (words, pattern) in &self.policy {
            let matches = pattern.matches(path, self.policy_anchor, is_folder);
            if matches && words.has(Words::BUSY) && folder_of(path) == self.policy_anchor {
                let _ = self.busy.set(path.into());
            }
            is_out |= matches;
        }
        is_out |= self.exclusion.caches && is_folder && has_tag(base, path);
        self.left_out.set(self.left_out.get() + u64::from(is_out));
        is_out
    }

    /// Paths that were left out; of a folder, only the folder counts.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.get()
    }

    /// A path that says that a program is at work.
    pub(crate) fn busy(&self) -> Option<&[u8]> {
        self.busy.get().map(|path| &**path)
    }

    /// The patterns that have matched nothing.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = &'a str> {
        self.patterns.iter().filter(|pattern| !pattern.has_matched.get()).map(|pattern| pattern.text)
    }
}

impl<'a> Pattern<'a> {
    pub(super) fn of(text: &'a str) -> Pattern<'a> {
        let (body, is_folder) = text.strip_suffix('/').map_or((text, false), |body| (body, true));
        let glob = glob_of(body.strip_prefix('/').unwrap_or(body));
        Pattern { text, glob, is_name: !body.contains('/'), is_folder, has_matched: Cell::new(false) }
    }

    pub(super) fn matches(&self, path: &[u8], anchor: &[u8], is_folder: bool) -> bool {
        let glob = |path: &[u8]| fast_glob::glob_match(&self.glob, path);
        if path.is_empty() || self.is_folder && !is_folder {
            return false;
        }
        if self.is_name {
            return glob(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path));
        }
        let in_anchor = || path.strip_prefix(anchor)?.strip_prefix(b"/");
        glob(path) || !anchor.is_empty() && in_anchor().is_some_and(glob)
    }
}

/// The folder that a path lies in; empty for the base.
fn folder_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &path[..at])
}

/// Tells whether a folder is tagged as a cache.
fn has_tag(base: &Base, folder: &[u8]) -> bool {
    let mut begin = [0; TAG.len()];
    let tag = base.read(&[folder, b"/CACHEDIR.TAG"].concat());
    tag.is_ok_and(|tag| ReadAt::read_exact_at(&tag, 0, &mut begin).is_ok()) && begin == *TAG
}

/// The form in which a pattern is kept: without `./` in front, and with at most one slash at each end.
///
/// # Errors
/// [`SidecarError::Pattern`].
pub(crate) fn normal(typed: &str) -> Result<String, SidecarError> {
    let wrong = |why: String| SidecarError::Pattern { pattern: typed.to_owned(), why };
    let mut text = typed;
    while let Some(rest) = text.strip_prefix("./") {
        text = rest;
    }
    let body = text.trim_matches('/');
    if body.is_empty() {
        return Err(wrong("it names nothing".to_owned()));
    }
    fast_glob::validate(glob_of(body)).map_err(|error| wrong(error.to_string()))?;
    let at = |is_there: bool| if is_there { "/" } else { "" };
    Ok([at(text.starts_with('/')), body, at(text.ends_with('/'))].concat())
}

/// The pattern as the matcher takes it: braces, which take exponential time there, and `!` stand for themselves, and so
/// does what a backslash is in front of.
fn glob_of(body: &str) -> String {
    let mut glob = String::with_capacity(body.len() + 8);
    let mut all = body.chars();
    while let Some(next) = all.next() {
        match next {
            '\\' => match all.next() {
                Some(plain) if plain.is_ascii_alphabetic() => glob.push(plain),
                plain => {
                    glob.push('\\');
                    glob.extend(plain);
                }
            },
            '{' | '}' => glob.extend(['\\', next]),
            '!' if glob.is_empty() => glob.push_str("\\!"),
            _ => glob.push(next),
        }
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_users_of_rsync_and_git_expect() {
        let base = tempfile::tempdir().expect("a folder");
        let base = Base::open(base.path()).expect("it opens");
        // Without `true` the path is no folder.
        let rows: [(&str, &[u8], bool, bool); 34] = [
            ("d/cache", b"d/cache", true, true),
            ("./d/cache", b"d/cache", true, true),
            ("/d/cache", b"d/cache", true, true),
            ("d/cache/", b"d/cache", true, true),
            ("/cache", b"d/cache", true, true),
            ("cache/", b"d/cache", true, true),
            ("././cache//", b"d/cache", true, true),
            ("cache", b"d/deep/cache", false, true),
            ("cache/", b"d/deep/cache", false, false),
            ("/cache", b"d/deep/cache", true, false),
            ("d/cache", b"d/deep/d/cache", true, false),
            ("deep/cache", b"d/deep/cache", true, true),
            ("**/cache", b"d/deep/cache", true, true),
            ("**/deep/cache", b"d/deep/cache", true, true),
            ("deep/**", b"d/deep/a/b", false, true),
            ("deep/**", b"d/deep", true, false),
            ("deep/*", b"d/deep/a/b", false, false),
            ("*.tmp", b"d/deep/x.tmp", false, true),
            ("*.tmp", b"d/deep/x.tmp.jpg", false, false),
            ("/*.tmp", b"d/x.tmp", false, true),
            ("/*.tmp", b"d/deep/x.tmp", false, false),
            ("d", b"d", true, true),
            ("/d", b"d", true, true),
            ("?", b"d/ab", false, false),
            ("[a-c][!a]", b"d/ab", false, true),
            ("{a,b}", b"d/a", false, false),
            ("{a,b}", b"d/{a,b}", false, true),
            ("!a", b"d/b", false, false),
            ("!a", b"d/!a", false, true),
            ("/!a", b"d/b", false, false),
            ("\\*", b"d/x", false, false),
            ("\\*", b"d/*", false, true),
            ("\\new", b"d/new", false, true),
            ("*", b"d/\xff", false, true),
        ];
        for (typed, path, is_folder, expected) in rows {
            let patterns = vec![normal(typed).expect("a pattern")];
            let exclusion = Exclusion { caches: false, anchor: b"d".to_vec(), patterns };
            let nothing = Rules::default();
            let patterns = Patterns::of(&exclusion, &nothing);
            assert_eq!(patterns.leave_out(&base, path, is_folder), expected, "{typed} {path:?}");
            assert_eq!(patterns.unmatched().next().is_none(), expected);
        }
        for wrong in ["", "/", "./", ".//", "[a", "a\\"] {
            assert!(normal(wrong).is_err(), "{wrong}");
        }
    }

    /// A pattern may come from a sidecar that somebody else has written.
    #[test]
    fn no_pattern_takes_long() {
        let paths = [vec![b'a'; 4096], b"a/".repeat(2048)];
        for pattern in
            ["{*a,*b,*c,**/a}".repeat(68), "*a".repeat(512), "**/*a".repeat(204), "**/a/".repeat(204)]
        {
            let exclusion = Exclusion { patterns: vec![pattern], ..Exclusion::default() };
            let nothing = Rules::default();
            let patterns = Patterns::of(&exclusion, &nothing);
            let start = std::time::Instant::now();
            for path in &paths {
                for is_folder in [false, true] {
                    let matches = |pattern: &Pattern<'_>| pattern.matches(path, b"", is_folder);
                    assert!(patterns.patterns.iter().filter(|pattern| matches(pattern)).count() <= 1);
                }
            }
            assert!(start.elapsed().as_secs() < 2, "{}", exclusion.patterns[0]);
        }
    }
}
