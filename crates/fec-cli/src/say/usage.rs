//! Wrong use of the command line, reported like every other error.

use crate::line::examples::SHORT;
use crate::line::{Cli, short};
use crate::say::failure::{Exit, Failure, say};
use crate::say::habits;
use crate::settings::{print_line, report_failure};
use crate::system::secrets::{HIDDEN, repeatable, repeats, value_is_harmless};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fec_base::names::show;
use std::error::Error;

/// Prints why a command line cannot be used, or the help that it asks for. Returns the exit code.
pub(crate) fn end(error: &clap::Error) -> u8 {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && command() == "fec" {
        say(SHORT);
        return Exit::Usage.code();
    }
    if is_help {
        let screen = if error.kind() == ErrorKind::DisplayHelp && !is_long_help() {
            short::help(&command())
        } else {
            None
        };
        if let Some(screen) = screen {
            let _ = print_line(&screen);
            return Exit::Done.code();
        }
        // A failed write is ignored: nobody may be reading.
        let _ = error.print();
        return if error.use_stderr() { Exit::Usage.code() } else { Exit::Done.code() };
    }
    let habit = habits::meant(error, &command());
    refuse(&habit.unwrap_or_else(|| failure(&without_values(error))))
}

/// Tells whether all of the help was asked for: by --help, or by `fec help`.
fn is_long_help() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.next().is_some_and(|first| first == "help" || first == "--help")
        || words.any(|word| word == "--help")
}

/// Tells of a command line that cannot be used, before its options are known. Returns the exit code.
pub(crate) fn refuse(failure: &Failure) -> u8 {
    say(&failure.to_string());
    if std::env::args_os().any(|argument| argument == "--json") {
        report_failure(failure, command().trim_start_matches("fec "), false);
    }
    failure.exit.code()
}

/// The failure of a passphrase that is a word of the command line too.
pub(crate) fn bare_passphrase(variable: &str) -> Failure {
    Failure::usage(format!(
        "the passphrase in {variable} is also a word of the command line, which others can read"
    ))
    .help(format!(
        "take another name or another passphrase; or leave {variable} out, which asks at the terminal"
    ))
}

/// The parser's message without values that may be secrets or control a terminal.
fn without_values(error: &clap::Error) -> String {
    let mut said = error.render().to_string();
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.as_str(),
        _ => "",
    };
    let option = word(ContextKind::InvalidArg);
    let mut is_clean = true;
    // The parser quotes values, also behind the `--` of a tip.
    let mut hide = |value: &str, shown: Option<String>| {
        if value.is_empty() {
            return;
        }
        let instead = shown.as_deref().unwrap_or(HIDDEN);
        is_clean &= shown.is_some() || said.contains(&format!("'{value}'"));
        for before in ["'", "'-- "] {
            said = said.replace(&format!("{before}{value}'"), &format!("{before}{instead}'"));
        }
        let cause = error.source().map(ToString::to_string).filter(|_| shown.is_none());
        if let Some(cause) = cause.filter(|cause| repeats(cause, value)) {
            let cause = format!(": {cause}");
            is_clean &= said.contains(&cause);
            said = said.replace(&cause, "");
        }
    };
    let value = word(ContextKind::InvalidValue);
    let is_shown = value_is_harmless(option, value);
    hide(value, is_shown.then(|| show(value)));
    let command = word(ContextKind::InvalidSubcommand);
    hide(command, repeatable(command));
    if error.kind() == ErrorKind::UnknownArgument {
        hide(option, if is_option(option) { Some(show(option)) } else { repeatable(option) });
    }
    // The parser leaves escape sequences out of what it repeats, so what must be hidden may stand there in other words.
    match error.kind() {
        _ if is_clean => said,
        ErrorKind::InvalidSubcommand => format!("unrecognized subcommand '{HIDDEN}'"),
        ErrorKind::UnknownArgument => format!("unexpected argument '{HIDDEN}' found"),
        _ => format!("invalid value '{HIDDEN}' for '{option}'"),
    }
}

/// Tells whether a word looks like the name of an option.
fn is_option(word: &str) -> bool {
    /// Characters of a long name of an option.
    const LONGEST: usize = 24;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    word.strip_prefix('-').is_some_and(|name| name.len() <= LONGEST && name.chars().all(is_name))
}

/// The command that was meant, as far as the words tell.
fn command() -> String {
    let fec = Cli::command();
    let (mut command, mut name) = (&fec, "fec".to_owned());
    for word in std::env::args_os().skip(1) {
        let Some(found) = word.to_str().and_then(|word| command.find_subcommand(word)) else { continue };
        (command, name) = (found, format!("{name} {}", found.get_name()));
    }
    name
}

/// The parser's message as a failure, without its usage line: the command's help says more.
fn failure(said: &str) -> Failure {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let mut help = Vec::new();
    let mut command = command();
    if message == "the following required arguments were not provided:" {
        let missing =
            lines.next().unwrap_or_default().replace(['<', '>'], "").trim_end_matches('.').to_owned();
        let how = if missing.starts_with('-') { format!("add {missing}") } else { "name it".to_owned() };
        return Failure::usage(format!("{command}: {missing} is missing"))
            .help(format!("{how}, or see {command} --help"));
    }
    for line in lines.filter(|line| !line.starts_with("For more information")) {
        match line.strip_prefix("Usage: ") {
            None => help.push(hint(line.trim_start_matches("tip: "))),
            Some(usage) => {
                let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
                command = usage.split(' ').take_while(is_name).collect::<Vec<_>>().join(" ");
            }
        }
    }
    help.push(format!("see {command} --help"));
    Failure::usage(message).help(help.join("\n"))
}

/// A hint of the parser. For an option that only a command has, it says no more than that.
fn hint(said: &str) -> String {
    let named = said.strip_prefix('\'').and_then(|said| said.strip_suffix("' exists"));
    match named.and_then(|named| named.split_once(' ')) {
        Some((command, option)) => format!("put it behind a command, as in: fec {command} {option}"),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parser_says_becomes_an_error_like_others() {
        let said = "error: unexpected argument '--forse' found\n\n  tip: a similar argument exists: '--force'\n\n\
                    Usage: fec encode --force <FILE>\n\nFor more information, try '--help'.\n";
        let expected = "fec: unexpected argument '--forse' found\n     a similar argument exists: '--force'\n     see fec encode --help";
        assert_eq!(failure(said).to_string(), expected);
    }
}
