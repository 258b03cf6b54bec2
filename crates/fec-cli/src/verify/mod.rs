//! `fec verify`: what is intact, damaged or missing, and what the payload can still stand.

mod report;
mod shards;

use crate::archive::container::{Census, Stream};
use crate::archive::inputs::{ContainerFile, Inputs, classify, spool};
use crate::archive::shards::gather;
use crate::archive::{Encoded, Leftovers, choose};
use crate::args;
use crate::failure::{Exit, Failure, Result, hex, show};
use crate::restore::{Nowhere, Restorer, SpareDecoders, untrue};
use crate::settings::Settings;
use crate::stream::detect;
use fec_core::digest::Digest;
use fec_core::format::container::{GroupId, HEADER_LEN};
use fec_core::set::PlanCache;
use report::{Deep, Report, ShardReport, State};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(args: &args::Verify, settings: &Settings) -> Result<Exit> {
    let verifying = Verifying { args, settings, started: Instant::now() };
    match classify(&args.inputs, args.root, settings)? {
        Inputs::Shards(paths) => verifying.shards(&paths),
        Inputs::Container(input) => {
            let is_live = detect::file(&input.file).map_err(|e| Failure::io("read", &input.path, &e))?;
            verifying.container(&input, is_live)
        }
        Inputs::Pipe(path, file) => {
            let (head, is_live) = detect::pipe(&file).map_err(|e| Failure::io("read", &path, &e))?;
            let input = io::Cursor::new(head).chain(file);
            if args.deep {
                return verifying.container(&spool(&path, input)?, is_live);
            }
            verifying.pipe(&path, input, is_live)
        }
    }
}

struct Verifying<'a> {
    args: &'a args::Verify,
    settings: &'a Settings,
    started: Instant,
}

/// What all kinds of inputs end in.
struct Findings<'a> {
    form: &'static str,
    root: Option<Digest>,
    encoded: &'a Encoded<'a>,
    shards: Vec<ShardReport>,
    /// The fewest intact shards of any set.
    weakest: u32,
    /// Damage that belongs to no shard: of a container.
    damage: Vec<String>,
    gaps: Vec<crate::archive::ranges::ByteRange>,
    others: Vec<Digest>,
}

impl Verifying<'_> {
    fn shards(&self, paths: &[PathBuf]) -> Result<Exit> {
        let gathered = gather(paths)?;
        if let (Some(root), [path]) = (self.args.root, paths)
            && !path.is_dir()
        {
            return self.one_shard(path, root, &gathered);
        }
        let plans = PlanCache::new(self.settings.backend);
        let root = choose::shards(&gathered, self.args.root, &self.restorer(&plans))?;
        let set = &gathered.sets[&root];
        let (shards, weakest) = shards::check_all(set, self.settings);
        let encoded = set.encoded();
        let findings = Findings {
            form: "shards",
            root: Some(root),
            encoded: &encoded,
            shards,
            weakest,
            damage: Vec::new(),
            gaps: Vec::new(),
            others: gathered.sets.keys().filter(|r| **r != root).copied().collect(),
        };
        self.conclude(findings, &plans, &gathered.leftovers)
    }

    /// One shard file against a root: nothing else is needed.
    fn one_shard(
        &self,
        path: &Path,
        root: Digest,
        gathered: &crate::archive::shards::Gathered,
    ) -> Result<Exit> {
        if self.args.deep {
            return Err(Failure::usage("verify: --deep decodes sets, and one shard is not enough for that"));
        }
        let Some(set) = gathered.sets.get(&root) else {
            let others: Vec<Digest> = gathered.sets.keys().copied().collect();
            let mut failure = choose::nothing_found(Some(root), &others, &gathered.leftovers);
            // Damaged or foreign: either way this shard is not what the root promises.
            if failure.exit == Exit::Lost {
                failure.exit = Exit::Untrue;
            }
            return Err(failure);
        };
        let (index, member) = set.only_member().expect("one file has one index under one root");
        let checked = shards::check_one(set, index, member, self.settings);
        let is_intact = checked.state == State::Intact;
        let encoded = set.encoded();
        let findings = Findings {
            form: "shards",
            root: Some(root),
            encoded: &encoded,
            shards: vec![checked],
            weakest: 0,
            damage: Vec::new(),
            gaps: Vec::new(),
            others: gathered.sets.keys().filter(|r| **r != root).copied().collect(),
        };
        let report = Report::new(self, &findings, &gathered.leftovers, None, Deep::NotAsked);
        self.settings.report(&report, &report.describe_one(&show(path)), false)?;
        Ok(if is_intact { Exit::Done } else { Exit::Untrue })
    }

    fn container(&self, input: &ContainerFile, is_live: bool) -> Result<Exit> {
        let len = input.file.metadata().ok().map(|m| m.len());
        let progress = self.settings.progress("verify", len);
        let mut census = Census::of_file(input, self.settings.max_group, self.args.root, &progress)?;
        progress.finish();
        census.leftovers.is_live = is_live;
        self.census(&mut census, Some(&input.file))
    }

    fn pipe(&self, path: &Path, input: impl Read, is_live: bool) -> Result<Exit> {
        let progress = self.settings.progress("verify", None);
        let (max_group, root) = (self.settings.max_group, self.args.root);
        let mut census = Census::take(input, None, path, max_group, root, &progress)?;
        progress.finish();
        census.leftovers.is_live = is_live;
        self.census(&mut census, None)
    }

    fn census(&self, census: &mut Census, file: Option<&File>) -> Result<Exit> {
        let streams = census.streams()?;
        let stream = choose::stream(census, &streams, self.args.root)?;
        let plans = PlanCache::new(self.settings.backend);
        let encoded = census.encoded(&stream, file, self.settings.max_group);
        let weakest = if stream.geometry.is_some() { census.weakest(&stream) } else { 0 };
        let with_records = streams.iter().filter(|s| census.has_records(s));
        let others: Vec<Digest> =
            with_records.filter_map(|s| s.root).filter(|r| Some(*r) != stream.root).collect();
        let findings = Findings {
            form: "container",
            root: stream.root,
            encoded: &encoded,
            shards: container_shards(census, &stream),
            weakest,
            damage: container_damage(census, &stream, &others),
            gaps: census.gaps.list(),
            others,
        };
        self.conclude(findings, &plans, &census.leftovers)
    }

    fn restorer<'a>(&'a self, plans: &'a PlanCache) -> Restorer<'a> {
        let budget = self.settings.max_memory;
        Restorer {
            settings: self.settings,
            plans,
            budget,
            partial: false,
            progress: None,
            spare: SpareDecoders::default(),
        }
    }

    /// Decodes every set if asked to, reports, and tells the exit code.
    fn conclude(&self, findings: Findings, plans: &PlanCache, leftovers: &Leftovers) -> Result<Exit> {
        let encoded = findings.encoded;
        let k = encoded.shape().code.k() as u32;
        let restorable = encoded.payload_len.is_some() && findings.weakest >= k;
        let deep = if self.args.deep && restorable {
            encoded.check_memory(self.settings)?;
            let progress = self.settings.progress("decode", Some(encoded.known_len()));
            let mut restorer = self.restorer(plans);
            restorer.progress = Some(&progress);
            let outcome = restorer.run(encoded.records.as_ref(), &encoded.groups, &Nowhere)?;
            progress.finish();
            if let Some((group, set, error)) = outcome.untrue {
                return Err(untrue(group, set, error));
            }
            if outcome.is_whole() { Deep::Proved } else { Deep::Failed }
        } else if self.args.deep {
            Deep::Failed
        } else {
            Deep::NotAsked
        };
        let report = Report::new(self, &findings, leftovers, Some(restorable), deep);
        self.settings.report(&report, &report.describe(leftovers), false)?;
        let all_intact =
            findings.shards.iter().all(|s| s.state == State::Intact) && findings.damage.is_empty();
        Ok(match (restorable && deep != Deep::Failed, all_intact) {
            (false, _) => leftovers.exit(),
            (true, false) => Exit::Mendable,
            (true, true) => Exit::Done,
        })
    }
}

/// How many records of each shard are there.
fn container_shards(census: &Census, stream: &Stream) -> Vec<ShardReport> {
    let n = stream.groups.first().map_or(0, |(g, ..)| g.shape().code.n());
    let sets: u64 = stream.groups.iter().map(|(g, ..)| u64::from(g.shape().sets)).sum();
    (0..n as u32)
        .map(|index| {
            let there = census.records_of(stream, index);
            let state = match there {
                0 => State::Missing,
                _ if there == sets => State::Intact,
                _ => State::Damaged,
            };
            ShardReport::of_container(index, state, there, sets)
        })
        .collect()
}

/// What is wrong with a container besides records that are not there.
fn container_damage(census: &Census, stream: &Stream, others: &[Digest]) -> Vec<String> {
    let mut damage = Vec::new();
    if !census.gaps.is_empty() {
        damage.push(format!(
            "{} bytes in {} places belong to no intact record",
            census.gaps.total(),
            census.gaps.len()
        ));
    }
    if !census.has_index(stream) {
        damage.push("no copy of the index is left".to_owned());
    }
    if census.duplicates > 0 {
        damage.push(format!("{} records are there twice", census.duplicates));
    }
    if !others.is_empty() {
        let roots: Vec<String> = others.iter().map(|r| hex(r)).collect();
        damage.push(format!("records of other encodings: {}", roots.join(", ")));
    }
    let body = (32 * stream.groups.len() as u64).next_multiple_of(64);
    let groups = stream
        .groups
        .iter()
        .map(|(geometry, root, _)| GroupId { geometry: *geometry, root: *root, head: [0; 32] }.group_len());
    let expected = groups.sum::<u64>() + 3 * HEADER_LEN as u64 + 2 * body;
    if stream.geometry.is_none() {
        damage.push("it is cut: its end is missing".to_owned());
    } else if census.len != expected && others.is_empty() {
        damage.push(format!("it has {} bytes and should have {expected}", census.len));
    } else if damage.is_empty() && census.weakest(stream) > 0 && !census.is_in_order(stream) {
        damage.push(
            "records do not stand where they were written, or name other groups before them".to_owned(),
        );
    }
    damage
}
