//! A file that says how many repair packets a running sender makes, for those who have a controller of their own.

use crate::line::stream::ratio;
use crate::say::failure::{Exit, Failure, Result, say};
use fec_base::io::small;
use fec_base::names::show;
use fec_core::window::Ratio;
use fecfile::error::Action;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most bytes of the file.
const MOST: usize = 64;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// The file, and what it said.
pub(super) struct RateFile {
    path: PathBuf,
    looked: Instant,
    /// The ratio of the last look that gave one; `None` before it was told.
    ratio: Option<Ratio>,
    told: Option<Ratio>,
    /// True if it was said that the file has no ratio.
    is_warned: bool,
}

impl RateFile {
    /// The file at `path`, which must hold a ratio now.
    pub(super) fn open(path: &Path) -> Result<RateFile> {
        let text = small::read(path, MOST).map_err(|e| Failure::io(Action::Read, path, e))?;
        let ratio = text.and_then(|text| parsed(&text)).ok_or_else(|| {
            let failure = Failure::new(Exit::Usage, format!("read {}: it holds no rate", show(path)));
            Failure { help: Some("write it as repair packets for source packets: 1/6".to_owned()), ..failure }
        })?;
        let path = path.to_path_buf();
        Ok(RateFile { path, looked: Instant::now(), ratio: Some(ratio), told: None, is_warned: false })
    }

    /// The ratio in the file, if it is another than before. A file that is away or holds none changes nothing.
    pub(super) fn changed(&mut self) -> Option<Ratio> {
        if self.told.is_some() && self.looked.elapsed() < LOOK {
            return None;
        }
        if self.told.is_some() {
            self.looked = Instant::now();
            let read = small::read(&self.path, MOST).ok().flatten();
            match read.and_then(|text| parsed(&text)) {
                Some(ratio) => (self.ratio, self.is_warned) = (Some(ratio), false),
                None if !self.is_warned => {
                    self.is_warned = true;
                    say(&format!("fec: read {}: it holds no rate; the last one stays", show(&self.path)));
                }
                None => {}
            }
        }
        let changed = self.ratio.filter(|ratio| self.told != Some(*ratio));
        self.told = self.ratio;
        changed
    }
}

fn parsed(text: &[u8]) -> Option<Ratio> {
    ratio(std::str::from_utf8(text).ok()?.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_change_is_told_once_and_what_is_no_rate_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rate");
        assert!(RateFile::open(&path).is_err(), "there is none");
        fs::write(&path, "x").expect("it is written");
        assert!(RateFile::open(&path).is_err(), "it is none");
        fs::write(&path, " 1/4\n").expect("it is written");
        let mut file = RateFile::open(&path).expect("a rate");
        let later = |file: &mut RateFile| {
            file.looked = Instant::now() - LOOK;
            file.changed()
        };
        assert_eq!((file.changed(), file.changed()), (Ratio::new(1, 4), None));
        fs::write(&path, "1/9").expect("it is written");
        assert_eq!(file.changed(), None, "too soon");
        assert_eq!((later(&mut file), later(&mut file)), (Ratio::new(1, 9), None));
        for bad in ["", "0/1", "1/9 and more that is no rate"] {
            fs::write(&path, bad).expect("it is written");
            assert_eq!(later(&mut file), None, "{bad}");
        }
        fs::remove_file(&path).expect("it was there");
        assert_eq!(later(&mut file), None);
        fs::write(&path, "3/1").expect("it is written");
        assert_eq!(later(&mut file), Ratio::new(3, 1));
    }
}
