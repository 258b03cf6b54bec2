//! `encode --stream` and `decode --stream`: from arguments to the library's live streams, and from results to reports.

mod key;
mod metrics;
mod rate_file;

use self::metrics::Metrics;
use crate::line::Encode;
use crate::line::stream::{Packet, Rate, Receive, Send, Stats};
use crate::plan::check;
use crate::plan::encode::{STREAM_INPUT, STREAM_OUTPUT, StreamOutput, is_network};
use crate::run::target::{Target, is_dash, made_of_file, open_input, quoted};
use crate::say::failure::{Exit, Failure, Result, say, say_line};
use crate::say::metrics::{received as received_metrics, sent as sent_metrics};
use crate::say::sent::{SentReport, network_away};
use crate::say::state::Outcome;
use crate::say::stream::{self as report, ReceivedReport};
use crate::say::stream_help;
use crate::settings::Settings;
use crate::system::progress::remove_stale_beside;
use fec_base::io::output::{FileOut, Policy, check_absent};
use fec_base::names::{show, show_input};
use fec_base::program::interrupt;
use fec_core::window::Ratio;
use fec_keys::cipher::Cipher;
use fec_live::LiveError;
use fec_live::Output;
use fec_live::Received;
use fec_live::address::Address;
use fec_live::paths::Way;
use fec_live::receive::{PacketSource, ReceptionWatcher, receive};
use fec_live::send::{PacketDestination, Sealing, SendOptions, SendWatcher, Sent, StreamSender, payload_for};
use fec_live::udp::Replies;
use fecfile::error::{Action, Cause, Place};
use fecfile::{Error, ErrorKind};
use rate_file::RateFile;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Sends the stream that the arguments of `encode --stream` describe.
pub(crate) fn send(args: &Encode, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let ways = ways(&args.outputs, &args.live)?;
    let key = key::key(args.live.key_file.as_deref(), args.seal.passphrase, true)?;
    let cipher = args.seal.cipher.map_or_else(Cipher::best, Cipher::from);
    let sealing = key.map(|key| Sealing { key, cipher });
    let options =
        args.live.options(payload(args.live.packet, &ways, sealing.is_some())?, !ways.is_empty(), sealing);
    let sender = StreamSender::new(&options, &settings.library).map_err(as_option)?;
    let ends = (args.input(), args.outputs.first());
    let input = open(args.input())?;
    let outputs = args.outputs.iter().filter(|path| !is_network(path));
    let others: Vec<&Path> =
        [Some(args.input()), args.live.key_file.as_deref()].into_iter().flatten().collect();
    let others: Vec<&Path> = others.into_iter().chain(outputs.map(PathBuf::as_path)).collect();
    let metrics = Metrics::new(args.live.metrics.as_deref(), &others)?;
    let (destination, output) = destination(ends, ways, made_of_file(settings.policy(args.force), &input))?;
    let bars = settings.live_bars();
    let context = settings.context(&bars);
    let place = Place::Path(args.input().to_path_buf());
    if !matches!(&destination, PacketDestination::Bytes(output) if output.is_file()) {
        // The receiver is told of the end. An output file would hold only a part of the input, and does not appear.
        interrupt::defer();
    }
    let rate_file = match &args.live.rate {
        Some(Rate::File(path)) => Some(RateFile::open(path)?),
        _ => None,
    };
    let is_quiet = settings.quiet || settings.json;
    let mut teller = Teller { output: &output, is_quiet, metrics, last: None, rate_file };
    let sent = sender.send(input, place, destination, &mut teller, &context).map_err(as_option);
    if let Some(last) = sent.as_ref().ok().or(teller.last.as_ref()) {
        teller.metrics.write(|| sent_metrics(&output, last, true));
    }
    let sent = sent?;
    let report =
        SentReport::new((args.input(), &args.live), output.clone(), &sent, settings, started.elapsed());
    let exit = if sent.stopped { Exit::Interrupted } else { Exit::Done };
    settings.report(&report, exit, &report.describe(settings.verbose), report.is_on_stdout())?;
    Ok(exit)
}

/// The ways that -o names, if any.
fn ways(outputs: &[PathBuf], live: &Send) -> Result<Vec<Way>> {
    let named = outputs.iter().enumerate().filter(|(_, path)| is_network(path));
    named.map(|(nth, path)| Ok(Way { address: address(path)?, interface: live.interface(nth) })).collect()
}

/// The payload bytes of a packet for `--packet auto`.
fn payload(packet: Packet, ways: &[Way], is_sealed: bool) -> Result<u16> {
    match packet.0 {
        None if !ways.is_empty() => Ok(payload_for(ways, is_sealed)?),
        _ => Ok(SendOptions::default().payload),
    }
}

/// Prints what happens while a stream is sent.
struct Teller<'a> {
    output: &'a str,
    is_quiet: bool,
    rate_file: Option<RateFile>,
    metrics: Metrics,
    /// The last counts.
    last: Option<Sent>,
}

impl SendWatcher for Teller<'_> {
    fn is_stopped(&self) -> bool {
        interrupt::interrupted()
    }

    fn not_received(&mut self, replies: &Replies) {
        if !self.is_quiet {
            let why = if replies.refused > 0 { "nobody receives there yet" } else { "there is no way there" };
            say(&format!("{}: {why}; the stream goes on", self.output));
        }
    }

    fn ratio(&mut self) -> Option<Ratio> {
        self.rate_file.as_mut().and_then(RateFile::changed)
    }

    fn network_away(&mut self, to: &Address, why: &LiveError) {
        if !self.is_quiet {
            say(&network_away(to, why));
        }
    }

    fn so_far(&mut self, sent: &Sent) {
        self.metrics.write(|| sent_metrics(self.output, sent, false));
        self.last = Some(sent.clone());
    }
}

/// Puts an error of the form into the words of the command line, where an option chose the form.
fn as_option(error: Error) -> Error {
    match error.cause() {
        Some(LiveError::Settings(_) | LiveError::Push(_)) => Error { action: Action::EncodeStream, ..error },
        _ => error,
    }
}

fn open(path: &Path) -> Result<File> {
    let meta = |path| std::fs::metadata(path).map_err(|e| Failure::io(Action::Read, path, e));
    let is_folder = !is_dash(path) && meta(path)?.is_dir();
    let value = |name: &str| if name == "path" { show_input(path) } else { quoted(path) };
    check(&is_folder, STREAM_INPUT, value)?;
    open_input(path)
}

/// Opens the destination that -o names. Also returns its name for reports.
fn destination(
    (input, named): (&Path, Option<&PathBuf>),
    ways: Vec<Way>,
    policy: Policy,
) -> Result<(PacketDestination<'static>, String)> {
    if !ways.is_empty() {
        let names: Vec<String> = ways.iter().map(|way| way.address.to_string()).collect();
        return Ok((PacketDestination::Udp(ways), names.join(", ")));
    }
    let path = named.map_or(Path::new("-"), PathBuf::as_path);
    let is_there = std::fs::symlink_metadata(path).is_ok();
    check(&StreamOutput { is_bare: Address::is_bare(path), is_there }, STREAM_OUTPUT, |name| match name {
        "address" => {
            let to = show(path);
            let to = to.trim_start_matches('@');
            quoted(format!("udp://{}{to}", if to.starts_with(':') { "HOST" } else { "" }).as_ref())
        }
        "file" => quoted(&Path::new(".").join(path)),
        _ => show(path),
    })?;
    let target = Target::of(path);
    if target.path().is_some() {
        check_absent(path, policy)?;
        target.check_inputs([input])?;
    }
    Ok((PacketDestination::Bytes(output(&target, policy)?), target.to_string()))
}

fn address(path: &Path) -> Result<Address> {
    Address::parse(path).map_err(|e| {
        let failure = Failure::new(e.class().into(), e.to_string());
        Failure { help: stream_help::help(&e), ..failure }
    })
}

/// Opens an output for bytes in order.
fn output(target: &Target, policy: Policy) -> Result<Output<'static>> {
    match target {
        Target::File(path) => {
            remove_stale_beside(path);
            Ok(Output::file(FileOut::create(path, policy)?))
        }
        Target::Folder(path) => Err(Error::at(Action::Write, path.as_path(), ErrorKind::IsFolder).into()),
        Target::Stdout | Target::Special(_) => {
            let (file, place) = target.sequential()?;
            Ok(Output::stream(place, file))
        }
    }
}

/// How a live stream is received, and where it goes.
pub(crate) struct Reception<'a> {
    pub(crate) live: &'a Receive,
    pub(crate) has_passphrase: bool,
    pub(crate) target: &'a Target,
    pub(crate) policy: Policy,
}

/// Receives the live stream in a file or pipe. `head` holds the bytes that were read before.
pub(crate) fn receive_bytes(
    path: &Path,
    head: Vec<u8>,
    input: File,
    how: &Reception<'_>,
    settings: &Settings,
) -> Result<Exit> {
    let source = PacketSource::Bytes { place: path.into(), head, input: Box::new(input) };
    received(source, &show(path), how, settings)
}

/// Receives a live stream at udp://ADDRESS:PORT.
pub(crate) fn receive_udp(path: &Path, how: &Reception<'_>, settings: &Settings) -> Result<Exit> {
    let address = address(path)?;
    let name = address.to_string();
    let source = PacketSource::Udp { address, interface: how.live.interface() };
    received(source, &name, how, settings)
}

/// Receives the stream of a source and prints the outcome. `input` names the source in reports.
fn received(source: PacketSource, input: &str, how: &Reception<'_>, settings: &Settings) -> Result<Exit> {
    let Reception { live, has_passphrase, target, policy } = *how;
    let is_network = matches!(source, PacketSource::Udp { .. });
    let key = key::key(live.key_file.as_deref(), has_passphrase, false)?;
    // Nobody waits for the next bytes of a file.
    let is_live = is_network && !target.is_file();
    let options = live.options(is_network, is_live, key);
    let read = match &source {
        PacketSource::Bytes { place: Place::Path(path), .. } => Some(path.as_path()),
        _ => None,
    };
    let others: Vec<&Path> = [read, live.key_file.as_deref(), target.path()].into_iter().flatten().collect();
    let mut metrics = Metrics::new(live.metrics.as_deref(), &others)?;
    let output = output(target, policy)?;
    let bars = settings.live_bars();
    let context = settings.context(&bars);
    if live.follow {
        interrupt::defer();
    }
    let is_quiet = settings.quiet || settings.json;
    let last = Received::default();
    metrics.write(|| received_metrics(input, &last, false));
    let mut printer = Printer { input, stats: live.stats, is_quiet, told: (0.0, 0), metrics, last };
    let received = receive(source, output, &options, &mut printer, &context);
    let last = received.as_ref().unwrap_or(&printer.last);
    printer.metrics.write(|| received_metrics(input, last, true));
    let received = received?;
    let report = ReceivedReport::new(input, target, &received, settings);
    let exit = received.class().map_or(Exit::Done, Exit::from);
    let outcome = Outcome::mended(exit, received.rebuilt > 0);
    settings.report(&report, outcome, &report.describe(&received, settings.verbose), target.is_stdout())?;
    if exit != Exit::Done && printer.is_quiet {
        say(&format!("fec: decode {input}: the stream is not whole"));
    }
    Ok(exit)
}

/// Prints what happens while a stream is received.
struct Printer<'a> {
    input: &'a str,
    stats: Option<Stats>,
    is_quiet: bool,
    /// The seconds and bytes of the previous line.
    told: (f64, u64),
    metrics: Metrics,
    /// The last counts.
    last: Received,
}

impl ReceptionWatcher for Printer<'_> {
    fn over(&mut self, received: &Received) {
        match self.stats {
            Some(Stats::Json) => say_line(&report::over_line(received)),
            _ if self.is_quiet && received.is_whole() => {}
            _ => say(&report::over(self.input, received)),
        }
    }

    fn is_stopped(&self) -> bool {
        interrupt::interrupted()
    }

    fn listening(&mut self, address: SocketAddr) {
        let local = format!("udp://{address}");
        match self.stats {
            Some(Stats::Json) => say_line(&report::listening(&local)),
            _ if self.is_quiet => {}
            _ => say(&format!("receiving on {local}")),
        }
    }

    fn not_accepted(&mut self, received: &Received, why: &LiveError) {
        let since = if received.arrived > 0 { "nothing is accepted any more: " } else { "" };
        let help = stream_help::help(why).map_or_else(String::new, |help| format!("\n     {help}"));
        say(&format!("fec: decode {}: {since}{why}; still waiting{help}", self.input));
    }

    fn so_far(&mut self, received: &Received) {
        let (time, bytes) = (received.time.as_secs_f64(), received.payload_bytes);
        // A stream that follows another begins at zero.
        let (before, bytes_before) = Some(self.told).filter(|told| told.0 < time).unwrap_or_default();
        self.told = (time, bytes);
        let mbps = bytes.saturating_sub(bytes_before) as f64 * 8e-6 / (time - before).max(1e-3);
        match self.stats {
            Some(Stats::Json) => say_line(&report::line(received, mbps)),
            Some(Stats::Text) => say(&report::text(received, mbps)),
            None => {}
        }
        self.metrics.write(|| received_metrics(self.input, received, false));
        self.last = received.clone();
    }
}
