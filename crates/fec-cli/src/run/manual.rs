//! Completion scripts and manual pages, from the definition of the command line.

use crate::line::Cli;
use crate::plan::common::named;
use crate::say::failure::{Failure, Result};
use clap::CommandFactory;
use std::io::Write;

/// Prints a completion script.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fec", &mut script);
    print(&script)
}

/// Prints the manual page of fec, or of one of its commands.
pub(crate) fn page(command: Option<&str>) -> Result<()> {
    let mut fec = Cli::command();
    fec.build();
    let page = match command {
        None => fec,
        Some(name) => named(&fec, name)?.clone(),
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff).map_err(Failure::stdout)?;
    print(&roff)
}

fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::stdout)
}
