//! Shard files and containers, on paths and in streams.

use crate::errors::{UsageError, exception};
use crate::keys::{keys, sealing};
use crate::reports::{Repaired, Report, Restored, Root};
use crate::streams::{Sink, Source as PythonSource};
use fec_base::context::Cancel;
use fec_base::io::folder::Folder;
use fec_base::io::output::{Destination, Policy, check_absent, is_same};
use fec_base::io::source::SourceFile;
use fec_base::names::show;
use fec_core::block::Code;
use fec_core::digest::{Digest, HashKind};
use fec_keys::age::Keys;
use fecfile::error::{Action, Error, ErrorKind, Place};
use fecfile::forms::Beginning;
use fecfile::payload::{Options, Source};
use fecfile::pipe::{self, Pipe};
use fecfile::{Archive, Context, Input, PayloadRange, Repair, Settings, Wish, encode};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The name of streams in messages.
const STREAM: &str = "the stream";

/// A root: 32 bytes, or 64 hexadecimal digits.
#[derive(FromPyObject)]
pub(crate) enum GivenRoot {
    /// `bytes`.
    Bytes(PyBackedBytes),
    /// `str`.
    Text(String),
}

/// A path, or several.
#[derive(FromPyObject)]
pub(crate) enum Paths {
    /// A single path.
    One(PathBuf),
    /// Several paths.
    Many(Vec<PathBuf>),
}

impl Paths {
    fn list(self) -> Vec<PathBuf> {
        match self {
            Paths::One(path) => vec![path],
            Paths::Many(paths) => paths,
        }
    }
}

fn digest(root: Option<GivenRoot>) -> PyResult<Option<Digest>> {
    let wrong = || UsageError::new_err("a root is 32 bytes, or 64 hexadecimal digits");
    match root {
        None => Ok(None),
        Some(GivenRoot::Bytes(bytes)) => Digest::try_from(&bytes[..]).map(Some).map_err(|_| wrong()),
        Some(GivenRoot::Text(text)) => {
            let text = text.trim();
            let digits = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
            let bytes: Option<Vec<u8>> =
                (0..32).map(|nth| u8::from_str_radix(text.get(2 * nth..2 * nth + 2)?, 16).ok()).collect();
            bytes
                .filter(|_| digits)
                .and_then(|bytes| Digest::try_from(bytes).ok())
                .map(Some)
                .ok_or_else(wrong)
        }
    }
}

fn context(threads: Option<usize>) -> PyResult<Context<'static>> {
    let mut settings = Settings { map: false, ..Settings::new() };
    if let Some(threads) = threads {
        if threads == 0 {
            return Err(UsageError::new_err("threads is at least 1"));
        }
        settings.threads = threads;
    }
    Ok(Context::new(settings))
}

/// Works on a thread of its own, and ends the work early when a handler of a signal raises an exception, as that of
/// Ctrl-C does.
fn interruptible<T: Send>(
    py: Python<'_>,
    context: &Context<'_>,
    work: impl FnOnce(&Context<'_>) -> fecfile::Result<T> + Send,
) -> PyResult<T> {
    /// Time between two questions whether a signal came.
    const BETWEEN: Duration = Duration::from_millis(50);
    let cancel = Cancel::default();
    let (done, mut is_done) = sync_channel(1);
    let (outcome, raised) = std::thread::scope(|scope| {
        scope.spawn(|| done.send(work(&context.with_cancel(&cancel))));
        let mut raised = None;
        loop {
            let outcome;
            (is_done, outcome) = py.detach(move || {
                let outcome = is_done.recv_timeout(BETWEEN);
                (is_done, outcome)
            });
            match outcome {
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(exception) = py.check_signals() {
                        cancel.cancel();
                        raised = Some(exception);
                    }
                }
                outcome => return (outcome, raised),
            }
        }
    });
    let outcome = outcome.expect("the thread sends what it found").map_err(|e| exception(py, e));
    raised.map_or(outcome, Err)
}

fn policy(context: &Context<'_>, overwrite: bool) -> Policy {
    Policy::new().with_force(overwrite).with_sync(context.settings.sync)
}

fn options(
    py: Python<'_>,
    (k, m): (usize, usize),
    hash: &str,
    set_size: Option<u64>,
    recipients: Option<Vec<String>>,
    passphrase: Option<String>,
) -> PyResult<Options> {
    let code = Code::new(k, m).map_err(crate::errors::no_code)?;
    let hash = match hash {
        "blake3" => HashKind::Blake3,
        "sha256" => HashKind::Sha256,
        _ => return Err(UsageError::new_err(format!("hash is \"blake3\" or \"sha256\", not \"{hash}\""))),
    };
    let sealing = sealing(py, recipients, passphrase)?.map(Arc::new);
    Ok(Options { hash, set_size, sealing, ..Options::new(code) })
}

/// Encodes a file, and returns the root. `form` is "container", a file that repairs itself, or "shards", a folder with
/// k original and m recovery shard files, of which any k restore the file. With `recipients` or `passphrase` the file
/// is sealed first.
#[pyfunction]
#[pyo3(signature = (path, output, *, k = 33, m = 67, form = "container", hash = "blake3", set_size = None, recipients = None, passphrase = None,
    overwrite = false, threads = None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn encode_file(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    k: usize,
    m: usize,
    form: &str,
    hash: &str,
    set_size: Option<u64>,
    recipients: Option<Vec<String>>,
    passphrase: Option<String>,
    overwrite: bool,
    threads: Option<usize>,
) -> PyResult<Root> {
    let context = context(threads)?;
    let options = options(py, (k, m), hash, set_size, recipients, passphrase)?;
    let policy = policy(&context, overwrite);
    let to_folder = match form {
        "container" => false,
        "shards" => true,
        _ => return Err(UsageError::new_err(format!("form is \"container\" or \"shards\", not \"{form}\""))),
    };
    check_length(&path)?;
    check_output(&output, std::slice::from_ref(&path))?;
    let written = interruptible(py, &context, |context| {
        let source = open(&path, context)?;
        if to_folder {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            return encode::to_store(
                &source,
                name,
                &Folder::new(&output, policy.made_of(source.mode())),
                &options,
                context,
            );
        }
        check_absent(&output, policy)?;
        encode::to_file(Source::Payload(&source), &output, policy.made_of(source.mode()), &options, context)
    });
    written.map(|written| Root(written.root))
}

/// A regular file.
fn open(path: &Path, context: &Context<'_>) -> fecfile::Result<SourceFile> {
    if path.is_dir() {
        return Err(Error::at(Action::Read, path, ErrorKind::IsFolder));
    }
    SourceFile::open(path, context)
}

/// Refuses inputs whose length is not known beforehand: FIFOs, devices, and files of the system that claim to be empty.
fn check_length(path: &Path) -> PyResult<()> {
    let Ok(meta) = std::fs::metadata(path) else { return Ok(()) };
    let has_bytes = || File::open(path).and_then(|mut file| file.read(&mut [0; 1])).is_ok_and(|n| n > 0);
    if meta.is_dir() || meta.is_file() && (meta.len() > 0 || !has_bytes()) {
        return Ok(());
    }
    let path = show(path);
    Err(UsageError::new_err(format!(
        "read {path}: its length is not known before it is read; encode_stream takes it as a file object"
    )))
}

/// Refuses an output that would replace an input.
fn check_output(output: &Path, inputs: &[PathBuf]) -> PyResult<()> {
    match inputs.iter().any(|input| is_same(output, input)) {
        false => Ok(()),
        true => Err(UsageError::new_err(format!("write {}: it is the input", show(output)))),
    }
}

/// Encodes the bytes of `source` to a container on `sink`, in constant memory, and returns the root. `source` is a
/// binary file object or an iterable of bytes, `sink` a binary file object.
#[pyfunction]
#[pyo3(signature = (source, sink, *, k = 33, m = 67, hash = "blake3", set_size = None, recipients = None, passphrase = None, threads = None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn encode_stream(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    sink: &Bound<'_, PyAny>,
    k: usize,
    m: usize,
    hash: &str,
    set_size: Option<u64>,
    recipients: Option<Vec<String>>,
    passphrase: Option<String>,
    threads: Option<usize>,
) -> PyResult<Root> {
    let context = context(threads)?;
    let options = options(py, (k, m), hash, set_size, recipients, passphrase)?;
    let (mut source, sink) = (PythonSource::new(source)?, Sink::new(sink)?);
    let written = interruptible(py, &context, |context| {
        let source = Source::Pipe(&mut source, Place::Path(STREAM.into()));
        encode::to_writer(source, sink, &Place::Path(STREAM.into()), &options, context)
    });
    written.map(|written| Root(written.root))
}

/// Restores the payload of a container, a folder of shard files or some shard files to the file `output`. With a root,
/// only the encoding of that root counts. If not all can be restored, nothing is written and Damaged is raised. With
/// `partial`, lost bytes become zeros instead, and the result lists them.
#[pyfunction]
#[pyo3(signature = (source, output, *, root = None, identities = None, passphrase = None, partial = false, overwrite = false, threads = None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn decode_file(
    py: Python<'_>,
    source: Paths,
    output: PathBuf,
    root: Option<GivenRoot>,
    identities: Option<Vec<String>>,
    passphrase: Option<String>,
    partial: bool,
    overwrite: bool,
    threads: Option<usize>,
) -> PyResult<Restored> {
    let (context, root, source) = (context(threads)?, digest(root)?, source.list());
    let keys = keys(py, identities, passphrase)?;
    check_output(&output, &source)?;
    let restored = interruptible(py, &context, |context| {
        let policy = policy(context, overwrite).made_of_paths(source.iter().map(PathBuf::as_path));
        check_absent(&output, policy)?;
        let archive = Archive::open(&Input::of_paths(&source)?, root, context)?;
        let opener = archive.opener(keys.as_ref())?;
        let wish = Wish { partial, opener: opener.as_ref(), ..Wish::default() };
        archive.restore(Destination::File(&output, policy), wish, context)
    });
    restored.map(|restored| Restored::new(&restored))
}

/// Returns the bytes from `start` to `end`, or to the end, of the payload of a container, a folder of shard files or
/// some shard files, and reads no more than they take. Each byte is proved; with a root, to be that root's. If not all
/// of them can be restored Damaged is raised, and UsageError when the payload does not have them.
#[pyfunction]
#[pyo3(signature = (source, start, end = None, *, root = None, identities = None, passphrase = None, threads = None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn read_range<'py>(
    py: Python<'py>,
    source: Paths,
    start: u64,
    end: Option<u64>,
    root: Option<GivenRoot>,
    identities: Option<Vec<String>>,
    passphrase: Option<String>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (context, root, source) = (context(threads)?, digest(root)?, source.list());
    let keys = keys(py, identities, passphrase)?;
    let bytes = interruptible(py, &context, |context| {
        let archive = Archive::open(&Input::of_paths(&source)?, root, context)?;
        let opener = archive.opener(keys.as_ref())?;
        let mut bytes = Vec::new();
        let destination = Destination::writer(&mut bytes);
        // Without `partial` it is an error when a byte is lost.
        let _ = archive.restore_range(PayloadRange { start, end }, opener.as_ref(), destination, context)?;
        Ok(bytes)
    });
    Ok(PyBytes::new(py, &bytes?))
}

/// Returns the length of the payload of a container, a folder of shard files or some shard files, for read_range; None
/// if a container was cut and the length was in what is lost. The payload itself is not read. A sealed payload needs a
/// key, and its length is that of the bytes in it.
#[pyfunction]
#[pyo3(signature = (source, *, root = None, identities = None, passphrase = None, threads = None))]
pub(crate) fn payload_len(
    py: Python<'_>,
    source: Paths,
    root: Option<GivenRoot>,
    identities: Option<Vec<String>>,
    passphrase: Option<String>,
    threads: Option<usize>,
) -> PyResult<Option<u64>> {
    let (context, root, source) = (context(threads)?, digest(root)?, source.list());
    let keys = keys(py, identities, passphrase)?;
    interruptible(py, &context, |context| {
        let archive = Archive::open(&Input::of_paths(&source)?, root, context)?;
        let (opener, extent) = (archive.opener(keys.as_ref())?, archive.encoded().extent());
        if extent.is_cut {
            return Ok(None);
        }
        opener.map_or(Ok(extent.sealed_len), |opener| opener.opened_len(extent)).map(Some)
    })
}

/// Restores a container from `source` to `sink`. With a root nothing is written before all of the container is proved
/// to have that root: it is copied to a temporary file first, unless `early` is true. Without a root, or with `early`,
/// each group of sets is written once it is proved by itself.
#[pyfunction]
#[pyo3(signature = (source, sink, *, root = None, identities = None, passphrase = None, early = false, threads = None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn decode_stream(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    sink: &Bound<'_, PyAny>,
    root: Option<GivenRoot>,
    identities: Option<Vec<String>>,
    passphrase: Option<String>,
    early: bool,
    threads: Option<usize>,
) -> PyResult<Restored> {
    let (context, root) = (context(threads)?, digest(root)?);
    let keys = keys(py, identities, passphrase)?;
    let (source, mut sink) = (PythonSource::new(source)?, Sink::new(sink)?);
    // Ctrl-C comes to `source` and `sink`, which this thread reads and writes.
    let restored = py.detach(|| decode_from(source, &mut sink, (root, early), keys.as_ref(), &context));
    restored.map(|restored| Restored::new(&restored)).map_err(|e| exception(py, e))
}

fn decode_from(
    source: PythonSource,
    sink: &mut Sink,
    (root, early): (Option<Digest>, bool),
    keys: Option<&Keys>,
    context: &Context<'_>,
) -> fecfile::Result<fecfile::report::Restored> {
    let (place, out) = (Path::new(STREAM), Place::Path(STREAM.into()));
    if root.is_none() || early {
        let pipe = Pipe { input: source, place, beginning: Beginning::Other, wanted: root, keys };
        return pipe::restore(pipe, Destination::Writer(sink, out), context);
    }
    let archive = Archive::open(&Input::spooled(place, source)?, root, context)?;
    let opener = archive.opener(keys)?;
    let wish = Wish { opener: opener.as_ref(), ..Wish::default() };
    archive.restore(Destination::Writer(sink, out), wish, context)
}

/// Checks every byte of a container, a folder of shard files or some shard files; a single shard file needs its root.
/// With `deep` every set is decoded too. The report lists damaged and missing shards. Exceptions are for inputs that
/// cannot be read, or that do not have the root.
#[pyfunction]
#[pyo3(signature = (source, *, root = None, deep = false, threads = None))]
pub(crate) fn verify_file(
    py: Python<'_>,
    source: Paths,
    root: Option<GivenRoot>,
    deep: bool,
    threads: Option<usize>,
) -> PyResult<Report> {
    let (context, root, source) = (context(threads)?, digest(root)?, source.list());
    let verified = interruptible(py, &context, |context| {
        Archive::open(&Input::of_paths(&source)?, root, context)?.verify(deep, context)
    });
    Report::new(py, &verified?)
}

/// Checks every byte of a container from `source`, as verify_file does.
#[pyfunction]
#[pyo3(signature = (source, *, root = None, threads = None))]
pub(crate) fn verify_stream(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    root: Option<GivenRoot>,
    threads: Option<usize>,
) -> PyResult<Report> {
    let (context, root, source) = (context(threads)?, digest(root)?, PythonSource::new(source)?);
    let verified = py.detach(|| {
        Archive::in_pipe(source, Path::new(STREAM), Beginning::Other, root, &context)?.verify(false, &context)
    });
    Report::new(py, &verified.map_err(|e| exception(py, e))?)
}

/// Makes damaged and missing parts of a container or of shard files anew, bit for bit: in place, or at `output`.
#[pyfunction]
#[pyo3(signature = (source, *, root = None, output = None, dry_run = false, overwrite = false, threads = None))]
pub(crate) fn repair_file(
    py: Python<'_>,
    source: Paths,
    root: Option<GivenRoot>,
    output: Option<PathBuf>,
    dry_run: bool,
    overwrite: bool,
    threads: Option<usize>,
) -> PyResult<Repaired> {
    let (context, root, source) = (context(threads)?, digest(root)?, source.list());
    let repaired = interruptible(py, &context, |context| {
        let policy = policy(context, overwrite).made_of_paths(source.iter().map(PathBuf::as_path));
        let how = Repair { out: output.as_deref(), policy, dry_run };
        Archive::open(&Input::of_paths(&source)?, root, context)?.repair(how, context)
    });
    let repaired = repaired?;
    Ok(Repaired { root: Root(repaired.root), files: repaired.files, written: repaired.written })
}
