//! The policy: what may happen to which paths (section 17.3, part 4).

use super::entry::{MAX_PATH, check_path};
use super::varint::{Bytes, put_bytes, take, take_pattern};
use crate::error::FormatError;
use std::ops::BitOr;

/// The most bytes of the part.
const MAX_POLICY: usize = 1 << 14;

const FLAG_ANNOUNCED: u8 = 1;

/// The words that a policy has for a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words(u8);

impl Words {
    /// As long as the file is there, it has the bytes that it was written with.
    pub const ONCE: Words = Words(1);
    /// It may change.
    pub const CHANGES: Words = Words(2);
    /// It goes only when the owner says so.
    pub const STAYS: Words = Words(4);
    /// It may go at any time.
    pub const GOES: Words = Words(8);
    /// It is left out.
    pub const OUT: Words = Words(16);
    /// While it is there, a program is at work. It is left out.
    pub const BUSY: Words = Words(32);

    /// All words with their names, in the order of their bits.
    pub const NAMES: [(Words, &str); 6] = [
        (Words::ONCE, "once"),
        (Words::CHANGES, "changes"),
        (Words::STAYS, "stays"),
        (Words::GOES, "goes"),
        (Words::OUT, "out"),
        (Words::BUSY, "busy"),
    ];

    /// Tells whether all of these words are there.
    pub fn has(self, words: Words) -> bool {
        self.0 & words.0 == words.0
    }

    /// The words without those that give way to looser ones.
    pub fn settled(self) -> Words {
        let without = |words: Words, strict: Words, loose: Words| match words.has(loose) {
            true => Words(words.0 & !strict.0),
            false => words,
        };
        without(without(self, Words::ONCE, Words::CHANGES), Words::STAYS, Words::GOES)
    }

    /// Tells whether a rule may have these words: one, or one on contents and one on names.
    pub fn is_of_rule(self) -> bool {
        let on_names = Words(self.0 & !(Words::ONCE | Words::CHANGES).0);
        let on_contents = Words(self.0 & (Words::ONCE | Words::CHANGES).0);
        let is_one = |words: Words| words.0.is_power_of_two();
        is_one(self) || is_one(on_contents) && (on_names == Words::STAYS || on_names == Words::GOES)
    }
}

impl BitOr for Words {
    type Output = Words;

    fn bitor(self, other: Words) -> Words {
        Words(self.0 | other.0)
    }
}

/// The words for the paths that a pattern matches, and for all that is in them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The words.
    pub words: Words,
    /// The pattern, as those of an [`Exclusion`](super::parts::Exclusion).
    pub pattern: String,
}

/// The policy of a sidecar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The path from the base to the folder that patterns count from, as they do from the base; may be empty.
    pub anchor: Vec<u8>,
    /// True while a prune is announced: all that lies in the folder may go until the next update.
    pub is_announced: bool,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
}

impl Rules {
    /// Tells whether there is no policy.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Tells whether a reader accepts it.
    pub fn is_valid(&self) -> bool {
        self.is_empty() || Rules::parse(&self.to_bytes()).as_ref() == Ok(self)
    }

    /// The bytes of the part; none without a policy.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut out = vec![if self.is_announced { FLAG_ANNOUNCED } else { 0 }];
        put_bytes(&mut out, &self.anchor);
        for rule in &self.rules {
            out.push(rule.words.0);
            put_bytes(&mut out, rule.pattern.as_bytes());
        }
        out
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Rules, FormatError> {
        let wrong = FormatError::Catalog;
        if bytes.len() > MAX_POLICY {
            return Err(wrong("its policy is too long"));
        }
        let mut rest = Bytes(bytes);
        let [flags] = rest.array()?;
        if flags & !FLAG_ANNOUNCED != 0 {
            return Err(FormatError::CriticalCatalog { what: "a policy with flags", value: flags.into() });
        }
        let anchor = take(&mut rest, MAX_PATH)?;
        if !anchor.is_empty() {
            check_path(anchor, b"")?;
        }
        let mut rules: Vec<Rule> = Vec::new();
        while !rest.0.is_empty() {
            let [words] = rest.array()?;
            if words >= Words::BUSY.0 << 1 {
                return Err(FormatError::CriticalCatalog { what: "a rule with words", value: words.into() });
            }
            let words = Words(words);
            if !words.is_of_rule() {
                return Err(wrong("the words of a rule contradict each other"));
            }
            let rule = Rule { words, pattern: take_pattern(&mut rest)?.to_owned() };
            if rules.last().is_some_and(|last| rule <= *last) {
                return Err(wrong("the rules are not in order"));
            }
            rules.push(rule);
        }
        let rules = Rules { anchor: anchor.to_vec(), is_announced: flags != 0, rules };
        if rules.is_empty() { Err(wrong("a policy has no rule")) } else { Ok(rules) }
    }
}
