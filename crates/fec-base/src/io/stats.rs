//! The stats of many entries below a base.

use super::base::{Base, checked};
use super::system::unixes::PLACE;
use rustix::fs::{AtFlags, Mode, Stat, statat};
use std::io;
use std::os::fd::OwnedFd;

/// Takes the stats of many entries. The folder of the last one stays open, so that the next entry of that folder costs
/// one call of the system in place of three.
pub struct Stats<'a> {
    base: &'a Base,
    /// The folder that is open, and its path.
    open: Option<(Vec<u8>, OwnedFd)>,
}

impl Stats<'_> {
    /// Stats of entries below this base.
    pub fn new(base: &Base) -> Stats<'_> {
        Stats { base, open: None }
    }

    /// As [`Base::stat`]. An entry is found by the folder that is open, also after that folder was renamed.
    ///
    /// # Errors
    /// Those of [`Base::stat`].
    pub fn stat(&mut self, path: &[u8]) -> io::Result<Stat> {
        let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else { return self.base.stat(path) };
        let (folder, name) = (&path[..slash], checked(&path[slash + 1..])?);
        if self.open.as_ref().is_none_or(|(of, _)| of != folder) {
            self.open = None;
            self.open = Some((folder.to_vec(), self.base.open_within(folder, PLACE, Mode::empty())?));
        }
        let (_, folder) = self.open.as_ref().expect("it was opened");
        Ok(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn each_stat_is_that_of_the_base() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        fs::create_dir(place.path().join("closed")).unwrap();
        for (nth, path) in ["one", "a/two", "a/b/three", "a/b/four"].iter().enumerate() {
            fs::write(place.path().join(path), vec![7; nth]).unwrap();
        }
        symlink("a", place.path().join("link")).unwrap();
        symlink("nowhere", place.path().join("a/broken")).unwrap();
        let base = Base::open(place.path()).unwrap();
        let mut stats = Stats::new(&base);
        let paths = [
            "a",
            "a/b",
            "a/b/four",
            "a/b/three",
            "a/two",
            "one",
            "a/none",
            "none/one",
            "a/two/in",
            "link/two",
        ];
        let odd = ["", "a/", "a/.", "a/..", "a/b/..", "../a", "a/broken", "closed/none", "a/b/four"];
        for path in paths.into_iter().chain(odd) {
            let told =
                |stat: io::Result<Stat>| stat.map(|of| (of.st_ino, of.st_size)).map_err(|e| e.raw_os_error());
            assert_eq!(told(stats.stat(path.as_bytes())), told(base.stat(path.as_bytes())), "{path}");
        }
    }
}
