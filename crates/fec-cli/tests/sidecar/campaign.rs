//! Seeded random trees, with random damage to them and to their sidecars. Repair never reports success over a wrong
//! byte. Verify and repair agree on what can be mended. The rest stays untouched.
//!
//! `FEC_MUTATIONS` sets the number of cases, `FEC_SEED` the first seed.

use super::*;
use common::Random;
use std::sync::atomic::{AtomicU64, Ordering};

const CASES: u64 = 150;
const THREADS: usize = 2;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

/// Makes a random tree in the folder `d`. Returns the redundancy to protect it with.
fn plant(arena: &Arena, random: &mut Random) -> &'static str {
    let files = 1 + random.below(12);
    fs::create_dir_all(arena.path("d/e/f")).unwrap();
    for nth in 0..files {
        let folder = ["d", "d/e", "d/e/f", "d/g"][random.below(4)];
        let len = match random.below(6) {
            0 => 0,
            1 => 1 + random.below(1024),
            2 => 1024 * random.below(12),
            3 => 1024 * random.below(12) + 1,
            4 => random.below(20_000),
            _ => random.below(90_000),
        };
        // Some files have equal bytes, and some are zeros with one more byte.
        let bytes = match random.below(8) {
            0 => [vec![0; len], vec![1]].concat(),
            1 => payload(1, len),
            _ => random.bytes(len),
        };
        let path = arena.write(format!("{folder}/{nth}"), &bytes);
        set_mode(&path, [0o644, 0o755, 0o600][random.below(3)]);
        age(&path, nth as u64);
    }
    if random.chance(50) {
        symlink(["0", "e/f", "nowhere"][random.below(3)], arena.path("d/link")).unwrap();
    }
    ["5%", "16%", "30%", "100%", "200%"][random.below(5)]
}

/// Regular files of the tree, in order.
fn files(arena: &Arena) -> Vec<PathBuf> {
    let all = seen(&arena.path("d")).into_iter();
    let files = all.filter(|(_, seen)| matches!(seen.what, What::File { .. }));
    files.map(|(path, _)| arena.path("d").join(path)).collect()
}

/// Random damage to bytes.
fn damaged(mut bytes: Vec<u8>, other: &[u8], random: &mut Random) -> (Vec<u8>, &'static str) {
    if bytes.is_empty() {
        return (random.bytes(100), "grow");
    }
    let at = random.below(bytes.len());
    let most = [30, 1500, bytes.len()][random.below(3)].min(bytes.len() - at);
    let end = at + 1 + random.below(most);
    let name = match random.below(9) {
        0 | 1 => {
            (0..1 + random.below(4)).for_each(|_| bytes[random.below(at + 1)] ^= 1 << random.below(8));
            "flip"
        }
        2 => {
            bytes[at..end].fill(0);
            "hole"
        }
        3 => {
            bytes.truncate(at);
            "cut"
        }
        4 => {
            bytes.drain(at..end);
            "delete"
        }
        5 => {
            let len = 1 + random.below(3000);
            bytes.splice(at..at, random.bytes(len));
            "insert"
        }
        6 => {
            bytes.extend_from_within(at..end);
            "append"
        }
        7 => {
            let twice = bytes[at..end].to_vec();
            bytes.splice(at..at, twice);
            "duplicate"
        }
        _ => {
            let len = (end - at).min(other.len());
            bytes[at..at + len].copy_from_slice(&other[..len]);
            "overwrite with another"
        }
    };
    (bytes, name)
}

/// Changes a file of the tree, or all of it.
fn mutate(arena: &Arena, random: &mut Random) -> String {
    let files = files(arena);
    if files.is_empty() {
        return "nothing is left".into();
    }
    let path = &files[random.below(files.len())];
    let other = &files[random.below(files.len())];
    let name = match random.below(12) {
        0 => {
            fs::remove_file(path).unwrap();
            "delete"
        }
        1 => {
            let swapped = path.with_extension("x");
            fs::rename(path, &swapped).unwrap();
            if other != path {
                fs::rename(other, path).unwrap();
                fs::rename(&swapped, other).unwrap();
            }
            "swap or rename"
        }
        2 => {
            set_mode(path, [0o600, 0o644, 0o755, 0o444][random.below(4)]);
            "mode"
        }
        3 => {
            age(path, 5000);
            "touch"
        }
        4 => {
            let folder = path.parent().unwrap();
            fs::remove_dir_all(folder).unwrap();
            "delete folder"
        }
        5 => {
            fs::remove_file(path).unwrap();
            symlink("/etc/hostname", path).unwrap();
            "link"
        }
        6 => {
            fs::write(arena.path(format!("d/new {}", random.next())), random.bytes(2000)).unwrap();
            "new file"
        }
        _ => {
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            let (bytes, name) = damaged(fs::read(path).unwrap(), &fs::read(other).unwrap(), random);
            fs::write(path, bytes).unwrap();
            if random.chance(70) {
                File::open(path).and_then(|file| file.set_modified(modified)).unwrap();
            }
            name
        }
    };
    format!("{name} {}", path.strip_prefix(&arena.work).unwrap().display())
}

/// Tells whether every protected entry exists, byte for byte. Added entries do not count.
fn is_as_before(now: &BTreeMap<PathBuf, What>, before: &BTreeMap<PathBuf, What>) -> bool {
    before.iter().all(|(path, what)| now.get(path) == Some(what))
}

/// Runs a case. Returns the last exit code of repair.
fn case(seed: u64) -> i32 {
    let random = &mut Random::new(seed);
    let arena = Arena::new();
    let redundancy = plant(&arena, random);
    let root = protect(&arena, &["d", "-r", redundancy]);
    let (before, sidecar) = (tree(&arena.path("d")), arena.read("d.fecp"));
    let mut story = vec![format!("seed {seed}, -r {redundancy}")];
    for _ in 0..random.below(4) {
        story.push(mutate(&arena, random));
    }
    for _ in 0..random.below(3) {
        let (bytes, name) = damaged(arena.read("d.fecp"), &sidecar[sidecar.len() / 2..], random);
        arena.write("d.fecp", &bytes);
        story.push(format!("sidecar: {name}"));
    }
    let proof: &[&str] = if random.chance(30) { &["--root", &root] } else { &[] };
    let run = |command: &str, options: &[&str]| {
        let output = arena.run([&[command, "d.fecp", "--no-sync"], options, proof].concat());
        (common::code(&output), text(&output.stderr) + &text(&output.stdout))
    };
    let (verified, said) = run("verify", &[]);
    let tell = |what: &str, said: &str| panic!("{what}: {story:?}\nverify: {verified}\n{said}");
    let is_whole = || is_as_before(&tree(&arena.path("d")), &before) && arena.read("d.fecp") == sidecar;
    // More may be edited than can be made what it was, and a right to execute may be another: neither is damage.
    let is_beyond = said.contains("more was edited than could be made what it was");
    let has_modes = said.contains("\n  mode ") || said.contains("keeps no permissions");
    let reverted = if is_beyond && verified == 1 { 3 } else { verified };
    match verified {
        0 if is_whole() || has_modes => {}
        1 | 3 => {}
        // Every remaining part claims another version.
        6 if said.contains("format version") => return verified,
        _ => tell("verify", &said),
    }
    let damaged = seen(&arena.work);
    let (dry, _) = run("repair", &["-n", "--revert"]);
    if dry != reverted || seen(&arena.work) != damaged {
        tell("a dry run", &format!("ended with {dry}"));
    }
    // A copy elsewhere changes nothing in place.
    if random.chance(25) {
        let (exit, said) = run("repair", &["-o", "new"]);
        let is_right = match exit {
            0 => verified <= 1 && tree(&arena.path("new/d")) == before,
            3 => reverted == 3 && !arena.path("new").exists(),
            _ => false,
        };
        fs::remove_dir_all(arena.path("new")).ok();
        if !is_right || seen(&arena.work) != damaged {
            tell(&format!("repair -o ended with {exit}"), &said);
        }
    }
    // Half of the cases first repair without --revert: this may leave edits, and nothing else.
    let is_first = random.chance(50);
    if is_first {
        let (exit, said) = run("repair", &[]);
        let is_right = match exit {
            0 => verified <= 1 && (is_whole() || has_modes),
            1 => verified == 1 && said.contains("  left "),
            3 => verified == 3 && seen(&arena.work) == damaged,
            _ => false,
        };
        if !is_right {
            tell(&format!("repair ended with {exit}"), &said);
        }
    }
    let (exit, said) = run("repair", &["--revert"]);
    let is_right = match exit {
        0 => verified <= 1 && is_whole(),
        3 => reverted == 3 && (verified == 1 && is_first || seen(&arena.work) == damaged),
        _ => false,
    };
    if !is_right {
        tell(&format!("repair --revert ended with {exit}"), &said);
    }
    // --partial mends the rest as far as possible, and mended files stay so.
    if exit == 3 {
        let (partial, said) = run("repair", &["--revert", "--partial"]);
        if partial != verified {
            tell(&format!("repair --partial ended with {partial}"), &said);
        }
    } else if run("verify", &[]).0 != 0 || run("repair", &["--revert"]).0 != 0 || !is_whole() {
        tell("once more", "");
    }
    arena.nothing_temporary();
    exit
}

#[test]
fn random_damage_is_mended_or_told() {
    let (cases, seed) = (number("FEC_MUTATIONS", CASES), number("FEC_SEED", 1));
    let (next, mended) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(nth) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|nth| *nth < cases) {
                    mended.fetch_add(u64::from(case(seed + nth) == 0), Ordering::Relaxed);
                }
            });
        }
    });
    let mended = mended.into_inner();
    assert!(cases < 100 || (mended > cases / 3 && mended < cases), "{mended} of {cases} were mended");
}
