//! Checked settings that all commands use.

use crate::line::Common;
use crate::plan::common;
use crate::plan::given::Given;
use crate::run::tuned;
use crate::say::failure::{Exit, Failure, Kind, Result, note_said, say, say_line};
use crate::say::state::{Ended, Head, Outcome};
use crate::say::terminal::{folded, harmless};
use crate::system::closed::check_stdout;
use crate::system::progress::{Bars, Mode};
use fec_base::context::{Context, Progress};
use fec_base::io::output::Policy;
use fec_base::names::show_bytes;
use fec_base::program::interrupt;
use fec_core::gf256::kernel::Backend;
use serde::Serialize;

/// The common options, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) quiet: bool,
    /// -v: reports list everything that was found.
    pub(crate) verbose: bool,
    pub(crate) json: bool,
    pub(crate) progress: Mode,
    /// True if the backend was asked for by name.
    pub(crate) backend_asked: bool,
    /// The threads that were asked for, if any.
    pub(crate) threads_asked: Option<usize>,
    /// True if the kernel's settings are the ones that this user keeps.
    pub(crate) tuning_is_kept: bool,
    /// The options that were given.
    pub(crate) given: Given,
    /// The library's settings.
    pub(crate) library: fecfile::Settings,
}

impl Settings {
    pub(crate) fn new(common: &Common, given: Given) -> Result<Settings> {
        let backend = match &common.backend {
            None => Backend::best(),
            Some(name) => common::backend(name)?,
        };
        let (own, kept) = tuned::own(backend);
        let tuning = match &common.tuning {
            None => own,
            Some(changes) => common::tuning(own, changes)?,
        };
        let backend = backend.with_tuning(tuning);
        let threads = match common.threads {
            Some(threads) => usize::from(threads),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        tracing::info!("backend {} set for {tuning}, {threads} threads", backend.name());
        Ok(Settings {
            quiet: common.quiet,
            verbose: common.verbose > 0,
            json: common.json,
            progress: common.progress,
            backend_asked: common.backend.is_some(),
            threads_asked: common.threads.map(usize::from),
            tuning_is_kept: kept.is_some() && common.tuning.is_none(),
            given,
            library: fecfile::Settings {
                threads,
                backend,
                map: !common.no_mmap,
                sync: !common.no_sync,
                ..fecfile::Settings::new()
            }
            .with_memory(common.max_memory),
        })
    }

    /// The context of the library's operations. The first signal ends them where the command asked for that
    /// ([`interrupt::defer`]).
    pub(crate) fn context<'a>(&self, progress: &'a dyn Progress) -> Context<'a> {
        Context::new(self.library).with_progress(progress).with_cancel(interrupt::cancel())
    }

    pub(crate) fn policy(&self, force: bool) -> Policy {
        Policy::new().with_force(force).with_sync(self.library.sync)
    }

    /// Shows progress as the user asked for. `scan` is the verb for going through a container.
    pub(crate) fn bars(&self, scan: &'static str) -> Bars {
        Bars { mode: self.progress, quiet: self.quiet, scan }
    }

    /// The progress of a live stream, only as lines of JSON. Its sender and receiver often share a terminal, where two
    /// bars would overwrite each other.
    pub(crate) fn live_bars(&self) -> Bars {
        Bars { mode: self.progress, quiet: true, scan: "scan" }
    }

    /// Prints the result that a command exists for on standard output: as JSON, as `text`, or nothing with -q.
    pub(crate) fn report_here(
        &self,
        report: &impl Serialize,
        outcome: impl Into<Outcome>,
        text: &str,
    ) -> Result<()> {
        match (self.json, self.quiet) {
            (true, _) => self.report(report, outcome, text, false),
            (false, true) => Ok(()),
            (false, false) => {
                note_said();
                print_line(folded(&harmless(text), &std::io::stdout()).trim_end())
            }
        }
    }

    /// With -q, tells in one line on standard error why the exit code is not 0.
    pub(crate) fn report_damage(&self, exit: Exit, what: impl FnOnce() -> String) {
        if self.quiet && !self.json && exit != Exit::Done {
            say(&format!("fec: {} {}", self.given.command(), what()));
        }
    }

    /// With -q, tells on standard error why a command ends as it does, one line per reason.
    #[cfg(feature = "stores")]
    pub(crate) fn say_quietly(&self, command: &str, lines: impl FnOnce() -> Vec<String>) {
        if self.quiet && !self.json {
            lines().iter().for_each(|line| say(&format!("fec: {command}: {line}")));
        }
    }

    /// Prints the final report of a command: JSON on standard output (or on standard error if standard output carries
    /// the payload), or `text` on standard error.
    pub(crate) fn report(
        &self,
        report: &impl Serialize,
        outcome: impl Into<Outcome>,
        text: &str,
        stdout_is_data: bool,
    ) -> Result<()> {
        if self.json {
            let line = self.json_line(report, outcome)?;
            note_said();
            if !stdout_is_data {
                return print_line(&line);
            }
            say_line(&line);
        } else if !self.quiet {
            say(text);
        }
        Ok(())
    }
}

impl Settings {
    /// A report as a line of JSON, with the fields that all have.
    pub(crate) fn json_line(&self, report: &impl Serialize, outcome: impl Into<Outcome>) -> Result<String> {
        json(&Head::new(self.given.command(), outcome).with(report))
    }
}

/// A report of `fec-bench` as a line of JSON, with the fields that all have.
pub(crate) fn json_of_bench(report: &impl Serialize, exit: Exit) -> Result<String> {
    json(&Ended::new(report, exit))
}

fn json(report: &impl Serialize) -> Result<String> {
    serde_json::to_string(report).map_err(|e| Failure::new(Exit::Io, format!("write the report: {e}")))
}

/// Prints a line on standard output.
pub(crate) fn print_line(line: &str) -> Result<()> {
    print_bytes(format!("{line}\n").as_bytes())
}

/// Prints lines for other programs on standard output, unchanged. On a terminal, control characters are escaped.
pub(crate) fn print_lines(lines: &[u8]) -> Result<()> {
    use std::io::IsTerminal;
    if !std::io::stdout().is_terminal() {
        return print_bytes(lines);
    }
    let shown = lines.split_inclusive(|byte| *byte == b'\n').map(|line| match line.strip_suffix(b"\n") {
        Some(line) => show_bytes(line) + "\n",
        None => show_bytes(line),
    });
    print_bytes(shown.collect::<String>().as_bytes())
}

/// Prints bytes on standard output.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    check_stdout().map_err(Failure::stdout)?;
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::stdout)
}

/// Prints the final JSON object of a command that failed.
pub(crate) fn report_failure(failure: &Failure, command: &str, stdout_is_data: bool) {
    #[derive(Serialize)]
    struct Report<'a> {
        error: &'a str,
        help: Option<&'a str>,
        #[serde(flatten)]
        kind: Option<&'a Kind>,
    }
    let report =
        Report { error: &failure.message, help: failure.help.as_deref(), kind: failure.kind.as_ref() };
    if let Ok(line) = serde_json::to_string(&Head::new(command, failure.exit).with(&report)) {
        if stdout_is_data {
            say_line(&line);
        } else {
            // A gone reader changes nothing: the exit code tells of the failure too.
            let _ = print_line(&line);
        }
    }
}
