//! Words about patterns: what they leave out, and who remembers them.

use crate::run::target::quoted;
use fec_base::names::counted;
use fec_core::format::sidecar::parts::Exclusion;
use fec_core::format::sidecar::policy::{Rule, Rules, Words};
use fec_sidecar::protect::Excluded;
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The patterns and what they left out, in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct LeftOut {
    patterns: Vec<String>,
    caches: bool,
    paths: u64,
    unmatched: Vec<String>,
    /// Patterns that were not given, and that the sidecar remembers.
    remembered: Vec<String>,
    /// Patterns that the sidecar remembers, and that were not used because nothing proves them.
    unproved: Vec<String>,
}

impl LeftOut {
    pub(crate) fn new(excluded: &Excluded) -> LeftOut {
        let Excluded { by, count, unmatched, remembered, unproved } = excluded;
        LeftOut {
            patterns: by.patterns.clone(),
            caches: by.caches,
            paths: *count,
            unmatched: unmatched.clone(),
            remembered: remembered.patterns.clone(),
            unproved: unproved.patterns.clone(),
        }
    }
}

/// The lines about patterns of a sidecar whose names count from `base`.
pub(crate) fn describe(excluded: &Excluded, rules: &Rules, base: &Path) -> String {
    let Excluded { by, count: paths, unmatched, remembered, unproved } = excluded;
    let mut out = String::new();
    if *paths > 0 || !remembered.is_empty() {
        out.push_str(&format!("left out by {}: {}\n", by_whom(by, rules), counted(*paths, "path")));
    }
    if !remembered.is_empty() {
        out.push_str(&format!(
            "the sidecar remembers {}; to protect that too, add --forget-excludes\n",
            options(remembered)
        ));
    }
    if !unproved.is_empty() {
        out.push_str(&format!(
            "not used: {}, which the sidecar remembers and no proof binds; give it again if it is right\n",
            options(unproved)
        ));
    }
    if !unmatched.is_empty() {
        let mut from = vec![quoted(base)];
        if !by.anchor.is_empty() {
            from.push(quoted(&base.join(OsStr::from_bytes(&by.anchor))));
        }
        let has_slash = unmatched.iter().any(|pattern| pattern.trim_end_matches('/').contains('/'));
        let whence =
            if has_slash { format!("; paths count from {}", from.join(" or ")) } else { String::new() };
        out.push_str(&format!("warning: {} matched nothing{whence}\n", named(unmatched)));
    }
    out
}

/// The options that stand for an exclusion, and the policy, if it leaves out anything.
pub(crate) fn by_whom(exclusion: &Exclusion, rules: &Rules) -> String {
    let is_out = |rule: &Rule| rule.words.has(Words::OUT) || rule.words.has(Words::BUSY);
    match (options(exclusion), rules.rules.iter().any(is_out)) {
        (options, false) => options,
        (options, true) if options.is_empty() => "the policy".to_owned(),
        (options, true) => format!("{options} and the policy"),
    }
}

/// The options that stand for an exclusion.
fn options(exclusion: &Exclusion) -> String {
    let caches = exclusion.caches.then(|| "--exclude-caches".to_owned());
    let patterns = (!exclusion.patterns.is_empty()).then(|| named(&exclusion.patterns));
    patterns.into_iter().chain(caches).collect::<Vec<_>>().join(" ")
}

/// A few patterns, each with its option.
fn named(patterns: &[String]) -> String {
    const FEW: usize = 5;
    let few = patterns.iter().take(FEW).map(|pattern| format!("--exclude {}", quoted(Path::new(pattern))));
    let few = few.collect::<Vec<_>>().join(" ");
    match patterns.len().saturating_sub(FEW) {
        0 => few,
        more => format!("{few} and {more} more"),
    }
}
