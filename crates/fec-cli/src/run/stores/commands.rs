//! The commands on stores: from arguments to the library, and from results to reports.

use crate::line::stores::{Limits, Network};
use crate::line::{Decode, Encode, Repair, Verify, VerifyFormat};
use crate::plan::decode::recorded;
use crate::plan::stores as places;
use crate::run::encode::root_file;
use crate::run::target::{Target, check_not_redirected, is_dash};
use crate::say::failure::{Exit, Failure, Result, say};
use crate::say::state::Outcome;
use crate::say::stores::{DecodeReport, SendReport, VerifyReport};
use crate::say::stores_repair::RepairReport;
use crate::say::table;
use crate::settings::{Settings, print_line, report_failure};
use fec_base::io::output::{Policy, check_absent};
use fec_base::io::small;
use fec_base::names::{hex, show};
use fec_base::program::interrupt;
use fec_core::digest::Digest;

use fec_stores::call::CallOptions;
use fec_stores::error::StoresError;
use fec_stores::mend::StoredRepair;
use fec_stores::places::Places;
use fec_stores::send::{SEGMENT, SendOptions, causes, send as send_to};
use fec_stores::stored::Stored;
use fec_stores::target::Target as Store;

use fecfile::error::{Action, Error, ErrorKind, Place};
use fecfile::payload::{Options, Source};
use fecfile::seal::Opener;
use std::path::Path;
use std::time::{Duration, Instant};

/// Objects that are sent at the same time, unless --uploads says otherwise.
const UPLOADS: usize = 8;
/// Most bytes of a list of places.
const LONGEST_LIST: usize = 4 << 20;

/// Sends the shards of `source` to the stores of --to. `name` is recorded; objects that are files get `permissions`.
pub(crate) fn send(
    source: Source<'_>,
    (name, permissions): (&[u8], u32),
    options: &Options,
    args: &Encode,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    let places = open(targets(&args.stores.to)?, &args.network.limits, settings)?;
    let options = SendOptions {
        encode: options.clone(),
        segment_len: args.stores.segment_size.unwrap_or(SEGMENT),
        spool: args.network.spool.clone(),
        uploads: args.stores.uploads.map_or(UPLOADS, usize::from),
        crowded: args.stores.crowded,
        enough: args.stores.enough,
        permissions,
    };
    let bars = settings.bars("scan");
    let context = settings.context(&bars);
    defer("encode", settings, false);
    let sent = send_to(source, name, &places, &options, &context).map_err(moved("encode", &args.network))?;
    let root = hex(&sent.root);
    if let Some(path) = &args.root_file {
        root_file::write(path, &root, settings.policy(args.force), settings)?;
    }
    let report = SendReport::new(&sent, &places, args.input(), settings, started);
    let exit = sent.class().map_or(Exit::Done, Exit::from);
    settings.report(&report, exit, &report.describe(), false)?;
    if exit != Exit::Done {
        settings.say_quietly("encode", || {
            let lines = causes(sent.missing.iter(), &places).into_iter();
            lines.map(|line| format!("did not arrive at {line}")).collect()
        });
    }
    if !settings.json {
        print_line(&root)?;
    }
    Ok(exit)
}

/// Restores the encoding with the root --root from the stores of --from.
pub(crate) fn decode(args: &Decode, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let places = open(targets(&args.stores.from)?, &args.network.limits, settings)?;
    let output = args.output.as_deref();
    defer("decode", settings, output.is_some_and(is_dash));
    let stored = Stored::find(&places, root(args.root), args.network.spool.clone())
        .map_err(moved("decode", &args.network))?;
    let keys = args.open.keys()?;
    let opener = stored.opener(keys.as_ref()).map_err(moved("decode", &args.network))?;
    let opener = opener.as_ref();
    let policy = stored.made_of_objects(settings.policy(args.force));
    let target = target(output, &stored, opener, policy)?;
    let bars = settings.bars("scan");
    let context = settings.context(&bars);
    let mut out = target.open()?;
    let restored = match args.range {
        None => stored.restore(opener, out.destination(policy), &context),
        Some(range) => stored.restore_range(range, opener, out.destination(policy), &context),
    };
    let restored = restored.map_err(moved("decode", &args.network))?;
    let report = DecodeReport::new(&stored, (&restored, opener.is_some()), &places, &target, started);
    let outcome = Outcome::mended(Exit::Done, !restored.trouble.is_empty());
    settings.report(&report, outcome, &report.describe(), target.is_stdout())?;
    Ok(Exit::Done)
}

/// Examines what the stores of --from still hold.
pub(crate) fn verify(args: &Verify, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let places = open(targets(&args.stores.from)?, &args.network.limits, settings)?;
    defer("verify", settings, false);
    let stored = Stored::find_everywhere(&places, root(args.root), args.network.spool.clone())
        .map_err(moved("verify", &args.network))?;
    let bars = settings.bars("verify");
    let context = settings.context(&bars);
    let verified = stored.verify(args.deep, &context).map_err(moved("verify", &args.network))?;
    let report = VerifyReport::new(&stored, &verified, &places, started);
    let exit = verified.class().map_or(Exit::Done, Exit::from);
    let text = match args.format {
        VerifyFormat::Text => report.describe(),
        VerifyFormat::Markdown => table::markdown(&[report.row(&places, exit)]),
    };
    settings.report_here(&report, exit, &text)?;
    settings.report_damage(exit, || {
        let can = if verified.margin() < 0 { "cannot" } else { "can" };
        format!("{}: shards are missing or damaged; the payload {can} be restored", hex(&stored.root()))
    });
    Ok(exit)
}

/// Makes lost shards and manifests anew.
pub(crate) fn repair(args: &Repair, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let from = places::some(targets(&args.from.urls)?)?;
    let (all, to) = places::repaired(from, targets(&args.to)?)?;
    let how = StoredRepair { to, now: args.now, deep: args.deep, dry_run: args.dry_run };
    let places = open(all, &args.network.limits, settings)?;
    defer("repair", settings, false);
    let stored = Stored::find_everywhere(&places, root(args.root), args.network.spool.clone())
        .map_err(moved("repair", &args.network))?;
    let bars = settings.bars("repair");
    let context = settings.context(&bars);
    let repaired = stored.repair(&how, &context).map_err(moved("repair", &args.network))?;
    let report = RepairReport::new(&stored, &repaired, &places, &how, started);
    let exit = repaired.class(args.dry_run).map_or(Exit::Done, Exit::from);
    let outcome = Outcome::mended(exit, report.has_work());
    settings.report(&report, outcome, &report.describe(), false)?;
    if exit != Exit::Done {
        settings.say_quietly("repair", || report.lines(causes(repaired.missing.iter(), &places)));
    }
    Ok(exit)
}

/// The places that options name. `@FILE` is a list of them.
pub(super) fn targets(named: &[String]) -> Result<Vec<Store>> {
    let mut targets = Vec::new();
    for name in named {
        match name.strip_prefix('@').map(Path::new) {
            None => targets.push(places::place(name)?),
            Some(path) => {
                let text = small::read_text(path, LONGEST_LIST);
                let text = text.map_err(|e| Failure::io(Action::Read, path, e))?;
                targets.extend(places::listed(path, &text)?);
            }
        }
    }
    Ok(targets)
}

/// The root that proves that the right bytes come.
pub(super) fn root(root: Option<Digest>) -> Digest {
    root.expect("the parser asks for --root where --from is given")
}

pub(super) fn open(targets: Vec<Store>, limits: &Limits, settings: &Settings) -> Result<Places> {
    let targets = &places::some(targets)?;
    let options = CallOptions { timeout: limits.timeout, retries: limits.retries, rate: limits.limit };
    let mut places = Places::open(targets, options, settings.library.sync).map_err(explain("open"))?;
    places.cancel = interrupt::cancel().child();
    Ok(places)
}

/// The target of the payload: -o, or the recorded name.
fn target(
    output: Option<&Path>,
    stored: &Stored<'_>,
    opener: Option<&Opener>,
    policy: Policy,
) -> Result<Target> {
    let name = || recorded(stored.name().or_else(|| opener.and_then(Opener::name)));
    let target = match output.map(Target::of) {
        None => Target::File(name()?),
        Some(Target::Folder(folder)) => Target::File(folder.join(name()?)),
        Some(target) => target,
    };
    if let Target::File(path) = &target {
        check_not_redirected(path)?;
        check_absent(path, policy)?;
    }
    Ok(target)
}

/// Makes a signal end the run in an orderly way, and soon, even if the run waits for a pipe.
pub(super) fn defer(command: &'static str, settings: &Settings, stdout_is_data: bool) {
    let is_json = settings.json;
    interrupt::defer_briefly(move || {
        let failure = interrupted(command);
        say(&failure.to_string());
        if is_json {
            report_failure(&failure, command, stdout_is_data);
        }
    });
}

fn interrupted(command: &str) -> Failure {
    let failure = Failure::new(Exit::Interrupted, format!("{command}: interrupted"));
    match command {
        "forget" => failure.help("what was removed is gone, and the next run goes on from there"),
        "encode" | "repair" => failure.help("what was sent stays, and the next run goes on from there"),
        _ => failure,
    }
}

/// As [`explain`], for commands that keep shards in the spool while these are under way: its errors name the folder.
fn moved(command: &'static str, network: &Network) -> impl FnOnce(Error) -> Failure {
    let folder = network.spool.clone().unwrap_or_else(std::env::temp_dir);
    move |error| {
        let is_of_spool = error.place == Place::Temporary && matches!(error.kind, ErrorKind::Io(_));
        let failure = explain(command)(error);
        if !is_of_spool {
            return failure;
        }
        failure.help(format!(
            "shards that are under way are kept in {}: --spool FOLDER names another, with more room",
            show(folder)
        ))
    }
}

/// Puts an error into the words of the command line.
pub(super) fn explain(command: &'static str) -> impl FnOnce(Error) -> Failure {
    move |error| match error.kind {
        ErrorKind::Cancelled => {
            if !interrupt::may_speak() {
                // The thread that speaks also ends the process.
                std::thread::sleep(Duration::from_secs(1));
            }
            interrupted(command)
        }
        _ => with_help(error),
    }
}

fn with_help(error: Error) -> Failure {
    let Some(cause) = error.cause() else { return error.into() };
    let help = match cause {
        StoresError::Crowded(_) => {
            "name more domains, choose more recovery shards with -m, or accept it with --crowded"
        }
        StoresError::FewLanded { .. } | StoresError::NoManifestLanded(_) => {
            "nothing is promised; what was sent stays: run the same command again, it sends only what is missing"
        }
        StoresError::Unasked(_) => {
            "try again when all of them answer; with --partial it is removed from the others"
        }
        StoresError::UnreadOthers(_) => {
            "forget those first, or try again; with --partial they count as needing nothing"
        }
        StoresError::OfOther(_) => "forget that encoding, or leave its segments where they are",
        StoresError::ManySegments { .. } => "choose a larger --segment-size",
        StoresError::NotFound { .. } => "is it the right root, and are these all the places?",
        StoresError::FewLeft { .. } => "name further places with --from; try again when all of them answer",
        StoresError::NotAState => "choose another name with --state",
        StoresError::OtherState => "each root needs a --state of its own",
        StoresError::ReadOnly => "shards go to s3://, gs://, az://, file:// and folders",
        _ => return error.into(),
    };
    Failure::from(error).help(help)
}
