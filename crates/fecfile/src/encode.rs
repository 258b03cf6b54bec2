//! Encodes a payload to shard files in a store, or to a container.
//!
//! The payload is copied into a private buffer, which is coded, hashed and written. Nothing is read twice: the bytes
//! that are hashed are the bytes that are coded and written.

use crate::error::{Action, EncodingError, Error, ErrorKind, Place, Result};
use crate::forms::encode_job::check_memory;
use crate::forms::shards::writer::Label;
use crate::forms::{annexes, container, shards};
use crate::payload::{Grouping, Options, Payload, Source};
use crate::report::Written;
use crate::seal::sealed::{Coded, SealedPayload};
use crate::seal::sealer::Sealer;
use fec_base::context::{Context, Settings};
use fec_base::io::Store;
use fec_base::io::output::{FileOut, Policy};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::program::stages::{self, Stage};
use fec_core::error::FormatError;
use fec_core::format::container::GroupId;
use fec_core::format::meta::Meta;
use fec_core::format::seal::SealedKind;
use fec_core::params::{
    BOUNDED_GROUP_BYTES, ContainerLayout, FileGeometry, Form, GroupGeometry, MAX_COUNT, Shape,
};
use fec_keys::sign::SecretKey;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Encodes a payload to n shard files in a store. Their names are made of `name`, which they record.
///
/// # Errors
/// Those of payload and store; [`ErrorKind::Format`] for options beyond what the format allows.
pub fn to_store(
    payload: &dyn Payload,
    name: &[u8],
    store: &dyn Store,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    let Some(sealer) = options.sealer(SealedKind::Payload, Some(name), context.settings.threads)? else {
        return shards::writer::write(payload, &Label::named(name)?, store, options, context);
    };
    let sealed = SealedPayload::new(payload, &sealer);
    shards::writer::write(&sealed, &Label::sealed(&sealer), store, options, context)
}

/// Encodes to a container file, which appears only when it is whole.
///
/// # Errors
/// Those of source and output; [`ErrorKind::Format`] for options beyond what the format allows.
pub fn to_file(
    source: Source<'_>,
    path: &Path,
    policy: Policy,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    file(source, SealedKind::Payload, path, policy, options, context)
}

/// As [`to_file`], with the kind of content that a seal records.
///
/// # Errors
/// As [`to_file`].
#[doc(hidden)]
pub fn file(
    source: Source<'_>,
    kind: SealedKind,
    path: &Path,
    policy: Policy,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    let sealer = options.sealer(kind, None, context.settings.threads)?;
    let mut coded = Coded::new(source, sealer.as_ref());
    let source = coded.source();
    let plan = Plan::new(&source, options, sealer.as_ref(), context)?;
    remove_stale(parent(path), context.progress);
    let out = FileOut::create(path, policy)?;
    let mut written = match (source, plan.whole) {
        (Source::Payload(payload), Some(geometry)) => {
            let front = container::writer::front(&plan.layout, &plan.meta);
            let (root, output_bytes) =
                container::placed::write(payload, &geometry, (&plan.meta, &front), &out, context)?;
            Written { geometry: FileGeometry::of_only(&geometry), root, output_bytes }
        }
        (source, _) => {
            let mut buffered = BufWriter::with_capacity(WRITE_BUFFER, out.file());
            let fail = |e| out.failure(e);
            let written =
                container::writer::write(source, &mut buffered, &fail, &plan.layout, &plan.meta, context)?;
            buffered.flush().map_err(fail)?;
            written
        }
    };
    if let Some(key) = &options.signing {
        let annex = signature(key, &written);
        out.put(written.output_bytes, &annex)?;
        written.output_bytes += annex.len() as u64;
    }
    let _stage = stages::enter(Stage::Write, 0);
    out.commit(written.output_bytes)?;
    Ok(written)
}

/// Root, geometry and bytes that [`to_store`] would write. Nothing is written; all other work is done.
///
/// # Errors
/// As [`to_store`], but for those of the store.
pub fn root_of_shards(
    payload: &dyn Payload,
    name: &[u8],
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    shards::writer::root(payload, &Label::named(name)?, options, context)
}

/// Root, geometry and bytes that [`to_file`] would write. Nothing is written; all other work is done.
///
/// # Errors
/// As [`to_file`], but for those of the output.
pub fn root_of_container(payload: &dyn Payload, options: &Options, context: &Context<'_>) -> Result<Written> {
    let source = Source::Payload(payload);
    let plan = Plan::new(&source, options, None, context)?;
    let Some(geometry) = plan.whole else {
        let fail = |e| Error::io(Action::Encode, payload.place(), e);
        return container::writer::write(source, &mut io::sink(), &fail, &plan.layout, &plan.meta, context);
    };
    let front = container::writer::front(&plan.layout, &plan.meta);
    let (root, output_bytes) = container::placed::root(payload, &geometry, (&plan.meta, &front), context)?;
    Ok(Written { geometry: FileGeometry::of_only(&geometry), root, output_bytes })
}

/// Encodes to a container that goes to a writer, named `place` in errors.
///
/// # Errors
/// As [`to_file`].
pub fn to_writer(
    source: Source<'_>,
    out: impl Write + Send,
    place: &Place,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    let sealer = options.sealer(SealedKind::Payload, None, context.settings.threads)?;
    let mut coded = Coded::new(source, sealer.as_ref());
    let source = coded.source();
    let plan = Plan::bounded(&source, options, sealer.as_ref(), context)?;
    let mut out = BufWriter::with_capacity(WRITE_BUFFER, out);
    let fail = |e| Error::io(Action::Write, place.clone(), e);
    let mut written = container::writer::write(source, &mut out, &fail, &plan.layout, &plan.meta, context)?;
    if let Some(key) = &options.signing {
        let annex = signature(key, &written);
        out.write_all(&annex).and_then(|()| out.flush()).map_err(fail)?;
        written.output_bytes += annex.len() as u64;
    }
    Ok(written)
}

/// The annex with a signature over the root of what was written.
fn signature(key: &SecretKey, written: &Written) -> Vec<u8> {
    annexes::of_signature(key.sign_root(&written.root).text())
}

/// Bytes of the buffer that gathers small records before they are written.
const WRITE_BUFFER: usize = 256 << 10;

/// The bytes of a container that may be lost in one piece, wherever the piece lies. Records of a group stand shard by
/// shard, so a piece hits each set of the group equally often, give or take one record at either end.
pub fn survives_gap(geometry: &FileGeometry) -> u64 {
    let of_group = |number: u32| {
        let geometry = geometry.group(number);
        let shape = geometry.shape();
        let record = GroupId { geometry, root: [0; 32], before: [0; 32] }.record_len();
        let records = (shape.code.m() as u64 * u64::from(shape.sets)).saturating_sub(1);
        records.saturating_mul(record)
    };
    // A piece across the border of two groups may hit each of them as hard.
    of_group(0).min(of_group(geometry.groups() - 1))
}

/// The layout and meta of a container, decided before any byte is written.
struct Plan {
    layout: ContainerLayout,
    meta: Vec<u8>,
    /// The only group, if it is too large to be held in memory.
    whole: Option<GroupGeometry>,
}

impl Plan {
    /// Groups of a bounded size, or of the size that the options give.
    fn bounded(
        source: &Source<'_>,
        options: &Options,
        sealer: Option<&Sealer>,
        context: &Context<'_>,
    ) -> Result<Plan> {
        let sets = match options.grouping {
            Grouping::Auto => None,
            Grouping::Sets(sets) => Some(sets),
        };
        let layout_of = |sets| {
            let layout = ContainerLayout::new(options.hash, options.code, options.set_size(None), sets);
            let layout = layout.map_err(|e| refused(source, e))?;
            Ok::<_, Error>(if sealer.is_some() { layout.sealed() } else { layout })
        };
        let mut layout = layout_of(sets)?;
        if let Some(len) = source.size().filter(|len| *len < layout.piece_len()) {
            // A payload shorter than a group gets one group, no larger than needed.
            let needed = len.div_ceil(layout.piece_len() / u64::from(layout.shape().sets)).max(1);
            layout = layout_of(Some(needed as u32))?;
        }
        check_groups(source, &layout)?;
        check_memory(layout.shape(), &source.place(), &context.settings)?;
        check_group_memory(source, layout.shape(), &context.settings)?;
        Ok(Plan { layout, meta: meta(source, options, sealer, context)?, whole: None })
    }

    /// A single group for the whole payload, if the payload's length is known and the options give no other grouping.
    fn new(
        source: &Source<'_>,
        options: &Options,
        sealer: Option<&Sealer>,
        context: &Context<'_>,
    ) -> Result<Plan> {
        let (Some(len), Grouping::Auto) = (source.size(), options.grouping) else {
            return Plan::bounded(source, options, sealer, context);
        };
        let set_size = options.set_size(Some(len));
        let geometry = GroupGeometry::whole(Form::Container, options.hash, options.code, set_size, len);
        let mut geometry = geometry.map_err(|e| refused(source, e))?;
        if sealer.is_some() {
            geometry = geometry.sealed();
        }
        let shape = geometry.shape();
        check_memory(shape, &source.place(), &context.settings)?;
        let layout = ContainerLayout::new(options.hash, options.code, set_size, Some(shape.sets));
        let mut layout = layout.map_err(|e| refused(source, e))?;
        if sealer.is_some() {
            layout = layout.sealed();
        }
        let is_held = group_bytes(shape) <= BOUNDED_GROUP_BYTES.min(context.settings.max_memory / 2);
        Ok(Plan {
            layout,
            meta: meta(source, options, sealer, context)?,
            whole: (!is_held).then_some(geometry),
        })
    }
}

fn refused(source: &Source<'_>, error: FormatError) -> Error {
    Error::at(Action::Encode, source.place(), ErrorKind::Format(error))
}

/// Bytes of the shards of a group.
fn group_bytes(shape: &Shape) -> u64 {
    shape.set_bytes().saturating_mul(shape.sets.into())
}

/// Refuses a payload of more groups than the format can number, before any work.
fn check_groups(source: &Source<'_>, layout: &ContainerLayout) -> Result<()> {
    let groups = source.size().map_or(0, |len| len.div_ceil(layout.piece_len()));
    if groups > MAX_COUNT {
        return Err(Error::at(Action::Encode, source.place(), EncodingError::ManyGroups(MAX_COUNT)));
    }
    Ok(())
}

/// Refuses groups that do not fit the allowed memory: two of them are in use at a time.
fn check_group_memory(source: &Source<'_>, shape: &Shape, settings: &Settings) -> Result<()> {
    let most = settings.max_memory;
    let need = 2 * group_bytes(shape);
    if need > most {
        return Err(Error::at(Action::Encode, source.place(), EncodingError::EncodeMemory { need, most }));
    }
    Ok(())
}

/// The meta of a container: its seal, or the digests of the payload if the options ask for them.
fn meta(
    source: &Source<'_>,
    options: &Options,
    sealer: Option<&Sealer>,
    context: &Context<'_>,
) -> Result<Vec<u8>> {
    if let Some(sealer) = sealer {
        return Ok(sealer.meta().to_bytes());
    }
    match source {
        Source::Payload(payload) => Ok(options.meta(*payload, Meta::default(), context)?.to_bytes()),
        Source::Pipe(..) if options.payload_digests.any() => {
            Err(Error::at(Action::Encode, source.place(), EncodingError::DigestsOfPipe))
        }
        Source::Pipe(..) => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_base::io::memory::MemoryStore;
    use fec_core::block::Code;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A payload that is written to as soon as its last byte is read; its time stamp shows that.
    struct Touched {
        bytes: Vec<u8>,
        left: AtomicU64,
    }

    impl Touched {
        fn new() -> Touched {
            let bytes: Vec<u8> = (0..40_000).map(|at: u32| (at % 251) as u8).collect();
            Touched { left: AtomicU64::new(bytes.len() as u64), bytes }
        }
    }

    impl Payload for Touched {
        fn size(&self) -> u64 {
            self.bytes.size()
        }

        fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
            self.left.fetch_sub(out.len() as u64, Ordering::Relaxed);
            self.bytes.read_at(offset, out)
        }

        fn check_unchanged(&self) -> Result<()> {
            match self.left.load(Ordering::Relaxed) {
                0 => Err(Error::new(Action::Read, ErrorKind::Changed)),
                _ => Ok(()),
            }
        }
    }

    /// A change between the first read and the last mixes two versions, and no root is true of both.
    #[test]
    fn a_payload_that_changes_while_its_last_bytes_are_read_is_not_encoded() {
        // The whole payload does not fit this memory, but sets and two groups of one set do: the container is then
        // written in place.
        let settings = Settings { max_memory: 100_000, ..Settings::default() };
        let context = Context::new(settings);
        let options = Options { set_size: Some(12_288), ..Options::new(Code::new(3, 2).unwrap()) };
        let in_groups = Options { grouping: Grouping::Sets(1), ..options.clone() };
        let place = tempfile::tempdir().unwrap();
        let policy = Policy::new().with_sync(false);
        let store = MemoryStore::new();
        let file = |options: &Options| {
            let path = place.path().join("out.fec");
            to_file(Source::Payload(&Touched::new()), &path, policy, options, &context)
        };
        let written = [
            ("shard files", to_store(&Touched::new(), b"name", &store, &options, &context)),
            ("their root", root_of_shards(&Touched::new(), b"name", &options, &context)),
            ("a container", file(&options)),
            ("a container in groups", file(&in_groups)),
            ("its root", root_of_container(&Touched::new(), &options, &context)),
            ("its root, in groups", root_of_container(&Touched::new(), &in_groups, &context)),
            ("a pipe", {
                let payload = Touched::new();
                to_writer(Source::Payload(&payload), io::sink(), &Place::Nowhere, &in_groups, &context)
            }),
        ];
        for (what, written) in written {
            let is_refused = written.is_err_and(|error| matches!(error.kind, ErrorKind::Changed));
            assert!(is_refused, "{what}");
        }
        assert!(store.list().unwrap().is_empty());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
