//! The help of `-h`: a screen for each command, with the options that most people need. `--help` has all,
//! and the tests compare both.

use super::examples;

/// The help of a command on one screen.
struct Short {
    /// The command, as it is typed.
    command: &'static str,
    about: &'static str,
    usage: &'static str,
    examples: &'static str,
    options: &'static str,
}

/// The help of `-h` for a command, as it is typed.
pub(crate) fn help(command: &str) -> Option<String> {
    if command == "fec" {
        return Some(FEC.to_owned());
    }
    let Short { about, usage, examples, options, .. } = ALL.iter().find(|short| short.command == command)?;
    Some(format!(
        "{about}\n\nUsage: {command} {usage}\n\n{examples}\n\nOptions:\n{options}\n\nAll options, with all that they do: {command} --help"
    ))
}

const FEC: &str = "\
Protects files and pipes against loss, corruption and tampering.

Usage: fec COMMAND [OPTIONS] [PATH]...

  encode       a file or a pipe: make shard files or a container, print the root
  protect      files and folders that stay where they are: a sidecar beside them
  verify       what is intact, damaged or missing? (also: check, info)
  repair       mend in place what a sidecar protects, or make shards anew
  decode       restore the payload from shard files or a container
  list, forget, rekey            what stores hold; remove it; seal it for others
  manifest, attest               digests of a sidecar; statements about roots
  keygen       make a key, to seal, to sign, or for a live stream
  bench        measure this machine
  completions, man               for a shell; the manual page

Options:
  -q, --quiet          print errors only; verify tells of damage in one line
  -v, --verbose        tell what is being done, and list all that was found
  -j, --threads <N>    compute on this many threads
      --json           print one JSON object in place of text

For ten options of a command: fec COMMAND -h; for all: fec COMMAND --help";

const ALL: &[Short] = &[
    Short {
        command: "fec encode",
        about: "Protect a file or a pipe: write shard files or a container, print the root.",
        usage: "[OPTIONS] [FILE]...",
        examples: "\
Examples:
  fec encode FILE                       100 shard files in FILE.shards/
  fec encode FILE -o FILE.fec -r 17%    a container, a fifth larger than FILE
  tar c photos | fec encode > photos.fec            the same through a pipe",
        options: "  -o, --output <PATH>       PATH/ gets shard files, PATH a container, - stdout
  -r, --redundancy <P%>     recovery data, as 100 shards: 17% is 85 + 15
  -k, --data <K>            any K shards restore the payload [default: 33]
  -m, --recovery <M>        M shards may be lost [default: 67]
      --root-file <FILE>    also write the root to this file
      --keep                keep what is there and intact, make the rest anew
  -f, --force               replace what exists
      --recipient <KEY>     encrypt for this key of age; or --passphrase
      --sign <KEYFILE>      sign the root
      --to <URL>            send the shards to stores",
    },
    Short {
        command: "fec decode",
        about: "Restore the payload from shard files, a container or a live stream.",
        usage: "[OPTIONS] [PATH]...",
        examples: examples::DECODE,
        options: "  -o, --output <PATH>       FOLDER/ takes the recorded name, - is stdout
      --root <HEX|@FILE>    accept this root only
      --signer <PUB>        accept only what is signed with this key
  -i, --identity <FILE>     open what is sealed, with this key; or --passphrase
      --range <A..B>        only these bytes of the payload
      --partial             write what is proved, and zeros for what is lost
      --deep                also check that every set is one codeword
  -f, --force               replace an existing output
      --from <URL>          find the shards in stores
      --stream              it is a live stream, whatever it begins with",
    },
    Short {
        command: "fec verify",
        about: "Check shard files, containers, or a sidecar and what it protects.",
        usage: "[OPTIONS] [PATH]...",
        examples: "\
Examples:
  fec verify FILE.shards --root HEX     is all of it there, and the original?
  fec verify backups *.fecp             a line for each encoding and sidecar
  fec verify photos.fecp photos/2024    a part of what a sidecar protects",
        options: "      --root <HEX|@FILE>    is it what has this root?
      --signer <PUB>        is it signed with this key?
      --need <N>            are so many shards of every set there?
      --deep                also check that every set is one codeword
      --quick               of a sidecar: only look at sizes and times
      --ignore <KIND>       of a sidecar: leave unsaid edited,moved,new
      --state <FILE>        of a sidecar: begin with what was checked first
      --base <FOLDER>       of a sidecar: where its files are
      --format markdown     a table for the summary of a job",
    },
    Short {
        command: "fec repair",
        about: "Mend what a sidecar protects; make shard files or a container anew.",
        usage: "[OPTIONS] <PATH>...",
        examples: "\
Examples:
  fec repair FILE.shards --root HEX     make lost and damaged shard files anew
  fec repair photos.fecp -n             what would be mended in photos?
  fec repair photos.fecp photos/2024    a part of photos, and nothing else",
        options: "  -n, --dry-run             only say what would be written
  -o, --output <PATH>       write there, and leave what is here as it is
      --root <HEX|@FILE>    only what has this root
      --signer <PUB>        only what is signed with this key
      --partial             of a sidecar: mend what can be, if not all can
      --revert              of a sidecar: also make edited files what they were
      --undo <FILE>         of a sidecar: keep there what is written over
      --base <FOLDER>       of a sidecar: where its files are
  -f, --force               replace what is in the way
      --from <URL>          in stores",
    },
    Short {
        command: "fec protect",
        about: "Protect files and folders where they are, by a sidecar beside them.",
        usage: "[OPTIONS] <PATH>...",
        examples: examples::PROTECT,
        options: "  -u, --update              bring the sidecar up to date with the files
  -r, --redundancy <P%>     recovery data in per cent of the files
  -o, --output <FILE>       the sidecar [default: PATH.fecp]
      --exclude <PATTERN>   leave out what matches
      --list                list the generations of a sidecar
      --base <FOLDER>       the folder that names are relative to
  -f, --force               replace an old sidecar
      --recipient <KEY>     encrypt the sidecar for this key; or --passphrase
      --sign <KEYFILE>      sign its root",
    },
    Short {
        command: "fec manifest",
        about: "List the digests that a sidecar keeps, as b3sum and sha256sum check them.",
        usage: "[OPTIONS] <FILE>",
        examples: examples::MANIFEST,
        options: "      --sha256              those of SHA-256
      --b3                  those of BLAKE3
      --root <HEX|@FILE>    of the sidecar with this root only
  -i, --identity <FILE>     open a sealed sidecar with this key",
    },
    Short {
        command: "fec list",
        about: "List the encodings that stores hold: what is there, and what is missing.",
        usage: "[OPTIONS] [PLACE]...",
        examples: examples::LIST,
        options: "      --from <URL>          a place, as the other commands name it
      --timeout <TIME>      give a request up when nothing moves for so long
      --retries <N>         repeat a request so often
      --json                print one JSON object in place of text",
    },
    Short {
        command: "fec forget",
        about: "Remove an encoding from stores.",
        usage: "[OPTIONS] --root <HEX|@FILE> --from <URL>",
        examples: examples::FORGET,
        options: "      --root <HEX|@FILE>    the encoding
      --from <URL>          the places, each with its own --from; or @FILE
  -y, --yes                 do not ask
      --partial             although a place gives no list, or the manifest of
                            another encoding cannot be read
      --timeout <TIME>      give a request up when nothing moves for so long
      --retries <N>         repeat a request so often",
    },
    Short {
        command: "fec rekey",
        about: "Give a sealed payload in stores to other recipients.",
        usage: "[OPTIONS] --root <HEX|@FILE> --from <URL>",
        examples: examples::REKEY,
        options: "      --root <HEX|@FILE>    the payload; it gets a new root
      --from <URL>          the places, each with its own --from; or @FILE
      --recipient <KEY>     who may open it from now on
  -R, --recipients-file <FILE>
                            the same for all keys in this file
  -i, --identity <FILE>     the key that opens it now
      --passphrase          the same: a passphrase
      --root-file <FILE>    write the new root there, too
  -f, --force               replace the file of --root-file",
    },
    Short {
        command: "fec attest",
        about: "Make a statement about roots for others to sign, or check what one speaks of.",
        usage: "[OPTIONS] <FILE>",
        examples: examples::ATTEST,
        options: "      --check <STATEMENT>   does this statement speak of FILE, and nothing else?",
    },
    Short {
        command: "fec keygen",
        about: "Make a new key.",
        usage: "[OPTIONS] --output <FILE>",
        examples: examples::KEYGEN,
        options: "  -o, --output <FILE>       the key file, which must not exist
      --sign                a pair of keys that sign: FILE, and FILE.pub
      --stream              a key of live streams
      --pq                  a key that stands up to quantum computers",
    },
    Short {
        command: "fec bench",
        about: "Measure this machine: what it can do, and what holds it back.",
        usage: "[OPTIONS] [PRESET]",
        examples: "\
Examples:
  fec bench --quick                     ten seconds; its first sentence sums up
  fec bench files                       with reading and writing
  fec bench link -h                     the link to another machine",
        options: "  PRESET                    reference, kernels, batch, sets, files, roof, model,
                            tuning, window, stream, seal [default: reference]
      --quick               ten seconds in place of thirty
      --format <FORMAT>     table, json, csv or markdown
      --save <FILE>         keep the result
      --compare <FILE>      compare with a result that was kept
      --gate <P%>           exit code 1 if it became slower by so much
      --gates               check what this build computes; measure nothing",
    },
    Short {
        command: "fec bench link",
        about: "Test the link to another machine: what arrives, how late, what is mended.",
        usage: "[OPTIONS] [HOST]",
        examples: examples::LINK,
        options: "  -l, --listen              wait for the other machine
  -t, --time <SECONDS>      how long to send
      --mbps <N>            how fast
      --loss <P%>           lose some packets on purpose
      --no-recovery         send payloads alone",
    },
    Short {
        command: "fec completions",
        about: "Print a completion script for a shell.",
        usage: "<SHELL>",
        examples: examples::COMPLETIONS,
        options: "  SHELL                     bash, elvish, fish, powershell or zsh",
    },
    Short {
        command: "fec man",
        about: "Print the manual page of fec, or of one of its commands.",
        usage: "[COMMAND]",
        examples: examples::MAN,
        options: "  COMMAND                   encode, decode, verify, repair, bench-link ...",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Cli;
    use clap::CommandFactory;

    /// The command of a name like `fec bench link`.
    fn command(name: &str) -> clap::Command {
        let mut fec = Cli::command();
        fec.build();
        let words = name.split(' ').skip(1);
        words.fold(fec, |command, word| {
            command.find_subcommand(word).unwrap_or_else(|| panic!("{name}")).clone()
        })
    }

    /// The option that a line of a screen begins with: its letter and its name.
    fn option(line: &str) -> Option<(Option<char>, &str)> {
        let line = line.strip_prefix("  ")?;
        let (short, line) = match line.strip_prefix('-') {
            Some(rest) if !rest.starts_with('-') => (rest.chars().next(), rest.get(3..)?),
            _ => (None, line.trim_start()),
        };
        Some((short, line.strip_prefix("--")?.split(' ').next()?))
    }

    #[test]
    fn every_command_has_a_screen_and_every_option_of_it_is_one() {
        let fec = command("fec");
        let long_less = ["fec completions", "fec man"];
        let names = fec.get_subcommands().map(|command| format!("fec {}", command.get_name()));
        for name in names.filter(|name| name != "fec help").chain(["fec".into(), "fec bench link".into()]) {
            let screen = help(&name).unwrap_or_else(|| panic!("{name}"));
            assert!(screen.lines().count() <= 22, "{name}: {} lines", screen.lines().count());
            for line in screen.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
            let (command, mut count) = (command(&name), 0);
            for (short, long) in screen.lines().skip_while(|line| *line != "Options:").filter_map(option) {
                let known = command.get_arguments().find(|known| known.get_long() == Some(long));
                let known = known.unwrap_or_else(|| panic!("{name} has no --{long}"));
                assert!(short.is_none_or(|short| known.get_short() == Some(short)), "{name} --{long}");
                assert!(short.is_some() == known.get_short().is_some(), "{name} --{long} has a letter");
                count += 1;
            }
            assert!((1..=10).contains(&count) || long_less.contains(&&*name), "{name}: {count}");
            assert!(screen.contains("--help"), "{name}");
        }
    }
}
