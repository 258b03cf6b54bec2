//! From a payload to an encoding: shard files in a store, or a container.

use crate::context::Context;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::forms::{container, shards};
use crate::io::Store;
use crate::io::output::{FileOut, Policy};
use crate::payload::{Options, Payload, Source};
use crate::report::Written;
use crate::stages::{self, Stage};
use fec_core::params::{CONTAINER_GROUP_BYTES, ContainerLayout};
use std::io::{BufWriter, Write};
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
    shards::writer::write(payload, name, store, options, context)
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
    let layout = layout(&source, options, context)?;
    let out = FileOut::create(path, policy)?;
    let mut buffered = BufWriter::with_capacity(WRITE_BUFFER, out.file());
    let fail = |e| out.failure(e);
    let written = container::writer::write(source, &mut buffered, &fail, &layout, context)?;
    buffered.flush().map_err(fail)?;
    drop(buffered);
    let _stage = stages::enter(Stage::Sync, 0);
    out.commit(written.output_bytes)?;
    Ok(written)
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
    let layout = layout(&source, options, context)?;
    let mut out = BufWriter::with_capacity(WRITE_BUFFER, out);
    let fail = |e| Error::io("write", place.clone(), e);
    container::writer::write(source, &mut out, &fail, &layout, context)
}

/// Bytes of the buffer that gathers small records before they are written.
const WRITE_BUFFER: usize = 256 << 10;

fn layout(source: &Source<'_>, options: &Options, context: &Context<'_>) -> Result<ContainerLayout> {
    let most = CONTAINER_GROUP_BYTES.min(context.settings.max_memory / 2);
    ContainerLayout::new(options.hash, options.code, options.set_size(), options.group_size, most)
        .map_err(|e| Error::at("encode", source.place(), ErrorKind::Format(e)))
}
