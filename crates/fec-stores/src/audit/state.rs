//! The times when places were last audited: a text file that belongs to the scheduler.
//!
//! ```text
//! fec audit state 1
//! root 5f3c…
//! 1764000000 well 0.9901 0.01 s3://backups/2025
//! 1764000000 bad 0 0.01 s3://other/2025
//! ```
//!
//! A line has the seconds since 1970, the finding, the confidence that was reached, the share of lost bytes that it is
//! about, and the name of the place. A place that failed has no line, so the next audit looks at it. Lines that cannot
//! be read, or lie in the future, count as never audited.

use super::verdict::{Audit, Audited};
use crate::error::StoresError;
use crate::places::Places;
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::{FileOut, Policy, check_own, set_mode_if_any};
use fec_base::io::system::mode;
use fec_base::names::hex;
use fec_core::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

const HEAD: &str = "fec audit state 1";
/// Most bytes of a state: more than 1,024 places with names of 4,096 bytes take.
const MOST: u64 = 5 << 20;

/// The last audit of a place.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Past {
    time: u64,
    is_well: bool,
    /// The confidence that was reached, and the share that it is about.
    confidence: f64,
    rot: f64,
}

/// The last audits of the places of an encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditState {
    root: Digest,
    places: BTreeMap<String, Past>,
}

impl AuditState {
    /// Reads the state of the encoding with this root; a missing file is an empty state.
    ///
    /// # Errors
    /// [`StoresError::NotAState`] when the file is something else, [`StoresError::OtherState`] when it is of another
    /// encoding, [`ErrorKind::NotOwn`](fec_base::ErrorKind::NotOwn) when it is not one's own: that of somebody else
    /// could claim that everything was audited. Those of the file.
    pub fn load(path: &Path, root: Digest) -> Result<AuditState> {
        let mut state = AuditState { root, places: BTreeMap::new() };
        let Some((file, _)) = check_own(path, Action::UseState)? else { return Ok(state) };
        let mut text = Vec::new();
        file.take(MOST).read_to_end(&mut text).map_err(|e| Error::io(Action::Read, path, e))?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines();
        let fail = |why: StoresError| Err(Error::at(Action::Read, path, why));
        let of = match (lines.next(), lines.next()) {
            (Some(HEAD), Some(line)) => line.strip_prefix("root "),
            _ => None,
        };
        match of {
            None => return fail(StoresError::NotAState),
            Some(of) if of != hex(&root) => return fail(StoresError::OtherState),
            Some(_) => {}
        }
        state.places.extend(lines.filter_map(parsed));
        Ok(state)
    }

    /// The places that were found well within `age` of `now`, in seconds since 1970, by an audit that shows as much as
    /// this one asks for.
    pub fn recent(&self, places: &Places, audit: &Audit, now: u64, age: Duration) -> BTreeSet<usize> {
        let is_recent = |past: &Past| {
            past.is_well
                && past.time <= now
                && now - past.time < age.as_secs()
                && past.confidence >= audit.confidence
                && past.rot <= audit.rot
        };
        let past = |place: &usize| self.places.get(&places.get(*place).target.name());
        (0..places.len()).filter(|place| past(place).is_some_and(is_recent)).collect()
    }

    /// Notes what an audit found at `now`, in seconds since 1970. A place that failed is no longer known to be well;
    /// damage that was found there stays known.
    pub fn note(&mut self, places: &Places, audited: &Audited, audit: &Audit, now: u64) {
        for of in &audited.places {
            let name = places.get(of.place).target.name();
            let shown = of.shown(audit.rot);
            if of.failed.is_some() {
                self.places.retain(|known, past| *known != name || !past.is_well);
            } else {
                let (is_well, confidence) = (shown.is_some(), shown.unwrap_or(0.0));
                self.places.insert(name, Past { time: now, is_well, confidence, rot: audit.rot });
            }
        }
    }

    /// Writes the state, and replaces the old one after everything is written.
    ///
    /// # Errors
    /// Those of the file.
    pub fn save(&self, path: &Path, sync: bool) -> Result<()> {
        let policy = Policy::new().with_force(true).with_sync(sync);
        check_own(path, Action::UseState)?;
        let mut text = format!("{HEAD}\nroot {}\n", hex(&self.root));
        for (name, past) in self.places.iter().filter(|(name, _)| !name.contains(char::is_control)) {
            let word = if past.is_well { "well" } else { "bad" };
            let _ = writeln!(text, "{} {word} {} {} {name}", past.time, past.confidence, past.rot);
        }
        let out = FileOut::create(path, policy)?;
        // The old file may have been readable to more people.
        let now = mode(&out.file().metadata().map_err(|e| out.failure(e))?);
        set_mode_if_any(out.file(), now & policy.permissions & 0o777).map_err(|e| out.failure(e))?;
        out.file().write_all(text.as_bytes()).map_err(|e| out.failure(e))?;
        out.commit(text.len() as u64)
    }
}

/// The place of a line, and its last audit.
fn parsed(line: &str) -> Option<(String, Past)> {
    let mut words = line.splitn(5, ' ');
    let time = words.next()?.parse().ok()?;
    let is_well = match words.next()? {
        "well" => true,
        "bad" => false,
        _ => return None,
    };
    let mut share = || words.next()?.parse::<f64>().ok().filter(|share| (0.0..1.0).contains(share));
    let (confidence, rot) = (share()?, share()?);
    Some((words.next()?.to_owned(), Past { time, is_well, confidence, rot }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::verdict::AuditedPlace;
    use crate::call::CallOptions;
    use crate::target::Target;

    fn audit(confidence: f64, rot: f64) -> Audit {
        Audit { confidence, rot, budget: None, seed: 0, left_out: BTreeSet::new() }
    }

    fn audited(of: Vec<AuditedPlace>) -> Audited {
        Audited {
            places: of,
            margins: vec![4],
            lack_manifest: Vec::new(),
            fetched_bytes: 0,
            trouble: Vec::new(),
            is_cut_off: false,
            is_meta_lost: false,
        }
    }

    #[test]
    fn states_come_back_and_say_what_is_recent() {
        let folder = tempfile::tempdir().expect("a folder");
        let names: Vec<String> =
            (0..4).map(|nth| format!("{}/a place {nth}", folder.path().display())).collect();
        let targets: Vec<Target> = names.iter().map(|name| Target::parse(name).expect("a place")).collect();
        let places = Places::open(&targets, CallOptions::default(), false).expect("places");
        let path = folder.path().join("state");
        let mut state = AuditState::load(&path, [7; 32]).expect("an empty one");
        let well = AuditedPlace { looks: 459, ..AuditedPlace::default() };
        let failed = Some(crate::StoreError::Absent);
        let of = vec![
            well.clone(),
            AuditedPlace { place: 1, wrong: 1, ..well.clone() },
            AuditedPlace { place: 2, failed, ..well.clone() },
            AuditedPlace { place: 3, looks: 100, ..well.clone() },
        ];
        state.note(&places, &audited(of), &audit(0.99, 0.01), 1000);
        state.save(&path, false).expect("it is written");
        let mut state = AuditState::load(&path, [7; 32]).expect("it is read");
        let recent = |state: &AuditState, confidence, rot, now, age| {
            let recent = state.recent(&places, &audit(confidence, rot), now, Duration::from_secs(age));
            recent.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(recent(&state, 0.99, 0.01, 1010, 11), [0]);
        assert_eq!(recent(&state, 0.5, 0.02, 1010, 11), [0, 3]);
        for (confidence, rot, now, age) in
            [(0.999, 0.01, 1010, 11), (0.99, 0.001, 1010, 11), (0.99, 0.01, 1010, 10), (0.99, 0.01, 999, 100)]
        {
            assert_eq!(recent(&state, confidence, rot, now, age), [0; 0], "{confidence} {rot} {now} {age}");
        }
        // A place that fails now is no longer well, and one that was bad stays bad.
        let failed = Some(crate::StoreError::Absent);
        let fail = |place| AuditedPlace { place, failed: failed.clone(), ..AuditedPlace::default() };
        state.note(&places, &audited(vec![fail(0), fail(1)]), &audit(0.99, 0.01), 1005);
        assert_eq!(recent(&state, 0.99, 0.01, 1010, 100), [0; 0]);
        assert_eq!(state.places.len(), 2);
    }

    #[test]
    fn other_files_are_refused_and_wrong_lines_say_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let load = |text: &str| {
            std::fs::write(&path, text).expect("it is written");
            AuditState::load(&path, [7; 32]).map_err(|e| e.to_string())
        };
        let own = format!("{HEAD}\nroot {}\n", hex(&[7; 32]));
        for text in ["", "fec audit state 1\n", "fec audit state 2\nroot x\n", "photos\n"] {
            assert!(load(text).is_err_and(|e| e.contains("something else")), "{text:?}");
        }
        assert!(load(&format!("{HEAD}\nroot {}\n", hex(&[8; 32]))).is_err_and(|e| e.contains("another")));
        for line in [
            "",
            "1",
            "x well 0.9 0.1 a",
            "1 fine 0.9 0.1 a",
            "1 well 1.5 0.1 a",
            "1 well NaN 0.1 a",
            "1 well 0.9 0.1",
        ] {
            assert_eq!(load(&format!("{own}{line}\n")).map(|state| state.places.len()), Ok(0), "{line:?}");
        }
        assert_eq!(load(&format!("{own}1 well 0.9 0.1 a b\n")).map(|state| state.places.len()), Ok(1));
    }
}
