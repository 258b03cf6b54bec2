//! Sealed sidecars: names, digests and recovery data are for the holders of keys. Without a key, the sidecar itself can
//! still be verified and mended.

use super::*;
use crate::common::forge::{Block, hex, lone_record};
use crate::common::{Random, flip};

/// An arena with two keys, and a folder `d` whose names all contain `hush`. Also returns the recipients of the keys.
fn sealed_arena() -> (Arena, [String; 2]) {
    let arena = Arena::new();
    let recipients = ["key", "other"].map(|name| {
        let output = arena.expect(["keygen", "-o", name], 0);
        text(&output.stdout).trim().to_owned()
    });
    for nth in 0..6 {
        arena.write(format!("d/hush-{nth}"), &payload(nth, 40_000 + 7000 * nth as usize));
    }
    arena.write("d/hush/hush-small", b"a small file with words in it that are found again");
    (arena, recipients)
}

/// Protects `d` with a sealed sidecar. Returns the root.
fn seal(arena: &Arena, more: &[&str]) -> String {
    let output = arena.expect([&["protect", "d", "-q", "-r", "30%"], more].concat(), 0);
    text(&output.stdout).trim().to_owned()
}

fn holds(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|part| part == what)
}

#[test]
fn nothing_is_told_without_the_key_and_all_with_it() {
    let (arena, [mine, other]) = sealed_arena();
    let whole = tree(&arena.path("d"));
    let root = seal(&arena, &["--recipient", &mine, "--recipient", &other]);
    let sidecar = arena.read("d.fecp");
    assert!(!holds(&sidecar, b"hush"));
    // The digest of a file would tell whether it is a certain file.
    let digest = blake3::hash(&arena.read("d/hush-3"));
    assert!(!holds(&sidecar, &digest.as_bytes()[..16]));
    for nth in 0..6 {
        for part in arena.read(format!("d/hush-{nth}")).chunks(16).step_by(61).filter(|part| part.len() == 16)
        {
            assert!(!holds(&sidecar, part));
        }
    }
    // Without a key, only the sidecar is verified.
    let told = json(&arena.expect(["verify", "d.fecp", "--json", "--root", &root], 0));
    assert_eq!((&told["sealed"], &told["sealed_sidecar"]), (&true.into(), &true.into()));
    for args in [&["manifest", "d.fecp"][..], &["protect", "--update", "d", "--recipient", &mine]] {
        assert!(arena.refuses(args, 2).contains("-i"), "{args:?}");
    }
    assert!(arena.refuses(["decode", "d.fecp", "-i", "key", "-o", "x"], 2).contains("sidecar"));
    // With a key, the files are verified.
    for key in ["key", "other"] {
        arena.expect(["verify", "d.fecp", "-i", key, "--root", &root], 0);
    }
    let listed = arena.expect(["manifest", "d.fecp", "-i", "key"], 0);
    assert!(text(&listed.stdout).contains(&format!("{}  d/hush-3", digest.to_hex())));
    fs::remove_file(arena.path("d/hush-1")).unwrap();
    rot(&arena, "d/hush-2", 5000, 3000);
    arena.expect(["verify", "d.fecp", "-i", "key"], 1);
    arena.expect(["verify", "d.fecp"], 0);
    arena.expect(["repair", "d.fecp", "-i", "key"], 0);
    assert!(tree(&arena.path("d")) == whole);
    arena.expect(["keygen", "-o", "unknown"], 0);
    for command in ["verify", "repair"] {
        arena.refuses([command, "d.fecp", "-i", "unknown"], 5);
    }
    // Without a key, only the whole sidecar can be checked and mended.
    for args in [["verify", "d.fecp", "--quick"], ["repair", "d.fecp", "--revert"]] {
        assert!(arena.refuses(args, 2).contains("sealed sidecar"), "{args:?}");
    }
    // A plain sidecar is refused if a key is given.
    arena.expect(["protect", "d", "-o", "plain.fecp", "-q"], 0);
    let update = ["protect", "--update", "d", "-o", "plain.fecp", "-i", "key", "--recipient", &mine];
    for args in
        [&update[..], &["verify", "plain.fecp", "-i", "key"], &["manifest", "plain.fecp", "-i", "key"]]
    {
        assert!(arena.refuses(args, 5).contains("not sealed"), "{args:?}");
    }
    // The state file would hold names in the clear.
    arena.refuses(["verify", "d.fecp", "-i", "key", "--state", "state"], 2);
    assert!(arena.read("d.fecp") == sidecar);
    arena.nothing_temporary();
}

/// Overwrites bytes of a file, which keeps its time.
fn rot(arena: &Arena, name: &str, at: usize, len: usize) {
    let path = arena.path(name);
    let file = File::options().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&vec![0xAA; len], at as u64).unwrap();
    file.set_modified(modified).unwrap();
}

#[test]
fn the_sidecar_is_mended_with_and_without_the_key() {
    let (arena, [mine, _]) = sealed_arena();
    let root = seal(&arena, &["--recipient", &mine]);
    let (whole, sidecar) = (tree(&arena.path("d")), arena.read("d.fecp"));
    for more in [&[][..], &["-i", "key"]] {
        rot(&arena, "d.fecp", sidecar.len() / 2, 6000);
        arena.expect([&["verify", "d.fecp"], more].concat(), 1);
        // The rest of the container still serves.
        rot(&arena, "d/hush-0", 100, 2000);
        if !more.is_empty() {
            arena.expect(["repair", "d.fecp", "-i", "key", "--dry-run"], 1);
        }
        make_younger(&arena, "d.fecp", "d");
        arena.expect([&["repair", "d.fecp", "--root", &root], more].concat(), 0);
        assert!(arena.read("d.fecp") == sidecar, "bit for bit");
        arena.expect(["repair", "d.fecp", "-i", "key"], 0);
        assert!(tree(&arena.path("d")) == whole);
    }
    // The container is known without its front too.
    rot(&arena, "d.fecp", 0, 300);
    arena.expect(["verify", "d.fecp"], 1);
    arena.expect(["verify", "d.fecp", "-i", "key", "--root", &root], 1);
    arena.expect(["repair", "d.fecp"], 0);
    assert!(arena.read("d.fecp") == sidecar);
    arena.expect(["verify", "d.fecp", "-i", "key", "--root", &root], 0);
    // If the damage exceeds what the container can mend itself, the rest of it still mends files.
    let mut random = Random::new(8);
    let half = sidecar.len() / 2;
    rot(&arena, "d.fecp", half, sidecar.len() / 4);
    arena.expect(["repair", "d.fecp"], 3);
    rot(&arena, "d/hush-4", random.below(30_000), 1000);
    let output = arena.run(["repair", "d.fecp", "-i", "key"]);
    if tree(&arena.path("d")) != whole {
        assert_ne!(output.status.code(), Some(0));
    }
}

#[test]
fn an_update_seals_all_of_it_with_another_key() {
    let (arena, [mine, other]) = sealed_arena();
    seal(&arena, &["--recipient", &mine]);
    let before = arena.read("d.fecp");
    arena.write("d/hush-new", &payload(90, 30_000));
    arena.refuses(["protect", "--update", "d", "-i", "key"], 2);
    arena.refuses(["protect", "--update", "d", "-i", "other", "--recipient", &mine], 5);
    assert!(arena.read("d.fecp") == before);
    arena.expect(["protect", "--update", "d", "-i", "key", "--recipient", &mine, "--recipient", &other], 0);
    let now = arena.read("d.fecp");
    assert!(!holds(&now, b"hush"));
    let chunk = |bytes: &[u8], at: usize| bytes[at..at + 24].to_vec();
    // Equal bytes in front, and in the copies of the seal, are the text of every age file, and zeros.
    let is_public = |chunk: &[u8]| holds(&before[..4000], chunk) || chunk.iter().all(|b| *b == 0);
    for at in (4000..before.len().min(now.len()) - 24).step_by(501) {
        assert!(!holds(&now, &chunk(&before, at)) || is_public(&chunk(&before, at)), "{at}");
    }
    let whole = tree(&arena.path("d"));
    arena.expect(["verify", "d.fecp", "-i", "other"], 0);
    fs::remove_file(arena.path("d/hush-new")).unwrap();
    rot(&arena, "d/hush-5", 0, 3000);
    arena.expect(["repair", "d.fecp", "-i", "other"], 0);
    assert!(tree(&arena.path("d")) == whole);
    // An update without changes writes nothing.
    let now = arena.read("d.fecp");
    arena.expect(["protect", "--update", "d", "-i", "key", "--recipient", &mine], 0);
    assert!(arena.read("d.fecp") == now);
    // A passphrase opens the sidecar and seals it again.
    let run = |args: &[&str]| arena.fec(args).env("FEC_PASSPHRASE", "a passphrase").output().unwrap();
    expect(&run(&["protect", "d", "-f", "--passphrase"]), 0);
    arena.write("d/hush-more", &payload(91, 10_000));
    expect(&run(&["protect", "--update", "d", "--passphrase"]), 0);
    expect(&run(&["verify", "d.fecp", "--passphrase"]), 0);
    arena.nothing_temporary();
}

#[test]
fn what_stands_in_the_place_of_a_sealed_sidecar_is_refused() {
    let (arena, [mine, _]) = sealed_arena();
    let root = seal(&arena, &["--recipient", &mine]);
    let whole = tree(&arena.path("d"));
    let sealed = arena.read("d.fecp");
    // A plain sidecar does not replace a sealed one by mistake.
    let told = arena.refuses(["protect", "d", "-f"], 2);
    assert!(told.contains("it is sealed") && told.contains("--recipient"), "{told}");
    fs::remove_file(arena.path("d.fecp")).unwrap();
    protect(&arena, &["d"]);
    let plain = arena.read("d.fecp");
    for command in ["verify", "repair", "manifest"] {
        arena.refuses([command, "d.fecp", "-i", "key"], 5);
    }
    arena.refuses(["protect", "--update", "d", "--recipient", &mine], 2);
    assert!(arena.read("d.fecp") == plain);
    // A sealed payload is no sidecar.
    arena.expect(["encode", "d/hush-0", "-o", "payload.fecp", "--recipient", &mine], 0);
    arena.refuses(["verify", "payload.fecp", "-i", "key"], 2);
    // The sidecar of another user, sealed for the same key: only the root tells.
    arena.write("d/hush-0", b"something else");
    seal(&arena, &["-f", "--recipient", &mine]);
    let theirs = arena.read("d.fecp");
    arena.refuses(["verify", "d.fecp", "-i", "key", "--root", &root], 5);
    arena.refuses(["repair", "d.fecp", "-i", "key", "--root", &root], 5);
    // Both sidecars stand in one file.
    for both in [[&sealed[..], &theirs].concat(), [&theirs[..], &sealed].concat()] {
        arena.write("d.fecp", &both);
        arena.refuses(["verify", "d.fecp", "-i", "key"], 2);
        // The files are mended, and the other sidecar is not lost.
        arena.expect(["repair", "d.fecp", "-i", "key", "--root", &root, "--revert"], 2);
        assert!(arena.read("d.fecp") == both);
        assert!(tree(&arena.path("d")) == whole);
    }
}

/// Whatever happens to the sidecar, files are in their old state or stay as they were left.
#[test]
fn damage_anywhere() {
    let (arena, [mine, _]) = sealed_arena();
    seal(&arena, &["--recipient", &mine]);
    let (whole, sidecar) = (tree(&arena.path("d")), arena.read("d.fecp"));
    let mut random = Random::new(std::env::var("FEC_SEED").map_or(21, |seed| seed.parse().unwrap()));
    let (mut mended, mut refused) = (0, 0);
    for round in 0..40 {
        arena.write("d.fecp", &sidecar);
        match random.below(4) {
            0 => (0..1 + random.below(4))
                .for_each(|_| flip(&arena.path("d.fecp"), random.below(sidecar.len()))),
            1 => rot(&arena, "d.fecp", random.below(sidecar.len() - 9000), 1 + random.below(9000)),
            2 => {
                arena.write("d.fecp", &sidecar[..random.below(sidecar.len())]).exists().then_some(()).unwrap()
            }
            _ => {
                let at = random.below(sidecar.len());
                let len = 1 + random.below(2000);
                let cut = [&sidecar[..at], &random.bytes(len), &sidecar[at..]].concat();
                arena.write("d.fecp", &cut);
            }
        }
        let name = format!("d/hush-{}", random.below(6));
        rot(&arena, &name, random.below(30_000), 1 + random.below(4000));
        let before = tree(&arena.path("d"));
        let output = arena.run(["repair", "d.fecp", "-i", "key"]);
        let after = tree(&arena.path("d"));
        if after == whole {
            mended += 1;
        } else {
            assert!(after == before, "round {round}: {}", text(&output.stderr));
            assert_ne!(output.status.code(), Some(0), "round {round}");
            refused += 1;
            arena.write("d.fecp", &sidecar);
            arena.expect(["repair", "d.fecp", "-i", "key"], 0);
            assert!(tree(&arena.path("d")) == whole);
        }
    }
    assert!(mended > 20, "{mended} mended, {refused} refused");
}

/// Runs verify with the key on the sidecar `x.fecp`, which cannot be opened, within two seconds of processor time.
#[track_caller]
fn ends_soon(arena: &Arena, root: &str) {
    let mut shell = std::process::Command::new("sh");
    let line = format!("ulimit -t 2; exec {} verify x.fecp -i key --root {root}", common::fec_words());
    let output = shell.args(["-c", &line]).current_dir(arena.path("")).output();
    let output = output.expect("a shell");
    expect(&output, 3);
    assert!(text(&output.stderr).contains("x.fecp"), "{}", text(&output.stderr));
}

/// The container states the length of the sidecar, and anybody with a public key can make one: the work must follow the
/// bytes that exist.
#[test]
fn what_is_lost_of_a_sealed_sidecar_is_passed_over() {
    let (arena, [mine, _]) = sealed_arena();
    arena.write("d/large", &payload(17, 48_000_000));
    let output = arena.expect(["protect", "d", "-q", "-r", "50%", "--no-sync", "--recipient", &mine], 0);
    let root = text(&output.stdout).trim().to_owned();
    let sidecar = arena.read("d.fecp");
    let (len, part) = (sidecar.len(), 3_000_000);
    let file = File::create(arena.path("x.fecp")).unwrap();
    file.write_all_at(&sidecar[..part], 0).unwrap();
    file.write_all_at(&sidecar[len - part..], (len - part) as u64).unwrap();
    ends_soon(&arena, &root);
    // Without the gap the whole sidecar is read.
    arena.write("x.fecp", &sidecar);
    arena.expect(["verify", "x.fecp", "-i", "key", "--sidecar-only"], 0);
}

#[test]
fn a_sealed_sidecar_that_claims_terabytes_costs_nothing() {
    let (arena, [mine, _]) = sealed_arena();
    seal(&arena, &["--recipient", &mine]);
    let sidecar = arena.read("d.fecp");
    let number = |at: usize| u32::from_le_bytes(sidecar[at..at + 4].try_into().unwrap());
    // The meta frame in front, which the key opens, and the geometry in the first record behind it.
    let front = (128 + number(16) as usize).next_multiple_of(64);
    let geometry = &sidecar[front + 32..front + 64];
    let short = |at: usize| u16::from_le_bytes(geometry[at..at + 2].try_into().unwrap());
    let mut block = Block {
        version: geometry[0],
        hash: geometry[1],
        form: geometry[2],
        flags: geometry[3],
        k: short(4),
        m: short(6),
        shard_len: 1 << 20,
        sets: 1 << 16,
        payload: 0,
        tail: u64::from_le_bytes(geometry[24..32].try_into().unwrap()),
    };
    let claimed = u64::from(block.k) * u64::from(block.shard_len) * u64::from(block.sets);
    assert!(claimed > 1 << 40, "{block:?}");
    block.payload = claimed / 65_552 * 65_552;
    let meta_hash = sidecar[64..96].try_into().unwrap();
    let record = lone_record(&block, meta_hash);
    let root = hex(record[64..96].try_into().unwrap());
    arena.write("x.fecp", &[&sidecar[..front], &record].concat());
    ends_soon(&arena, &root);
}
