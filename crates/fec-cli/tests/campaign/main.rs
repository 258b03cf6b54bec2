//! Seeded random damage to shard folders and containers. Every run must end with the exact payload, or with a right
//! error and nothing written. If simple damage leaves at least k shards of every set, which the test works out by
//! itself, the payload must come back.
//!
//! `FEC_MUTATIONS` sets the number of mutations, `FEC_SEED` the first seed.

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod damage;

use cases::*;
use common::{Random, code, finish, payload, root, run, text};
use damage::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A run that takes longer counts as a hang.
const HANG: Duration = Duration::from_secs(20);
const THREADS: usize = 2;

/// Counts of outcomes over all runs.
#[derive(Default)]
struct Counts {
    restored: u64,
    restored_other: u64,
    refused: BTreeMap<i32, u64>,
    predicted: u64,
    repaired: u64,
    deep: u64,
    simple: u64,
    hangs: u64,
    panics: u64,
    silent: u64,
    wrong: Vec<String>,
}

/// Runs `fec` in `folder`; `None` for a hang.
fn fec(folder: &Path, args: &[&str], input: Option<&[u8]>) -> Option<Output> {
    let mut command = common::fec();
    command.current_dir(folder).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    finish(command.spawn().expect("fec starts"), input.unwrap_or_default(), HANG)
}

/// The file name that `encode` gives a shard.
fn shard_name(index: usize) -> String {
    format!("payload.{index:03}.shard")
}

/// Tells whether the report is about this root, and does not merely mention it.
fn names_root(said: &str, root: &str) -> bool {
    said.lines().any(|line| line.strip_prefix("root ") == Some(root))
}

struct Worker<'a> {
    cases: &'a [Case],
    counts: &'a Mutex<Counts>,
    folder: PathBuf,
}

impl Worker<'_> {
    /// Tells whether `repair` restores the original bytes of a container or a folder of shards, bit for bit.
    fn is_made_whole(&self, case: &Case, input: &Input, work: &Path) -> bool {
        let repair = ["repair", "../in", "--no-sync", "-q", "-j", "1", "-f"];
        let done = fec(work, &repair, None).is_some_and(|run| run.status.code() == Some(0));
        let at = self.folder.join("in");
        let is_shard = |name: &str, shard: &[u8]| fs::read(at.join(name)).is_ok_and(|bytes| bytes == shard);
        done && match input {
            Input::Boxed(_) => fs::read(&at).is_ok_and(|bytes| bytes == case.own.boxed),
            // A file without a shard's name stays beside the named ones.
            Input::Folder(_, named) => {
                let whole = (0..).zip(&case.own.shards).all(|(i, shard)| {
                    is_shard(&shard_name(i), shard)
                        || named.is_empty()
                            && (0..case.own.shards.len()).any(|i| is_shard(&i.to_string(), shard))
                });
                whole && (named.is_empty() || common::listing(&at).len() == case.own.shards.len())
            }
        }
    }

    fn one(&self, seed: u64) {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(77));
        let case = &self.cases[(seed as usize) % self.cases.len()];
        let is_folder = random.chance(40);
        let mutation =
            if is_folder { damaged_folder(case, &mut random) } else { damaged_container(case, &mut random) };
        let with_root = random.chance(50);
        let as_pipe = !is_folder && random.chance(40);
        let (own, other) = if is_folder {
            (&case.own.shards_root, &case.other.shards_root)
        } else {
            (&case.own.boxed_root, &case.other.boxed_root)
        };
        fs::remove_dir_all(&self.folder).ok();
        fs::create_dir_all(self.folder.join("work")).unwrap();
        let work = self.folder.join("work");
        let (name, input) = match &mutation.input {
            Input::Folder(files, named) => {
                fs::create_dir(self.folder.join("in")).unwrap();
                for (i, bytes) in files.iter().enumerate() {
                    let name = named.get(i).map_or_else(|| i.to_string(), |index| shard_name(*index));
                    fs::write(self.folder.join("in").join(name), bytes).unwrap();
                }
                ("../in", None)
            }
            Input::Boxed(bytes) => {
                fs::write(self.folder.join("in"), bytes).unwrap();
                if as_pipe { ("-", Some(bytes.as_slice())) } else { ("../in", None) }
            }
        };
        let to_stdout = as_pipe && random.chance(50);
        let mut decode =
            vec!["decode", name, "--no-sync", "-j", "1", "-o", if to_stdout { "-" } else { "out" }];
        let mut verify = vec!["verify", "../in", "-j", "1"];
        if with_root {
            decode.extend(["--root", own]);
            verify.extend(["--root", own]);
        }
        let decoded = fec(&work, &decode, input);
        let verified = fec(&work, &verify, None);
        // The encoder was honest, so decoding finds nothing that hashes do not.
        let deep = random.chance(40).then(|| fec(&work, &[&verify[..], &["--deep"]].concat(), None));
        let left = common::listing(&work);
        let out = fs::read(work.join("out")).ok();
        // If two encodings can be restored, verify reports both, and decode needs a choice.
        let can_choose = decoded.as_ref().is_some_and(|run| run.status.code() == Some(2))
            && [(own, &case.own), (other, &case.other)].iter().all(|(root, run)| {
                let chosen = fec(&work, &["decode", name, "--no-sync", "-o", "-", "--root", root], input);
                chosen.is_some_and(|output| output.status.code() == Some(0) && output.stdout == run.payload)
            });
        let is_made_whole = mutation.must_restore.then(|| self.is_made_whole(case, &mutation.input, &work));

        let mut counts = self.counts.lock().unwrap();
        counts.simple += u64::from(mutation.simple);
        let (Some(decoded), Some(verified)) = (decoded, verified) else {
            counts.hangs += 1;
            counts.wrong.push(format!("seed {seed}: it hangs"));
            return;
        };
        let said = text(&decoded.stderr);
        let mut problem = Vec::new();
        if said.contains("panicked") || text(&verified.stderr).contains("panicked") {
            counts.panics += 1;
            problem.push("a panic");
        }
        let Some(exit) = decoded.status.code() else {
            counts.panics += 1;
            counts.wrong.push(format!("seed {seed}: ended by a signal: {decoded:?}"));
            return;
        };
        let got = if to_stdout { (exit == 0).then_some(&decoded.stdout) } else { out.as_ref() };
        let is_other = !with_root && names_root(&said, other);
        match (exit, got) {
            (0, Some(bytes)) if *bytes == case.own.payload => counts.restored += 1,
            (0, Some(bytes)) if is_other && *bytes == case.other.payload => counts.restored_other += 1,
            (0, _) => {
                counts.silent += 1;
                problem.push("silent wrong bytes");
            }
            _ => {
                *counts.refused.entry(exit).or_default() += 1;
                let allowed: &[i32] = if with_root { &[3, 5, 6] } else { &[2, 3, 5, 6] };
                if !allowed.contains(&exit) {
                    problem.push("the exit code");
                }
                if !left.is_empty() {
                    problem.push("something is left");
                }
                let is_start = case.own.payload.starts_with(&decoded.stdout)
                    || case.other.payload.starts_with(&decoded.stdout);
                if !(decoded.stdout.is_empty() || (!with_root && is_start)) {
                    problem.push("wrong bytes came out");
                }
                if said.trim().is_empty() {
                    problem.push("it does not say why");
                }
            }
        }
        if exit == 0 && left.len() != usize::from(!to_stdout) {
            problem.push("more is left than the output");
        }
        if mutation.must_restore {
            counts.predicted += 1;
            if exit != 0 {
                problem.push("enough is intact, and it was not restored");
            }
        }
        let verdict = code(&verified);
        if exit == 0 && ![0, 1].contains(&verdict) {
            problem.push("verify says lost, decode restores");
        }
        if exit != 0 && !as_pipe && [0, 1].contains(&verdict) && !can_choose {
            problem.push("verify says restorable, decode fails");
        }
        counts.deep += u64::from(deep.is_some());
        counts.repaired += u64::from(is_made_whole == Some(true));
        if deep.is_some_and(|run| run.and_then(|run| run.status.code()) != Some(verdict)) {
            problem.push("verify --deep says something else than verify");
        }
        if is_made_whole == Some(false) {
            problem.push("repair does not make it what it was");
        }
        let of_own = names_root(&text(&verified.stderr), own);
        if mutation.differs && verdict == 0 && of_own {
            problem.push("verify says intact, bytes differ");
        }
        if !problem.is_empty() {
            let form = if is_folder { "shards" } else { "container" };
            let line = format!(
                "seed {seed} ({form}, {}): {}: exit {exit}, verify {verdict}: {said}",
                decode.join(" "),
                problem.join(", ")
            );
            counts.wrong.push(line);
        }
    }
}

#[test]
fn random_damage() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
    };
    let (mutations, first) = (number("FEC_MUTATIONS", 1500), number("FEC_SEED", 0));
    let cases: Vec<Case> = SHAPES.iter().map(case).collect();
    let several = |c: &&Case| c.shards.sets > 1 && c.records.last().unwrap().group > 0;
    assert!(cases.iter().filter(several).count() >= 5, "several sets and groups");
    let counts = Mutex::new(Counts::default());
    let next = AtomicU64::new(first);
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let worker =
                Worker { cases: &cases, counts: &counts, folder: folder.path().join(thread.to_string()) };
            let next = &next;
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + mutations {
                        break;
                    }
                    worker.one(seed);
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    // The counts bypass the test harness, which hides what a passing test prints: they belong into the log.
    let line = format!(
        "{mutations} mutations ({} simple, of which {} had to be restored, and {} were repaired; {} verified with --deep too): \
         {} restored, {} restored as another root, refused by exit code {:?}, {} silent, {} panics, {} hangs",
        counts.simple,
        counts.predicted,
        counts.repaired,
        counts.deep,
        counts.restored,
        counts.restored_other,
        counts.refused,
        counts.silent,
        counts.panics,
        counts.hangs
    );
    writeln!(std::io::stderr(), "{line}").expect("standard error can be written");
    let wrong = &counts.wrong;
    let shown: Vec<&str> = wrong.iter().take(20).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), shown.join("\n"));
}
