//! `fec`: protects files and pipes against loss, corruption and tampering.
//!
//! ```text
//! line ─▶ settings ─▶ plan ─▶ run ─▶ say, exit code
//!                              │
//!                              └─▶ fecfile, fec-sidecar, fec-stores, fec-live, fec-bench: all the work
//! ```

#![cfg_attr(
    not(unix),
    allow(dead_code, unused_imports, reason = "whatever serves sidecars alone is for Unix")
)]

mod line;
mod plan;
mod run;
mod say;
mod settings;
mod system;
mod units;

use clap::{CommandFactory, FromArgMatches};
use fec_base::names::{bytes, show};
use line::{Cli, Command};
use plan::given::Given;
use plan::options::TEXT;
use run::target::kind;
use run::{attest, bench, decode, encode, keygen, lists, manual, repair, sidecar, stores, verify};
use say::failure::{self, Exit, Failure};
use say::{terminal, usage};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use system::progress::Notices;
use system::{border, closed, secrets, signals};

/// Parses the command line. Also returns the options that stand in it.
fn parsed() -> Result<(Cli, Given), clap::Error> {
    let mut fec = Cli::command();
    let matches = fec.try_get_matches_from_mut(std::env::args_os())?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut fec))?;
    Ok((cli, Given::new(&fec, &matches)))
}

fn main() -> ExitCode {
    if let Some(variable) = secrets::look() {
        return usage::refuse(&usage::bare_passphrase(variable)).into();
    }
    let (cli, given) = match parsed() {
        Ok(parsed) => parsed,
        Err(error) => return usage::end(&error).into(),
    };
    start_logging(cli.common.verbose);
    if cli.common.locate {
        fec_base::program::stages::start();
    }
    let outcome = run(&cli, given).and_then(|exit| match border::close_stdout() {
        // The caller closed standard output, so nothing that was meant for it is missed.
        Err(_) if closed::check_stdout().is_err() => Ok(exit),
        closed => closed.map(|()| exit).map_err(Failure::stdout),
    });
    if cli.common.locate && outcome.is_ok() {
        failure::say_line(&fec_bench::locate::report(cli.common.json, terminal::width(&std::io::stderr())));
    }
    let notices = Notices::take();
    if !cli.common.quiet && !cli.common.json {
        for (path, count) in notices.removed {
            failure::say(&format!(
                "removed {} ({}), which a killed run had left",
                show(path.strip_prefix(".").unwrap_or(&path)),
                bytes(count)
            ));
        }
    }
    if !cli.common.quiet {
        warn_of_writers(&notices.open_elsewhere);
    }
    match outcome {
        Ok(exit) => {
            failure::explain_silence(given.command(), exit);
            exit.code().into()
        }
        Err(failure) if failure.broken_pipe => border::end_without_reader(),
        Err(failure) => {
            failure::say(&failure.to_string());
            if cli.common.json {
                settings::report_failure(
                    &failure,
                    given.command(),
                    plan::stdout::stdout_is_data(&cli.command, kind),
                );
            }
            failure.exit.code().into()
        }
    }
}

/// Warns of inputs that were open for writing elsewhere: nobody can know whether they stayed the same.
fn warn_of_writers(open: &BTreeSet<PathBuf>) {
    const NAMED: usize = 3;
    for path in open.iter().take(NAMED) {
        failure::say(&format!(
            "warning: {} was open for writing elsewhere while it was read: what was written just then may be torn",
            show(path)
        ));
    }
    if open.len() > NAMED {
        failure::say(&format!("warning: so were {} more", open.len() - NAMED));
    }
}

fn run(cli: &Cli, given: Given) -> Result<Exit, Failure> {
    signals::on_panics();
    // The table of descriptors must grow while there is one thread: `install` starts another.
    border::allow_many_files();
    signals::install().map_err(|e| Failure::new(Exit::Io, format!("watch for signals: {e}")))?;
    if lists::run(&cli.common, given)? {
        return Ok(Exit::Done);
    }
    let settings = settings::Settings::new(&cli.common, given)?;
    match &cli.command {
        Command::Encode(args) => encode::run(args, &settings),
        Command::Decode(args) => decode::run(args, &settings),
        Command::Verify(args) => verify::run(args, &settings),
        Command::Repair(args) => repair::run(args, &settings),
        Command::Protect(args) => sidecar::protect::run(args, &settings),
        Command::List(args) => stores::list(args, &settings),
        Command::Forget(args) => stores::forget(args, &settings),
        Command::Rekey(args) => stores::rekey(args, &settings),
        Command::Manifest(args) => sidecar::manifest::run(args, &settings),
        Command::Attest(args) => attest::run(args, &settings),
        Command::Keygen(args) => keygen::run(args, &settings),
        Command::Bench(args) => bench::run(args, &settings),
        Command::Completions { shell } => {
            given.check(TEXT).and_then(|()| manual::completions(*shell)).map(|()| Exit::Done)
        }
        Command::Man { command } => {
            given.check(TEXT).and_then(|()| manual::page(command.as_deref())).map(|()| Exit::Done)
        }
    }
}

/// -v and -vv: logs events on standard error. Only those of fec: the crates that speak to stores may log what they
/// send.
fn start_logging(verbose: u8) {
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let level = match verbose {
        0 => return,
        1 => tracing::Level::INFO,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Hushed(std::io::stderr()))
        .with_ansi(false)
        .without_time()
        .with_target(false)
        // Logging such an error would panic if standard error cannot be written to.
        .log_internal_errors(false)
        .finish()
        .with(filter_fn(|event| event.target().starts_with("fec")))
        .init();
}

/// Standard error, without secrets and control characters. `write` gets an event in one piece.
struct Hushed(std::io::Stderr);

impl std::io::Write for Hushed {
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = failure::plain(&String::from_utf8_lossy(event));
        self.0.write_all(text.as_bytes()).map(|()| event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
