//! An update in progress.

use super::compare::Fate;
use super::compare::held::Held;
use super::leaving::Leaving;
use super::updated::{Counts, NotRetired};
use crate::Sidecar;
use crate::catalog::sources::Sources;
use crate::protect::{Found, Protect};
use fec_base::context::Context;
use fec_core::executor::lock;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

/// The findings that further attempts need.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Files that the policy holds.
    pub(crate) held: Mutex<BTreeSet<Held>>,
    /// Why what has left cannot be taken out of the recovery data.
    pub(crate) not_retired: Mutex<Option<NotRetired>>,
}

impl Notes {
    /// The folder with what has left, unless an attempt with it has failed.
    pub(crate) fn folder<'a>(&self, job: &Protect<'a>) -> Option<&'a Path> {
        job.retired.filter(|_| lock(&self.not_retired).is_none())
    }
}

/// An update in progress.
pub(crate) struct Update<'a> {
    pub(crate) job: &'a Protect<'a>,
    pub(crate) old: &'a Sidecar,
    /// The end of the old sidecar.
    pub(crate) end: u64,
    pub(crate) found: Found,
    pub(crate) fates: Vec<Fate>,
    pub(crate) counts: Counts,
    pub(crate) notes: &'a Notes,
    /// The places of what was protected.
    pub(crate) sources: Sources,
    /// The positions that are to be taken out of the recovery data.
    pub(crate) leaving: Option<Leaving>,
    pub(crate) context: &'a Context<'a>,
}
