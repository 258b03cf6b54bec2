//! An update in progress.

use super::compare::Fate;
use super::updated::Counts;
use crate::Sidecar;
use crate::protect::{Found, Protect};
use fec_base::context::Context;

/// An update in progress.
pub(crate) struct Update<'a> {
    pub(crate) job: &'a Protect<'a>,
    pub(crate) old: &'a Sidecar,
    /// The end of the old sidecar.
    pub(crate) end: u64,
    pub(crate) found: Found,
    pub(crate) fates: Vec<Fate>,
    pub(crate) counts: Counts,
    pub(crate) context: &'a Context<'a>,
}
