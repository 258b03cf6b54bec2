//! The record of a mirror: what it gave, what it does not have, and when it is left.

use crate::mirrors::OfMirror;
use crate::mirrors::{NoAnswer, Way};
use std::collections::HashMap;
use std::time::Duration;

/// The record of a mirror.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) of: OfMirror,
    /// The jobs before this number of those returned are none for it.
    pub(super) cursor: usize,
    /// Requests under way.
    pub(super) flying: usize,
    /// Answers with a right block.
    pub(super) right: u64,
    /// Failures in a row.
    failures: u32,
    /// Files in a row that it did not have.
    absent: u32,
    /// Files that it does not have, from this offset on.
    pub(super) lacks: HashMap<u32, u64>,
    /// The way that led to a right answer.
    pub(super) way: Option<Way>,
    /// The usual time of an answer.
    pub(super) usual: Duration,
}

impl Asked {
    pub(super) fn new(name: &str) -> Asked {
        Asked { of: OfMirror { name: name.to_owned(), ..OfMirror::default() }, ..Asked::default() }
    }

    /// Leaves the mirror.
    pub(super) fn leave(&mut self, why: impl Into<String>) {
        self.of.left.get_or_insert_with(|| why.into());
    }

    /// Notes an answer without any right block. A mirror whose answers are all wrong costs two of them. A mirror that
    /// had right blocks is asked further: files, and parts of them, may be in another state.
    pub(super) fn note_wrong(&mut self) {
        self.of.wrong += 1;
        let most = if self.right == 0 { 2 } else { 64 + 4 * self.right };
        if self.of.wrong >= most {
            self.leave("its bytes are not those that are asked for");
        }
    }

    /// Notes an answer with a right block.
    pub(super) fn note_right(&mut self, way: Option<Way>) {
        self.right += 1;
        (self.failures, self.absent) = (0, 0);
        // The way to one file is none to others.
        self.way = self.way.or(way.filter(|way| *way != Way::Itself));
    }

    /// Notes why it gave nothing of a file from `offset` on.
    pub(super) fn note_none(&mut self, why: &NoAnswer, (entry, offset): (u32, u64)) {
        /// A mirror that fails as often in a row is left; and one that never had a right block.
        const MOST_FAILURES: [u32; 2] = [12, 3];
        /// A mirror that never had a right block is left after as many files that it does not have, or refuses.
        const MOST_ABSENT: u32 = 256;
        const MOST_DENIED: u32 = 16;
        let is_new = self.right == 0;
        match why {
            NoAnswer::Cancelled => {}
            NoAnswer::Failed(why) => {
                self.failures += 1;
                if self.failures >= MOST_FAILURES[usize::from(is_new)] {
                    self.leave(why.as_str());
                }
            }
            NoAnswer::Denied(why) | NoAnswer::Broken(why) => {
                self.absent += 1;
                if is_new && self.absent >= MOST_DENIED {
                    self.leave(why.as_str());
                }
            }
            NoAnswer::Absent | NoAnswer::Short => {
                let from = if *why == NoAnswer::Absent { 0 } else { offset };
                let known = self.lacks.entry(entry).or_insert(from);
                *known = from.min(*known);
                self.absent += 1;
                if is_new && self.absent >= MOST_ABSENT {
                    self.leave("it has none of the files that are asked for");
                }
            }
        }
    }
}
