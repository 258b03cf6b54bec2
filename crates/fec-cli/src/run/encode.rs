//! `fec encode`: from arguments to shard files or a container.

mod list;
pub(crate) mod root_file;
pub(crate) mod task;

use crate::line;
use crate::plan::encode::Encode;
use crate::plan::options::{CONTAINER, PIPE, SHARDS};
use crate::run::encode::task::{Input, Task, options};
use crate::run::inputs::listed;
use crate::run::sign;
use crate::run::stores;
use crate::run::stream;
use crate::run::target::{Target, check_no_container, file_behind, is_dash};
use crate::say::encode::Report;
use crate::say::failure::{Exit, Result, say};
use crate::settings::{Settings, print_line};
use fec_base::io::output::OWNER_ALONE;
use fec_base::io::system::mode;
use fec_base::names::hex;
use fec_keys::sign::SecretKey;
use fecfile::error::Place;
use fecfile::payload::Source;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn run(args: &line::Encode, settings: &Settings) -> Result<Exit> {
    let plan = Encode::of(args, settings.given)?;
    if plan == Encode::Stream {
        return stream::send(args, settings);
    }
    let key = sign::secret_key(&args.secret)?.map(Arc::new);
    let is_list = matches!(plan, Encode::List(_) | Encode::Several(_));
    if is_list && args.outputs.is_empty() && !settings.json {
        check_no_container(true, None)?;
    }
    match plan {
        Encode::List(list) => list::run(&listed(list, args.null)?, key, args, settings),
        Encode::Several(files) => list::run(files, key, args, settings),
        Encode::Stores => to_stores(key, args, settings),
        Encode::Stream | Encode::One => one(key, args, settings),
    }
}

/// Encodes one input to shard files or a container.
fn one(key: Option<Arc<SecretKey>>, args: &line::Encode, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let options = options(args, key.clone())?;
    let output = args.outputs.first().map(PathBuf::as_path);
    let task = Task { input: args.input(), output, key: key.as_deref(), args, settings };
    let input = task.open()?;
    let target = task.target(&input);
    if output.is_none() && !target.is_stdout() && !settings.json {
        check_no_container(false, Some(args.input()).filter(|_| settings.given.is_bare()))?;
    }
    settings.given.check(match (&target, &input) {
        (Target::Folder(_), _) => SHARDS,
        (_, Input::Regular(_)) => CONTAINER,
        (_, Input::Pipe(_)) => PIPE,
    })?;
    task.check_outputs(&input, &target)?;
    let (written, fate) = task.encode(input, &target, &options)?;
    let root = hex(&written.root);
    if let Some(signature) = task.detached() {
        signature.write(&written.root)?;
    }
    if let Some(path) = &args.root_file {
        root_file::write(path, &root, settings.policy(args.force), settings)?;
    }
    let report = Report::new(task.named(), &target, &options, (&written, &fate), settings, started);
    let stdout_is_data = target.is_stdout();
    settings.report(&report, Exit::Done, &report.describe(), stdout_is_data)?;
    match (settings.json, stdout_is_data) {
        (false, false) => print_line(&report.root).map_err(|failure| {
            failure.help(format!("the encoding is complete; its root is {}", report.root))
        })?,
        (false, true) => say(&report.root),
        (true, _) => {}
    }
    Ok(Exit::Done)
}

/// Sends the shards of one input to stores.
fn to_stores(key: Option<Arc<SecretKey>>, args: &line::Encode, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let options = &options(args, key)?;
    let task = Task { input: args.input(), output: None, key: None, args, settings };
    let input = task.open()?;
    task.check_outputs(&input, &Target::Stdout)?;
    // Whoever may not read the payload must not read its shards. A pipe does not tell who may read its content.
    let made_of = |mode: u32| settings.policy(args.force).made_of(mode).permissions & (mode | OWNER_ALONE);
    match input {
        Input::Regular(source) => {
            let name = args.input().file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
            let permissions = made_of(source.mode());
            stores::send(Source::Payload(&source), (name, permissions), options, args, settings, started)
        }
        Input::Pipe(mut pipe) => {
            let name =
                args.input().file_name().map(OsStr::as_encoded_bytes).filter(|_| !is_dash(args.input()));
            let file = file_behind(&pipe);
            let permissions = file.map_or(OWNER_ALONE, |meta| made_of(mode(&meta)));
            let source = Source::Pipe(&mut pipe, Place::Path(args.input().to_path_buf()));
            let name = (name.unwrap_or(b"payload"), permissions);
            stores::send(source, name, options, args, settings, started)
        }
    }
}
