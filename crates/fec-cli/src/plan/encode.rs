//! The plan of `fec encode`.

use super::given::Given;
use super::options::{CONTAINER, NETWORK, PIPE, SEVERAL, SHARDS, STORES, STREAM};
use super::{Refusal, check};
use crate::line;
use crate::say::failure::Result;
use fec_live::address::Address;
use std::path::{Path, PathBuf};

/// The work of an encode.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Encode<'a> {
    /// A live stream of the only input.
    Stream,
    /// Each of the files in this list.
    List(&'a Path),
    /// Each of these files.
    Several(&'a [PathBuf]),
    /// The only input, to stores.
    Stores,
    /// The only input, to shard files or a container.
    One,
}

const REFUSALS: [Refusal<line::Encode>; 8] = [
    Refusal {
        applies: |line| line.live.stream && line.inputs.len() > 1,
        what: "encode --stream: one input is sent",
        help: "pack them: tar c FILE FILE | fec encode --stream",
    },
    Refusal {
        applies: |line| line.live.stream && has_no_key(line) && line.seal.cipher.is_some(),
        what: "encode --stream: --cipher needs a key: give --key-file or --passphrase",
        help: "",
    },
    Refusal {
        applies: |line| {
            line.live.stream && line.outputs.len() > 1 && !line.outputs.iter().all(|path| is_network(path))
        },
        what: "encode --stream: several -o are for udp://, each a way to the receiver",
        help: "",
    },
    Refusal {
        applies: |line| {
            let named = line.live.interface.len();
            line.live.stream && named > 1 && named != line.outputs.len()
        },
        what: "encode --stream: name one --interface, or one for each -o",
        help: "",
    },
    Refusal {
        applies: |line| !line.live.stream && line.outputs.len() > 1,
        what: "encode: several -o are for --stream",
        help: "shards may be moved to other places afterwards",
    },
    Refusal {
        applies: |line| line.inputs.len() > 1 && line.inputs.iter().any(|input| input.as_os_str() == "-"),
        what: "encode: standard input is encoded alone",
        help: "",
    },
    Refusal {
        applies: |line| line.keep && line.secret.sign.is_some(),
        what: "encode --sign: what is kept is not signed, and --keep is given",
        help: "leave --keep out, and replace what is there with -f",
    },
    Refusal {
        applies: |line| !line.stores.to.is_empty() && line.force && line.root_file.is_none(),
        what: "encode --to: -f is for --root-file; objects in stores are not replaced",
        help: "leave -f out",
    },
];

fn has_no_key(line: &line::Encode) -> bool {
    line.live.key_file.is_none() && !line.seal.passphrase
}

/// Tells whether an output is an address, of a kind that fec knows or of another.
pub(crate) fn is_network(output: &Path) -> bool {
    Address::is_one(output) || Address::is_other(output)
}

impl Encode<'_> {
    /// The plan of a command line.
    ///
    /// # Errors
    /// Wrong use: options without effect, and the table of refusals.
    pub(crate) fn of(line: &line::Encode, given: Given) -> Result<Encode<'_>> {
        let plan = match &line.files_from {
            _ if line.live.stream => Encode::Stream,
            Some(list) => Encode::List(list),
            None if line.inputs.len() > 1 => Encode::Several(&line.inputs),
            None if !line.stores.to.is_empty() => Encode::Stores,
            None => Encode::One,
        };
        // A wrong number of inputs or outputs is told before options that do not fit to it.
        check(line, &REFUSALS)?;
        given.only_for(match plan {
            Encode::Stream if line.outputs.iter().any(|path| is_network(path)) => &[NETWORK],
            Encode::Stream => &[STREAM],
            Encode::List(_) | Encode::Several(_) => &[SEVERAL],
            Encode::Stores => &[STORES],
            Encode::One => &[SHARDS, CONTAINER, PIPE],
        })?;
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    fn parsed(words: &str) -> (line::Encode, Given) {
        match crate::plan::parsed("encode", words) {
            (Command::Encode(line), given) => (line, given),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_line_tells_the_work() {
        let files = [PathBuf::from("a"), PathBuf::from("b")];
        let plans = [
            ("", Encode::One),
            ("a -o b.fec --keep", Encode::One),
            ("--stream a -o udp://127.0.0.1:9", Encode::Stream),
            ("a b -o {}.fec", Encode::Several(&files)),
            ("--files-from list -o {}.fec", Encode::List(Path::new("list"))),
            ("a --to one --to two", Encode::Stores),
        ];
        for (words, plan) in plans {
            let (line, given) = parsed(words);
            assert_eq!(Encode::of(&line, given).unwrap_or_else(|e| panic!("{words}: {e}")), plan, "{words}");
        }
    }

    #[test]
    fn every_row_refuses_its_line() {
        let lines = [
            "--stream a b",
            "--stream a --cipher aes-256-gcm",
            "--stream a -o udp://127.0.0.1:9 -o file",
            "--stream a -o udp://127.0.0.1:9 --interface one --interface two",
            "a -o b -o c",
            "a -",
            "a --keep --sign key",
            "a --to one -f",
        ];
        for (nth, words) in lines.iter().enumerate() {
            let (line, given) = parsed(words);
            let first = REFUSALS.iter().position(|row| (row.applies)(&line));
            assert_eq!(first, Some(nth), "{words}");
            assert_eq!(Encode::of(&line, given).expect_err(words).message, REFUSALS[nth].what, "{words}");
        }
    }
}
