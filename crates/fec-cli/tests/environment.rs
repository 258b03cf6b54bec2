//! Odd environments: closed streams, no memory, no threads, odd files, permissions.

mod common;

use common::{Arena, code, payload, text};
use rustix::process::getuid;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a line of shell in the work folder. `$FEC` is the command.
fn shell(arena: &Arena, line: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("FEC", common::fec_words()).env_remove("RUST_BACKTRACE");
    shell.current_dir(arena.path("")).output().expect("there is a shell")
}

/// An arena with a payload `in` and its container.
fn arena() -> Arena {
    let arena = Arena::new();
    arena.write("in", &payload(3, 300_000));
    arena.expect(["encode", "in", "-o", "in.fec", "-q"], 0);
    arena
}

fn mode(arena: &Arena, name: &str) -> u32 {
    fs::metadata(arena.path(name)).unwrap().permissions().mode() & 0o777
}

fn set_mode(arena: &Arena, name: &str, mode: u32) {
    fs::set_permissions(arena.path(name), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn standard_streams_that_are_closed_are_errors() {
    let arena = arena();
    for line in [
        "$FEC decode in.fec -o - >&-",
        "$FEC decode - -o - <in.fec >&-",
        "$FEC encode in -o - >&-",
        "$FEC encode - -o new.fec <&-",
        "$FEC decode - -o new <&-",
        "$FEC verify in.fec >&-",
        "$FEC verify - <&-",
    ] {
        let output = shell(&arena, line);
        assert_eq!(code(&output), 4, "{line}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("it is closed"), "{line}: {}", text(&output.stderr));
    }
    assert!(!arena.path("new").exists() && !arena.path("new.fec").exists());
    arena.nothing_temporary();
    // Messages on standard error may be lost.
    assert_eq!(code(&shell(&arena, "$FEC verify in.fec 2>&-")), 0);
}

#[test]
fn a_root_that_standard_output_does_not_take_is_told_elsewhere() {
    let arena = arena();
    let root = common::root(&arena.expect(["encode", "in", "-o", "again.fec"], 0));
    for stdout in ["/dev/full", "&-"] {
        let output = shell(&arena, &format!("$FEC encode in -f -o again.fec >{stdout}"));
        assert_eq!(code(&output), 4);
        let said = text(&output.stderr);
        assert!(said.contains(&format!("complete; its root is {root}")), "{said}");
        arena.expect(["verify", "again.fec", "--root", &root], 0);
    }
}

#[test]
fn files_of_the_kernel_are_read_to_their_end_or_refused() {
    let arena = arena();
    if Path::new("/proc/self/mem").exists() {
        let said = arena.refuses(["encode", "/proc/self/mem", "-o", "mem.fec"], 4);
        assert!(said.contains("/proc/self/mem"), "{said}");
    }
    let file = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    if let Ok(bytes) = fs::read(file) {
        arena.expect(["encode", file.to_str().unwrap(), "-o", "sys.fec"], 0);
        arena.expect(["decode", "sys.fec", "-o", "sys"], 0);
        assert_eq!(arena.read("sys"), bytes);
    }
}

#[test]
fn no_memory_is_an_error_that_leaves_nothing() {
    let arena = arena();
    // A small payload takes no more than the program itself.
    arena.write("in", &payload(3, 8 << 20));
    arena.expect(["encode", "in", "-f", "-o", "in.fec"], 0);
    let commands = [
        "encode in -f -o new.fec",
        "encode in -o new/",
        "decode in.fec -f -o back",
        "verify in.fec --deep",
        "protect in -f -o in.fecp",
    ];
    let mut failed = 0;
    for command in commands {
        for kib in (14_000..62_000).step_by(4_000) {
            // Below some limit not even the loader fits into memory.
            if !shell(&arena, &format!("ulimit -v {kib}; exec $FEC --version")).status.success() {
                continue;
            }
            let output = shell(&arena, &format!("ulimit -v {kib}; exec $FEC {command} -q"));
            let said = text(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0 | 4)),
                "{command}, {kib} KiB: {:?} {said}",
                output.status
            );
            failed += usize::from(code(&output) == 4);
            arena.nothing_temporary();
            let _ = fs::remove_dir_all(arena.path("new"));
        }
    }
    assert!(failed > 0, "the limits were too large");
}

/// Root is bound neither by limits of processes nor by permissions. For root, the files are given to an unused user,
/// and `fec` runs as that user. `None` if root cannot become another user.
fn somebody_else(arena: &Arena, names: &[&str]) -> Option<u32> {
    let has_tools =
        ["setpriv", "prlimit"].iter().all(|tool| Command::new(tool).arg("--version").output().is_ok());
    if !getuid().is_root() || !has_tools {
        println!("skipped: it takes root, setpriv and prlimit");
        return None;
    }
    let user = 200_000 + std::process::id() % 100_000;
    fs::copy(common::fec_words(), arena.path("fec")).unwrap();
    for name in ["", "fec"].iter().chain(names) {
        std::os::unix::fs::chown(arena.path(name), Some(user), None).unwrap();
    }
    let mut way = arena.path("");
    while way.pop() {
        if fs::metadata(&way).unwrap().permissions().mode() & 1 == 0 {
            fs::set_permissions(&way, Permissions::from_mode(0o711)).unwrap();
        }
    }
    Some(user)
}

/// A folder without read permission cannot be opened, so the whole file system is synced instead.
#[test]
fn outputs_go_to_a_folder_that_may_not_be_listed() {
    let arena = arena();
    fs::create_dir(arena.path("box")).unwrap();
    let Some(user) = somebody_else(&arena, &["in", "in.fec", "box"]) else { return };
    set_mode(&arena, "box", 0o300);
    for command in ["encode in -o box/new.fec", "encode in -o box/new/", "decode in.fec -o box/back"] {
        let line = format!("exec setpriv --reuid {user} --clear-groups ./fec {command} -q");
        common::expect(&shell(&arena, &line), 0);
    }
    assert!(arena.read("box/back") == arena.read("in"));
    arena.expect(["verify", "box/new.fec"], 0);
    arena.expect(["verify", "box/new"], 0);
}

#[test]
fn without_threads_fewer_do_the_work_or_it_is_an_error() {
    let arena = arena();
    let Some(user) = somebody_else(&arena, &["in", "in.fec"]) else { return };
    let mut done = 0;
    for processes in 1..=5 {
        for command in [
            "encode in -f -o new.fec",
            "encode - -f -o piped.fec",
            "encode in -f -o new/ --payload-digest=sha256",
            "decode in.fec -f -o back",
            "decode - -f -o back",
            "verify in.fec --deep",
            "protect in -f -o in.fecp --sha256",
        ] {
            let line = format!(
                "exec setpriv --reuid {user} --clear-groups prlimit --nproc={processes} ./fec {command} -q -j 8 <in.fec"
            );
            let output = shell(&arena, &line);
            let said = text(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0 | 4)),
                "{processes}, {command}: {:?} {said}",
                output.status
            );
            assert!(!said.contains("panicked"), "{processes}, {command}: {said}");
            done += usize::from(code(&output) == 0);
            arena.nothing_temporary();
        }
    }
    assert!(done > 7, "only {done} were done");
}

#[test]
fn verify_and_decode_agree_on_what_this_process_cannot_do() {
    let arena = arena();
    arena.expect(["encode", "in", "-o", "shards/", "-q"], 0);
    for command in ["verify shards", "decode shards -o back"] {
        let output = shell(&arena, &format!("ulimit -n 40; exec $FEC {command}"));
        assert_eq!(code(&output), 4, "{command}: {}", text(&output.stderr));
    }
    // Verify examines a set of that size and reports that decode needs more memory.
    let output = arena.expect(["verify", "shards", "--max-memory", "64KiB"], 0);
    let said = text(&output.stdout);
    let need = said.lines().find_map(|line| line.split_once("--max-memory ")).expect("it is told").1;
    arena.refuses(["decode", "shards", "-o", "back", "--max-memory", "64KiB"], 6);
    arena.expect(["decode", "shards", "-o", "back", "--max-memory", need], 0);
}

#[test]
fn outputs_are_no_more_readable_than_what_they_are_made_of() {
    let arena = arena();
    set_mode(&arena, "in", 0o600);
    arena.write("public", &payload(4, 1000));
    set_mode(&arena, "public", 0o644);
    let line = "umask 022
        $FEC encode in -o shards/ -q && $FEC encode in -o one.fec -q && $FEC encode - -o piped.fec -q <in
        $FEC protect in public -o both.fecp -q && $FEC protect public -q
        $FEC decode shards -o from-shards -q && $FEC decode one.fec -o from-one -q && $FEC decode - -o from-pipe -q <one.fec
        rm shards/in.007.shard && $FEC repair shards -q
        cp one.fec hurt.fec && printf no | dd of=hurt.fec bs=1 seek=9000 conv=notrunc status=none && chmod 600 hurt.fec
        cp -r shards hurt && rm hurt/in.005.shard && : >hurt/in.006.shard && $FEC repair hurt -o remade -q
        $FEC repair hurt.fec -o mended.fec -q && $FEC repair hurt.fec -q
        $FEC encode --stream in -o sent -q && $FEC encode --stream - -o piped -q <in
        chmod 600 sent && $FEC decode sent -o received -q && $FEC decode - -o received-from-pipe -q <sent
        $FEC encode public -o public.fec -q && $FEC decode public.fec -o public-again -q && $FEC encode public -q
        $FEC encode --stream public -o public-sent -q && $FEC decode public-sent -o public-received -q
        cp -r public.shards hurt-public && rm hurt-public/public.005.shard && $FEC repair hurt-public -o public-remade -q";
    let output = shell(&arena, line);
    common::expect(&output, 0);
    assert_eq!((mode(&arena, "shards"), mode(&arena, "remade")), (0o700, 0o700));
    let private = ["shards/in.000.shard", "shards/in.007.shard", "one.fec", "piped.fec", "both.fecp"];
    let restored = ["from-shards", "from-one", "from-pipe", "received", "received-from-pipe"];
    let mended = ["remade/in.005.shard", "mended.fec", "hurt.fec", "sent", "piped"];
    for name in private.into_iter().chain(restored).chain(mended) {
        assert_eq!(mode(&arena, name), 0o600, "{name}");
    }
    let public = ["public.fecp", "public.fec", "public-again", "public.shards/public.000.shard"];
    for name in public.into_iter().chain(["public-sent", "public-received", "public-remade/public.005.shard"])
    {
        assert_eq!(mode(&arena, name), 0o644, "{name}");
    }
    assert_eq!((mode(&arena, "public.shards"), mode(&arena, "public-remade")), (0o755, 0o755));
    // A replaced file keeps its permissions, whatever a new one would get.
    for was in [0o600, 0o664] {
        set_mode(&arena, "public.fec", was);
        set_mode(&arena, "public-again", was);
        set_mode(&arena, "public.shards", was | 0o111);
        let line = "umask 022
            $FEC encode public -f -o public.fec -q && $FEC decode public.fec -f -o public-again -q
            $FEC encode public -f -q";
        common::expect(&shell(&arena, line), 0);
        assert_eq!(mode(&arena, "public.fec"), was);
        assert_eq!(mode(&arena, "public-again"), was);
        assert_eq!(mode(&arena, "public.shards"), was | 0o111);
    }
}
