//! The groups of an encoding, in little memory.

use fec_core::digest::Digest;
use fec_core::params::{GroupGeometry, Shape};
use std::borrow::Cow;

/// A group of an encoding, with its tree and its position.
#[derive(Clone, Copy, Debug)]
pub struct GroupEntry {
    /// The group's geometry.
    pub geometry: GroupGeometry,
    /// X, the tree of its sets.
    pub tree: Digest,
    /// Byte of the whole payload at which the group's payload starts.
    pub start: u64,
}

/// Consecutive groups. All groups of a payload but the last have one shape, so only their trees are kept.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    /// The geometry of the payload's group 0; that of the last group if there is no other.
    first_of_all: GroupGeometry,
    /// The last of these groups.
    last: GroupGeometry,
    /// X of each group.
    trees: Cow<'a, [Digest]>,
}

impl<'a> Groups<'a> {
    /// Groups that end with `last` and have these trees. `first` is any of them that is not the payload's last group,
    /// if there is one.
    ///
    /// # Panics
    /// If there are no trees, or more trees than groups up to `last`.
    pub fn new(first: GroupGeometry, last: GroupGeometry, trees: impl Into<Cow<'a, [Digest]>>) -> Groups<'a> {
        let trees = trees.into();
        assert!((1..=last.number() as usize + 1).contains(&trees.len()));
        Groups { first_of_all: first, last, trees }
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.trees.len()
    }

    /// Always false: there is at least one group.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// The number of the first group.
    pub fn first_number(&self) -> u32 {
        self.last.number() - (self.trees.len() as u32 - 1)
    }

    /// The `nth` group.
    ///
    /// # Panics
    /// If there is none.
    pub fn get(&self, nth: usize) -> GroupEntry {
        let tree = self.trees[nth];
        let geometry = match nth + 1 == self.trees.len() {
            true => self.last,
            false => self.first_of_all.with_number(self.first_number() + nth as u32),
        };
        let start = u64::from(geometry.number()) * self.first_of_all.shape().capacity();
        GroupEntry { geometry, tree, start }
    }

    /// All groups, in order.
    pub fn iter(&self) -> impl Iterator<Item = GroupEntry> {
        (0..self.len()).map(|nth| self.get(nth))
    }

    /// The `nth` group alone.
    pub fn only(&self, nth: usize) -> Groups<'a> {
        let entry = self.get(nth);
        Groups { first_of_all: self.first_of_all, last: entry.geometry, trees: Cow::Owned(vec![entry.tree]) }
    }

    /// The shape with the largest sets.
    pub fn largest(&self) -> &Shape {
        match self.trees.len() {
            1 => self.last.shape(),
            _ => self.first_of_all.shape(),
        }
    }

    /// The number of sets in all groups.
    pub fn sets(&self) -> u64 {
        let before = (self.trees.len() as u64 - 1) * u64::from(self.first_of_all.shape().sets);
        before + u64::from(self.last.shape().sets)
    }

    /// Byte of the whole payload at which the first group starts.
    pub fn start(&self) -> u64 {
        self.get(0).start
    }

    /// Byte of the whole payload at which the last group ends.
    pub fn end(&self) -> u64 {
        let last = self.get(self.len() - 1);
        last.start + last.geometry.payload_len()
    }
}
