//! Policies: those that come with `fec`, their text, and the choice of the one that is recorded.

use super::job::{Protect, Prune};
use crate::Sidecar;
use crate::catalog::patterns::{Patterns, normal};
use crate::catalog::proof::Proof;
use crate::error::SidecarError;
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::Base;
use fec_core::format::sidecar::policy::{Rule, Rules, Words};
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The names of the policies that come with `fec`.
pub const PRESETS: [&str; 8] = ["restic", "rustic", "borg", "kopia", "git", "annex", "maildir", "photos"];

/// Packs, keys, indexes and snapshots are written once, under a temporary name first.
const RESTIC: &str = "
once stays: /config
once stays: /data/
once stays: /index/
once stays: /keys/
once stays: /snapshots/
out: /locks/
out: *-tmp-*
";

/// Segments are written once. The client rebuilds index, hints and integrity, and must not get an old nonce back.
const BORG: &str = "
once stays: /README
once stays: /config
once stays: /data/
busy: /lock.exclusive
out: /lock.roster
out: /index.*
out: /hints.*
out: /integrity.*
out: /nonce
out: *.tmp
";

/// Blobs are written once. Maintenance, which runs by itself, replaces indexes, logs and sessions.
const KOPIA: &str = "
once stays: /p*/
once stays: /q*/
once goes: /n*/
once goes: /s*/
once goes: /x*/
once goes: /_*/
out: *.tmp.*
";

/// Objects and packs are written once; `GIT` stands for the folder around `objects`.
const GIT: &str = "
once stays: GIT/objects/
changes goes: GIT/objects/info/
changes goes: GIT/objects/pack/multi-pack-index*
changes goes: GIT/objects/pack/*.keep
changes goes: GIT/objects/pack/*.mtimes
out: GIT/objects/tmp_objdir-*
out: GIT/objects/**/tmp_obj_*
out: GIT/objects/pack/tmp_*
out: GIT/objects/pack/.tmp-*
out: GIT/*.lock
out: GIT/refs/**/*.lock
out: GIT/gc.pid
";

/// Beside those of git: the contents of files.
const ANNEX: &str = "
once stays: GIT/annex/objects/
out: GIT/annex/**/*.lck
out: GIT/annex/journal/
out: GIT/annex/journal-private/
out: GIT/annex/misctmp/
out: GIT/annex/othertmp/
out: GIT/annex/tmp/
out: GIT/annex/transfer/
";

/// Names tell what was read and answered, and change; mails do not, and their owner deletes them.
const MAILDIR: &str = "
once goes: cur/
once goes: new/
out: tmp/
out: *.lock
changes goes: dovecot*
changes goes: maildirsize
";

/// Originals are written once. Editors write beside them.
const PHOTOS: &str = "
once: *.[jJ][pP][gG]
once: *.[jJ][pP][eE][gG]
once: *.[hH][eE][iI][cCfF]
once: *.[tT][iI][fF]
once: *.[tT][iI][fF][fF]
once: *.[dD][nN][gG]
once: *.[cC][rR][23wW]
once: *.[nN][eE][fF]
once: *.[nN][rR][wW]
once: *.[aA][rR][wW]
once: *.[rR][aA][fF]
once: *.[rR][wW][2lL]
once: *.[oO][rR][fF]
once: *.[pP][eE][fF]
once: *.[sS][rR][wW]
once: *.[mM][pP]4
once: *.[mM][oO][vV]
once: *.[mM]2[tT][sS]
once: *.[mM][tT][sS]
changes goes: *.xmp
changes goes: *.pp3
changes goes: *.dop
out: .DS_Store
out: Thumbs.db
out: @eaDir/
";

/// The policy of this name for a folder; `None` if the name is not one of [`PRESETS`], or the folder has no repository
/// of git for `git` and `annex`.
pub fn preset(name: &str, folder: &Path) -> Option<Rules> {
    let text = match name {
        "restic" | "rustic" => RESTIC.to_owned(),
        "borg" => BORG.to_owned(),
        "kopia" => KOPIA.to_owned(),
        "git" => GIT.replace("GIT", git_of(folder)?),
        "annex" => [GIT, ANNEX].concat().replace("GIT", git_of(folder)?),
        "maildir" => MAILDIR.to_owned(),
        "photos" => PHOTOS.to_owned(),
        _ => return None,
    };
    Some(rules_of(&text).expect("it is a policy"))
}

/// The path from a folder to that around the objects of git.
fn git_of(folder: &Path) -> Option<&'static str> {
    let is_git = |path: PathBuf| path.join("objects").is_dir() && path.join("HEAD").exists();
    if is_git(folder.join(".git")) {
        return Some("/.git");
    }
    is_git(folder.to_path_buf()).then_some("")
}

/// The name of the policy that a folder is surely for: a repository of restic, borg or kopia.
pub fn recognised(folder: &Path) -> Option<&'static str> {
    let has = |names: &[&str], is: fn(&Path) -> bool| names.iter().all(|name| is(&folder.join(name)));
    let begins = || {
        let config = fec_base::io::own::open_regular(&folder.join("config")).ok().flatten();
        let mut begin = [0; 12];
        config.is_some_and(|file| fec_base::io::ReadAt::read_exact_at(&file, 0, &mut begin).is_ok())
            && begin == *b"[repository]"
    };
    if has(&["data", "index", "keys", "snapshots"], Path::is_dir) && has(&["config"], Path::is_file) {
        Some("restic")
    } else if has(&["data"], Path::is_dir) && has(&["README", "config"], Path::is_file) && begins() {
        Some("borg")
    } else if has(&["kopia.repository.f"], Path::is_file) {
        Some("kopia")
    } else {
        None
    }
}

/// The name of the preset that has these rules.
pub fn preset_of(rules: &Rules) -> Option<&'static str> {
    // The folder of git is told by the rules.
    let is_it = |name: &&str| {
        let git = |git: &str| {
            let text = if *name == "annex" { [GIT, ANNEX].concat() } else { GIT.to_owned() };
            rules_of(&text.replace("GIT", git)).is_ok_and(|of| of.rules == rules.rules)
        };
        match *name {
            "git" | "annex" => git("") || git("/.git"),
            name => preset(name, Path::new("")).is_some_and(|of| of.rules == rules.rules),
        }
    };
    PRESETS.into_iter().find(is_it)
}

/// The rules that a text has, a line each: words, a colon, and a pattern. Lines that are empty or begin with `#` say
/// nothing.
///
/// # Errors
/// [`SidecarError::Policy`] with the line.
pub fn rules_of(text: &str) -> std::result::Result<Rules, SidecarError> {
    let mut rules = BTreeSet::new();
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim();
        let fail = |why: &str| SidecarError::Policy(format!("line {} of the policy: {why}", nth + 1));
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (named, pattern) =
            line.split_once(':').ok_or_else(|| fail("no colon stands before a pattern"))?;
        let mut words = Words::default();
        for name in named.split([' ', ',', '\t']).filter(|name| !name.is_empty()) {
            let word = Words::NAMES.iter().find(|(_, of)| *of == name);
            let (word, _) = word.ok_or_else(|| fail(&format!("{name}: no word of a policy")))?;
            words = words | *word;
        }
        if !words.is_of_rule() {
            return Err(fail("its words do not go together"));
        }
        let pattern = normal(pattern.trim()).map_err(|error| fail(&error.to_string()))?;
        rules.insert(Rule { words, pattern });
    }
    let rules = Rules { rules: rules.into_iter().collect(), ..Rules::default() };
    match (rules.is_empty(), rules.is_valid()) {
        (true, _) => Err(SidecarError::Policy("the policy has no rule".to_owned())),
        (_, false) => Err(SidecarError::Policy("the policy is too long".to_owned())),
        _ => Ok(rules),
    }
}

/// The text of a policy, as [`rules_of`] takes it.
pub fn text_of(rules: &Rules) -> String {
    let line = |rule: &Rule| {
        let words = Words::NAMES.iter().filter(|(word, _)| rule.words.has(*word));
        let words: Vec<&str> = words.map(|(_, name)| *name).collect();
        format!("{}: {}\n", words.join(" "), rule.pattern)
    };
    rules.rules.iter().map(line).collect()
}

/// The policy that is recorded: the given one, or that of an updated sidecar.
///
/// # Errors
/// [`SidecarError::PolicyOfOne`], [`SidecarError::PolicyUnproved`], [`SidecarError::NoPolicy`].
pub(super) fn choose(
    job: &Protect<'_>,
    named: &[(PathBuf, Metadata)],
    base: &Path,
    old: Option<&Sidecar>,
) -> Result<Rules> {
    let fail = |cause| Err(Error::at(Action::Protect, job.output, cause));
    let mut rules = match (job.rules, old) {
        (Some(given), _) if given.is_empty() => Rules::default(),
        (Some(given), _) => match named {
            [(_, meta)] if meta.is_dir() => Rules { anchor: anchor(named, base), ..given.clone() },
            _ => return fail(SidecarError::PolicyOfOne),
        },
        (None, Some(old)) if old.proof() == Proof::Root && !old.stats.policy.is_empty() => {
            return fail(SidecarError::PolicyUnproved);
        }
        (None, Some(old)) => old.stats.policy.clone(),
        (None, None) => Rules::default(),
    };
    rules.is_announced = job.prune == Prune::Announced;
    match rules.is_announced && rules.is_empty() {
        true => fail(SidecarError::NoPolicy),
        false => Ok(rules),
    }
}

/// The only folder that is protected, from which patterns count too; empty if there are several.
pub(super) fn anchor(named: &[(PathBuf, Metadata)], base: &Path) -> Vec<u8> {
    match named {
        [(place, meta)] if meta.is_dir() => {
            place.strip_prefix(base).map_or_else(|_| Vec::new(), |path| path.as_os_str().as_bytes().to_vec())
        }
        _ => Vec::new(),
    }
}

/// Fails while a program is at work.
pub(super) fn check_idle(patterns: &Patterns<'_>, base: &Base) -> Result<()> {
    patterns.busy().map_or(Ok(()), |path| {
        Err(Error::at(Action::Protect, base.place(path).as_path(), SidecarError::AtWork))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_comes_back_from_its_text() {
        let folder = tempfile::tempdir().expect("a folder");
        for git in ["", ".git"] {
            let git = folder.path().join(git);
            std::fs::create_dir_all(git.join("objects")).expect("a folder is made");
            std::fs::write(git.join("HEAD"), "ref").expect("a file is written");
            for name in PRESETS {
                let rules = preset(name, folder.path()).expect("a policy");
                assert_eq!(rules_of(&text_of(&rules)).expect("rules"), rules, "{name}");
                let same = if name == "rustic" { "restic" } else { name };
                assert_eq!(preset_of(&rules), Some(same));
            }
        }
        assert!(preset("other", folder.path()).is_none());
        assert!(preset("git", &folder.path().join("objects")).is_none());
        assert!(preset_of(&rules_of("once: x").expect("rules")).is_none());
    }

    #[test]
    fn a_text_that_is_no_policy_is_refused_with_its_line() {
        let rules = rules_of("# mine\n\n  once, stays:  a b:c \nout: ./x//\n").expect("rules");
        assert_eq!(text_of(&rules), "once stays: a b:c\nout: x/\n");
        for (text, why) in [
            ("", "the policy has no rule"),
            ("# nothing", "the policy has no rule"),
            ("once: a\n/data/", "line 2 of the policy: no colon stands before a pattern"),
            ("never: a", "line 1 of the policy: never: no word of a policy"),
            (": a", "line 1 of the policy: its words do not go together"),
            ("once changes: a", "line 1 of the policy: its words do not go together"),
            ("out once: a", "line 1 of the policy: its words do not go together"),
            ("once: ", "line 1 of the policy: : it names nothing"),
        ] {
            assert_eq!(rules_of(text).expect_err(text).to_string(), why);
        }
        let long: String = (0..3000).map(|nth| format!("once: {nth:04}\n")).collect();
        assert_eq!(rules_of(&long).expect_err("it is long").to_string(), "the policy is too long");
    }

    #[test]
    fn only_sure_folders_are_recognised() {
        let made = |folders: &[&str], files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().expect("a folder");
            folders
                .iter()
                .for_each(|name| std::fs::create_dir(folder.path().join(name)).expect("it is made"));
            files.iter().for_each(|(name, text)| {
                std::fs::write(folder.path().join(name), text).expect("it is written");
            });
            recognised(folder.path())
        };
        let restic = ["data", "index", "keys", "snapshots"];
        assert_eq!(made(&restic, &[("config", "x")]), Some("restic"));
        assert_eq!(made(&restic[1..], &[("config", "x")]), None);
        let borg = |config| made(&["data"], &[("README", "x"), ("config", config)]);
        assert_eq!(borg("[repository]\nversion = 1\n"), Some("borg"));
        assert_eq!(borg("[repositor"), None);
        assert_eq!(made(&[], &[("kopia.repository.f", "{}")]), Some("kopia"));
        assert_eq!(made(&[], &[]), None);
    }
}
