//! The front door: one call each for paths and for readers.

use crate::archive::Archive;
use crate::encode;
use crate::error::{Place, Result};
use crate::input::Input;
use crate::leftovers::Beginning;
use crate::payload::{Options, Source};
use crate::pipe::{self, Pipe};
use crate::report::{Restored, Verified, Written};
use crate::restore::Wish;
use fec_base::context::Context;
use fec_base::io::folder::Folder;
use fec_base::io::output::{Destination, Policy};
use fec_base::io::source::SourceFile;
use fec_core::digest::Digest;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Encodes the file `path` to 100 shard files in the folder `path`.shards; any 33 of them restore it. The folder must
/// be empty or not exist.
///
/// # Errors
/// Those of file and folder; an unfinished output is removed.
pub fn encode_path(path: &Path, context: &Context<'_>) -> Result<Written> {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".shards");
    let source = SourceFile::open(path, context)?;
    let name = path.file_name().unwrap_or_default();
    let store = Folder::new(PathBuf::from(folder), policy(context).made_of(source.mode()));
    encode::to_store(&source, name.as_encoded_bytes(), &store, &Options::default(), context)
}

/// Encodes the bytes of `input` to a container on `output`, in constant memory.
///
/// # Errors
/// Those of input and output.
pub fn encode_reader(
    mut input: impl Read + Send,
    output: impl Write + Send,
    context: &Context<'_>,
) -> Result<Written> {
    let source = Source::Pipe(&mut input, Place::Path("-".into()));
    encode::to_writer(source, output, &Place::Output, &Options::default(), context)
}

/// Restores the payload of `path`, a folder of shard files or a container, to the file `output`, which must not exist.
/// With a root only the encoding of that root counts; without one there has to be only one encoding that can be
/// restored.
///
/// # Errors
/// Those of both files, and when no encoding, or more than one, is found.
/// [`Lost`](crate::error::EncodingError::Lost) when the payload cannot be restored whole; nothing is written then.
pub fn decode_path(
    path: &Path,
    output: &Path,
    root: Option<Digest>,
    context: &Context<'_>,
) -> Result<Restored> {
    let archive = Archive::open(&Input::of_paths(&[path.to_path_buf()])?, root, context)?;
    // A sealed payload is refused, since there are no keys.
    let opener = archive.opener(None)?;
    let wish = Wish { opener: opener.as_ref(), ..Wish::default() };
    archive.restore(Destination::File(output, policy(context).made_of_paths([path])), wish, context)
}

/// Restores the payload of a container that `input` reads. Each group goes out once it is proved by itself. If the
/// whole turns out not to have the wanted root, the error comes after bytes went out.
///
/// # Errors
/// As [`decode_path`], and when not the whole payload can be restored.
pub fn decode_reader(
    input: impl Read,
    output: &mut dyn Write,
    root: Option<Digest>,
    context: &Context<'_>,
) -> Result<Restored> {
    let pipe = Pipe { input, place: Path::new("-"), beginning: Beginning::Other, wanted: root, keys: None };
    pipe::restore(pipe, Destination::writer(output), context)
}

/// Checks every byte of `path`: a folder of shard files, a single shard file (with its root), or a container.
///
/// # Errors
/// Those of the files, and when no encoding, or more than one, is found.
pub fn verify_path(path: &Path, root: Option<Digest>, context: &Context<'_>) -> Result<Verified> {
    Archive::open(&Input::of_paths(&[path.to_path_buf()])?, root, context)?.verify(false, context)
}

/// Checks every byte of a container that `input` reads.
///
/// # Errors
/// As [`verify_path`].
pub fn verify_reader(input: impl Read, root: Option<Digest>, context: &Context<'_>) -> Result<Verified> {
    Archive::in_pipe(input, Path::new("-"), Beginning::Other, root, context)?.verify(false, context)
}

fn policy(context: &Context<'_>) -> Policy {
    Policy::new().with_sync(context.settings.sync)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::EncodingError;
    use std::fs;

    #[test]
    fn what_is_lost_is_an_error_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let context = Context::default();
        fs::write(at("p"), vec![7; 100_000]).unwrap();
        let root = encode_path(&at("p"), &context).unwrap().root;
        for index in 0..68 {
            let name = format!("p.shards/p.{index:03}.shard");
            fs::remove_file(at(&name)).unwrap();
        }
        let error = decode_path(&at("p.shards"), &at("back"), Some(root), &context).unwrap_err();
        assert!(
            matches!(error.cause(), Some(EncodingError::Lost(restored)) if !restored.is_whole()),
            "{error}"
        );
        assert_eq!(error.class(), crate::Class::Lost);
        assert!(!at("back").exists());
        assert_eq!(verify_path(&at("p.shards"), Some(root), &context).unwrap().is_restorable, Some(false));
    }

    #[test]
    fn readers_and_writers_go_through_a_damaged_container() {
        let context = Context::default();
        let payload: Vec<u8> = (0..300_000u32).map(|i| (i >> 3) as u8).collect();
        let mut container = Vec::new();
        let root = encode_reader(&payload[..], &mut container, &context).unwrap().root;
        assert!(verify_reader(&container[..], Some(root), &context).unwrap().is_intact());
        container[100_000] ^= 1;
        let mut back = Vec::new();
        assert!(decode_reader(&container[..], &mut back, Some(root), &context).unwrap().is_whole());
        assert!(back == payload);
        assert!(!verify_reader(&container[..], Some(root), &context).unwrap().is_intact());
        assert!(decode_reader(&container[..], &mut back, Some([0; 32]), &context).is_err());
    }
}
