//! Shard files: a file for each shard index, with that shard of all sets (docs/FORMAT.md, section 8).

mod examine;
mod gather;
mod repair;
pub(crate) mod writer;

use super::encoded::Encoded;
use super::form::{Candidate, Form, Found, Seen};
use super::repair::RepairJob;
use crate::error::{Action, Error, Result};
use crate::input::Input;
use crate::leftovers::Leftovers;
use crate::report::Examination;
use fec_base::context::Context;
use fec_core::digest::Digest;
use fec_core::params;
use fec_keys::sign::Signatures;
use gather::{Gathered, ShardSet};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The form of shard files.
pub(crate) struct ShardFiles;

impl Form for ShardFiles {
    fn kind(&self) -> params::Form {
        params::Form::Shards
    }

    fn find(
        &self,
        input: &Input,
        seen: &mut Seen,
        wanted: Option<Digest>,
        _context: &Context<'_>,
    ) -> Result<Box<dyn Found>> {
        let mut gathered = Gathered::default();
        let mut is_restorable = None;
        match input {
            Input::Several(objects) => {
                seen.form = Some(self.kind());
                objects.iter().for_each(|object| {
                    gathered.add(object);
                });
                gathered.drop_empty(wanted);
            }
            Input::One(object) => {
                if gathered.add(object) {
                    seen.form = Some(self.kind());
                }
                gathered.drop_empty(wanted);
                seen.is_wanted = wanted.is_some_and(|root| gathered.sets.contains_key(&root));
                if wanted.is_none() {
                    let mut whole = Vec::new();
                    for set in gathered.sets.values() {
                        let fail = |e| Error::io(Action::Read, object.place.as_path(), e);
                        let (proved, is_whole) = set.proved().map_err(fail)?;
                        proved.iter().for_each(|(start, end)| seen.proved.add(start, end));
                        whole.push(is_whole);
                    }
                    is_restorable = Some(whole);
                }
            }
        }
        let Gathered { sets, signatures, leftovers } = gathered;
        Ok(Box::new(FoundShards {
            sets: sets.into_values().collect(),
            is_restorable,
            is_one_shard: seen.is_wanted,
            signatures,
            leftovers,
        }))
    }
}

/// Shard files of any number of roots.
struct FoundShards {
    sets: Vec<ShardSet>,
    /// Tells whether each can be restored; known only if a single file was given without a root.
    is_restorable: Option<Vec<bool>>,
    /// A single file was given with its root, so the report is about this file alone.
    is_one_shard: bool,
    signatures: Signatures,
    leftovers: Leftovers,
}

impl Found for FoundShards {
    fn kind(&self) -> params::Form {
        params::Form::Shards
    }

    fn candidates(&self) -> Vec<Candidate> {
        let known = |nth: usize| match &self.is_restorable {
            _ if self.sets[nth].is_seal_lost() => Some(false),
            Some(is) => Some(is[nth]),
            // Too few files cannot suffice, whatever they contain.
            None => (self.sets.len() == 1 && self.sets[nth].has_too_few_files()).then_some(false),
        };
        let sets = self.sets.iter().enumerate();
        sets.map(|(nth, set)| Candidate {
            root: Some(set.encoding.root),
            is_restorable: known(nth),
            has_records: true,
            is_in_annexes: false,
        })
        .collect()
    }

    fn encoded(&self, nth: usize) -> Encoded<'_> {
        self.sets[nth].encoded()
    }

    fn examine(&self, nth: usize, context: &Context<'_>) -> Examination {
        match self.is_one_shard {
            true => examine::one(&self.sets[nth], context),
            false => examine::all(&self.sets[nth], context),
        }
    }

    fn repair(&self, nth: usize, found: &Examination, job: &RepairJob<'_>) -> Result<Vec<PathBuf>> {
        let (before, rest) = self.sets.split_at(nth);
        let Some((set, behind)) = rest.split_first() else { return Ok(Vec::new()) };
        repair::repair(set, [before, behind], (found, &self.signatures), job)
    }

    fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    fn leftovers(&self) -> &Leftovers {
        &self.leftovers
    }

    fn given(&self, nth: usize) -> Option<usize> {
        Some(self.sets[nth].members.iter().filter(|members| !members.is_empty()).count())
    }

    fn files(&self, nth: usize) -> Vec<PathBuf> {
        let members = self.sets[nth].members.iter().flatten();
        let files: BTreeSet<&PathBuf> = members.map(|member| &member.file.place).collect();
        files.into_iter().cloned().collect()
    }
}
