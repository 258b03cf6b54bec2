//! The policy in force: the words that it has for paths (docs/FORMAT.md, section 17.3).

use crate::catalog::patterns::Pattern;
use crate::catalog::proof::Proof;
use crate::{Sidecar, catalog::moved::folders_of};
use fec_core::format::sidecar::policy::{Rules, Words};

/// A policy, ready to be asked.
pub(crate) struct Policy<'a> {
    rules: Vec<(Words, Pattern<'a>)>,
    anchor: &'a [u8],
    /// True if all that lies in the folder may go.
    is_announced: bool,
}

impl<'a> Policy<'a> {
    pub(crate) fn of(rules: &'a Rules) -> Policy<'a> {
        let pattern =
            |rule: &'a fec_core::format::sidecar::policy::Rule| (rule.words, Pattern::of(&rule.pattern));
        Policy {
            rules: rules.rules.iter().map(pattern).collect(),
            anchor: &rules.anchor,
            is_announced: rules.is_announced,
        }
    }

    /// The words for a path: those of all rules that match it, or a folder that it lies in.
    ///
    /// Cost: each rule is tried for the path and for each folder around it.
    pub(crate) fn words(&self, path: &[u8], is_folder: bool) -> Words {
        let of = |path: &[u8], is_folder: bool| {
            let rules =
                self.rules.iter().filter(|(_, pattern)| pattern.matches(path, self.anchor, is_folder));
            rules.fold(Words::default(), |words, (more, _)| words | *more)
        };
        let around = folders_of(path).map(|folder| of(folder, true));
        around.fold(of(path, is_folder), |words, more| words | more).settled()
    }

    /// Tells whether a prune is announced of the folder that a path lies in: then anything there may go.
    pub(crate) fn may_be_pruned(&self, path: &[u8]) -> bool {
        let is_below = || path.strip_prefix(self.anchor).is_some_and(|rest| rest.starts_with(b"/"));
        self.is_announced && (self.anchor.is_empty() || is_below())
    }

    /// Tells whether the file at a path is written once.
    pub(crate) fn is_once(&self, path: &[u8]) -> bool {
        self.words(path, false).has(Words::ONCE)
    }
}

/// No policy.
static NOTHING: Rules = Rules { anchor: Vec::new(), is_announced: false, rules: Vec::new() };

impl Sidecar {
    /// The policy; none, where a root or a signature was asked for and does not prove it.
    pub(crate) fn believed_policy(&self) -> &Rules {
        match self.proof() {
            Proof::Root => &NOTHING,
            _ => &self.stats().policy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::format::sidecar::policy::Rule;

    /// The words as the independent implementation finds them.
    #[test]
    fn the_second_implementation_finds_the_same_words() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/verdicts.json");
        let text = std::fs::read_to_string(path).expect("it is there");
        let golden: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let sum = |words: u64| {
            let named = Words::NAMES.iter().enumerate().filter(|(bit, _)| words >> bit & 1 == 1);
            named.fold(Words::default(), |sum, (_, (word, _))| sum | *word)
        };
        let rows = golden["policies"].as_array().expect("rows");
        assert!(rows.len() > 50);
        for row in rows {
            let rule = |rule: &serde_json::Value| Rule {
                words: sum(rule[0].as_u64().expect("words")),
                pattern: rule[1].as_str().expect("a pattern").to_owned(),
            };
            let rules = Rules {
                anchor: row["anchor"].as_str().expect("an anchor").as_bytes().to_vec(),
                is_announced: false,
                rules: row["rules"].as_array().expect("rules").iter().map(rule).collect(),
            };
            assert!(rules.is_valid(), "{row}");
            let path = row["path"].as_str().expect("a path").as_bytes();
            let words = Policy::of(&rules).words(path, row["is_folder"] == true);
            assert_eq!(words, sum(row["words"].as_u64().expect("words")), "{row}");
        }
    }
}
