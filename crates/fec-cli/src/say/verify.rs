//! The report of `verify`, as text and JSON from one struct.

use crate::say::details::Details;
use crate::say::failure::NOT_ALLOWED;
use crate::say::report::{ByteRange, Rejected, byte_ranges, rejected, strays};
use crate::say::signed::SignedBy;
use crate::say::state::Margin;
use fec_base::names::{bytes, counted, hex, show, show_bytes};
use fec_core::format::seal::SealedKind;
use fec_keys::sign::KeyId;
use fecfile::Archive;
use fecfile::forms::Leftovers;
use fecfile::report::{self, Verified};
use serde::Serialize;
use std::time::Duration;

/// The state of a shard over all sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Intact,
    Damaged,
    Missing,
}

/// The result of `--deep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Deep {
    NotAsked,
    /// Every set is one codeword, including its padding.
    Proved,
    /// A set could not be decoded.
    Failed,
}

#[derive(Debug, Serialize)]
pub(crate) struct Shard {
    pub(crate) index: u32,
    pub(crate) state: State,
    /// The files that claim this shard.
    pub(crate) files: Vec<String>,
    /// The number of sets in which the shard is intact.
    pub(crate) intact_sets: u64,
    pub(crate) sets: u64,
    /// The damage in each file.
    pub(crate) damage: Vec<FileDamage>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileDamage {
    pub(crate) file: String,
    pub(crate) what: String,
    pub(crate) bytes: Vec<ByteRange>,
}

impl From<report::ShardState> for State {
    fn from(state: report::ShardState) -> State {
        match state {
            report::ShardState::Intact => State::Intact,
            report::ShardState::Damaged => State::Damaged,
            report::ShardState::Missing => State::Missing,
        }
    }
}

impl From<report::Deep> for Deep {
    fn from(deep: report::Deep) -> Deep {
        match deep {
            report::Deep::NotAsked => Deep::NotAsked,
            report::Deep::Proved => Deep::Proved,
            report::Deep::Failed => Deep::Failed,
        }
    }
}

impl From<&report::ShardReport> for Shard {
    fn from(shard: &report::ShardReport) -> Shard {
        let damage = |d: &report::Damage| FileDamage {
            file: d.file.clone(),
            what: d.what.clone(),
            bytes: byte_ranges(&d.bytes),
        };
        Shard {
            index: shard.index,
            state: shard.state.into(),
            files: shard.files.clone(),
            intact_sets: shard.intact_sets,
            sets: shard.sets,
            damage: shard.damage.iter().map(damage).collect(),
        }
    }
}

/// The question that the options ask.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asked {
    pub(crate) root_was_given: bool,
    /// Tells whether all of a sealed payload opened with the key, if one was given.
    pub(crate) opens: Option<bool>,
    /// True if the question is if the named shard files are right, not if the payload can be restored.
    pub(crate) files: bool,
    /// The number of intact shards that each set has to have.
    pub(crate) need: Option<u32>,
    /// Most bytes of memory that decode may use with the same options.
    pub(crate) most_memory: u64,
}

impl Asked {
    /// Tells whether as many shards as were asked for are intact, and the payload can be restored, unless only some of
    /// its shard files were named; `None` if no number was.
    pub(crate) fn has_enough(&self, verified: &Verified) -> Option<bool> {
        let is_lost = !self.files && verified.is_restorable == Some(false) || verified.is_seal_lost();
        self.need.map(|need| verified.least() >= need && !is_lost)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    form: &'static str,
    root: Option<String>,
    root_was_given: bool,
    /// The signer of the root, if the options ask for one.
    signed_by: Option<SignedBy>,
    /// The keys named by all signatures that are here, whatever they sign. Only `signed_by` was checked.
    signatures: Vec<String>,
    k: usize,
    m: usize,
    payload_bytes: Option<u64>,
    recorded_name: Option<String>,
    /// Digests of the payload, as the encoder recorded them. The root binds them.
    recorded_sha256: Option<String>,
    recorded_blake3: Option<String>,
    meta_lost: bool,
    sealed: bool,
    /// True if the sealed payload is a sidecar.
    sealed_sidecar: bool,
    /// Tells whether every chunk opened with the key, if one was given.
    opens: Option<bool>,
    /// The number of shards of which at least a part is here.
    given: usize,
    /// True if the question is if the named shard files are right, not if the payload can be restored.
    #[serde(skip)]
    files: bool,
    /// The number of intact shards that each set has to have, and whether each set has them.
    need: Option<u32>,
    enough: Option<bool>,
    #[serde(skip)]
    least: u32,
    /// Absent if the question was about a single shard.
    restorable: Option<bool>,
    /// Bytes that decode takes for a set, if the same options do not allow that much.
    needs_memory: Option<u64>,
    /// Shards that may still be lost anywhere: the least over all sets. A sealed payload also keeps a shard with its
    /// seal.
    margin: Margin,
    /// The number of places with an intact copy of the seal, if the payload is sealed. Without a copy, nobody can open
    /// it.
    seal_places: Option<u32>,
    deep: Deep,
    intact: usize,
    damaged: usize,
    missing: usize,
    shards: Vec<Shard>,
    damage: Vec<String>,
    gaps: Vec<ByteRange>,
    foreign_roots: Vec<String>,
    foreign_files: Vec<String>,
    rejected: Vec<Rejected>,
    unreadable: Vec<String>,
    seconds: f64,
    /// The files of each foreign root, in words.
    #[serde(skip)]
    strays: Vec<String>,
}

impl Report {
    pub(crate) fn new(verified: &Verified, archive: &Archive, asked: &Asked, time: Duration) -> Report {
        let code = verified.shape.code;
        let Verified { found, leftovers, .. } = verified;
        let meta = verified.meta.as_ref();
        let count = |state| found.shards.iter().filter(|s| s.state == state).count();
        Report {
            form: verified.form.name(),
            root: verified.root.map(|r| hex(&r)),
            root_was_given: asked.root_was_given,
            signed_by: archive.signed().map(SignedBy::new),
            signatures: archive.signatures().ids().iter().map(KeyId::to_string).collect(),
            k: code.k(),
            m: code.m(),
            payload_bytes: verified.payload_len,
            recorded_name: meta.and_then(|m| m.name.as_deref()).map(show_bytes),
            recorded_sha256: meta.and_then(|m| m.sha256).map(|digest| hex(&digest)),
            recorded_blake3: meta.and_then(|m| m.blake3).map(|digest| hex(&digest)),
            meta_lost: meta.is_none(),
            sealed: verified.shape.is_sealed(),
            sealed_sidecar: archive.sealed_kind() == Some(SealedKind::Sidecar),
            opens: asked.opens,
            given: verified.given(),
            files: asked.files,
            need: asked.need,
            enough: asked.has_enough(verified),
            least: verified.least(),
            restorable: verified.is_restorable,
            needs_memory: Some(verified.shape.set_bytes()).filter(|need| *need > asked.most_memory),
            margin: Margin::of_shards(verified.may_still_lose()),
            seal_places: found.seal_places,
            deep: verified.deep.into(),
            intact: count(report::ShardState::Intact),
            damaged: count(report::ShardState::Damaged),
            missing: count(report::ShardState::Missing),
            shards: found.shards.iter().map(Shard::from).collect(),
            damage: found.damage.clone(),
            gaps: byte_ranges(&found.gaps),
            foreign_roots: verified.others.iter().map(|r| hex(r)).collect(),
            foreign_files: leftovers.foreign.iter().map(show).collect(),
            rejected: rejected(leftovers),
            unreadable: leftovers.unreadable.clone(),
            seconds: time.as_secs_f64(),
            strays: verified.others.iter().map(|root| strays(Some(archive), root)).collect(),
        }
    }

    /// The verdict, and below it the findings: a few lines, or all.
    pub(crate) fn describe(&self, leftovers: &Leftovers, is_all: bool) -> String {
        let mut out = String::new();
        match self.files {
            true => self.describe_given(&mut out),
            false => self.describe_all(&mut out),
        }
        match self.deep {
            Deep::NotAsked => {}
            Deep::Proved => out.push_str("every set was decoded and is one codeword\n"),
            Deep::Failed => out.push_str("not every set could be decoded\n"),
        }
        if !leftovers.denied.is_empty() {
            let files = counted(leftovers.denied.len(), "file");
            out.push_str(&format!("permission denied for {files}; to look at all, {NOT_ALLOWED}\n"));
        }
        self.describe_root(&mut out);
        out.push_str(&self.details(leftovers, is_all).describe(is_all));
        out
    }

    fn details(&self, leftovers: &Leftovers, is_all: bool) -> Details {
        let mut details = Details::default();
        let is_container = !self.gaps.is_empty();
        if is_container {
            self.describe_places(&mut details, is_all);
        }
        let missing: Vec<u32> =
            self.shards.iter().filter(|s| s.state == State::Missing).map(|s| s.index).collect();
        let damaged = self.shards.iter().filter(|s| s.state == State::Damaged && !is_container);
        details.add(damaged.flat_map(Shard::describe));
        let is_missing = !missing.is_empty() && !self.files && !is_container;
        details.add(is_missing.then(|| format!("missing: shards {}", spans(&missing, is_all))));
        // The places have lines of their own.
        let damage = self.damage.iter().filter(|line| !line.ends_with(report::NO_RECORD));
        details.add(damage.map(|line| format!("damaged: {line}")));
        let foreign = self.foreign_roots.iter().zip(&self.strays);
        details.add(foreign.map(|(root, strays)| format!("foreign: shards of root {root}{strays}")));
        details.add(self.foreign_files.iter().map(|file| format!("foreign: {file} is no shard file")));
        details.add(leftovers.rejections_outside(|offset| self.is_in_gap(offset)));
        details.add(self.unreadable.iter().map(|line| format!("cannot be read: {line}")));
        details
    }

    /// Adds a line for each damaged place of a container, and the shards that were hit there.
    fn describe_places(&self, details: &mut Details, is_all: bool) {
        let hit: Vec<u32> = self
            .shards
            .iter()
            .filter(|shard| shard.state != State::Intact)
            .map(|shard| shard.index)
            .collect();
        let noun = if hit.len() == 1 { "shard" } else { "shards" };
        let shards = format!("{noun} {}", spans(&hit, is_all));
        let at_once =
            if self.gaps.len() == 1 && !hit.is_empty() { format!(", of {shards}") } else { String::new() };
        details.add(self.gaps.iter().map(|gap| {
            let len = bytes(gap.end - gap.start);
            format!("damaged: bytes {} to {} ({len}){at_once}", gap.start, gap.end - 1)
        }));
        let is_spread = at_once.is_empty() && !hit.is_empty();
        details.add(is_spread.then(|| format!("damaged there: {shards}")));
    }

    fn is_in_gap(&self, offset: u64) -> bool {
        self.gaps.iter().any(|gap| (gap.start..gap.end).contains(&offset))
    }

    /// The verdict in one line, if the question is not about the whole encoding.
    pub(crate) fn verdict(&self) -> Option<String> {
        let mut out = String::new();
        match (self.need, self.files) {
            (Some(_), _) => self.describe_need(&mut out),
            (None, true) => self.describe_given(&mut out),
            (None, false) => return None,
        }
        Some(out.trim_end().to_owned())
    }

    fn describe_all(&self, out: &mut String) {
        out.push_str(&format!(
            "{} of {} shards intact, {} damaged, {} missing\n",
            self.intact,
            self.k + self.m,
            self.damaged,
            self.missing
        ));
        let of_seal = self.seal_places.filter(|_| self.is_seal_weakest());
        let of_seal = of_seal.map(|places| format!(": its seal is intact in {}", counted(places, "place")));
        let of_seal = of_seal.unwrap_or_default();
        out.push_str(&match self.margin.shards {
            Some(0) => format!("the payload can be restored, and no further shard may be lost{of_seal}\n"),
            Some(spare) => {
                let more = counted(spare, "more shard");
                format!("the payload can be restored, and any {more} may be lost{of_seal}\n")
            }
            None if self.seal_places == Some(0) => {
                "the payload cannot be restored from what is here: it is sealed, and every copy of its seal is lost\n"
                    .to_owned()
            }
            None => {
                format!("the payload cannot be restored from what is here: {} shards are needed\n", self.k)
            }
        });
    }

    /// Tells whether the seal can be lost sooner than the payload.
    fn is_seal_weakest(&self) -> bool {
        let spare = self.least.saturating_sub(self.k as u32);
        self.seal_places.is_some_and(|places| places.saturating_sub(1) < spare)
    }

    /// Describes shard files that were named.
    fn describe_given(&self, out: &mut String) {
        let how = match (self.damaged, self.given) {
            (0, 1) => "intact".to_owned(),
            (0, 2) => "both intact".to_owned(),
            (0, _) => "all intact".to_owned(),
            _ => format!("{} intact, {} damaged", self.intact, self.damaged),
        };
        let stands = match self.margin.shards {
            Some(0) => "they are just enough to restore".to_owned(),
            Some(spare) => format!("{spare} more than are needed to restore"),
            None if self.seal_places == Some(0) => "every copy of the seal is lost".to_owned(),
            None => format!("{} are needed to restore", self.k),
        };
        out.push_str(&format!("{} of {} shards given, {how}; {stands}\n", self.given, self.k + self.m));
    }

    fn describe_need(&self, out: &mut String) {
        let is_or_are = if self.least == 1 { "is" } else { "are" };
        match (self.need, self.enough) {
            (Some(need), Some(true)) => out.push_str(&format!(
                "enough: {need} of each set are asked for, and {} {is_or_are} intact\n",
                self.least
            )),
            (Some(_), _) if self.seal_places == Some(0) => {
                out.push_str("not enough: the payload is sealed, and every copy of its seal is lost\n");
            }
            (Some(_), _) if !self.files && self.restorable == Some(false) => out.push_str(&format!(
                "not enough: {} of each set are needed to restore, and only {} {is_or_are} intact\n",
                self.k, self.least
            )),
            (Some(need), _) => out.push_str(&format!(
                "not enough: {need} of each set are asked for, and only {} {is_or_are} intact\n",
                self.least
            )),
            (None, _) => {}
        }
    }

    /// Describes a single shard file that was checked against a root.
    pub(crate) fn describe_one(&self, path: &str, is_all: bool) -> String {
        let mut out = String::new();
        let Some(shard) = self.shards.first() else { return out };
        match shard.state {
            State::Intact => out.push_str(&format!(
                "{path}: intact: shard {} of {} + {}, {}\n",
                shard.index,
                self.k,
                self.m,
                counted(shard.sets, "set")
            )),
            _ => {
                out.push_str(&format!("{path}: damaged: shard {} of {} + {}\n", shard.index, self.k, self.m))
            }
        }
        self.describe_root(&mut out);
        let mut details = Details::default();
        details.add(shard.describe());
        out.push_str(&details.describe(is_all));
        out
    }

    fn describe_root(&self, out: &mut String) {
        self.describe_need(out);
        if let Some(need) = self.needs_memory.filter(|_| self.restorable == Some(true)) {
            out.push_str(&format!("to restore it takes more memory than is allowed: --max-memory {need}\n"));
        }
        match (self.sealed, self.sealed_sidecar, self.opens) {
            (false, ..) => {}
            (true, true, _) => {
                out.push_str("it is a sealed sidecar: with -i the files that it protects are checked too\n");
            }
            (true, false, None) => out.push_str("the payload is sealed: ciphertext\n"),
            (true, false, Some(true)) => out.push_str("the payload is sealed, and opens with this key\n"),
            (true, false, Some(false)) => {
                out.push_str("the payload is sealed for this key; too little is left to open all of it\n");
            }
        }
        for (name, digest) in [("SHA-256", &self.recorded_sha256), ("BLAKE3", &self.recorded_blake3)] {
            if let Some(digest) = digest {
                out.push_str(&format!("recorded {name} of the payload {digest}\n"));
            }
        }
        match &self.root {
            Some(root) => out.push_str(&format!("root {root}\n")),
            None => out.push_str("its root is not known: that stands behind what is lost\n"),
        }
        match &self.signed_by {
            Some(signed_by) => out.push_str(&signed_by.describe()),
            None if self.root_was_given => out.push_str("this is the root that was asked for\n"),
            None => out.push_str("no --root given: consistent, but not proven to be your original\n"),
        }
        if self.signed_by.is_none() && !self.signatures.is_empty() {
            /// Most keys that are named.
            const KEYS: usize = 5;
            let few = self.signatures.iter().take(KEYS).cloned().collect::<Vec<_>>().join(", ");
            let more = self.signatures.len().saturating_sub(KEYS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            out.push_str(&format!(
                "signatures that name key {few}{more} are here, not checked: --signer checks them\n"
            ));
        }
    }
}

impl Shard {
    /// The damage of the shard, one line for each damage in each file.
    fn describe(&self) -> Vec<String> {
        /// Most ranges of one damage that are listed. Further ranges are only counted.
        const RANGES: usize = 5;
        if self.state == State::Damaged && self.damage.is_empty() {
            let (index, intact, sets) = (self.index, self.intact_sets, self.sets);
            return vec![format!("damaged: shard {index}: {intact} of {sets} records are intact")];
        }
        let in_file = |damage: &FileDamage| {
            let mut places: Vec<String> =
                damage.bytes.iter().take(RANGES).map(|r| format!("{} to {}", r.start, r.end - 1)).collect();
            if damage.bytes.len() > RANGES {
                places.push(counted(damage.bytes.len() - RANGES, "more place"));
            }
            let places =
                if places.is_empty() { String::new() } else { format!(" at bytes {}", places.join(", ")) };
            format!("damaged: shard {}: {}: {}{places}", self.index, damage.file, damage.what)
        };
        self.damage.iter().map(in_file).collect()
    }
}

/// Numbers as spans, like 0-3, 7, 9-12: all, or the first few.
pub(crate) fn spans(numbers: &[u32], is_all: bool) -> String {
    /// Most spans: as many as fit a line.
    const FEW: usize = 12;
    let mut out: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match out.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => out.push((*number, *number)),
        }
    }
    let show = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let most = if is_all { out.len() } else { FEW };
    let rest = out.iter().skip(most).map(|(first, last)| last - first + 1).sum::<u32>();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    out.iter().take(most).map(show).collect::<Vec<_>>().join(", ") + &more
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_become_spans() {
        assert_eq!(super::spans(&[0, 1, 2, 5, 7, 8], false), "0-2, 5, 7-8");
        assert_eq!(super::spans(&[], false), "");
    }
}
