//! The plan of `fec decode`.

use super::given::Given;
use super::options::{CONTAINER, NETWORK, PIPE, SHARDS, STORES, STREAM};
use super::{Refusal, check};
use crate::line;
use crate::say::failure::Result;
use fec_live::address::Address;
use fecfile::PayloadRange;
use fecfile::forms::Beginning;
use std::path::Path;

/// The source of the payload, as far as the command line tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decode<'a> {
    /// Objects in stores.
    Stores,
    /// A live stream that comes over the network to this address.
    Network(&'a Path),
    /// A live stream in a file or pipe, because an option says so.
    Stream(&'a Path),
    /// Whatever the inputs hold: [`way`] decides by how they begin.
    Inputs,
}

/// The way to the payload of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The input is a live stream.
    Stream,
    /// A range of the payload of an encoding.
    Range(PayloadRange),
    /// The whole payload of an encoding that can be read at any position.
    Whole,
    /// A container, group by group as it comes out of a pipe.
    AsItComes,
}

const REFUSALS: [Refusal<line::Decode>; 3] = [
    Refusal {
        applies: |line| line.early && !line.trusted.signer.is_empty(),
        what: "decode --signer: with --early the payload would go out before the signature came",
        help: "leave --signer out",
    },
    Refusal {
        applies: |line| is_told_stream(line) && line.inputs.len() != 1,
        what: "decode: a stream stands alone",
        help: "name one file or one address",
    },
    Refusal {
        applies: |line| line.live.max_age.is_some() && line.live.key_file.is_none() && !line.open.passphrase,
        what: "decode: --max-age is for sealed streams: give a --key-file",
        help: "",
    },
];

/// Tells whether the line says that a live stream comes.
fn is_told_stream(line: &line::Decode) -> bool {
    line.live.is_told() || line.inputs.iter().any(|input| Address::is_one(input))
}

/// Tells whether an option asks for proofs, which live streams do not have: a root, a signer, or proved parts.
fn wants_proofs(line: &line::Decode) -> bool {
    line.root.is_some()
        || !line.trusted.signer.is_empty()
        || line.partial
        || line.early
        || line.range.is_some()
}

impl Decode<'_> {
    /// The plan of a command line.
    ///
    /// # Errors
    /// Wrong use: options without effect, and the table of refusals.
    pub(crate) fn of(line: &line::Decode, given: Given) -> Result<Decode<'_>> {
        let is_told = is_told_stream(line);
        given.only_for(match (line.stores.from.is_empty(), is_told) {
            (false, _) => &[STORES],
            (true, true) => &[STREAM, NETWORK],
            (true, false) => &[SHARDS, CONTAINER, PIPE, STREAM],
        })?;
        check(line, &REFUSALS)?;
        if !line.stores.from.is_empty() {
            return Ok(Decode::Stores);
        }
        let path = line.inputs.first().filter(|_| is_told);
        let plan = path.map_or(Decode::Inputs, |path| match Address::is_one(path) {
            true => Decode::Network(path),
            false => Decode::Stream(path),
        });
        match plan {
            Decode::Network(_) => given.check(NETWORK)?,
            Decode::Stream(_) => given.check(STREAM)?,
            Decode::Stores | Decode::Inputs => {}
        }
        Ok(plan)
    }
}

/// The way to the payload of an input that begins so. A live stream has no proofs, and its key is no identity: options
/// that ask for either make fec look for an encoding.
pub(crate) fn way(line: &line::Decode, beginning: Beginning, is_pipe: bool) -> Way {
    let is_stream = match beginning {
        Beginning::Stream => !line.open.is_given(),
        Beginning::Sealed => line.open.passphrase,
        Beginning::Other => false,
    };
    match line.range {
        _ if is_stream && !wants_proofs(line) => Way::Stream,
        Some(range) => Way::Range(range),
        None if is_pipe && (line.early || !needs_all(line)) => Way::AsItComes,
        None => Way::Whole,
    }
}

/// Tells whether a pipe has to be stored first, and read like a file: the path to a root may stand anywhere, a
/// signature stands at the end, and a partial result takes all that is left.
fn needs_all(line: &line::Decode) -> bool {
    line.partial || line.deep || line.root.is_some() || !line.trusted.signer.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    fn parsed(words: &str) -> (line::Decode, Given) {
        match crate::plan::parsed("decode", words) {
            (Command::Decode(line), given) => (line, given),
            (other, _) => panic!("{other:?}"),
        }
    }

    const ROOT: &str = "00000000000000000000000000000000000000000000000000000000000000aa";

    const SIGNER: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

    #[test]
    fn the_line_tells_the_source() {
        let stream = Path::new("s");
        let plans = [
            ("a.fec".to_owned(), Decode::Inputs),
            (String::new(), Decode::Inputs),
            ("a b -o c".to_owned(), Decode::Inputs),
            (format!("--from one --root {ROOT}"), Decode::Stores),
            ("--stream s".to_owned(), Decode::Stream(stream)),
            ("udp://127.0.0.1:9".to_owned(), Decode::Network(Path::new("udp://127.0.0.1:9"))),
            ("--follow udp://127.0.0.1:9".to_owned(), Decode::Network(Path::new("udp://127.0.0.1:9"))),
        ];
        for (words, plan) in plans {
            let (line, given) = parsed(&words);
            assert_eq!(Decode::of(&line, given).unwrap_or_else(|e| panic!("{words}: {e}")), plan, "{words}");
        }
    }

    #[test]
    fn every_row_refuses_its_line_and_no_other_row_does() {
        let lines = [
            format!("--early --root {ROOT} --signer {SIGNER} -"),
            "--stream a b".to_owned(),
            "--max-age 5 udp://127.0.0.1:9".to_owned(),
        ];
        for (nth, words) in lines.iter().enumerate() {
            let (line, given) = parsed(words);
            let applies: Vec<bool> = REFUSALS.iter().map(|row| (row.applies)(&line)).collect();
            assert_eq!(applies.iter().position(|applies| *applies), Some(nth), "{words}: {applies:?}");
            let refused = Decode::of(&line, given).expect_err(words);
            assert_eq!(refused.message, REFUSALS[nth].what, "{words}");
        }
    }

    #[test]
    fn the_beginning_and_the_options_tell_the_way() {
        use Beginning::{Other, Sealed, Stream};
        let rooted = format!("--root {ROOT}");
        let early = format!("--root {ROOT} --early");
        let signed = format!("--signer {SIGNER}");
        // Options, beginning, the way of a file, the way of a pipe.
        let ways = [
            ("", Other, Way::Whole, Way::AsItComes),
            ("", Stream, Way::Stream, Way::Stream),
            ("", Sealed, Way::Whole, Way::AsItComes),
            ("--passphrase", Sealed, Way::Stream, Way::Stream),
            ("--passphrase", Stream, Way::Whole, Way::AsItComes),
            ("--passphrase", Other, Way::Whole, Way::AsItComes),
            ("--partial", Stream, Way::Whole, Way::Whole),
            ("--partial", Other, Way::Whole, Way::Whole),
            ("--deep", Other, Way::Whole, Way::Whole),
            ("--deep", Stream, Way::Stream, Way::Stream),
            (signed.as_str(), Stream, Way::Whole, Way::Whole),
            (rooted.as_str(), Stream, Way::Whole, Way::Whole),
            (early.as_str(), Other, Way::Whole, Way::AsItComes),
            (early.as_str(), Stream, Way::Whole, Way::AsItComes),
            ("--range 1..2", Stream, Way::Range(PayloadRange::ALL), Way::Range(PayloadRange::ALL)),
            (
                "--range 1..2 --passphrase",
                Sealed,
                Way::Range(PayloadRange::ALL),
                Way::Range(PayloadRange::ALL),
            ),
        ];
        for (words, beginning, of_file, of_pipe) in ways {
            let (line, _) = parsed(words);
            let shortened = |way: Way| match way {
                Way::Range(_) => Way::Range(PayloadRange::ALL),
                way => way,
            };
            assert_eq!(shortened(way(&line, beginning, false)), of_file, "{words} {beginning:?}, a file");
            assert_eq!(shortened(way(&line, beginning, true)), of_pipe, "{words} {beginning:?}, a pipe");
        }
    }
}
