//! A mirror for tests: a folder in memory that may lie, fail, wait or hang, and counts what it is asked.

use fec_base::context::Cancel;
use fec_sidecar::mirrors::{Mirror, NoAnswer};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The conduct of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    Honest,
    /// Each answer has other bytes.
    Lies,
    /// Each call fails.
    Fails,
    /// Calls after this number fail.
    FailsAfter(u64),
    /// Calls after this number end when they are cancelled, and not before.
    HangsAfter(u64),
}

/// A mirror with files by their keys.
#[derive(Debug)]
pub(crate) struct Double {
    pub(crate) name: String,
    pub(crate) files: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) conduct: Conduct,
    pub(crate) last_part: Vec<u8>,
    pub(crate) calls: AtomicU64,
    pub(crate) given: AtomicU64,
    /// Files that may not be read.
    pub(crate) denied: BTreeSet<Vec<u8>>,
    /// A byte that cannot be read: its file and offset.
    pub(crate) bad: Option<(Vec<u8>, u64)>,
    /// Ranges that were asked for: key, offset and length.
    pub(crate) asked: Mutex<Vec<(Vec<u8>, u64, u64)>>,
}

impl Double {
    /// A copy of the files in a folder, under their paths from there.
    pub(crate) fn of(folder: &Path) -> Double {
        let mut files = BTreeMap::new();
        collect(folder, &mut Vec::new(), &mut files);
        Double {
            name: "double".into(),
            files,
            conduct: Conduct::Honest,
            last_part: Vec::new(),
            calls: AtomicU64::new(0),
            given: AtomicU64::new(0),
            denied: BTreeSet::new(),
            bad: None,
            asked: Mutex::default(),
        }
    }

    pub(crate) fn with(self, conduct: Conduct) -> Double {
        Double { conduct, ..self }
    }

    /// Keeps the files that `keeps` names.
    pub(crate) fn only(mut self, keeps: impl Fn(&str) -> bool) -> Double {
        self.files.retain(|key, _| keeps(&String::from_utf8_lossy(key)));
        self
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn given(&self) -> u64 {
        self.given.load(Ordering::SeqCst)
    }
}

fn collect(folder: &Path, prefix: &mut Vec<u8>, files: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let before = prefix.len();
        prefix.extend_from_slice(entry.file_name().as_encoded_bytes());
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            prefix.push(b'/');
            collect(&entry.path(), prefix, files);
        } else if kind.is_file() {
            files.insert(prefix.clone(), fs::read(entry.path()).expect("a file"));
        }
        prefix.truncate(before);
    }
}

impl Mirror for Double {
    fn name(&self) -> &str {
        &self.name
    }

    fn last_part(&self) -> &[u8] {
        &self.last_part
    }

    fn len(&self, key: &[u8], _: &Cancel) -> Result<u64, NoAnswer> {
        self.files.get(key).map(|file| file.len() as u64).ok_or(NoAnswer::Absent)
    }

    fn read(&self, key: &[u8], offset: u64, out: &mut [u8], cancel: &Cancel) -> Result<(), NoAnswer> {
        let nth = self.calls.fetch_add(1, Ordering::SeqCst);
        self.asked.lock().unwrap().push((key.to_vec(), offset, out.len() as u64));
        match self.conduct {
            Conduct::Fails => return Err(NoAnswer::Failed("it is on fire".into())),
            Conduct::FailsAfter(calls) if nth >= calls => {
                return Err(NoAnswer::Failed("it broke off".into()));
            }
            Conduct::HangsAfter(calls) if nth >= calls => {
                let since = Instant::now();
                while !cancel.is_cancelled() {
                    assert!(since.elapsed() < Duration::from_secs(60), "nobody ends a call that hangs");
                    std::thread::sleep(Duration::from_millis(5));
                }
                return Err(NoAnswer::Cancelled);
            }
            _ => {}
        }
        if self.denied.contains(key) {
            return Err(NoAnswer::Denied("it is closed".into()));
        }
        let file = self.files.get(key).ok_or(NoAnswer::Absent)?;
        let is_bad =
            |(of, at): &(Vec<u8>, u64)| of == key && (offset..offset + out.len() as u64).contains(at);
        if self.bad.as_ref().is_some_and(is_bad) {
            return Err(NoAnswer::Broken("a bad sector".into()));
        }
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= file.len() as u64);
        let end = end.ok_or(NoAnswer::Short)?;
        out.copy_from_slice(&file[offset as usize..end as usize]);
        if self.conduct == Conduct::Lies {
            // A lie in each kilobyte.
            out.chunks_mut(1024).for_each(|part| part[part.len() / 2] ^= 1);
        }
        self.given.fetch_add(out.len() as u64, Ordering::SeqCst);
        Ok(())
    }
}
