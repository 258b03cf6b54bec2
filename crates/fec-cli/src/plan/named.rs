//! Refusals that any command may have to speak, of what its line names.

use super::{Table, refusals};

/// A standard stream, as it was found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    /// Standard input is a terminal, where nothing comes unless somebody types.
    pub(crate) is_typed: bool,
    /// Standard input is named beside other inputs.
    pub(crate) has_company: bool,
    /// Standard input is a folder.
    pub(crate) is_folder: bool,
    /// Standard output is a terminal.
    pub(crate) is_shown: bool,
}

/// The value `{command}` is the command.
pub(crate) const STREAM: Table<Stream> = refusals! {
    |stream| stream.is_typed => "{command}: standard input is a terminal",
        "name a file, or see fec {command} --help";
    |stream| stream.has_company => "read standard input: it stands alone", "";
    |stream| stream.is_folder => "read standard input: it is a folder", "";
    |stream| stream.is_shown => "write standard output: it is a terminal, and the bytes are not text",
        "send it to a file or a pipe, or name one with -o";
};

/// A file that standard output was redirected to, and what it would get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirected {
    No,
    /// The root alone, of a file that is named by itself.
    RootOf,
    /// The root alone.
    Root,
    /// Roots of several files.
    Roots,
    /// Nothing: the payload goes to the same path by default.
    Payload,
}

/// The value `{input}` is the input, `{there}` the redirection and `{root}` a name for a file of the root, for a shell.
pub(crate) const REDIRECTED: Table<Redirected> = refusals! {
    |found| *found == Redirected::RootOf => "write {path}: it is named as a container, and would get only the root",
        "for a container there:\n  fec encode {input} -o - {there}\nfor shard files, and their root in a file:\n  fec encode {input} --root-file {root}";
    |found| *found == Redirected::Root => "write {path}: it is named as a container, and would get only the root",
        "for a container there, add:\n  -o -\nfor shard files, and their root in a file, write in place of {there}:\n  --root-file {root}";
    |found| *found == Redirected::Roots => "write {path}: it is named as a container, and would get only roots",
        "for a container of each file, add:\n  -o '{}.fec'\nfor shard files, send the list of their roots to:\n  > {root}";
    |found| *found == Redirected::Payload => "write {path}: standard output goes there already",
        "to get the payload there through standard output, add:\n  -o -";
};

/// Refuses an output, by whether it would take the place of an input.
pub(crate) const OUTPUT: Table<bool> = refusals! {
    |is_input| *is_input => "write {path}: it is the input, or stands in its place",
        "choose another output with -o";
};

/// The file of `--metrics`, as it was found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MetricsFile {
    /// It is named `-`.
    pub(crate) is_dash: bool,
    /// The command reads or writes it for another purpose.
    pub(crate) is_other: bool,
    /// It holds something else than older statistics.
    pub(crate) is_foreign: bool,
}

pub(crate) const METRICS: Table<MetricsFile> = refusals! {
    |file| file.is_dash => "--metrics is written to a file, again and again: name one", "";
    |file| file.is_other => "write {path}: it is for --metrics, and is the input, the output or the key too",
        "choose another name for --metrics";
    |file| file.is_foreign => "write {path}: it is for --metrics, and holds something else",
        "choose another name for --metrics, or remove it";
};

/// An input that a command cannot take as it was named, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Neither shards nor records.
    Nothing,
    /// A file that another program compressed.
    Compressed,
    /// A container or a sidecar among other inputs.
    NotAlone,
    /// A sealed sidecar, to be opened without a key. `is_all`: there is nothing else to advise.
    Sealed { is_all: bool },
    /// A sidecar, for a command that takes encodings.
    Sidecar,
    /// A text with a root and nothing else.
    Root,
    /// A file or folder that the sidecar named before it does not protect.
    NoPart,
    /// A list of roots. `is_checked`: by a command that checks lists.
    Roots { is_checked: bool },
}

/// Advice for an input that holds no encoding.
pub(crate) const NOT_ENCODED: &str = "name what fec encode or fec protect made;\nof a live stream whose beginning is damaged:\n  fec decode --stream PATH";

/// The value `{command}` is the command that does what was meant, `{root}` the root, `{given}` the root as an option
/// takes it, `{kind}` the kind of file, and `{verb}` the command that was given.
pub(crate) const INPUT: Table<Found> = refusals! {
    |found| *found == Found::Nothing => "{verb} {path}: it holds no shard and no record of a container",
        NOT_ENCODED;
    |found| *found == Found::Compressed => "{verb} {path}: it is compressed ({kind})",
        "unpack it first, with: {command}";
    |found| *found == Found::NotAlone => "{verb} {path}: it is a {kind}, and is named by itself",
        "leave it out here, and then:\n  {command}";
    |found| *found == Found::Sealed { is_all: true } =>
        "{verb} {path}: it is a sealed sidecar, and what is asked for needs its key",
        "give the file with your key: -i FILE, or --passphrase";
    |found| *found == Found::Sealed { is_all: false } =>
        "{verb} {path}: it is a sealed sidecar, and what is asked for needs its key",
        "give the file with your key: -i FILE, or --passphrase;\nto mend the sidecar itself, and none of the files:\n  {command}";
    |found| *found == Found::Sidecar => "{verb} {path}: it is a sidecar, which holds no payload",
        "to mend the files that it protects:\n  {command}";
    |found| *found == Found::NoPart => "{verb} {path}: {sidecar} does not protect it",
        "name the parts of one sidecar behind it, and everything else in another command";
    |found| *found == Found::Root => "{verb} {path}: it holds only a root: {root}",
        "name the shard files or the container that has this root:\n  fec {verb} PATH --root {given}";
    |found| *found == Found::Roots { is_checked: true } => "{verb} {path}: it is a list of roots",
        "to check what it lists:\n  {command}";
    |found| *found == Found::Roots { is_checked: false } => "{verb} {path}: it is a list of roots",
        "name one of what it lists, with its root: fec {verb} PATH --root HEX";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_refuses_what_was_found() {
        let none = Stream::default();
        let streams = [
            Stream { is_typed: true, ..none },
            Stream { has_company: true, ..none },
            Stream { is_folder: true, ..none },
            Stream { is_shown: true, ..none },
        ];
        crate::plan::assert_rows(STREAM, &streams);
        crate::plan::assert_rows(OUTPUT, &[true]);
        let fine = MetricsFile::default();
        assert!(crate::plan::check(&fine, METRICS, str::to_owned).is_ok());
        let files = [
            MetricsFile { is_dash: true, ..fine },
            MetricsFile { is_other: true, ..fine },
            MetricsFile { is_foreign: true, ..fine },
        ];
        crate::plan::assert_rows(METRICS, &files);
        use Redirected::{Payload, Root, RootOf, Roots};
        crate::plan::assert_rows(REDIRECTED, &[RootOf, Root, Roots, Payload]);
        assert!(crate::plan::check(&Redirected::No, REDIRECTED, str::to_owned).is_ok());
        let found = [
            Found::Nothing,
            Found::Compressed,
            Found::NotAlone,
            Found::Sealed { is_all: true },
            Found::Sealed { is_all: false },
            Found::Sidecar,
            Found::NoPart,
            Found::Root,
            Found::Roots { is_checked: true },
            Found::Roots { is_checked: false },
        ];
        crate::plan::assert_rows(INPUT, &found);
        assert!(crate::plan::check(&none, STREAM, str::to_owned).is_ok());
    }
}
