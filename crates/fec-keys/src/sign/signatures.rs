//! Signatures found beside encodings. None of them is checked.

use super::error::SignError;
use super::id::KeyId;
use super::signature::Signature;
use std::collections::BTreeSet;

/// The most annexes of a file that are examined.
pub const MOST_OF_ONE: usize = 16;
/// The most different signatures of all files, for as many files as an encoding has shards.
pub const MOST_IN_ALL: usize = 256 * MOST_OF_ONE;

/// The different signatures that were found, and the number of faulty ones.
#[derive(Clone, Debug, Default)]
pub struct Signatures {
    list: BTreeSet<Signature>,
    pub(super) legacy: usize,
    pub(super) malformed: usize,
}

impl Signatures {
    /// Adds the content of an annex or a file.
    pub fn add(&mut self, data: &[u8]) {
        match Signature::parse(data) {
            Ok(signature) => self.insert(signature),
            Err(SignError::Legacy) => self.legacy += 1,
            Err(_) => self.malformed += 1,
        }
    }

    fn insert(&mut self, signature: Signature) {
        if self.list.len() < MOST_IN_ALL {
            self.list.insert(signature);
        }
    }

    /// Adds all of another list.
    pub fn absorb(&mut self, other: Signatures) {
        self.legacy += other.legacy;
        self.malformed += other.malformed;
        other.list.into_iter().for_each(|signature| self.insert(signature));
    }

    /// All signatures.
    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        self.list.iter()
    }

    /// The keys that the signatures name, each once.
    pub fn ids(&self) -> Vec<KeyId> {
        self.list.iter().map(Signature::id).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Tells whether the list holds exactly these bytes.
    pub fn has(&self, signature: &Signature) -> bool {
        self.list.contains(signature)
    }
}
