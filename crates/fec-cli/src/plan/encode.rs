//! The plan of `fec encode`.

use super::given::Given;
use super::options::{CONTAINER, NETWORK, PIPE, SEVERAL, SHARDS, STORES, STREAM};
use super::{Table, check, refusals};
use crate::line;
use crate::line::stream::Rate;
use crate::say::failure::{Failure, Result};
use fec_base::names::show_input;
use fec_core::block::Code;
use fec_live::address::Address;
use std::path::{Component, Path, PathBuf};

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

const REFUSALS: Table<line::Encode> = refusals! {
    |line| line.live.stream && line.inputs.len() > 1 => "encode --stream: one input is sent",
        "pack them: tar c FILE FILE | fec encode --stream";
    |line| line.live.stream && has_no_key(line) && line.seal.cipher.is_some() =>
        "encode --stream: --cipher needs a key: give --key-file or --passphrase", "";
    |line| line.live.stream && line.outputs.len() > 1 && !line.outputs.iter().all(|path| is_network(path)) =>
        "encode --stream: several -o are for udp://, each a way to the receiver",
        "write -o udp://HOST:PORT for each";
    |line| line.live.stream && line.live.interface.len() > 1 && line.live.interface.len() != line.outputs.len() =>
        "encode --stream: name one --interface, or one for each -o", "";
    |line| is_auto(line) && !is_to_receivers(line) =>
        "encode --stream: --rate auto is for receivers that can report, each at udp://HOST:PORT, and no group of them",
        "leave --rate out, or write it as repair packets for source packets: --rate 1/6";
    |line| is_auto(line) && !line.live.profile.slides() =>
        "encode --stream: --rate auto is for the profiles bounded and classic, whose window slides", "leave --profile out";
    |line| matches!(line.live.rate, Some(Rate::File(_))) && !line.live.profile.slides() =>
        "encode --stream: --rate @FILE is for the profiles bounded and classic, whose window slides", "leave --profile out";
    |line| !line.live.stream && line.outputs.iter().any(|path| Address::is_one(path)) =>
        "write {path}: an address is for a live stream, and --stream is missing",
        "add --stream, or name a file, a folder or - with -o";
    |line| !line.live.stream && line.outputs.len() > 1 => "encode: several -o are for --stream",
        "shards may be moved to other places afterwards";
    |line| line.inputs.len() > 1 && line.inputs.iter().any(|input| input.as_os_str() == "-") =>
        "encode: standard input is encoded alone", "";
    |line| line.keep && line.secret.sign.is_some() =>
        "encode --sign: what is kept is not signed, and --keep is given",
        "leave --keep out, and replace what is there with -f";
    |line| line.keep && line.outlines => "encode --outlines: what is kept gets no outlines, and --keep is given",
        "leave --keep out, and replace what is there with -f";
    |line| line.outlines && line.hash == line::Hash::Sha256 =>
        "encode --outlines: BLAKE3 hashes a shard as a tree, whose leaves an outline lists; SHA-256 has none",
        "leave --outlines or --hash out";
    |line| !line.stores.to.is_empty() && line.force && line.root_file.is_none() =>
        "encode --to: -f is for --root-file; objects in stores are not replaced", "leave -f out";
    |line| (line.files_from.is_some() || line.inputs.len() > 1) && line.outputs.first().is_some_and(|path| is_for_all(path)) =>
        "write {path}: several files need an output each",
        "write {} for the path of each, or {/} for its last component:\n  -o 'safe/{/}.fec'\n  -o '{}.shards/'";
};

/// An input, as the system shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    /// A pipe, or anything else whose length is not known.
    Pipe,
    Folder,
}

/// The options that limit what an input may become, and the kinds of input and output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// The input is one of several.
    pub(crate) is_listed: bool,
    pub(crate) keep: bool,
    pub(crate) has_group_size: bool,
    pub(crate) has_outlines: bool,
    pub(crate) input: Kind,
    /// The output is a folder of shard files.
    pub(crate) to_folder: bool,
    /// The output is a pipe, a device or standard output.
    pub(crate) to_pipe: bool,
}

/// `{folder}` is the input, and `{archive}` a container of its archive, as a shell reads them; `{target}` is the
/// output.
pub(crate) const FOUND: Table<Found> = refusals! {
    |found| found.input == Kind::Folder => "read {path}: it is a folder",
        "pack it first:\n  tar c {folder} | fec encode - -o {archive}";
    |found| found.is_listed && found.input == Kind::Pipe => "read {path}: it is not a regular file",
        "encode it by itself";
    |found| found.is_listed && found.to_pipe => "write {target}: several files need an output each",
        "name files or folders with -o";
    |found| found.has_group_size && found.to_folder =>
        "--group-size is for containers: shard files are one group", "";
    |found| found.has_outlines && !found.to_folder =>
        "--outlines is for shard files: a container has none", "";
    |found| found.input == Kind::Pipe && found.to_folder =>
        "read {path}: its length is not known, shard files need it", "make a container: -o NAME.fec or -o -";
    |found| found.keep && found.input == Kind::Pipe =>
        "keep {path}: it cannot be read twice, and may have to be",
        "save it to a file first, or leave --keep out";
    |found| found.keep && found.to_pipe => "keep {target}: it cannot be looked at",
        "name a file or a folder with -o, or leave --keep out";
};

fn is_auto(line: &line::Encode) -> bool {
    line.live.stream && matches!(line.live.rate, Some(Rate::Auto(_)))
}

/// Tells whether all outputs are places on the network, and none of them a group of receivers.
fn is_to_receivers(line: &line::Encode) -> bool {
    let is_one = |path: &PathBuf| Address::parse(path).is_ok_and(|address| !address.is_group());
    !line.outputs.is_empty() && line.outputs.iter().all(is_one)
}

/// The output of a live stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamOutput {
    /// Its name reads as an address without `udp://`.
    pub(crate) is_bare: bool,
    /// Something has this name.
    pub(crate) is_there: bool,
}

/// `{file}` is the output as a file of this folder, and `{address}` as an address, both for a shell. Shards and
/// containers never go to an address, and a time or a drive in their name is ordinary: they are not asked.
pub(crate) const STREAM_OUTPUT: Table<StreamOutput> = refusals! {
    |of| of.is_bare && !of.is_there => "write {path}: it is a file's name, and reads as an address",
        "to send the stream there:\n  -o {address}\nfor a file of this name:\n  -o {file}";
};

/// Refuses the input of a live stream, by whether it is a folder: `{folder}` for a shell.
pub(crate) const STREAM_INPUT: Table<bool> = refusals! {
    |is_folder| *is_folder => "read {path}: it is a folder",
        "pack it first:\n  tar c {folder} | fec encode --stream -";
};

/// An output that would be written over something, or beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clash {
    No,
    /// An output is an input, or holds one.
    WithInputs,
    /// Two of several inputs have this output.
    WithOutput,
    /// The path of the input leads out of the folder that the output would be in.
    Above,
    /// The file of the root is that of the signature.
    RootAndSignature,
    /// The file of the root or of the signature is the input or the output.
    Beside,
}

/// `{option}` is the option that names the output.
pub(crate) const CLASHES: Table<Clash> = refusals! {
    |clash| *clash == Clash::WithInputs => "write {path}: it is one of the inputs, or holds one",
        "choose another output with -o";
    |clash| *clash == Clash::WithOutput => "write {path}: another of the files has this output",
        "write {} for the whole path of each with -o";
    |clash| *clash == Clash::Above =>
        "encode {path}: with .. in its path, its output would leave the folder of -o",
        "name it without .. , or write {/} for its last component";
    |clash| *clash == Clash::RootAndSignature =>
        "write {path}: it is to hold both the root and the signature", "";
    |clash| *clash == Clash::Beside => "write {path}: it is the input or the output",
        "choose another {option}";
};

/// The shards of a set.
///
/// # Errors
/// Wrong use: there is no such code.
pub(crate) fn code(line: &line::Encode) -> Result<Code> {
    let (k, m) = line.redundancy.unwrap_or((line.data, line.recovery));
    Code::new(k.into(), m.into()).map_err(|e| {
        Failure::usage(format!("-k {k} -m {m}: {e}")).help("k is at least 1 and k + m at most 256")
    })
}

fn holds(path: &Path, what: &[u8]) -> bool {
    path.as_os_str().as_encoded_bytes().windows(what.len()).any(|part| part == what)
}

/// Tells whether an output has no place for the path of each of several inputs.
fn is_for_all(output: &Path) -> bool {
    !(holds(output, b"{}") || holds(output, b"{/}"))
}

/// Tells whether each input is told in a line of its own. A pattern of the shell may stand for one file or several, and
/// `{}` in -o means the same for both.
pub(crate) fn is_listed(line: &line::Encode) -> bool {
    let has_places = || line.outputs.first().is_some_and(|path| !is_for_all(path));
    line.files_from.is_some() || line.inputs.len() > 1 || line.input().as_os_str() != "-" && has_places()
}

/// Refuses a path that would lead out of the folder in front of `{}` in -o.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_below(output: &Path, input: &Path) -> Result<()> {
    let output = output.as_os_str().as_encoded_bytes();
    let is_behind_folder = output.windows(2).skip(1).any(|part| part == b"{}");
    let leads_up = input.components().any(|part| part == Component::ParentDir);
    let clash = if is_behind_folder && leads_up { Clash::Above } else { Clash::No };
    check(&clash, CLASHES, |_| show_input(input))
}

fn has_no_key(line: &line::Encode) -> bool {
    line.live.key_file.is_none() && !line.seal.passphrase
}

/// Tells whether standard output gets the data. `kind` tells the kind of an input: beside a file stands the output.
pub(crate) fn stdout_is_data(line: &line::Encode, kind: impl Fn(&Path) -> Kind) -> bool {
    let is_other = !line.stores.to.is_empty() || line.files_from.is_some();
    let by_default = || line.live.stream || kind(line.input()) != Kind::File;
    !is_other && line.outputs.first().map_or_else(by_default, |path| path.as_os_str() == "-")
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
            None if is_listed(line) => Encode::Several(&line.inputs),
            None if !line.stores.to.is_empty() => Encode::Stores,
            None => Encode::One,
        };
        // A wrong number of inputs or outputs is told before options that do not fit to it.
        check(line, REFUSALS, |_| line.outputs.first().map(show_input).unwrap_or_default())?;
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
            ("a -o {}.fec", Encode::Several(&files[..1])),
            ("- -o {}.fec", Encode::One),
            ("--files-from list -o {}.fec", Encode::List(Path::new("list"))),
            ("a --to one --to two", Encode::Stores),
        ];
        for (words, plan) in plans {
            let (line, given) = parsed(words);
            assert_eq!(Encode::of(&line, given).unwrap_or_else(|e| panic!("{words}: {e}")), plan, "{words}");
        }
    }

    #[test]
    fn the_line_and_the_kind_of_input_tell_whether_standard_output_gets_the_data() {
        for (words, of_file, of_pipe) in [
            ("a", false, true),
            ("a -o -", true, true),
            ("a -o b", false, false),
            ("--stream a", true, true),
            ("--stream a -o udp://127.0.0.1:9", false, false),
            ("--to one a", false, false),
            ("--files-from list -o {}.fec", false, false),
        ] {
            let (line, _) = parsed(words);
            let is_data = [Kind::File, Kind::Pipe].map(|kind| stdout_is_data(&line, |_| kind));
            assert_eq!(is_data, [of_file, of_pipe], "{words}");
        }
    }

    #[test]
    fn a_rate_follows_receivers_that_can_report() {
        for (words, is_refused) in [
            ("--stream a --rate auto", true),
            ("--stream a --rate auto -o -", true),
            ("--stream a --rate auto -o udp://239.1.1.1:9", true),
            ("--stream a --rate auto -o udp://[ff02::1%eth0]:9", true),
            ("--stream a --rate auto -o udp://127.0.0.1:9", false),
            ("--stream a --rate auto:1/9..1/3 -o udp://host:9 -o udp://[::1]:9 --profile classic", false),
            ("--stream a --rate 1/6 -o file", false),
            ("--stream a --rate @file -o file", false),
            ("--stream a -o udp://239.1.1.1:9", false),
        ] {
            let (line, given) = parsed(words);
            assert_eq!(Encode::of(&line, given).is_err(), is_refused, "{words}");
        }
    }

    #[test]
    fn every_row_refuses_its_line() {
        let lines = [
            "--stream a b",
            "--stream a --cipher aes-256-gcm",
            "--stream a -o udp://127.0.0.1:9 -o file",
            "--stream a -o udp://127.0.0.1:9 --interface one --interface two",
            "--stream a --rate auto -o file",
            "--stream a --rate auto -o udp://127.0.0.1:9 --profile blocks",
            "--stream a --rate @file -o udp://127.0.0.1:9 --profile classic-blocks",
            "a -o udp://127.0.0.1:9",
            "a -o b -o c",
            "a -",
            "a --keep --sign key",
            "a --keep --outlines",
            "a --outlines --hash sha256",
            "a --to one -f",
            "a b -o c",
        ];
        for (nth, words) in lines.iter().enumerate() {
            let (line, given) = parsed(words);
            let first = REFUSALS.iter().position(|row| (row.applies)(&line));
            assert_eq!(first, Some(nth), "{words}");
            let output = line.outputs.first().map(show_input).unwrap_or_default();
            let what = REFUSALS[nth].what.replace("{path}", &output);
            assert_eq!(Encode::of(&line, given).expect_err(words).message, what, "{words}");
        }
    }

    #[test]
    fn every_row_refuses_what_was_found() {
        let fine = Found {
            is_listed: false,
            keep: false,
            has_group_size: false,
            has_outlines: false,
            input: Kind::File,
            to_folder: false,
            to_pipe: false,
        };
        let found = [
            Found { input: Kind::Folder, ..fine },
            Found { is_listed: true, input: Kind::Pipe, ..fine },
            Found { is_listed: true, to_pipe: true, ..fine },
            Found { has_group_size: true, to_folder: true, ..fine },
            Found { has_outlines: true, ..fine },
            Found { input: Kind::Pipe, to_folder: true, ..fine },
            Found { keep: true, input: Kind::Pipe, ..fine },
            Found { keep: true, to_pipe: true, ..fine },
        ];
        crate::plan::assert_rows(FOUND, &found);
        crate::plan::assert_rows(STREAM_INPUT, &[true]);
        let bare = StreamOutput { is_bare: true, is_there: false };
        crate::plan::assert_rows(STREAM_OUTPUT, &[bare]);
        for fine in [StreamOutput { is_there: true, ..bare }, StreamOutput { is_bare: false, ..bare }] {
            assert!(check(&fine, STREAM_OUTPUT, str::to_owned).is_ok(), "{fine:?}");
        }
        for fine in [
            Found { is_listed: true, keep: true, to_folder: true, ..fine },
            Found { input: Kind::Pipe, to_pipe: true, ..fine },
        ] {
            assert!(check(&fine, FOUND, str::to_owned).is_ok(), "{fine:?}");
        }
        use Clash::{Above, Beside, RootAndSignature, WithInputs, WithOutput};
        crate::plan::assert_rows(CLASHES, &[WithInputs, WithOutput, Above, RootAndSignature, Beside]);
        assert!(check(&Clash::No, CLASHES, str::to_owned).is_ok());
    }

    #[test]
    fn outputs_stay_below_their_folder() {
        for output in ["safe/{}.fec", "safe/{}/{/}.shards/", "/safe{}", "./{}.fec", "x{}"] {
            for bad in ["../evil", "a/../../evil", "a/..", "/a/../../evil", "./../evil"] {
                assert!(check_below(Path::new(output), Path::new(bad)).is_err(), "{output} {bad}");
            }
            for good in ["a/b", "/a/b", "a/..b", "./a", "a../b"] {
                assert!(check_below(Path::new(output), Path::new(good)).is_ok(), "{output} {good}");
            }
        }
        // These outputs stand beside the input, or use only its last component.
        for output in ["{}.fec", "safe/{/}.fec"] {
            assert!(check_below(Path::new(output), Path::new("../a")).is_ok(), "{output}");
        }
    }
}
