//! Makes damaged and missing parts of an encoding anew, bit for bit.
//!
//! A repair is an encode whose originals come from a `SetSource`: the payload, or the shards that are left, decoded.
//! Damaged and missing shard files alone are written. The root of the new encoding is compared with the old one
//! before a file takes its place.

use crate::archive::Archive;
use crate::error::{Action, EncodingError, Error, ErrorKind, Place, Result};
use crate::forms::encode_job::{PayloadSets, SetSource};
use crate::forms::encoded::Records;
use crate::forms::repair::RepairJob;
use crate::groups::GroupEntry;
use crate::payload::Payload;
use crate::report::{Examination, Outcome};
use crate::sets::{Nobody, SetEntry, SetWalk, SpareDecoders, load, untrue};
use fec_base::context::Context;
use fec_base::io::output::Policy;
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::program::stages::Observed;
use fec_base::threads::Threads;
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_core::params::Form;
use fec_core::set::{PlanCache, Run, SetError};
use std::path::{Path, PathBuf};

/// The options of a repair.
#[derive(Clone, Copy, Debug)]
pub struct Repair<'a> {
    /// The output for new files: a folder for shard files, a file for a container. `None` repairs in place.
    pub out: Option<&'a Path>,
    /// Tells whether files in the way may be replaced (damaged files in place always may), and when the repair counts
    /// as done.
    pub policy: Policy,
    /// Only report the files that would be written; write nothing.
    pub dry_run: bool,
}

/// The result of a repair.
#[must_use = "something may still be damaged"]
#[derive(Debug)]
pub struct Repaired {
    /// The form of the encoding.
    pub form: Form,
    /// The root of the encoding.
    pub root: Digest,
    /// The files that were made anew, or would be; empty if all was intact.
    pub files: Vec<PathBuf>,
    /// The number of shard files of the encoding, or 1 for a container.
    pub of: usize,
    /// True if the files were written.
    pub written: bool,
}

impl Archive {
    /// Makes damaged and missing shard files, or a damaged container, anew, each bit for bit as it was first written.
    /// Each set is decoded from the shards that are left and encoded again; the resulting root is compared before a
    /// file takes its place. A missing shard file gets its name of section 8 of the format, beside the others; annexes
    /// are kept. Files that killed repairs left there are removed. Takes twice the work of encoding, and the room of
    /// the new files.
    ///
    /// # Errors
    /// [`Lost`](EncodingError::Lost) when too little is left, [`MetaLost`](EncodingError::MetaLost),
    /// [`OtherRoot`](EncodingError::OtherRoot), [`HoldsAnother`](EncodingError::HoldsAnother), and those of the files.
    /// On an error nothing is changed, unless the error comes while the new files take their names, one after the
    /// other.
    pub fn repair(&self, how: Repair<'_>, context: &Context<'_>) -> Result<Repaired> {
        if let (Place::Path(path), None, false) = (&self.place, how.out, how.dry_run) {
            // An earlier repair may have been killed at its last file, with nothing left to do but this.
            remove_stale(if path.is_dir() { path } else { parent(path) }, context.progress);
        }
        let found = self.examine(context)?;
        let encoded = self.encoded();
        let code = encoded.shape().code;
        let Some(root) = self.root().filter(|_| found.weakest as usize >= code.k()) else {
            let walk = SetWalk::new(&context.silent(), self.plans());
            let outcome = walk.run(encoded.records.as_ref(), &encoded.groups, &Nobody)?;
            let restored = self.restored(&encoded, outcome, false)?;
            return Err(Error::new(Action::Repair, EncodingError::Lost(Box::new(restored))));
        };
        self.check_seal(&encoded)?;
        let Repair { out, policy, dry_run } = how;
        if self.form() == Form::Container && out.is_none() && !self.others().is_empty() {
            return Err(Error::new(Action::Repair, EncodingError::HoldsAnother));
        }
        let spare = SpareDecoders::default();
        let decode =
            |records: &dyn Records, group: &GroupEntry, set: u32, rows: &mut ShardBuf, inner: Threads| {
                let set = SetEntry { group: *group, set };
                decode(records, &set, rows, (self.plans(), &spare), inner)
            };
        let job = RepairJob { out, policy, dry_run, decode: &decode, payload: None, context };
        let files = self.repair_form(&found, &job)?;
        let of = if self.form() == Form::Shards { code.n() } else { 1 };
        Ok(Repaired { form: self.form(), root, written: !dry_run && !files.is_empty(), files, of })
    }

    /// Makes everything that `found` lists as not intact anew, in place and from the payload; it does not matter how
    /// much is left. Returns the files.
    ///
    /// # Errors
    /// As [`Archive::repair`]; [`Changed`](ErrorKind::Changed) when the payload does not have the root.
    pub(crate) fn complete(
        &self,
        payload: &dyn Payload,
        found: &Examination,
        policy: Policy,
        context: &Context<'_>,
    ) -> Result<Vec<PathBuf>> {
        let fill = |_: &dyn Records, group: &GroupEntry, set: u32, rows: &mut ShardBuf, inner: Threads| {
            PayloadSets { payload, group: group.geometry, start: group.start }.fill(set, rows, inner)
        };
        let job =
            RepairJob { out: None, policy, dry_run: false, decode: &fill, payload: Some(payload), context };
        self.repair_form(found, &job)
    }
}

/// Decodes a set from the shards that are left into `rows`; returns the set's bytes of payload.
fn decode(
    records: &dyn Records,
    set: &SetEntry,
    rows: &mut ShardBuf,
    (plans, spare): (&PlanCache, &SpareDecoders),
    inner: Threads,
) -> Result<u64> {
    let GroupEntry { geometry, tree, .. } = &set.group;
    let (made_for, mut decoder) = spare.take(geometry.shape(), false);
    let mut reading = decoder.begin(geometry, tree, set.set);
    load(records, set, &mut reading, &mut Outcome::default());
    let run = Run { executor: &inner, observer: &Observed };
    let decoded = reading.decode(plans, run).map_err(|undecoded| undecoded.error).map(|decoded| {
        for (index, row) in (0..).zip(rows.iter_mut()) {
            row.copy_from_slice(decoded.row(index));
        }
    });
    spare.put_back((made_for, decoder));
    match decoded {
        Ok(()) => Ok(set.originals().map(|(.., len)| len as u64).sum()),
        // The examination before found enough shards, so the files changed since.
        Err(SetError::TooFew { .. }) => Err(Error::new(Action::Repair, ErrorKind::Changed)),
        Err(error) => Err(untrue((geometry.number(), set.set, error))),
    }
}
