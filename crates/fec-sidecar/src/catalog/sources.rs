//! The places of files as they were protected: the base has those that stay, and another folder those that have left.

use crate::catalog::bits::Bits;
use crate::catalog::positions::{Admit, Span};
use fec_base::io::base::Base;
use fec_core::format::sidecar::catalog::Catalog;
use std::fs::File;
use std::io;
use std::path::Path;

/// The places of the files of a catalog. The digests of positions tell whether a file is the right one.
#[derive(Default)]
pub(crate) struct Sources {
    folder: Option<Base>,
    /// The files that the other folder has.
    in_folder: Bits,
    /// The files that are in either place.
    there: Bits,
}

impl Sources {
    /// The places of the files of a catalog. `stays` tells which stand at their paths below the base; `folder` is
    /// looked through for the others, by the same paths, and counts for a file if it has one of the same size.
    ///
    /// # Errors
    /// That of opening `folder`.
    pub(crate) fn of(
        catalog: &Catalog,
        stays: impl Fn(usize) -> bool,
        folder: Option<&Path>,
    ) -> io::Result<Sources> {
        let none = || Bits::new(catalog.entries.len() as u64);
        let folder = folder.map(Base::open).transpose()?;
        let mut sources = Sources { folder, in_folder: none(), there: none() };
        for (nth, of) in catalog.files() {
            let has_size = |file: File| file.metadata().is_ok_and(|found| found.len() == of.size);
            let has = |folder: &Base| folder.read(&catalog.entries[nth].path).is_ok_and(has_size);
            if stays(nth) {
                sources.there.set(nth as u64);
            } else if sources.folder.as_ref().is_some_and(has) {
                sources.in_folder.set(nth as u64);
                sources.there.set(nth as u64);
            }
        }
        Ok(sources)
    }

    /// Tells whether the other folder has any file.
    pub(crate) fn have_other(&self) -> bool {
        self.in_folder.count() > 0
    }

    /// Tells whether the file of a span is there.
    pub(crate) fn have(&self, span: &Span) -> bool {
        self.there.get(span.entry.into())
    }
}

impl Admit for Sources {
    fn admit(&self, _entry: u32, _file: &File) -> io::Result<()> {
        Ok(())
    }

    fn base(&self, entry: u32) -> Option<&Base> {
        self.folder.as_ref().filter(|_| self.in_folder.get(entry.into()))
    }
}
