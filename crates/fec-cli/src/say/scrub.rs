//! Words about an examination that did not cover everything.

use crate::say::details::count;
use fec_base::names::bytes;
use fec_sidecar::scrub::Scrubbed;
use serde::Serialize;

/// The extent of an examination that did not cover everything.
#[derive(Debug, Serialize)]
pub(crate) struct Scrub {
    looked_at_bytes: u64,
    /// Files that were read completely.
    looked_at_files: u64,
    /// Files that are due and were not read. Without a state file nothing is due.
    due_files: u64,
    /// Seconds since the oldest of the last checks. `None` if something was never checked.
    oldest_seconds: Option<u64>,
    /// Files that were damaged at their last check, before this run.
    pub(crate) damaged_before: u64,
    /// Those of them that could not be mended.
    pub(crate) lost_before: u64,
    pub(crate) sidecar_was_damaged: bool,
}

impl Scrub {
    pub(crate) fn new(scrubbed: &Scrubbed) -> Scrub {
        Scrub {
            looked_at_bytes: scrubbed.looked_len,
            looked_at_files: scrubbed.looked_files,
            due_files: scrubbed.due_files,
            oldest_seconds: scrubbed.oldest.map(|oldest| oldest.as_secs()),
            damaged_before: scrubbed.damaged_before,
            lost_before: scrubbed.lost_before,
            sidecar_was_damaged: scrubbed.sidecar_was_damaged,
        }
    }
}

impl Scrub {
    pub(crate) fn describe(&self) -> String {
        let mut out = format!("checked {} of the files and the sidecar", bytes(self.looked_at_bytes));
        if self.looked_at_files > 0 {
            out.push_str(&format!(", all of {}", count(self.looked_at_files, "file", "files")));
        }
        out.push('\n');
        if self.due_files > 0 {
            out.push_str(&format!("{} left to check\n", count(self.due_files, "file is", "files are")));
        }
        if let Some(oldest) = self.oldest_seconds {
            let (count_of, one, several) = match oldest {
                0..7200 => (oldest / 60 + 1, "minute", "minutes"),
                7200..172_800 => (oldest / 3600 + 1, "hour", "hours"),
                _ => (oldest / 86_400 + 1, "day", "days"),
            };
            let within = count(count_of, one, several);
            out.push_str(&format!("everything was checked within the last {within}\n"));
        }
        if self.damaged_before > 0 {
            let files = count(self.damaged_before, "file was", "files were");
            let lost = match self.lost_before {
                0 => String::new(),
                lost => format!("; {lost} of them could not be mended"),
            };
            out.push_str(&format!("{files} damaged at the last check, and not checked now{lost}\n"));
        }
        if self.sidecar_was_damaged {
            out.push_str("the sidecar was damaged at the last check, and not checked now\n");
        }
        out
    }
}
