//! The final report of `protect`, as text and JSON.

use crate::run::target::quoted;
use crate::say::details::count;
use crate::say::left_out::{self, LeftOut};
use crate::say::not_protected::Left;
use crate::say::policy::{HeldFile, Policy};
use crate::say::spare::spare;
use crate::say::state::Margin;
use fec_base::names::{bytes, counted, hex, show, show_bytes};
use fec_sidecar::protect::Protected;
use fec_sidecar::update::{Anew, NotRetired, Updated};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// The protection that was made or updated.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) root: String,
    sidecar: String,
    base: String,
    files: u64,
    folders: u64,
    links: u64,
    payload_bytes: u64,
    /// Those of them that are neither zeros nor duplicates.
    data_bytes: u64,
    recovery_bytes: u64,
    sidecar_bytes: u64,
    /// The piece that could be lost, and mended.
    margin: Margin,
    block_bytes: u32,
    data: usize,
    recovery: usize,
    sets: u32,
    /// Devices, sockets and FIFOs: they hold no content to protect.
    skipped: Vec<String>,
    /// Other sidecars in the folders.
    sidecars_left_out: Vec<String>,
    left_out: LeftOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Policy>,
    #[serde(skip)]
    is_recognised: bool,
    /// Paths that are not protected although they were named.
    not_protected: Vec<Left>,
    /// Paths that an update could not look at, and that stay protected as they were.
    kept: Vec<Left>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<Update>,
    seconds: f64,
}

/// Most files that are listed. Further files are only counted.
const LINES: usize = 50;

/// The outcome of an update.
#[derive(Debug, Serialize)]
struct Update {
    generation: u64,
    written: bool,
    /// The reason why the sidecar was made anew.
    anew: Option<String>,
    unchanged: u64,
    changed: u64,
    added: u64,
    moved: u64,
    gone: u64,
    gone_files: Vec<String>,
    /// Files that the policy holds: they are protected as they were.
    held: Vec<HeldFile>,
    coded_bytes: u64,
    /// True if the sidecar was written again, with the recovery data that it kept.
    joined: bool,
    /// Bytes that have left, and were taken out of the recovery data.
    retired_bytes: u64,
    /// Why nothing was taken out, if something was to be.
    not_retired: Option<String>,
}

impl Update {
    fn new(updated: &Updated) -> Update {
        Update {
            generation: updated.generation,
            written: updated.written,
            anew: updated.anew.map(|why| match why {
                Anew::Weak(sets) => {
                    format!(
                        "too much of the recovery data of {} was spent on what is gone",
                        count(sets, "set", "sets")
                    )
                }
                Anew::Long => "hardly any of its recovery data could be kept".to_owned(),
                Anew::SmallBlocks => "its blocks were too small for so many bytes".to_owned(),
                Anew::Sha256 => "it had no SHA-256 of its files".to_owned(),
            }),
            unchanged: updated.unchanged,
            changed: updated.changed,
            added: updated.added,
            moved: updated.moved,
            gone: updated.gone.len() as u64,
            gone_files: updated.gone.iter().map(|path| show_bytes(path)).collect(),
            held: HeldFile::all(&updated.held),
            coded_bytes: updated.coded_len,
            joined: updated.is_joined,
            retired_bytes: updated.retired_len,
            not_retired: updated.not_retired.as_ref().map(|why| match why {
                NotRetired::Other(path) => {
                    format!("{} is not what was protected, or cannot be read", show_bytes(path))
                }
                NotRetired::Much => "too much is new, or has left".to_owned(),
                NotRetired::Damaged => "blocks of it are damaged".to_owned(),
                NotRetired::Nothing => "the folder has nothing of what has left".to_owned(),
            }),
        }
    }

    fn describe(&self, sidecar: &str) -> String {
        let counts = [
            (self.unchanged, "as they were"),
            (self.changed, "changed"),
            (self.added, "new"),
            (self.moved, "moved"),
            (self.gone, "gone"),
            (self.held.len() as u64, "held"),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        let what = match (&self.anew, self.written) {
            (Some(why), _) => format!("{sidecar} was made anew, because {why}"),
            (None, true) if self.joined => {
                format!("{sidecar} was updated and written again: {} coded", bytes(self.coded_bytes))
            }
            (None, true) => format!("{sidecar} was updated: {} coded", bytes(self.coded_bytes)),
            (None, false) => format!("{sidecar} is up to date"),
        };
        let mut out = String::new();
        for path in self.gone_files.iter().take(LINES) {
            out.push_str(&format!("  gone       {path}\n"));
        }
        if self.gone_files.len() > LINES {
            out.push_str(&format!("  and {} more\n", self.gone_files.len() - LINES));
        }
        out.push_str(&format!("files: {}\n{what}\n", told.join(", ")));
        if self.retired_bytes > 0 {
            out.push_str(&format!("taken out of the recovery data: {}\n", bytes(self.retired_bytes)));
        }
        if let Some(why) = &self.not_retired {
            out.push_str(&format!("nothing was taken out of the recovery data: {why}\n"));
        }
        out
    }
}

impl Report {
    pub(crate) fn new(
        protected: &Protected,
        updated: Option<&Updated>,
        (output, is_recognised): (&Path, bool),
        started: Instant,
    ) -> Report {
        Report {
            root: hex(&protected.root),
            sidecar: show(output),
            base: show(&protected.base),
            files: protected.files,
            folders: protected.folders,
            links: protected.links,
            payload_bytes: protected.files_len,
            data_bytes: protected.data_len,
            recovery_bytes: protected.recovery_len,
            sidecar_bytes: protected.sidecar_len,
            margin: Margin::of_spare(&protected.spare),
            block_bytes: protected.block,
            data: protected.code.0,
            recovery: protected.code.1,
            sets: protected.sets,
            skipped: protected.skipped.iter().map(show).collect(),
            sidecars_left_out: protected.sidecars.iter().map(show).collect(),
            left_out: LeftOut::new(&protected.excluded),
            policy: Policy::new(&protected.rules, true),
            is_recognised,
            not_protected: Left::all(&protected.omitted),
            kept: Left::all(&protected.kept),
            update: updated.map(Update::new),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The report; `is_all` lists all paths that are not protected, rather than a few.
    pub(crate) fn describe(&self, protected: &Protected, is_all: bool) -> String {
        let files = count(self.files, "file", "files");
        let mut out = self.update.as_ref().map_or_else(String::new, |update| update.describe(&self.sidecar));
        out.push_str(&format!(
            "{} ({}) protects {files} ({})\nit can mend {}\n",
            self.sidecar,
            bytes(self.sidecar_bytes),
            bytes(self.payload_bytes),
            spare(&protected.spare, false)
        ));
        let policy = self.policy.as_ref();
        out.extend(policy.map(|policy| policy.describe(self.is_recognised, is_all)));
        if self.data_bytes < self.payload_bytes {
            let spared = self.payload_bytes - self.data_bytes;
            let spared = bytes(spared);
            out.push_str(&format!("{spared} are zeros or duplicates, which take no recovery data\n"));
        }
        if self.sidecar_bytes > self.data_bytes {
            let (sidecar, data) = (&self.sidecar, bytes(self.data_bytes));
            out.push_str(&format!("{sidecar} is larger than the {data} that it has recovery data for\n"));
        }
        if !protected.is_beside {
            let base = quoted(&protected.base);
            out.push_str(&format!("to verify and repair them, name their base: --base {base}\n"));
        }
        if !protected.skipped.is_empty() {
            out.push_str(&format!(
                "left out, because they are devices, sockets or pipes: {}\n",
                self.skipped.join(", ")
            ));
        }
        if !self.sidecars_left_out.is_empty() {
            let named: Vec<&str> = self.sidecars_left_out.iter().take(LINES).map(String::as_str).collect();
            out.push_str(&format!(
                "left out, because they are other sidecars, or belong to them: {}\n",
                named.join(", ")
            ));
        }
        out.push_str(&left_out::describe(&protected.excluded, &protected.rules, &protected.base));
        if let Some(update) = &self.update {
            let base = match protected.is_beside {
                true => String::new(),
                false => format!(" --base {}", quoted(&protected.base)),
            };
            let repair = format!("fec repair {}{base}", quoted(Path::new(&self.sidecar)));
            out.push_str(&HeldFile::describe(&update.held, &repair, is_all));
        }
        if !self.kept.is_empty() {
            let count = counted(self.kept.len(), "path");
            out.push_str(&format!("as protected before, because it cannot be looked at: {count}\n"));
            out.push_str(&Left::list(&self.kept, is_all));
        }
        if !self.not_protected.is_empty() {
            let count = counted(self.not_protected.len(), "path");
            out.push_str(&format!(
                "not protected: {count}; run it again as a user who may read it, when nobody writes to it, or leave it \
                 out with --exclude\n"
            ));
            out.push_str(&Left::list(&self.not_protected, is_all));
        }
        out
    }

    /// The paths that are not protected, or not as they are now, in a line.
    pub(crate) fn verdict(&self) -> String {
        let held = self.update.as_ref().map_or(0, |update| update.held.len());
        let counts = [
            (held, "damaged or gone, and held"),
            (self.not_protected.len(), "not protected"),
            (self.kept.len(), "only as before"),
        ];
        let told = counts.iter().filter(|(paths, _)| *paths > 0);
        let told: Vec<String> =
            told.map(|(paths, what)| format!("{} {what}", counted(*paths, "path"))).collect();
        format!("{}: {}", self.sidecar, told.join(", "))
    }
}
