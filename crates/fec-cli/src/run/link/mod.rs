//! `bench link`: tests the link between two machines, and reports in words.

use crate::line::link::Link;
use crate::say::failure::{Exit, Failure, Result, note_said, say};
use crate::say::stream_help::of_settings;
use crate::say::terminal::{harmless, width};
use crate::settings::{Settings, json_of_bench, print_line};
use crate::system::progress::{Mode, say_json};
use fec_bench::link::{LinkError, LinkReport, LinkWatcher, Listener, SoFar, run as test};
use serde::Serialize;
use std::net::SocketAddr;

pub(crate) fn run(args: &Link, settings: &Settings) -> Result<Exit> {
    fec_base::program::interrupt::defer();
    let mut teller = Teller::new(settings);
    if let Some(host) = &args.host {
        let report = test(host, &args.options(), &settings.library, &mut teller).map_err(failure)?;
        return told(&report, settings);
    }
    let address = args.listen.as_ref().expect("the parser asks for a host, or for --listen");
    let listener = Listener::open(address).map_err(failure)?;
    let options = args.listen_options();
    loop {
        let report = listener.serve(&options, &settings.library, &mut teller).map_err(failure)?;
        let exit = told(&report, settings)?;
        if !args.keep || exit == Exit::Interrupted {
            return Ok(exit);
        }
        teller = Teller::new(settings);
    }
}

/// Prints a report.
fn told(report: &LinkReport, settings: &Settings) -> Result<Exit> {
    let exit = match report {
        // The side that ended the test is told so. The other side gets an ordinary report.
        _ if fec_base::program::interrupt::interrupted() => Exit::Interrupted,
        LinkReport { complete: false, .. } => Exit::Io,
        LinkReport { payloads_wrong: 1.., .. } => Exit::Untrue,
        _ => Exit::Done,
    };
    let text = match settings.json {
        true => json_of_bench(report, exit)?,
        false => harmless(&report.text(width(&std::io::stdout()))),
    };
    note_said();
    print_line(&text)?;
    Ok(exit)
}

/// Puts an error into the words of the command line.
fn failure(error: LinkError) -> Failure {
    let exit = error.class().map_or(Exit::Interrupted, Exit::from);
    let help = help(&error);
    match error {
        LinkError::Library(error) => error.into(),
        error => Failure { help, ..Failure::new(exit, format!("bench link: {error}")) },
    }
}

/// The advice for an error.
fn help(error: &LinkError) -> Option<String> {
    let fixed = match error {
        LinkError::TooLong { most: Some(most), .. } => {
            return Some(format!("choose a --packet of at most {most} bytes, or auto"));
        }
        LinkError::Settings(cause) => of_settings(cause),
        LinkError::NotOneMachine(_) => "name the machine on which fec bench link --listen runs",
        LinkError::NobodyListens(_) => {
            "start fec bench link --listen there first; with --wait-ms it is waited for"
        }
        LinkError::NoAnswer { .. } => {
            "does fec bench link --listen run there, and does a firewall let its UDP port through?"
        }
        LinkError::NobodyCame { .. } => {
            "start fec bench link HOST on the other machine; --wait-ms waits longer"
        }
        LinkError::Silent(_) => "was it ended, or is the way overloaded? --mbps sends less",
        LinkError::Busy(_) => "try again when it has ended",
        LinkError::Window { .. } => "choose a smaller --window, or listen with more --max-memory",
        LinkError::Version { .. } => "use the same fec on both machines",
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// Prints on standard error what happens during a test.
struct Teller {
    mode: Mode,
    is_quiet: bool,
    has_json: bool,
    last: SoFar,
}

#[derive(Serialize)]
struct PlaceLine {
    event: &'static str,
    action: &'static str,
    address: String,
}

#[derive(Serialize)]
struct SoFarLine {
    event: &'static str,
    action: &'static str,
    seconds: f64,
    sent: u64,
    received: u64,
    bytes: u64,
}

impl Teller {
    fn new(settings: &Settings) -> Teller {
        Teller {
            mode: settings.progress,
            is_quiet: settings.quiet,
            has_json: settings.json,
            last: SoFar::default(),
        }
    }

    fn place(&self, event: &'static str, address: SocketAddr, words: &str) {
        match self.mode {
            Mode::Json => say_json(&PlaceLine { event, action: "bench", address: address.to_string() }),
            _ if self.is_quiet => {}
            _ => {
                let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                say(&format!("{words} {address}"));
            }
        }
    }
}

impl LinkWatcher for Teller {
    fn listening(&mut self, at: SocketAddr) {
        self.place("listening", at, "listening on");
    }

    fn begun(&mut self, other: SocketAddr) {
        self.place("begun", other, "testing the link with");
    }

    fn so_far(&mut self, so_far: &SoFar) {
        let SoFar { nanoseconds, received, sent, bytes } = *so_far;
        let seconds = nanoseconds as f64 / 1e9;
        match self.mode {
            Mode::Json => {
                let (event, action) = ("progress", "bench");
                say_json(&SoFarLine { event, action, seconds, sent, received, bytes });
            }
            Mode::Auto if !self.is_quiet && !self.has_json => {
                let time = (nanoseconds.saturating_sub(self.last.nanoseconds)).max(1) as f64;
                let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
                let (came, were_sent) = (since(received, self.last.received), since(sent, self.last.sent));
                let mbps = since(bytes, self.last.bytes) * 8e3 / time;
                let lost = if were_sent > 0.0 { (1.0 - came / were_sent).max(0.0) * 100.0 } else { 0.0 };
                say(&format!(
                    "{seconds:5.1} s: {mbps:.1} Mb/s, {:.0} datagrams/s, {lost:.2} % lost",
                    came * 1e9 / time
                ));
            }
            _ => {}
        }
        self.last = *so_far;
    }
}
