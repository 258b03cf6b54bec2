//! Seeded random damage to shard folders and containers. Every run must end with the exact payload, or with a right
//! error and nothing written. If simple damage leaves at least k shards of every set, which the test works out by
//! itself, the payload must come back.
//!
//! `FEC_MUTATIONS` sets the number of mutations, `FEC_SEED` the first seed.

mod common;

use common::{Random, code, finish, payload, root, run, text};
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

/// k, m, set size, sets of a container's group, payload length, and hash.
type Shape = (usize, usize, &'static str, &'static str, usize, &'static str);

const SHAPES: [Shape; 7] = [
    (2, 1, "8K", "3", 40_000, "blake3"),
    (2, 1, "8K", "10", 90_001, "sha256"),
    (5, 3, "20K", "4", 100_000, "sha256"),
    (10, 4, "41K", "3", 130_000, "blake3"),
    (33, 67, "132K", "2", 280_000, "sha256"),
    (33, 67, "136K", "8", 150_000, "blake3"),
    (3, 3, "64K", "1", 10_000, "blake3"),
];

/// A payload in both forms.
struct Run {
    payload: Vec<u8>,
    shards_root: String,
    shards: Vec<Vec<u8>>,
    boxed_root: String,
    boxed: Vec<u8>,
}

struct Case {
    k: usize,
    own: Run,
    other: Run,
    shards: ShardPlaces,
    records: Vec<Record>,
}

/// Offsets in a shard file, computed from its own header.
struct ShardPlaces {
    sets: usize,
    shard_len: usize,
    proof_len: usize,
    proofs: usize,
    body: usize,
    tail_proofs: usize,
    len: usize,
}

/// A record of a container.
struct Record {
    group: usize,
    set: usize,
    range: Range<usize>,
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Bytes of a shard file's header.
const HEADER: usize = 192;

/// Bytes of a proof, computed from k, m and G in a geometry block.
fn proof_len(geometry: &[u8]) -> usize {
    let longer = usize::from(geometry[4].max(geometry[6]));
    let levels = |count: usize| count.next_power_of_two().trailing_zeros() as usize;
    32 * (levels(longer) + 1 + levels(u32_at(geometry, 12)))
}

fn shard_places(file: &[u8]) -> ShardPlaces {
    let geometry = &file[32..64];
    let (shard_len, sets, proof_len) = (u32_at(geometry, 8), u32_at(geometry, 12), proof_len(geometry));
    let meta = u32_at(file, 20).next_multiple_of(64);
    let align = if sets * shard_len >= 65_536 { 4096 } else { 64 };
    let proofs = HEADER + meta;
    let body = (proofs + sets * proof_len).next_multiple_of(align);
    let tail_proofs = body + sets * shard_len;
    assert_eq!(file.len(), tail_proofs + sets * proof_len + meta + HEADER);
    ShardPlaces { sets, shard_len, proof_len, proofs, body, tail_proofs, len: file.len() }
}

fn records(boxed: &[u8]) -> Vec<Record> {
    let (mut at, mut out) = (0, Vec::new());
    while boxed[at..].starts_with(b"\x89fecR\r\n\x1a") {
        let geometry = &boxed[at + 32..at + 64];
        let len = 128 + proof_len(geometry).next_multiple_of(64) + u32_at(geometry, 8);
        out.push(Record { group: u32_at(geometry, 24), set: u32_at(boxed, at + 16), range: at..at + len });
        at += len;
    }
    out
}

fn encode(shape: &Shape, seed: u64) -> Run {
    let (k, m, set_size, group_size, len, hash) = *shape;
    let bytes = payload(seed, len);
    let (folder, _) = common::scratch("payload", &bytes);
    let (k, m) = (k.to_string(), m.to_string());
    let options = ["encode", "payload", "-k", &k, "-m", &m, "--set-size", set_size, "--hash", hash, "-o"];
    let shards_root = root(&run(folder.path(), options.into_iter().chain(["s/"])));
    let boxed_root =
        root(&run(folder.path(), options.into_iter().chain(["c.fec", "--group-size", group_size])));
    let files = common::shard_files(&folder.path().join("s"));
    Run {
        payload: bytes,
        shards_root,
        shards: files.iter().map(|f| fs::read(f).unwrap()).collect(),
        boxed_root,
        boxed: fs::read(folder.path().join("c.fec")).unwrap(),
    }
}

fn case(shape: &Shape) -> Case {
    let (own, other) = (encode(shape, 1), encode(shape, 2));
    let (shards, records) = (shard_places(&own.shards[0]), records(&own.boxed));
    Case { k: shape.0, own, other, shards, records }
}

/// Bytes that were damaged in place and cut at the ends, with a record of the damage.
#[derive(Clone)]
struct Damaged {
    bytes: Vec<u8>,
    touched: Vec<Range<usize>>,
    kept: Range<usize>,
}

impl Damaged {
    fn new(bytes: &[u8]) -> Damaged {
        Damaged { bytes: bytes.to_vec(), touched: Vec::new(), kept: 0..bytes.len() }
    }

    /// Flips a bit, makes a hole, or cuts either end. `unit` is the length of a shard's record.
    fn damage(&mut self, random: &mut Random, unit: usize, cuts: bool) {
        if self.kept.is_empty() {
            return;
        }
        let at = self.kept.start + random.below(self.kept.len());
        let len = some_len(random, self.kept.len(), unit);
        let hole = at..(at + len).min(self.kept.end);
        match random.below(if cuts { 10 } else { 7 }) {
            0..4 => {
                self.bytes[at] ^= 1 << random.below(8);
                self.touched.push(at..at + 1);
            }
            4..7 => {
                let fill = if random.chance(50) { 0 } else { random.next() as u8 };
                self.bytes[hole.clone()].fill(fill);
                self.touched.push(hole);
            }
            7 => self.kept.start += len.min(self.kept.len()),
            _ => self.kept.end -= len.min(self.kept.len()),
        }
    }

    fn is_intact(&self, range: Range<usize>) -> bool {
        let inside = self.kept.start <= range.start && range.end <= self.kept.end;
        inside && !self.touched.iter().any(|t| t.start < range.end && range.start < t.end)
    }

    fn result(&self) -> Vec<u8> {
        self.bytes[self.kept.clone()].to_vec()
    }
}

/// A length: short, about a record or a few records, or up to everything.
fn some_len(random: &mut Random, whole: usize, unit: usize) -> usize {
    match random.below(10) {
        0..4 => 1 + random.below(40),
        4..8 => 1 + random.below(4 * unit),
        8 => 1 + random.below(whole / 4),
        _ => 1 + random.below(whole),
    }
}

/// Tells whether shard `set` of a damaged shard file is usable by the rules of the specification.
fn is_usable(file: &Damaged, places: &ShardPlaces, set: usize) -> bool {
    let body = places.body + set * places.shard_len;
    let proof = |start: usize| start + set * places.proof_len..start + (set + 1) * places.proof_len;
    let header = file.is_intact(0..HEADER) || file.is_intact(places.len - HEADER..places.len);
    let proof = file.is_intact(proof(places.proofs)) || file.is_intact(proof(places.tail_proofs));
    header && proof && file.is_intact(body..body + places.shard_len)
}

/// Applies any kind of damage.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random, unit: usize, foreign: &[&[u8]]) {
    let whole = bytes.len().max(1);
    let at = random.below(whole).min(bytes.len());
    let len = some_len(random, whole, unit).min(bytes.len() - at);
    // Sometimes whole records change places.
    let aligned = random.chance(30);
    let (at, len) =
        if aligned && at + 2 * unit <= bytes.len() { (at / unit * unit, unit) } else { (at, len) };
    let piece = |bytes: &[u8], random: &mut Random| {
        let start = random.below(bytes.len());
        let len = some_len(random, bytes.len(), unit).min(bytes.len() - start);
        bytes[start..start + len].to_vec()
    };
    match random.below(11) {
        0 if !bytes.is_empty() => {
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= 1 << random.below(8);
        }
        1 => bytes[at..at + len].fill(0),
        2 => drop(bytes.drain(..len)),
        3 => bytes.truncate(bytes.len() - len),
        4 => {
            let count = 1 + random.below(300);
            let junk = random.bytes(count);
            bytes.splice(at..at, junk);
        }
        5 => drop(bytes.drain(at..at + len)),
        6 => {
            let other = random.below(whole) / unit * unit;
            let (low, high) = (at.min(other), at.max(other));
            let len = len.min(high - low).min(bytes.len() - high);
            let first = bytes[low..low + len].to_vec();
            bytes.copy_within(high..high + len, low);
            bytes[high..high + len].copy_from_slice(&first);
        }
        7 => {
            let copy = bytes[at..at + len].to_vec();
            let to = random.below(whole).min(bytes.len());
            bytes.splice(to..to, copy);
        }
        8 => {
            let count = random.below(2000);
            let junk = random.bytes(count);
            bytes.extend(junk);
        }
        9 => {
            let foreign = foreign[random.below(foreign.len())];
            let piece = piece(foreign, random);
            bytes.extend(piece);
        }
        _ => {
            let foreign = foreign[random.below(foreign.len())];
            let piece = piece(foreign, random);
            bytes.splice(at..at, piece);
        }
    }
}

/// The input that a mutation is decoded from.
enum Input {
    /// Files to write into a folder, and the indices of the shards that they were. Without indices the files are not
    /// named as shards.
    Folder(Vec<Vec<u8>>, Vec<usize>),
    /// A single container.
    Boxed(Vec<u8>),
}

/// A mutation: the damaged input, and whether the payload must come back.
struct Mutation {
    input: Input,
    must_restore: bool,
    simple: bool,
    /// True if any written byte is changed or missing.
    differs: bool,
}

fn damaged_folder(case: &Case, random: &mut Random) -> Mutation {
    let (n, k) = (case.own.shards.len(), case.k);
    let simple = random.chance(60);
    let mut order: Vec<usize> = (0..n).collect();
    (0..n).for_each(|i| order.swap(i, random.below(n)));
    // Often so many files are lost that the rest has nothing to spare.
    let lost = if random.chance(60) { n - k - random.below(2).min(n - k) } else { random.below(n - k + 2) };
    let kept = &order[lost.min(n)..];
    let operations = 1 + random.below(8);
    let unit = case.shards.shard_len;
    if simple {
        let mut files: Vec<Damaged> = kept.iter().map(|i| Damaged::new(&case.own.shards[*i])).collect();
        for _ in 0..operations {
            let at = random.below(files.len());
            if let Some(file) = files.get_mut(at) {
                file.damage(random, unit, true);
            }
        }
        let intact = |set| files.iter().filter(|f| is_usable(f, &case.shards, set)).count();
        let must_restore = (0..case.shards.sets).all(|set| intact(set) >= k);
        let files: Vec<Vec<u8>> = files.iter().map(Damaged::result).collect();
        let differs = case.own.shards.iter().any(|s| !files.contains(s));
        let named = if random.chance(50) { kept.to_vec() } else { Vec::new() };
        return Mutation { input: Input::Folder(files, named), must_restore, simple, differs };
    }
    let mut files: Vec<Vec<u8>> = kept.iter().map(|i| case.own.shards[*i].clone()).collect();
    let foreign: Vec<&[u8]> =
        case.other.shards.iter().map(Vec::as_slice).chain([&case.other.boxed[..], &case.own.boxed]).collect();
    for _ in 0..operations {
        let at = random.below(files.len());
        match random.below(12) {
            0 if files.len() > 1 => {
                let copy = files[at].clone();
                files.push(copy);
            }
            1 => files.push(case.other.shards[random.below(n)].clone()),
            2 if files.len() > 1 => drop(files.remove(at)),
            _ if files.is_empty() => {}
            _ => mutate(&mut files[at], random, unit, &foreign),
        }
    }
    let differs = case.own.shards.iter().any(|s| !files.contains(s));
    Mutation { input: Input::Folder(files, Vec::new()), must_restore: false, simple, differs }
}

fn damaged_container(case: &Case, random: &mut Random) -> Mutation {
    let simple = random.chance(60);
    let operations = 1 + random.below(8);
    let unit = case.records[0].range.len();
    let mut intact: BTreeMap<(usize, usize), usize> =
        case.records.iter().map(|r| ((r.group, r.set), 0)).collect();
    let mut damaged = Damaged::new(&case.own.boxed);
    if simple {
        // A burst as long as the code survives, or a record longer.
        if random.chance(30) {
            let (n, k) = (case.own.shards.len(), case.k);
            let first = random.below(case.records.len());
            let sets = case.records.iter().filter(|r| r.group == case.records[first].group).count() / n;
            let burst = ((n - k) * sets + random.below(3)).saturating_sub(1).max(1);
            let last = &case.records[(first + burst - 1).min(case.records.len() - 1)];
            let hole = case.records[first].range.start..last.range.end;
            damaged.bytes[hole.clone()].fill(0);
            damaged.touched.push(hole);
        }
        let cuts = random.chance(40);
        (0..operations).for_each(|_| damaged.damage(random, unit, cuts));
        for record in case.records.iter().filter(|r| damaged.is_intact(r.range.clone())) {
            *intact.get_mut(&(record.group, record.set)).unwrap() += 1;
        }
        let bytes = damaged.result();
        let differs = bytes != case.own.boxed;
        let must_restore = intact.values().all(|count| *count >= case.k);
        return Mutation { input: Input::Boxed(bytes), must_restore, simple, differs };
    }
    let mut bytes = damaged.bytes;
    let foreign = [&case.other.boxed[..], &case.other.shards[0], &case.own.shards[0]];
    (0..operations).for_each(|_| mutate(&mut bytes, random, unit, &foreign));
    let differs = bytes != case.own.boxed;
    Mutation { input: Input::Boxed(bytes), must_restore: false, simple, differs }
}

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
    let (mutations, first) = (number("FEC_MUTATIONS", 3000), number("FEC_SEED", 0));
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
