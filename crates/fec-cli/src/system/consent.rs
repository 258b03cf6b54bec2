//! A question at the terminal that only `yes` consents to.

use std::io::{self, BufRead, IsTerminal, Read, Write};

/// Most bytes of an answer.
const LONGEST: u64 = 80;

/// Asks on standard error, and reads a line of standard input. `None`: one of both is no terminal.
pub(crate) fn asked(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let mut out = io::stderr();
    write!(out, "{question}").and_then(|()| out.flush()).ok()?;
    let mut answer = String::new();
    // A broken answer is not yes.
    let _ = io::BufReader::new(io::stdin().take(LONGEST)).read_line(&mut answer);
    Some(answer.trim().eq_ignore_ascii_case("yes"))
}
