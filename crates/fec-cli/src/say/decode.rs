//! The final report of `decode`, as text and JSON from one struct.

use crate::run::target::{Target, output_name};
use crate::say::report::{ByteRange, Rejected, byte_ranges, rejected, strays};
use crate::say::signed::SignedBy;
use crate::settings::Settings;
use fec_base::names::{bytes, counted, hex, show, show_bytes};
use fec_core::block::Code;
use fec_keys::sign::Signed;
use fecfile::Archive;
use fecfile::report::Restored;
use serde::Serialize;
use std::time::Instant;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    output: String,
    /// True if the output was written (with --partial perhaps with zeros for what is lost).
    written: bool,
    /// True if the payload was restored whole.
    whole: bool,
    root: Option<String>,
    /// True if the user gave the root, or it was the only one that could be restored.
    root_was_given: bool,
    /// The signer of the root, if that was asked for.
    signed_by: Option<SignedBy>,
    recorded_name: Option<String>,
    recorded_sha256: Option<String>,
    recorded_blake3: Option<String>,
    /// True if no copy of the meta (recorded name, digests) is left.
    meta_lost: bool,
    /// True if the payload is ciphertext.
    sealed: bool,
    /// Bytes that were opened and written, if the payload is sealed.
    opened_bytes: Option<u64>,
    payload_bytes: Option<u64>,
    /// The bytes of the payload that were asked for, if not all of them.
    range: Option<ByteRange>,
    restored_bytes: u64,
    /// Intact bytes in sets that cannot be restored, and their ranges.
    proved_by_path_only_bytes: u64,
    proved_by_path_only: Vec<ByteRange>,
    lost_bytes: u64,
    lost: Vec<ByteRange>,
    sets: u64,
    mended_sets: u64,
    damaged_records: u64,
    foreign_roots: Vec<String>,
    foreign_files: Vec<String>,
    rejected: Vec<Rejected>,
    unreadable: Vec<String>,
    backend: &'static str,
    threads: usize,
    seconds: f64,
    #[serde(skip)]
    shards: Option<(usize, Code)>,
    /// The files of each foreign root, in words.
    #[serde(skip)]
    strays: Vec<String>,
}

/// Why this encoding was chosen.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) root_was_given: bool,
    pub(crate) signed: Option<&'a Signed>,
    /// How many shards have a file, and the code.
    pub(crate) shards: Option<(usize, Code)>,
    /// The archive that holds the encoding.
    pub(crate) archive: Option<&'a Archive>,
}

impl Report {
    pub(crate) fn new(
        target: &Target,
        restored: &Restored,
        asked: Asked<'_>,
        settings: &Settings,
        started: Instant,
    ) -> Report {
        let Restored { outcome, leftovers, .. } = restored;
        let unreadable = leftovers.unreadable.iter().chain(&outcome.unreadable);
        let meta = restored.meta.as_ref();
        Report {
            output: target.to_string(),
            written: restored.written,
            whole: restored.is_whole(),
            root: restored.root.map(|r| hex(&r)),
            root_was_given: asked.root_was_given,
            signed_by: asked.signed.map(SignedBy::new),
            recorded_name: meta.and_then(|m| m.name.as_deref()).map(show_bytes),
            recorded_sha256: meta.and_then(|m| m.sha256).map(|digest| hex(&digest)),
            recorded_blake3: meta.and_then(|m| m.blake3).map(|digest| hex(&digest)),
            meta_lost: meta.is_none(),
            sealed: restored.is_sealed,
            opened_bytes: restored.opened,
            payload_bytes: restored.payload_len,
            range: restored.part.map(|part| byte_ranges(&[part])[0]),
            restored_bytes: outcome.restored,
            proved_by_path_only_bytes: outcome.by_path.bytes(),
            lost_bytes: outcome.lost.bytes(),
            proved_by_path_only: byte_ranges(&outcome.by_path.list()),
            lost: byte_ranges(&outcome.lost.list()),
            sets: restored.sets,
            mended_sets: outcome.mended_sets,
            damaged_records: outcome.damaged_records,
            foreign_roots: restored.others.iter().map(|r| hex(r)).collect(),
            foreign_files: leftovers.foreign.iter().map(show).collect(),
            rejected: rejected(leftovers),
            unreadable: unreadable.cloned().collect(),
            backend: settings.library.backend.name(),
            threads: settings.library.threads,
            seconds: started.elapsed().as_secs_f64(),
            shards: asked.shards,
            strays: restored.others.iter().map(|root| strays(asked.archive, root)).collect(),
        }
    }

    /// Tells whether the payload came from what was not all intact.
    pub(crate) fn was_damaged(&self) -> bool {
        self.mended_sets > 0
            || self.damaged_records > 0
            || !self.rejected.is_empty()
            || !self.unreadable.is_empty()
    }

    pub(crate) fn describe(&self, restored: &Restored) -> String {
        let mut out = String::new();
        if !self.root_was_given && self.signed_by.is_none() && !self.foreign_roots.is_empty() {
            // Nobody has said which encoding is meant: the user may want the other one.
            let root = self.root.as_deref().unwrap_or("that is not known");
            out.push_str(&format!(
                "warning: shards of {} are here; only those of root {root} are enough\n",
                counted(self.foreign_roots.len() as u64 + 1, "encoding")
            ));
        }
        if self.whole {
            self.describe_whole(restored, &mut out)
        } else {
            self.describe_lost(restored, &mut out)
        }
        if self.mended_sets > 0 {
            let which = match self.sets {
                1 => String::new(),
                sets => format!(" in {} of {sets} sets", self.mended_sets),
            };
            out.push_str(&format!("mended: some original shards were lost{which}, and were rebuilt\n"));
        }
        self.describe_records(&mut out);
        self.describe_root(&mut out);
        out
    }

    fn describe_whole(&self, Restored { outcome, part, .. }: &Restored, out: &mut String) {
        let all = self.payload_bytes.unwrap_or(outcome.restored);
        let what = match (part, self.opened_bytes) {
            (Some(part), None) => format!("bytes {} to {} of {all}", part.start, part.end),
            (Some(part), Some(_)) => format!("bytes {} to {}", part.start, part.end),
            (None, opened) => bytes(opened.unwrap_or(all)),
        };
        out.push_str(&format!("{}: {what} restored, {:.2} s\n", output_name(&self.output), self.seconds));
    }

    fn describe_lost(&self, Restored { outcome, leftovers, .. }: &Restored, out: &mut String) {
        /// Most lines of one kind. Further lines are only counted.
        const LINES: usize = 5;
        let output = output_name(&self.output);
        out.push_str(&format!("fec: decode {output}: the payload cannot be restored whole\n"));
        if let Some((given, code)) = self.shards.filter(|(given, code)| *given < code.k()) {
            let (n, k) = (code.n(), code.k());
            out.push_str(&format!(
                "  {given} of {n} shards found; {k} are needed: find {} more\n",
                k - given
            ));
        }
        outcome.lost.describe("lost", LINES, out);
        outcome.by_path.describe("proved by its own path only", LINES, out);
        if self.payload_bytes.is_none() {
            out.push_str("  cut: how much follows is not known\n");
        }
        if self.sealed {
            out.push_str("  bytes are counted in the sealed payload\n");
        }
        leftovers.describe_all(out);
        if let Some(line) = &outcome.unreadable {
            out.push_str(&format!("  cannot be read: {line}\n"));
        }
        out.push_str(match self.written {
            true => "  written with zeros for what is lost\n",
            false => "  nothing was written; --partial writes what is proved, and zeros for the rest\n",
        });
    }

    /// Adds what is known of the meta and of the seal.
    fn describe_records(&self, out: &mut String) {
        if self.meta_lost {
            out.push_str("the recorded name, and what else was recorded, is lost\n");
        }
        match (self.sealed, self.opened_bytes) {
            (true, None) if self.written => {
                out.push_str("the payload is sealed: what was restored is ciphertext\n");
            }
            (true, Some(_)) => out.push_str("the payload was sealed, and is open now\n"),
            _ => {}
        }
        for (name, digest) in [("SHA-256", &self.recorded_sha256), ("BLAKE3", &self.recorded_blake3)] {
            if let Some(digest) = digest {
                out.push_str(&format!("recorded {name} of the payload {digest}\n"));
            }
        }
    }

    /// Adds the root, other roots that are here, and how far the root is proved.
    fn describe_root(&self, out: &mut String) {
        if let Some(root) = &self.root {
            out.push_str(&format!("root {root}\n"));
        }
        for (root, strays) in self.foreign_roots.iter().zip(&self.strays) {
            out.push_str(&format!("foreign: shards of root {root} are here too{strays}\n"));
        }
        match (self.root_was_given, &self.root, &self.signed_by) {
            (_, _, Some(signed_by)) => out.push_str(&signed_by.describe()),
            (true, ..) => out.push_str("this is the root that was asked for\n"),
            (false, Some(_), None) if self.whole => {
                out.push_str("no --root given: it is intact, but not proven to be your original\n")
            }
            (false, ..) => {}
        }
    }
}
