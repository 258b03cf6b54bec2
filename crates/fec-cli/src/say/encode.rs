//! The final report of `encode`, as text and JSON.

use crate::run::target::{Target, input_name};
use crate::say::state::Margin;
use crate::settings::Settings;
use fec_base::names::{bytes, counted, hex, show};
use fec_core::digest::Digest;
use fec_keys::sign::SecretKey;
use fecfile::keep::Fate;
use fecfile::payload::Options;
use fecfile::report::Written;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

/// The outcome of `encode` for one file.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) input: String,
    output: String,
    form: &'static str,
    pub(crate) root: String,
    #[serde(skip)]
    pub(crate) digest: Digest,
    hash: &'static str,
    k: usize,
    m: usize,
    payload_bytes: u64,
    /// The cipher, if the payload is sealed. `payload_bytes` then counts ciphertext.
    sealed: Option<&'static str>,
    output_bytes: u64,
    shard_bytes: usize,
    sets: u64,
    groups: u32,
    /// The shards that may be lost, and of a container the longest gap, wherever it lies.
    margin: Margin,
    /// --keep found an intact output, and nothing was written.
    pub(crate) kept: bool,
    /// Files that --keep made anew, missing or damaged, while the rest was intact.
    pub(crate) made_anew: Vec<String>,
    /// The key that signed the root.
    #[serde(rename = "signing_key")]
    signed_by: Option<String>,
    backend: &'static str,
    threads: usize,
    seconds: f64,
}

impl Report {
    pub(crate) fn new(
        (input, key): (&Path, Option<&SecretKey>),
        target: &Target,
        options: &Options,
        (written, fate): (&Written, &Fate),
        settings: &Settings,
        started: Instant,
    ) -> Report {
        let geometry = &written.geometry;
        let sets = (0..geometry.groups()).next_back().map_or(0, |last| {
            u64::from(last) * u64::from(geometry.shape().sets) + u64::from(geometry.group(last).shape().sets)
        });
        Report {
            input: show(input),
            output: target.to_string(),
            form: if matches!(target, Target::Folder(_)) { "shards" } else { "container" },
            root: hex(&written.root),
            digest: written.root,
            hash: options.hash.name(),
            k: options.code.k(),
            m: options.code.m(),
            payload_bytes: geometry.payload_len(),
            sealed: options.sealing.as_ref().map(|sealing| sealing.cipher.name()),
            output_bytes: written.output_bytes,
            shard_bytes: geometry.shape().shard_len,
            sets,
            groups: geometry.groups(),
            margin: Margin {
                shards: Some(options.code.m() as i64),
                gap_bytes: match target {
                    Target::Folder(_) => None,
                    _ => Some(fecfile::encode::survives_gap(geometry)),
                },
                ..Margin::default()
            },
            kept: *fate == Fate::Kept,
            made_anew: match fate {
                Fate::Completed(files) => files.iter().map(show).collect(),
                Fate::Kept | Fate::Made => Vec::new(),
            },
            signed_by: key.map(|key| key.signer().id().to_string()),
            backend: settings.library.backend.name(),
            threads: settings.library.threads,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The first line of the report, and what --keep did: used in lists of several files.
    pub(crate) fn brief(&self) -> String {
        let first = self.describe().lines().next().unwrap_or_default().to_owned();
        let fate = self.fate();
        if fate.is_empty() { first } else { format!("{first}\n{}", fate.trim_end()) }
    }

    fn fate(&self) -> String {
        match (self.kept, &self.made_anew[..]) {
            (true, _) => "kept: it was there, intact; nothing was written\n".to_owned(),
            (false, []) => String::new(),
            (false, _) if self.form == "container" => "it was there, damaged: made anew\n".to_owned(),
            (false, files) => format!(
                "kept, but for {} of {} shard files that were missing or damaged: made anew\n",
                files.len(),
                self.k + self.m
            ),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let what = match self.form {
            "shards" => format!("{} shard files in {}", self.k + self.m, self.output),
            _ if self.output == "-" => "a container on standard output".to_owned(),
            _ => format!("the container {}", self.output),
        };
        let stands = match (self.m, self.margin.gap_bytes) {
            (0, _) => "nothing may be lost".to_owned(),
            (m, None) => format!("any {m} of the {} shards may be lost", self.k + m),
            (m, Some(0)) => {
                format!("mends no gap, only the loss of any {m} of {} shards of each set", self.k + m)
            }
            (m, Some(gap)) => format!(
                "mends a gap of up to {}, or the loss of any {m} of {} shards of each set",
                bytes(gap),
                self.k + m
            ),
        };
        let fate = self.fate();
        let signed =
            self.signed_by.as_ref().map_or_else(String::new, |key| format!("signed with key {key}\n"));
        let empty = match self.input == "-" && self.payload_bytes == 0 {
            true => "warning: nothing came from standard input; did the command in front fail?\n",
            false => "",
        };
        format!(
            "{empty}{}: {}{} -> {}{}: {what}\n{stands}\n{fate}{signed}{:.2} s, {} kernel, {}; {}",
            input_name(&self.input),
            bytes(self.payload_bytes),
            self.sealed.map_or_else(String::new, |cipher| format!(", sealed by {cipher}")),
            bytes(self.output_bytes),
            factor(self.output_bytes, self.payload_bytes),
            self.seconds,
            self.backend,
            counted(self.threads, "thread"),
            match self.output == "-" || std::io::stdout().is_terminal() {
                true => "keep the root:",
                false => "keep the root (on standard output):",
            }
        )
    }
}

/// How many times as large an output is as its payload, after a comma: `, 3.0 x`.
pub(crate) fn factor(output: u64, payload: u64) -> String {
    match output as f64 / payload as f64 {
        _ if payload == 0 => String::new(),
        few if few < 2.0 => format!(", {few:.2} x"),
        many => format!(", {many:.1} x"),
    }
}
