//! Kernel settings that a user keeps: the commands that use them, and the effect of a spoilt file.

mod common;

use common::{Arena, text};
use std::fs;
use std::process::{Command, Output};

/// Runs `fec` with a separate home folder in the arena.
fn at_home<'a>(arena: &Arena, args: impl IntoIterator<Item = &'a str>) -> Output {
    let mut command = common::fec();
    command.current_dir(arena.path("")).env("XDG_CONFIG_HOME", arena.path("config")).args(args);
    command.output().expect("fec starts")
}

fn listed(arena: &Arena) -> serde_json::Value {
    let output = at_home(arena, ["encode", "--tuning", "list", "--json"]);
    serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")["tuning"].clone()
}

/// Keeps settings. `walk` has no effect on sets, so the kept settings differ from the usual ones whatever turns out
/// faster. Retries if other work makes another entry of the table look better.
fn keep(arena: &Arena) -> String {
    for _ in 0..10 {
        let done =
            at_home(arena, ["bench", "tuning", "--save", "--quick", "--rounds", "3", "--tuning", "walk=64"]);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        assert!(text(&done.stdout).contains("commands of this user are set for"), "{}", text(&done.stdout));
        let kept = fs::read_to_string(arena.path("config/fec/tuning")).unwrap();
        if kept.contains("walk=64") {
            return kept;
        }
    }
    panic!("the usual settings were found to be faster ten times");
}

/// The findings of `bench tuning --save` depend on the machine, but their use does not.
#[test]
fn settings_are_kept_and_used() {
    let arena = Arena::new();
    let before = listed(&arena);
    assert!(before.get("kept").is_none());
    let kept = keep(&arena);
    assert_eq!(kept.lines().count(), 1, "{kept}");
    let after = listed(&arena);
    assert_eq!(after["kept"], arena.path("config/fec/tuning").to_str().unwrap());
    let settings = kept.trim_end().rsplit('\t').next().unwrap();
    for change in settings.split(',').skip(1) {
        let (name, value) = change.split_once('=').unwrap();
        assert_eq!(after["settings"][name], value, "{kept}");
        assert_ne!(before["settings"][name], value, "{kept}");
    }
    // Lines of other machines stay, and this machine's line is replaced.
    fs::write(arena.path("config/fec/tuning"), format!("another\tscalar\tgeneric\n{kept}")).unwrap();
    let kept = keep(&arena);
    assert!(kept.starts_with("another\tscalar\tgeneric\n") && kept.lines().count() == 2, "{kept}");
}

/// A senseless file causes only a warning: the usual settings do as well.
#[test]
fn what_was_kept_and_is_spoilt_does_no_harm() {
    let arena = Arena::new();
    arena.write("in", b"payload");
    let kept = keep(&arena);
    let path = arena.path("config/fec/tuning");
    let (key, _) = kept.rsplit_once('\t').unwrap();
    fs::write(&path, format!("{key}\tcolumns=many\n")).unwrap();
    let done = at_home(&arena, ["encode", "in", "-o", "s/"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let said = text(&done.stderr);
    assert!(said.contains("warning: read ") && said.contains("columns cannot be \"many\""), "{said}");
    // The file is no text, is too long, is a folder, or is a pipe without a writer.
    let spoil: [&dyn Fn(); 4] = [
        &|| fs::write(&path, [0xFF; 100]).unwrap(),
        &|| fs::write(&path, [b'x'; 100_000]).unwrap(),
        &|| fs::create_dir(&path).unwrap(),
        &|| assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
    ];
    for (nth, spoil) in spoil.iter().enumerate() {
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
        spoil();
        let done = at_home(&arena, ["encode", "in", "-o", &format!("t{nth}/")]);
        assert_eq!(done.status.code(), Some(0), "{nth}: {done:?}");
        assert!(text(&done.stderr).contains("warning: read "), "{nth}: {done:?}");
        let saved =
            at_home(&arena, ["bench", "tuning", "--save", "--quick", "--rounds", "3", "--tuning", "walk=64"]);
        assert_eq!(saved.status.code(), Some(4), "what is not ours is not replaced: {nth}: {saved:?}");
    }
}

#[test]
fn only_tuning_keeps_something_without_a_file() {
    let arena = Arena::new();
    let refused = at_home(&arena, ["bench", "roof", "--save"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--save without a file is for `tuning`"), "{refused:?}");
    assert!(!arena.path("config").exists());
}
