//! The proofs of roots and signatures, and the behaviour without proof, for users and for attackers who can write to a
//! sidecar.

use super::recode::Recoded;
use super::*;
use common::root;

/// A folder `d` with two files, one of them private, a key, and the root of the sidecar that the key signed.
fn signed() -> (Arena, String) {
    let arena = Arena::new();
    arena.write("d/conf", &[b"allow_root = no ;".as_slice(), &payload(1, 5000)].concat());
    arena.write("d/other", &payload(2, 3000));
    set_mode(&arena.path("d/other"), 0o600);
    let keygen =
        arena.fec(["keygen", "--sign", "-o", "key", "-q"]).env("FEC_SIGN_PASSPHRASE", "").output().unwrap();
    expect(&keygen, 0);
    let made = sign(&arena, &["protect", "d", "-r", "100%", "-q", "--sign", "key"]);
    let root = root(&made);
    (arena, root)
}

fn sign(arena: &Arena, args: &[&str]) -> Output {
    arena.fec(args).env("FEC_SIGN_PASSPHRASE", "").output().expect("fec starts")
}

/// The user edits a file, and an attacker records the time of the edit, and permissions, under the same root.
fn forge(arena: &Arena) -> Vec<u8> {
    std::thread::sleep(Duration::from_millis(20));
    let edit = [b"allow_root = yes;".as_slice(), &payload(1, 5000)].concat();
    arena.write("d/conf", &edit);
    let meta = fs::metadata(arena.path("d/conf")).unwrap();
    let forged = Recoded::of(&arena.read("d.fecp")).restamped(|path, stat| match path {
        b"d/conf" => (stat.seconds, stat.nanos) = (meta.mtime(), meta.mtime_nsec() as u32),
        _ => stat.mode = 0o6777,
    });
    // The sidecar gets a new inode too, so no attribute of the file tells.
    arena.write("new", &forged.build());
    fs::rename(arena.path("new"), arena.path("d.fecp")).unwrap();
    make_younger(arena, "d.fecp", "d");
    edit
}

/// Runs the command that stands below a line of advice, unchanged.
fn run_advice(arena: &Arena, said: &str, above: &str, exit: i32) {
    let line = said
        .lines()
        .skip_while(|line| !line.contains(above))
        .find(|line| line.starts_with("  fec "))
        .expect(above);
    let args: Vec<&str> = line.trim().strip_prefix("fec ").unwrap().split(' ').collect();
    expect(&arena.run(args.iter().map(|arg| if *arg == "FILE" { "undo.tar" } else { arg })), exit);
}

#[test]
fn an_edit_stays_whatever_the_sidecar_records() {
    let (arena, root) = signed();
    let edit = forge(&arena);
    let proof = ["--root", &root];
    assert_eq!(states(&arena, &["d.fecp", "--root", &root], 1), [pair("d/conf", "edited")]);
    let said = text(&arena.expect(["verify", "d.fecp", "--root", &root], 1).stdout);
    assert!(said.contains("nothing that was given proves which"), "{said}");
    arena.expect([&["repair", "d.fecp", "-n"], &proof[..]].concat(), 1);
    let said = text(&arena.expect([&["repair", "d.fecp"], &proof[..]].concat(), 1).stderr);
    assert!(
        said.contains("left d/conf (edited)") && said.contains("nothing that was given proves"),
        "{said}"
    );
    assert!(arena.read("d/conf") == edit);
    // The signer signed other times.
    for args in [&["verify", "d.fecp"][..], &["repair", "d.fecp"], &["repair", "d.fecp", "--revert"]] {
        let said = changes_nothing(&arena, &[args, &["--signer", "key.pub"]].concat(), 5);
        assert!(said.contains("not those that were signed"), "{said}");
    }
    let said = text(&sign(&arena, &["protect", "--update", "d", "--sign", "key"]).stderr);
    assert!(said.contains("not those that were signed"), "{said}");
    // A missing file comes back with the permissions of the umask only.
    fs::remove_file(arena.path("d/other")).unwrap();
    let masked = format!("umask 027; exec {} repair d.fecp \"$@\"", common::fec_words());
    let output = std::process::Command::new("sh")
        .args(["-c", &masked, "sh"])
        .args(proof)
        .current_dir(&arena.work)
        .output()
        .unwrap();
    expect(&output, 1);
    assert_eq!(fs::metadata(arena.path("d/other")).unwrap().mode() & 0o7777, 0o640);
    assert!(arena.read("d/conf") == edit);
}

#[test]
fn an_update_that_signs_reads_what_looks_as_it_did() {
    let (arena, root) = signed();
    let edit = forge(&arena);
    let update = ["protect", "--update", "d", "--sign", "key", "--root", &root];
    let refused = sign(&arena, &update);
    expect(&refused, 1);
    assert!(
        text(&refused.stderr).contains("d/conf") && text(&refused.stderr).contains("touch"),
        "{refused:?}"
    );
    // Runs the advice literally.
    File::open(arena.path("d/conf")).unwrap().set_modified(SystemTime::now()).unwrap();
    expect(&sign(&arena, &update), 0);
    arena.expect(["verify", "d.fecp", "--signer", "key.pub"], 0);
    arena.expect(["repair", "d.fecp", "--signer", "key.pub"], 0);
    assert!(arena.read("d/conf") == edit);
    let signature = text(&arena.read("d.fecp.minisig"));
    let e = Recoded::of(&arena.read("d.fecp")[0..]).metadata_root();
    assert!(signature.lines().nth(2).unwrap().contains("\tfec sidecar 1 "), "{signature} {e:?}");
}

/// Rot is mended under a root and under a signature. The note of this user's own run proves the times of the root, and
/// so does a signature.
#[test]
fn rot_is_mended_under_a_root_and_under_a_signature() {
    let (arena, root) = signed();
    let whole = tree(&arena.path("d"));
    for proof in [["--root", &root], ["--signer", "key.pub"]] {
        flip(&arena.path("d/conf"), 3000);
        make_younger(&arena, "d.fecp", "d");
        assert_eq!(states(&arena, &[&["d.fecp"], &proof[..]].concat(), 1), [pair("d/conf", "rotten")]);
        // The verdict repeats the options that prove the sidecar.
        let said = text(&arena.expect([&["verify", "d.fecp"], &proof[..]].concat(), 1).stdout);
        run_advice(&arena, &said, "what is damaged can be mended", 0);
        assert!(tree(&arena.path("d")) == whole);
    }
    // Another machine knows nothing of the root: rot and an edit look alike, and the user decides.
    fs::remove_dir_all(arena.user_state()).unwrap();
    flip(&arena.path("d/conf"), 3000);
    make_younger(&arena, "d.fecp", "d");
    let said = text(&arena.expect(["verify", "d.fecp", "--root", &root], 1).stdout);
    assert!(said.contains("1 edited"), "{said}");
    arena.expect(["repair", "d.fecp", "--root", &root], 1);
    run_advice(&arena, &said, "to make it what it was", 0);
    assert!(tree(&arena.path("d")) == whole);
    // Without a root it counts as rot.
    flip(&arena.path("d/conf"), 3000);
    arena.expect(["repair", "d.fecp"], 0);
    assert!(tree(&arena.path("d")) == whole);
}

/// The list of roots counts only if nobody else can write to it, and no other object there does harm.
#[test]
fn the_list_of_roots_is_the_users_own() {
    let (arena, root) = signed();
    let list = arena.user_state().join("fec/sidecars");
    assert_eq!(fs::metadata(&list).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(list.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    let noted = fs::read(&list).unwrap();
    assert!(text(&noted).starts_with(&root));
    flip(&arena.path("d/conf"), 3000);
    make_younger(&arena, "d.fecp", "d");
    let is_believed = || match &states(&arena, &["d.fecp", "--root", &root], 1)[..] {
        [(_, state)] => state == "rotten",
        other => panic!("{other:?}"),
    };
    assert!(is_believed());
    set_mode(&list, 0o620);
    assert!(!is_believed(), "a group can write to it");
    set_mode(&list, 0o600);
    set_mode(list.parent().unwrap(), 0o777);
    assert!(!is_believed(), "anybody can put another in its place");
    set_mode(list.parent().unwrap(), 0o700);
    let elsewhere = arena.write("list", &noted);
    fs::remove_file(&list).unwrap();
    symlink(&elsewhere, &list).unwrap();
    assert!(!is_believed(), "a link");
    // Nothing is written through the link either.
    protect(&arena, &["d", "-f", "-r", "50%", "-o", "x.fecp"]);
    assert!(arena.read("list") == noted);
    fs::remove_file(&list).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(&list).status().unwrap();
    assert!(fifo.success());
    assert!(!is_believed(), "a FIFO is not waited for");
    protect(&arena, &["d", "-f", "-r", "50%", "-o", "x.fecp"]);
    fs::remove_file(&list).unwrap();
    for spoilt in [&b"\xff\xfe"[..], &noted[..70], b"", &[b'\n'; 5000]] {
        fs::write(&list, spoilt).unwrap();
        assert!(!is_believed());
    }
    // A damaged line disables no other, and a line that was cut off swallows none.
    fs::write(&list, [b"\xff\xfe\n", &noted[..], b"caf\xe9"].concat()).unwrap();
    assert!(is_believed());
    let other = protect(&arena, &["d", "-f", "-r", "55%", "-o", "x.fecp"]);
    let lines = text(&fs::read(&list).unwrap());
    assert!(lines.lines().any(|line| line.starts_with(&other)) && is_believed(), "{lines}");
    fs::write(&list, [&vec![b'x'; 5 << 20][..], b"\n", &noted].concat()).unwrap();
    assert!(is_believed(), "of a long list the end counts");
    // The list stays short.
    protect(&arena, &["d", "-f", "-r", "60%", "-o", "x.fecp"]);
    assert!(fs::metadata(&list).unwrap().len() < 4 << 20 && is_believed());
    // Without a home, nothing is noted and nothing fails.
    let run = |name: &str| {
        let output = arena
            .fec(["protect", "d", "-q", "-f", "-o", "x.fecp"])
            .env("XDG_STATE_HOME", name)
            .env("HOME", name)
            .output();
        expect(&output.unwrap(), 0);
    };
    ["", "relative", "/dev/null", "/nonexistent/x"].into_iter().for_each(run);
}

/// `verify --deep` decodes. A contradiction blames neither the system nor a concurrent writer.
#[test]
fn recovery_data_that_mends_nothing_is_untrue() {
    let (arena, _) = signed();
    arena.expect(["verify", "d.fecp", "--deep"], 0);
    let forged = Recoded::of(&arena.read("d.fecp")).misremembered().build();
    arena.write("d.fecp", &forged);
    arena.expect(["verify", "d.fecp"], 0);
    let said = changes_nothing(&arena, &["verify", "d.fecp", "--deep"], 5);
    assert!(said.contains("recovery data is not that of its files"), "{said}");
    flip(&arena.path("d/conf"), 3000);
    let said = changes_nothing(&arena, &["verify", "d.fecp", "--deep"], 5);
    assert!(said.contains("d/conf needs it"), "{said}");
    let damaged = arena.read("d/conf");
    for args in
        [&["repair", "d.fecp"][..], &["repair", "d.fecp", "--partial"], &["repair", "d.fecp", "--revert"]]
    {
        arena.refuses(args, 5);
        assert!(arena.read("d/conf") == damaged && !arena.path("d.fecp.repairing").exists(), "{args:?}");
    }
    // The advice: while the files are intact, protect them anew.
    flip(&arena.path("d/conf"), 3000);
    protect(&arena, &["d", "-f"]);
    arena.expect(["verify", "d.fecp", "--deep"], 0);
}
