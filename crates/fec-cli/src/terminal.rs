//! How wide the lines of reports may be.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Where a terminal does not tell its width.
const USUAL: usize = 80;

/// No table can be read in fewer columns.
const NARROWEST: usize = 40;

/// The columns of a line that goes to `out`: those of COLUMNS, or of the terminal. None for files and pipes, where lines are as
/// long as they are.
pub(crate) fn width(out: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = || {
        let size = rustix::termios::tcgetwinsize(out).ok();
        size.map(|size| size.ws_col.into()).filter(|columns| *columns > 0).unwrap_or(USUAL)
    };
    let columns = told.filter(|columns| *columns > 0).or_else(|| out.is_terminal().then(of_terminal));
    columns.map(|columns: usize| columns.max(NARROWEST))
}
