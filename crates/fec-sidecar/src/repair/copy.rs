//! The folder that a repair writes all recorded files to, instead of mending them where they are.

use crate::Sidecar;
use crate::error::SidecarError;
use crate::examine::Selection;
use crate::repair::actions::EntryAction;
use crate::repair::targets::{Given, give_new_folder, remove_old_rooms};
use fec_base::context::Progress;
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::Base;
use fec_base::io::list;
use fec_base::io::output::{Policy, write_own};
use fec_base::io::own::{Stands, look};
use fec_base::io::temporary::remove_stale;
use fec_base::names::hex;
use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A folder that everything is written to.
pub(crate) struct Copy<'a> {
    out: &'a Path,
    /// A mark in the folder until all is written, so that an interrupted repair can go on.
    mark: PathBuf,
    text: String,
    /// True if an interrupted repair of this sidecar wrote into the folder.
    is_begun: bool,
}

impl<'a> Copy<'a> {
    /// The name of the mark.
    const MARK: &'static str = ".fec-restoring";

    /// Checks that the folder can be written to.
    pub(crate) fn new(sidecar: &Sidecar, out: &'a Path) -> Result<Copy<'a>> {
        let mark = out.join(Copy::MARK);
        let text = format!("fec repair of {}\n", hex(&sidecar.root()));
        let is_begun = holds(&mark, &text);
        if !is_begun && list(out).is_ok_and(|inside| !inside.is_empty()) {
            return Err(Error::at(Action::Write, out, SidecarError::OutputNotEmpty));
        }
        Ok(Copy { out, mark, text, is_begun })
    }

    /// Everything is made that is selected. Existing files in the folder are those of an interrupted repair, or the
    /// mark.
    pub(crate) fn actions(&self, sidecar: &Sidecar, selection: Option<&Selection>) -> Vec<EntryAction> {
        let is_selected = |nth| selection.is_none_or(|selection| selection.has(nth));
        let make = |(nth, path): (usize, &[u8])| match is_selected(nth) {
            true => EntryAction::Make { replace: self.is_begun || path == Copy::MARK.as_bytes() },
            false => EntryAction::Leave,
        };
        sidecar.catalog.entries.iter().map(|entry| &*entry.path).enumerate().map(make).collect()
    }

    /// A new folder is for those alone who may read the sidecar, which tells the names in it.
    pub(crate) fn begin(&self, sidecar: &Sidecar, owner: Given, progress: &dyn Progress) -> Result<Base> {
        let anybody = Policy::new().with_sync(false);
        let made_of = |meta: std::fs::Metadata| anybody.made_of(meta.mode());
        let policy = std::fs::metadata(sidecar.path()).map_or(anybody, made_of);
        let is_new = !self.out.exists();
        let made = DirBuilder::new().recursive(true).mode(policy.of_folder()).create(self.out);
        made.map_err(|e| Error::io(Action::Create, self.out, e))?;
        if is_new {
            give_new_folder(self.out, owner).map_err(|e| Error::io(Action::Create, self.out, e))?;
        }
        remove_stale(self.out, progress);
        write_own(&self.mark, &self.text, false)?;
        let base = Base::open(self.out).map_err(|e| Error::io(Action::Write, self.out, e))?;
        remove_old_rooms(&base);
        Ok(base)
    }

    /// Removes the mark after everything is written. A restored file may have replaced it.
    pub(crate) fn end(&self) {
        if holds(&self.mark, &self.text) {
            let _ = std::fs::remove_file(&self.mark);
        }
    }
}

/// Tells whether a file of one's own holds this text and nothing else.
fn holds(path: &Path, text: &str) -> bool {
    let Ok(Stands::Own(file, _)) = look(path) else { return false };
    let mut found = Vec::new();
    let read = file.take(text.len() as u64 + 1).read_to_end(&mut found);
    read.is_ok() && found == text.as_bytes()
}
