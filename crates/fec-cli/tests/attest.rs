//! Statements about roots: made, checked through a pipe, and refused where they speak of something else.

mod common;

use common::{Arena, code, payload, text};

/// A payload, its root in a file, and a statement about that.
fn arena() -> Arena {
    let arena = Arena::new();
    arena.write("app", &payload(1, 50_000));
    arena.expect(["encode", "app", "-q", "--root-file", "app.root"], 0);
    arena.write("app.statement", &arena.expect(["attest", "app.root"], 0).stdout);
    arena
}

/// The subject is what everybody else computes of the file: its SHA-256.
#[test]
fn a_statement_is_the_same_each_time_and_names_the_bytes_of_the_file() {
    let arena = arena();
    let output = arena.expect(["attest", "app.root"], 0);
    assert_eq!(output.stdout, arena.read("app.statement"));
    assert!(output.stderr.is_empty());
    let statement: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    use sha2::Digest;
    let sum: String =
        sha2::Sha256::digest(arena.read("app.root")).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(statement["subject"][0]["digest"]["sha256"], sum.as_str());
    assert_eq!(statement["predicate"]["roots"][0], text(&arena.read("app.root")).trim());
    // A list of several, too.
    arena.write("roots", &arena.expect(["encode", "app", "-o", "{}.f", "-q"], 0).stdout);
    arena.write("list.statement", &arena.expect(["attest", "roots"], 0).stdout);
    arena.expect(["attest", "roots", "--check", "list.statement"], 0);
}

#[test]
fn a_statement_of_something_else_is_not_taken() {
    let arena = arena();
    let said = text(&arena.expect(["attest", "app.root", "--check", "app.statement"], 0).stderr);
    assert_eq!(
        said,
        "app.statement speaks of app.root, as app.root, and nothing else\n\
         who signed it is for cosign, sigstore or gh to tell\n"
    );
    let piped = arena.pipe(["attest", "app.root", "--check", "-"], &arena.read("app.statement"));
    assert_eq!(code(&piped), 0, "{piped:?}");
    arena.expect(["attest", "app.root", "--check", "app.statement", "-q"], 0);
    // A byte more, another root, and two statements.
    let root = text(&arena.read("app.root"));
    arena.write("longer", format!("{root}\n").as_bytes());
    assert!(
        arena.refuses(["attest", "longer", "--check", "app.statement"], 5).contains("that of other bytes")
    );
    arena.write("other", "ab".repeat(32).as_bytes());
    assert!(
        arena.refuses(["attest", "other", "--check", "app.statement"], 5).contains("its roots are others")
    );
    let twice = [arena.read("app.statement"), arena.read("app.statement")].concat();
    arena.write("twice", &twice);
    let said = arena.refuses(["attest", "app.root", "--check", "twice"], 2);
    assert!(said.contains("it is no statement of fec attest: trailing characters"), "{said}");
}

/// Each message says how to make a file of roots.
#[test]
fn what_holds_no_roots_is_not_attested() {
    let arena = arena();
    arena.expect(["encode", "app", "-q", "-o", "app.fec"], 0);
    for path in ["app", "app.fec", "app.shards", "app.statement"] {
        let said = arena.refuses(["attest", path], 2);
        assert!(said.contains("it is no file of roots") && said.contains("--root-file FILE.root"), "{said}");
    }
    let said = text(&arena.pipe(["attest", "-"], b"").stderr);
    assert!(said.contains("have to be kept"), "{said}");
    arena.write("long", "ab".repeat(32).repeat(20_000).as_bytes());
    assert!(arena.refuses(["attest", "long"], 2).contains("more than 1 MiB"));
}
