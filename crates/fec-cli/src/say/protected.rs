//! The numbers of files, folders and links, as text.

use fec_base::names::counted;
use fec_core::format::sidecar::EntryKind;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::Selection;
use std::fmt;

/// The numbers of what a sidecar protects.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    pub(crate) files: u64,
    folders: u64,
    links: u64,
}

impl Protected {
    pub(crate) fn of(sidecar: &Sidecar, selection: Option<&Selection>) -> Protected {
        let entries = &sidecar.catalog().entries;
        let mut all = Protected::default();
        let numbers: Box<dyn Iterator<Item = usize>> = match selection {
            Some(selection) => Box::new(selection.entries()),
            None => Box::new(0..entries.len()),
        };
        for nth in numbers {
            match entries[nth].kind {
                EntryKind::File(_) => all.files += 1,
                EntryKind::Folder => all.folders += 1,
                EntryKind::Symlink(_) | EntryKind::HardLink(_) => all.links += 1,
            }
        }
        all
    }

    /// The number of all entries.
    pub(crate) fn entries(&self) -> u64 {
        self.files + self.folders + self.links
    }
}

impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [(self.files, "file"), (self.folders, "folder"), (self.links, "link")];
        let told = kinds.into_iter().filter(|(number, _)| *number > 0);
        let told: Vec<String> = told.map(|(number, noun)| counted(number, noun)).collect();
        f.write_str(&if told.is_empty() { "nothing".to_owned() } else { told.join(", ") })
    }
}
