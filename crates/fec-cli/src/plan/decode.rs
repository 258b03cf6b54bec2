//! The plan of `fec decode`.

use super::encode::Kind;
use super::given::Given;
use super::options::{CONTAINER, NETWORK, PIPE, SHARDS, STORES, STREAM};
use super::{Table, check, refusals};
use crate::line;
use crate::say::failure::{Failure, Result, misuse};
use fec_base::names::{is_plain, of_file, show_bytes, show_input};
use fec_core::digest::Digest;
use fec_live::address::Address;
use fecfile::PayloadRange;
use fecfile::forms::Beginning;
use std::path::{Path, PathBuf};

/// The source of the payload, as far as the command line tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decode<'a> {
    /// Objects in stores.
    Stores,
    /// A live stream that comes over the network to this address.
    Network(&'a Path),
    /// A live stream in a file or pipe, because an option says so.
    Stream(&'a Path),
    /// Whatever the inputs hold: [`Asked::way`] decides by how they begin.
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

const REFUSALS: Table<line::Decode> = refusals! {
    |line| line.early && !line.trusted.signer.is_empty() =>
        "decode --signer: with --early the payload would go out before the signature came",
        "leave --signer out";
    |line| is_told_stream(line) && line.inputs.len() != 1 => "decode: a stream stands alone",
        "name one file or one address";
    |line| line.live.max_age.is_some() && line.live.key_file.is_none() && !line.open.passphrase =>
        "decode: --max-age is for sealed streams: give a --key-file", "";
    |line| line.output.as_deref().is_some_and(Address::is_one) =>
        "write {path}: a payload goes to a file or a pipe, and not to an address",
        "send it on through a pipe:\n  fec decode PATH -o - | ...";
};

/// Tells whether standard output gets the payload. `kind` tells the kind of an input: a pipe has no name that the
/// output could have.
pub(crate) fn stdout_is_data(line: &line::Decode, kind: impl Fn(&Path) -> Kind) -> bool {
    let by_default =
        || line.stores.from.is_empty() && line.inputs.iter().any(|path| kind(path) == Kind::Pipe);
    line.output.as_ref().map_or_else(by_default, |path| path.as_os_str() == "-")
}

/// Refuses the input of a live stream, by whether it is a folder.
pub(crate) const STREAM_INPUT: Table<bool> = refusals! {
    |is_folder| *is_folder => "read {path}: it is a folder", "name a file that fec encode --stream wrote";
};

/// The file that has the recorded name.
///
/// # Errors
/// Wrong use: no name is recorded that a file here can have.
pub(crate) fn recorded(name: Option<&[u8]>) -> Result<PathBuf> {
    if let Some(file) = name.filter(|name| is_plain(name)).and_then(|name| of_file(name.to_vec())) {
        return Ok(file.into());
    }
    let why = match name {
        Some(name) if is_plain(name) => {
            format!("decode: no file here can have the recorded name \"{}\"", show_bytes(name))
        }
        Some(name) => format!("decode: the recorded name \"{}\" is not a plain one", show_bytes(name)),
        None => "decode: no name is recorded".to_owned(),
    };
    Err(Failure::usage(why).help("name the output with -o"))
}

/// The name of an input without its `.fec`.
///
/// # Errors
/// Wrong use: it has no such ending.
pub(crate) fn stem(input: &Path) -> Result<PathBuf> {
    // A path that ends in a slash has no ending, though its last component may have one.
    let ends = input.as_os_str().as_encoded_bytes().ends_with(b".fec");
    let stem = input.file_stem().filter(|_| ends && input.extension().is_some());
    stem.map(|stem| input.with_file_name(stem)).ok_or_else(|| {
        misuse("decode", input, "the output has no name, since this one does not end in .fec")
            .help("name it with -o")
    })
}

/// The file with the last component of a name, in a folder.
///
/// # Errors
/// Wrong use: the name has none.
pub(crate) fn in_folder(folder: &Path, name: &Path) -> Result<PathBuf> {
    let last = name.file_name().ok_or_else(|| Failure::usage("decode: no name is recorded"))?;
    Ok(folder.join(last))
}

/// Tells whether the line says that a live stream comes.
fn is_told_stream(line: &line::Decode) -> bool {
    line.live.is_told() || line.inputs.iter().any(|input| Address::is_one(input))
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
        check(line, REFUSALS, |_| line.output.as_deref().map(show_input).unwrap_or_default())?;
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

/// The wishes for the payload, but for where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) root: Option<Digest>,
    pub(crate) range: Option<PayloadRange>,
    pub(crate) partial: bool,
    pub(crate) deep: bool,
    early: bool,
    is_signed: bool,
    has_key: bool,
    has_passphrase: bool,
}

impl Asked {
    pub(crate) fn of(line: &line::Decode) -> Asked {
        let line::Decode { root, range, partial, deep, early, .. } = *line;
        let is_signed = !line.trusted.signer.is_empty();
        let (has_key, has_passphrase) = (line.open.is_given(), line.open.passphrase);
        Asked { root, range, partial, deep, early, is_signed, has_key, has_passphrase }
    }

    /// The way to the payload of an input that begins so. A live stream has no proofs, and its key is no identity:
    /// options that ask for either make fec look for an encoding.
    pub(crate) fn way(self, beginning: Beginning, is_pipe: bool) -> Way {
        let is_stream = match beginning {
            Beginning::Stream => !self.has_key,
            Beginning::Sealed => self.has_passphrase,
            Beginning::Other => false,
        };
        let wants_part = self.partial || self.early || self.range.is_some();
        match self.range {
            _ if is_stream && !wants_part && self.root.is_none() && !self.is_signed => Way::Stream,
            Some(range) => Way::Range(range),
            None if is_pipe && (self.early || !self.needs_all()) => Way::AsItComes,
            None => Way::Whole,
        }
    }

    /// Tells whether a pipe has to be stored first, and read like a file: the path to a root may stand anywhere, a
    /// signature stands at the end, and a partial result takes all that is left.
    fn needs_all(self) -> bool {
        self.partial || self.deep || self.root.is_some() || self.is_signed
    }
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
    fn the_line_and_the_kind_of_input_tell_whether_standard_output_gets_the_payload() {
        let stored = format!("--from one --root {ROOT}");
        let stored_to_stdout = format!("{stored} -o -");
        for (words, of_file, of_pipe) in [
            ("a", false, true),
            ("a -o -", true, true),
            ("a -o b", false, false),
            (&stored, false, false),
            (&stored_to_stdout, true, true),
        ] {
            let (line, _) = parsed(words);
            let is_data = [Kind::File, Kind::Pipe].map(|kind| stdout_is_data(&line, |_| kind));
            assert_eq!(is_data, [of_file, of_pipe], "{words}");
        }
    }

    #[test]
    fn every_row_refuses_its_line_and_no_other_row_does() {
        let lines = [
            format!("--early --root {ROOT} --signer {SIGNER} -"),
            "--stream a b".to_owned(),
            "--max-age 5 udp://127.0.0.1:9".to_owned(),
            "a -o udp://127.0.0.1:9".to_owned(),
        ];
        for (nth, words) in lines.iter().enumerate() {
            let (line, given) = parsed(words);
            let applies: Vec<bool> = REFUSALS.iter().map(|row| (row.applies)(&line)).collect();
            assert_eq!(applies.iter().position(|applies| *applies), Some(nth), "{words}: {applies:?}");
            let refused = Decode::of(&line, given).expect_err(words);
            let output = line.output.as_deref().map(show_input).unwrap_or_default();
            assert_eq!(refused.message, REFUSALS[nth].what.replace("{path}", &output), "{words}");
        }
    }

    #[test]
    fn outputs_have_plain_names() {
        assert_eq!(recorded(Some(b"a b")).expect("a name"), Path::new("a b"));
        assert_eq!(stem(Path::new("d/a.fec")).expect("a name"), Path::new("d/a"));
        assert_eq!(in_folder(Path::new("d"), Path::new("e/a")).expect("a name"), Path::new("d/a"));
        for name in [None, Some(&b"-x"[..]), Some(b"a\nb")] {
            assert!(recorded(name).is_err(), "{name:?}");
        }
        for input in ["a", ".fec", "d/.fec"] {
            assert!(stem(Path::new(input)).is_err(), "{input}");
        }
        assert!(in_folder(Path::new("d"), Path::new("..")).is_err());
        crate::plan::assert_rows(STREAM_INPUT, &[true]);
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
            let asked = Asked::of(&parsed(words).0);
            let shortened = |way: Way| match way {
                Way::Range(_) => Way::Range(PayloadRange::ALL),
                way => way,
            };
            assert_eq!(shortened(asked.way(beginning, false)), of_file, "{words} {beginning:?}, a file");
            assert_eq!(shortened(asked.way(beginning, true)), of_pipe, "{words} {beginning:?}, a pipe");
        }
    }
}
