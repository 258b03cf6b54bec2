//! The readers of an output that is made of the files of a tree: only those who may read all of them.

use super::base::Base;
use super::output::Policy;
use super::temporary::parent;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

impl Policy {
    /// The policy for the output `out` that is made of these entries below `base`, each with its permissions if it is a
    /// regular file. Somebody who cannot read a file, or cannot search a folder around an entry, cannot read the output
    /// either. The folders around the base count unless the output lies in them too.
    pub fn made_of_tree<'a>(
        self,
        base: &Base,
        entries: impl IntoIterator<Item = (&'a [u8], Option<u32>)>,
        out: &Path,
    ) -> Policy {
        let mut policy = self;
        let mut folders = HashSet::from([&b""[..]]);
        let mut last: &[u8] = b"";
        for (path, mode) in entries {
            policy = mode.into_iter().fold(policy, Policy::made_of);
            let folder = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |at| &path[..at]);
            if folder != last {
                let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
                folders.extend(ends.map(|(at, _)| &path[..at]));
                last = folder;
            }
        }
        // The integer type differs between systems.
        #[allow(clippy::unnecessary_cast)]
        let within = folders.into_iter().filter_map(|folder| Some(base.stat(folder).ok()?.st_mode as u32));
        let around = around(base, out).map(|meta| meta.mode());
        // Somebody who may search a folder reaches the files in it.
        within.chain(around).fold(policy, |policy, mode| policy.made_of((mode & 0o111) << 2))
    }
}

/// The folders around the base that `out` does not lie in.
fn around(base: &Base, out: &Path) -> impl Iterator<Item = fs::Metadata> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_default();
    let (base, home) = (real(base.path()), real(parent(out)));
    let around: Vec<_> = base.ancestors().skip(1).map(Path::to_path_buf).collect();
    around
        .into_iter()
        .filter(move |folder| !home.starts_with(folder))
        .filter_map(|path| fs::metadata(path).ok())
}
