//! Choices that any command has: a kernel, its settings, and the lists of both. Also the page of a command.

use super::given::Given;
use crate::say::failure::{Failure, Result, misuse};
use fec_base::processor;
use fec_core::gf256::kernel::{Backend, Tuning};
use std::path::Path;

/// The kernel with this name.
///
/// # Errors
/// Wrong use: this machine does not have it.
pub(crate) fn backend(name: &str) -> Result<Backend> {
    Backend::by_name(name).map_err(|e| {
        let have: Vec<&str> = Backend::available().map(Backend::name).collect();
        Failure::usage(format!("--backend {name}: {e}"))
            .help(format!("this machine has: {}", have.join(", ")))
    })
}

/// The settings `own` of this machine, changed.
///
/// # Errors
/// Wrong use: a setting or a value does not exist.
pub(crate) fn tuning(own: Tuning, changes: &str) -> Result<Tuning> {
    own.changed(changes).map_err(|e| {
        Failure::usage(format!("--tuning {changes}: {e}"))
            .help(format!("this machine's are {}", processor::listed(own)))
    })
}

/// The settings `table`, changed as the file at `path` says.
///
/// # Errors
/// As [`tuning`].
pub(crate) fn kept_tuning(table: Tuning, changes: &str, path: &Path) -> Result<Tuning> {
    table.changed(changes).map_err(|e| misuse("read", path, &e.to_string()))
}

/// Refuses inputs where `option` asks for a list: the exit code would say that they were read.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_lists(given: Given, option: &str) -> Result<()> {
    if !given.has_inputs() {
        return Ok(());
    }
    let why = format!("{} {option} list: it prints a list, and reads nothing", given.command());
    Err(Failure::usage(why).help(format!("name no input:\n  fec encode {option} list")))
}

/// The command of `fec` with the name of a page, in which hyphens stand for spaces: bench-link is `bench link`.
///
/// # Errors
/// Wrong use: there is no such command.
pub(crate) fn named<'a>(fec: &'a clap::Command, name: &str) -> Result<&'a clap::Command> {
    name.split('-').try_fold(fec, |fec, name| fec.find_subcommand(name)).ok_or_else(|| {
        let known: Vec<&str> = fec.get_subcommands().map(clap::Command::get_name).collect();
        Failure::usage(format!("man {name}: there is no such command")).help(known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn names_that_nothing_has_are_refused() {
        assert_eq!(backend("scalar").expect("every machine has it").name(), "scalar");
        let own = Backend::by_name("scalar").expect("every machine has it").tuning();
        assert!(tuning(own, own.name()).is_ok());
        let mut fec = crate::line::Cli::command();
        fec.build();
        assert_eq!(named(&fec, "bench-link").expect("a command").get_name(), "link");
        let refused = [
            (backend("none").map(drop), "--backend none: "),
            (tuning(own, "none=1").map(drop), "--tuning none=1: "),
            (kept_tuning(own, "none=1", Path::new("kept")).map(drop), "read kept: "),
            (named(&fec, "bench-none").map(drop), "man bench-none: there is no such command"),
        ];
        for (refused, begins) in refused {
            let message = refused.expect_err(begins).message;
            assert!(message.starts_with(begins), "{message}");
        }
    }

    #[test]
    fn a_list_reads_no_input() {
        let refused = |words| check_lists(crate::plan::parsed("verify", words).1, "--backend");
        assert!(refused("--backend list").is_ok() && refused("a").is_err() && refused("--roots l").is_err());
    }
}
