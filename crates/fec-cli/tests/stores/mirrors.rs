//! `fec repair SIDECAR --from`: copies of the protected files in folders and behind servers.

use crate::common::{Arena, expect, payload, text, wait_until};
use crate::servers::serve_heads;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A folder `d` that a sidecar with almost no recovery data protects, and a copy of it in `copy`.
fn fragile() -> Arena {
    let arena = Arena::new();
    for (name, seed, len) in
        [("large", 1, 409_600), ("a b%20c", 2, 50_123), ("sub/ü", 3, 700), ("sub/two", 4, 0)]
    {
        for place in ["d", "copy/d"] {
            arena.write(format!("{place}/{name}"), &payload(seed, len));
        }
    }
    arena.expect(["protect", "d", "-r", "1%", "-q"], 0);
    arena
}

fn lose(arena: &Arena) {
    let _ = fs::remove_dir_all(arena.path("d"));
}

#[track_caller]
fn is_back(arena: &Arena) {
    for name in ["large", "a b%20c", "sub/ü", "sub/two"] {
        assert!(arena.read(format!("d/{name}")) == arena.read(format!("copy/d/{name}")), "{name}");
    }
    arena.expect(["verify", "d.fecp"], 0);
    assert!(!arena.path("d.fecp.fetched").exists());
}

/// The conduct of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    Ranges,
    /// Each answer is the whole file.
    NoRanges,
    Lies,
    Refuses,
}

/// A server of the files in a folder. Requests are counted, and each takes `pause`.
pub(crate) fn serve(folder: PathBuf, conduct: Conduct, pause: Duration) -> (String, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let address = serve_heads(move |head| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(pause);
        let words = |word: usize| head[0].split(' ').nth(word).unwrap_or_default().to_owned();
        let path = percent_encoding::percent_decode_str(&words(1)).decode_utf8_lossy().into_owned();
        let read = fs::read(folder.join(path.trim_start_matches('/')));
        let told = "ETag: \"x\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n".to_owned();
        let (Ok(mut bytes), false) = (read, conduct == Conduct::Refuses) else {
            let status = if conduct == Conduct::Refuses { 403 } else { 404 };
            return (status, String::new(), b"no".to_vec());
        };
        if conduct == Conduct::Lies {
            bytes.chunks_mut(1000).for_each(|part| part[0] ^= 1);
        }
        let range: Option<(usize, usize)> = head.iter().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
            name.eq_ignore_ascii_case("range").then_some((start.parse().ok()?, end.parse().ok()?))
        });
        match range.filter(|_| conduct != Conduct::NoRanges) {
            None => (200, told, bytes),
            Some((start, _)) if start >= bytes.len() => (416, told, Vec::new()),
            Some((start, end)) => {
                let end = bytes.len().min(end + 1);
                let told = format!("{told}Content-Range: bytes {start}-{}/{}\r\n", end - 1, bytes.len());
                (206, told, bytes[start..end].to_vec())
            }
        }
    });
    (address, count)
}

pub(crate) fn json(arena: &Arena, args: &[&str], exit: i32) -> Value {
    let output = arena.run(args.iter().copied().chain(["--json"]));
    expect(&output, exit);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn what_is_lost_comes_from_folders_and_servers() {
    let arena = fragile();
    let (around, _) = serve(arena.path("copy"), Conduct::Ranges, Duration::ZERO);
    let (inside, _) = serve(arena.path("copy/d"), Conduct::NoRanges, Duration::ZERO);
    for from in ["copy", "copy/d", "@places", &around, &format!("{around}/d"), &inside] {
        arena.write("places", b"# copies\ncopy/d\n");
        lose(&arena);
        let output = arena.expect(["repair", "d.fecp", "--from", from], 0);
        let said = text(&output.stderr);
        assert!(said.contains("restored d/large (missing)") && said.contains("fetched 45"), "{said}");
        is_back(&arena);
    }
    // Nothing is asked for where nothing is lost for good.
    let (idle, count) = serve(arena.path("copy"), Conduct::Ranges, Duration::ZERO);
    let report = json(&arena, &["repair", "d.fecp", "--from", &idle], 0);
    assert_eq!((report["fetched"]["wanted_bytes"].as_u64(), count.load(Ordering::SeqCst)), (Some(0), 0));
}

#[test]
fn a_server_that_lies_or_refuses_costs_little_and_others_give_all() {
    let arena = fragile();
    let (liar, lies) = serve(arena.path("copy"), Conduct::Lies, Duration::ZERO);
    let (closed, _) = serve(arena.path("copy"), Conduct::Refuses, Duration::ZERO);
    let (honest, _) = serve(arena.path("copy"), Conduct::Ranges, Duration::ZERO);
    let nowhere = "http://127.0.0.1:9";
    lose(&arena);
    let all = [
        "repair",
        "d.fecp",
        "--retries",
        "0",
        "--from",
        &liar,
        "--from",
        &closed,
        "--from",
        nowhere,
        "--from",
        &honest,
    ];
    let report = json(&arena, &all, 0);
    let mirrors = report["fetched"]["mirrors"].as_array().expect("mirrors");
    // The liar is left after two answers. An answer may take several requests: the way to a file is looked for.
    assert!(mirrors[0]["wrong_answers"].as_u64() <= Some(2), "{report}");
    assert!(lies.load(Ordering::SeqCst) <= 6, "{report}");
    assert_eq!(mirrors[0]["taken_bytes"], 0);
    assert_eq!(report["fetched"]["lacking_bytes"], 0);
    is_back(&arena);
    lose(&arena);
    let before = arena.read("d.fecp");
    let said = arena.refuses(["repair", "d.fecp", "--retries", "0", "--from", &liar, "--from", &closed], 3);
    assert!(
        said.contains("2 answers wrong); left: its bytes are not those") && said.contains("no copy has"),
        "{said}"
    );
    assert!(arena.read("d.fecp") == before && !arena.path("d").exists());
}

/// Each command that is printed where something is lost for good leads on.
#[test]
fn the_printed_commands_lead_on() {
    let arena = fragile();
    lose(&arena);
    let said = arena.refuses(["repair", "d.fecp"], 3);
    let command = said.lines().map(str::trim).find(|line| line.contains("--from URL")).expect("advice");
    let words: Vec<&str> =
        command.split(' ').skip(1).map(|word| if word == "URL" { "copy" } else { word }).collect();
    arena.expect(words, 0);
    is_back(&arena);
    // A copy without one of the files: the others come back with --partial.
    fs::remove_file(arena.path("d/large")).unwrap();
    fs::remove_file(arena.path("d/a b%20c")).unwrap();
    arena.write("part/d/large", &payload(1, 409_600));
    let said = text(&arena.expect(["repair", "d.fecp", "--from", "part"], 3).stderr);
    let command = said.lines().map(str::trim).find(|line| line.contains("--partial")).expect("advice");
    assert!(command.contains(" --from part "), "{said}");
    arena.expect(command.split(' ').skip(1), 3);
    assert!(arena.read("d/large") == arena.read("copy/d/large"));
    arena.expect(["repair", "d.fecp", "--from", "copy"], 0);
    is_back(&arena);
}

/// A copy beside the sidecar is no renamed folder.
#[test]
fn a_copy_that_stands_beside_is_a_copy() {
    let arena = fragile();
    fs::rename(arena.path("copy/d"), arena.path("backup")).unwrap();
    lose(&arena);
    arena.expect(["repair", "d.fecp", "--from", "backup"], 0);
    fs::create_dir_all(arena.path("copy")).unwrap();
    fs::rename(arena.path("backup"), arena.path("copy/d")).unwrap();
    is_back(&arena);
    // A copy that is not there is named as that, and the place of what is fetched as such.
    lose(&arena);
    let said = arena.refuses(["repair", "d.fecp", "--from", "none"], 3);
    assert!(said.contains("left: it is not there") && said.contains("if another copy has it"), "{said}");
    let report = json(&arena, &["repair", "d.fecp", "--from", "none"], 3);
    assert_eq!(
        (&report["kind"], &report["fetched"]["mirrors"][0]["taken_bytes"]),
        (&"lacking".into(), &0.into())
    );
    let said = arena.refuses(["repair", "d.fecp", "--from", "copy", "--spool", "none"], 4);
    assert!(said.contains("--spool FOLDER names another folder"), "{said}");
}

#[test]
fn a_killed_repair_goes_on() {
    let arena = fragile();
    arena.write("big/one", &payload(9, 20_000_000));
    arena.write("copy/big/one", &payload(9, 20_000_000));
    arena.expect(["protect", "big", "-r", "1%", "-q"], 0);
    let (slow, count) = serve(arena.path("copy"), Conduct::Ranges, Duration::from_millis(100));
    fs::remove_dir_all(arena.path("big")).unwrap();
    let mut child = arena.spawn(["repair", "big.fecp", "--from", &slow]);
    wait_until(|| count.load(Ordering::SeqCst) >= 6);
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    assert!(!arena.path("big").exists());
    let report = json(&arena, &["repair", "big.fecp", "--from", "copy"], 0);
    assert!(report["fetched"]["kept_bytes"].as_u64() > Some(1_000_000), "{report}");
    assert!(arena.read("big/one") == arena.read("copy/big/one"));
    assert!(!arena.path("big.fecp.fetched").exists());
}

/// A server without ranges gives each file once, and not from its start for each part.
#[test]
fn whole_files_are_downloaded_where_parts_cannot_be_had() {
    let arena = Arena::new();
    for place in ["d", "copy/d"] {
        arena.write(format!("{place}/one"), &payload(9, 60_000_000));
    }
    arena.expect(["protect", "d", "-r", "1%", "-q"], 0);
    let (whole, count) = serve(arena.path("copy"), Conduct::NoRanges, Duration::ZERO);
    lose(&arena);
    arena.expect(["repair", "d.fecp", "--from", &whole], 0);
    assert!(arena.read("d/one") == arena.read("copy/d/one"));
    assert!(count.load(Ordering::SeqCst) < 25, "{count:?} requests");
}

#[test]
fn copies_serve_one_sidecar() {
    let arena = fragile();
    arena.write("e/x", b"x");
    arena.write("a", &payload(1, 5000));
    arena.expect(["protect", "e", "-q"], 0);
    arena.expect(["encode", "a", "-o", "a.fec", "-q"], 0);
    let before = arena.state();
    for (args, says) in [
        (&["repair", "a.fec", "d.fecp", "--from", "copy"][..], "serve one sidecar or one encoding"),
        (
            &["repair", "d.fecp", "e.fecp", "--from", "copy"],
            "copies elsewhere serve one sidecar or one encoding",
        ),
        (&["repair", "--from", "copy"], "it takes --root, or a PATH in front"),
        (&["repair", "d.fecp", "--from", "copy", "--to", "p"], "--to"),
        (&["repair", "d.fecp", "--from", "copy,domain=x"], "domain= does nothing"),
        (&["repair", "d.fecp", "--from", "ftp://host/d"], "ftp:// is not known"),
        (&["repair", "d.fecp", "--spool", "."], "--from is missing"),
    ] {
        let said = arena.refuses(args.iter().copied(), 2);
        assert!(said.contains(says), "{args:?}: {said}");
    }
    arena.unchanged(&before);
    let many: Vec<&str> =
        ["repair", "d.fecp"].into_iter().chain(["--from", "copy"].into_iter().cycle().take(66)).collect();
    assert!(arena.refuses(many, 2).contains("33 copies are named"));
}
