//! Words that people type from the habit of other programs, and the words of `fec` for the same.

use crate::run::target::quoted;
use crate::say::failure::Failure;
use crate::system::secrets::{hides, repeatable};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// Commands of other programs, and the command that does it.
const COMMANDS: [(&[&str], &str); 13] = [
    (&["x", "d", "dec", "extract", "restore", "unpack", "decompress", "recover", "get"], "fec decode PATH"),
    (
        &["c", "create", "a", "add", "enc", "compress", "pack", "split"],
        "fec encode FILE, or fec protect FOLDER",
    ),
    (&["l", "ls", "t", "test", "v", "scrub", "status", "inspect", "show"], "fec verify PATH"),
    (&["r", "fix", "heal", "mend", "rebuild"], "fec repair PATH"),
    (&["u", "update", "refresh"], "fec protect --update PATH"),
    (&["seal", "encrypt"], "fec encode FILE --recipient KEY, or --passphrase"),
    (
        &["key", "passwd", "reseal", "recipients"],
        "fec rekey --root ROOT --from PLACE -i KEYFILE -R RECIPIENTS",
    ),
    (&["open", "decrypt"], "fec decode PATH -i KEYFILE, or --passphrase"),
    (&["sign"], "fec encode FILE --sign KEYFILE"),
    (&["rm", "remove", "delete", "del"], "fec forget --root ROOT --from PLACE"),
    (&["send", "stream", "put"], "fec encode --stream -o udp://HOST:PORT, or --to URL"),
    (&["receive", "recv", "listen"], "fec decode udp://ADDRESS:PORT"),
    (&["benchmark", "speed"], "fec bench"),
];

/// Options of other programs without a command, and the command that does it.
const ALONE: [(&[&str], &str); 5] = [
    (&["-d", "-x", "--decode", "--decompress", "--extract", "--restore"], "fec decode PATH"),
    (&["-c", "-e", "-z", "--encode", "--create", "--compress"], "fec encode FILE"),
    (&["-t", "-l", "--test", "--check", "--verify", "--list", "--info"], "fec verify PATH"),
    (&["-r", "--repair", "--fix"], "fec repair PATH"),
    (&["--encrypt"], "fec encode FILE --recipient KEY, or --passphrase"),
];

/// Options of other programs behind a command, the commands that have the option for it, and that option.
const OPTIONS: [(&[&str], &[&str], &str); 9] = [
    (&["--stdout", "-c", "--to-stdout"], &["encode", "decode"], "to standard output: -o -"),
    (
        &["-C", "--directory", "--output-dir", "--dest", "-d"],
        &["encode", "decode"],
        "into a folder: -o FOLDER/",
    ),
    (&["-C", "--directory", "--output-dir", "--dest"], &["repair"], "into a folder: -o FOLDER"),
    (
        &["--out", "--outfile", "--to-file"],
        &["encode", "decode", "repair", "protect", "keygen"],
        "the output: -o PATH",
    ),
    (
        &["--encrypt", "--key", "--password", "-p"],
        &["encode", "protect"],
        "to encrypt: --recipient KEY, or --passphrase",
    ),
    (
        &["--decrypt", "--key", "--password", "-p"],
        &["decode", "verify", "repair"],
        "to open: -i KEYFILE, or --passphrase",
    ),
    (
        &["--overwrite", "-y", "--yes"],
        &["encode", "decode", "repair", "protect"],
        "to replace what is there: -f",
    ),
    (&["--dry", "--check", "--simulate"], &["repair"], "only to say what would be written: -n"),
    (&["--list", "-t", "--test", "-l"], &["decode", "encode"], "to look at it: fec verify PATH"),
];

/// The failure of a line with a word of another program, or with a path in the place of the command. `command` is what
/// the line names so far.
pub(crate) fn meant(error: &clap::Error, command: &str) -> Option<Failure> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => in_place_of_a_command(word(ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => option(word(ContextKind::InvalidArg)?, command),
        _ => None,
    }
}

fn in_place_of_a_command(word: &str) -> Option<Failure> {
    let known = COMMANDS.iter().find(|(words, _)| words.contains(&word));
    if let Some((_, command)) = known.filter(|_| !Path::new(word).exists()) {
        return Some(
            Failure::usage(format!("there is no command {word}")).help(format!("that is:\n  {command}")),
        );
    }
    let path = Path::new(word);
    repeatable(word).filter(|_| path.exists())?;
    let (what, commands) = of_path(path);
    let commands: Vec<String> =
        commands.iter().map(|command| format!("  fec {command} {}", quoted(path))).collect();
    let help = format!("name a command before it:\n{}", commands.join("\n"));
    (!hides(&help)).then(|| Failure::usage(format!("{} is {what}, not a command", quoted(path))).help(help))
}

/// A file or folder by its name, and the commands for it.
fn of_path(path: &Path) -> (&'static str, &'static [&'static str]) {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match (ending, path.is_dir()) {
        ("fecp", false) => ("a sidecar", &["verify", "repair"]),
        ("fec", false) => ("a container", &["verify", "decode"]),
        ("shards", true) => ("a folder of shard files", &["verify", "decode"]),
        (_, true) => ("a folder", &["protect", "verify"]),
        (_, false) => ("a file", &["encode", "protect"]),
    }
}

fn option(word: &str, command: &str) -> Option<Failure> {
    let name = command.split(' ').nth(1).unwrap_or_default();
    let what = match name {
        "" => {
            ALONE.iter().find(|(words, _)| words.contains(&word)).map(|row| format!("that is:\n  {}", row.1))
        }
        _ => {
            let row = OPTIONS.iter().find(|(words, of, _)| words.contains(&word) && of.contains(&name));
            row.map(|row| row.2.to_owned())
        }
    };
    what.map(|what| Failure::usage(format!("{command} has no option {word}")).help(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Cli;
    use clap::CommandFactory;

    /// Every command and option that is advised is one.
    #[test]
    fn what_is_advised_is_there() {
        let fec = Cli::command();
        let has = |command: &str, option: &str| {
            let command = fec.find_subcommand(command).unwrap_or_else(|| panic!("{command}"));
            command.get_arguments().any(|known| {
                known.get_long().is_some_and(|long| option == format!("--{long}"))
                    || known.get_short().is_some_and(|short| option == format!("-{short}"))
            })
        };
        let options = |text: &'static str| {
            text.split([' ', ',']).filter(|word| word.len() > 1 && word.starts_with('-'))
        };
        for (_, advice) in COMMANDS.iter().chain(&ALONE) {
            let command = advice.split([' ', ',']).nth(1).unwrap_or_default();
            assert!(options(advice).all(|option| has(command, option)), "{advice}");
            assert!(fec.find_subcommand(command).is_some(), "{advice}");
        }
        for (words, of, advice) in OPTIONS {
            for command in of.iter().filter(|_| !advice.contains(": fec ")) {
                assert!(options(advice).all(|option| has(command, option)), "{command}: {advice}");
                assert!(words.iter().all(|word| !has(command, word)), "{command} {words:?}");
            }
        }
        for (words, _) in COMMANDS {
            assert!(words.iter().all(|word| fec.find_subcommand(word).is_none()), "{words:?}");
        }
    }
}
