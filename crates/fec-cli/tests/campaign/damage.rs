//! Damage by seed, and whether it leaves enough.

use super::*;

/// Bytes that were damaged in place and cut at the ends, with a record of the damage.
#[derive(Clone)]
pub(super) struct Damaged {
    pub(super) bytes: Vec<u8>,
    pub(super) touched: Vec<Range<usize>>,
    pub(super) kept: Range<usize>,
}

impl Damaged {
    pub(super) fn new(bytes: &[u8]) -> Damaged {
        Damaged { bytes: bytes.to_vec(), touched: Vec::new(), kept: 0..bytes.len() }
    }

    /// Flips a bit, makes a hole, or cuts either end. `unit` is the length of a shard's record.
    pub(super) fn damage(&mut self, random: &mut Random, unit: usize, cuts: bool) {
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

    pub(super) fn is_intact(&self, range: Range<usize>) -> bool {
        let inside = self.kept.start <= range.start && range.end <= self.kept.end;
        inside && !self.touched.iter().any(|t| t.start < range.end && range.start < t.end)
    }

    pub(super) fn result(&self) -> Vec<u8> {
        self.bytes[self.kept.clone()].to_vec()
    }
}

/// A length: short, about a record or a few records, or up to everything.
pub(super) fn some_len(random: &mut Random, whole: usize, unit: usize) -> usize {
    match random.below(10) {
        0..4 => 1 + random.below(40),
        4..8 => 1 + random.below(4 * unit),
        8 => 1 + random.below(whole / 4),
        _ => 1 + random.below(whole),
    }
}

/// Tells whether shard `set` of a damaged shard file is usable by the rules of the specification.
pub(super) fn is_usable(file: &Damaged, places: &ShardPlaces, set: usize) -> bool {
    let body = places.body + set * places.shard_len;
    let proof = |start: usize| start + set * places.proof_len..start + (set + 1) * places.proof_len;
    let header = file.is_intact(0..HEADER) || file.is_intact(places.len - HEADER..places.len);
    let proof = file.is_intact(proof(places.proofs)) || file.is_intact(proof(places.tail_proofs));
    header && proof && file.is_intact(body..body + places.shard_len)
}

/// Applies any kind of damage.
pub(super) fn mutate(bytes: &mut Vec<u8>, random: &mut Random, unit: usize, foreign: &[&[u8]]) {
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
pub(super) enum Input {
    /// Files to write into a folder, and the indices of the shards that they were. Without indices the files are not
    /// named as shards.
    Folder(Vec<Vec<u8>>, Vec<usize>),
    /// A single container.
    Boxed(Vec<u8>),
}

/// A mutation: the damaged input, and whether the payload must come back.
pub(super) struct Mutation {
    pub(super) input: Input,
    pub(super) must_restore: bool,
    pub(super) simple: bool,
    /// True if any written byte is changed or missing.
    pub(super) differs: bool,
}

pub(super) fn damaged_folder(case: &Case, random: &mut Random) -> Mutation {
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

pub(super) fn damaged_container(case: &Case, random: &mut Random) -> Mutation {
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
