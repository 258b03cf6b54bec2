//! Which options act on what a command was given. An option without effect is refused: its user believes that it acts,
//! and exit code 0 would confirm that.

use super::options::{self, COMMANDS, Command, Mode};
use crate::say::failure::{Failure, Result};
use clap::ArgMatches;
use clap::parser::ValueSource;
use fec_core::params::Form;

/// The mode of an encoding of this form.
pub(crate) fn mode_of(form: Form) -> Mode {
    match form {
        Form::Shards => options::SHARDS,
        Form::Container => options::CONTAINER,
        Form::Sidecar => options::SIDECAR,
    }
}

/// The options that stand on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    command: &'static str,
    options: &'static [String],
    /// Paths stand on the command line that the command would read.
    has_paths: bool,
}

impl Given {
    /// The options of a command line. They live as long as the process.
    pub(crate) fn new(fec: &clap::Command, matches: &ArgMatches) -> Given {
        let Some((name, matches)) = matches.subcommand() else {
            return Given { command: "fec", options: &[], has_paths: false };
        };
        let command = fec.find_subcommand(name);
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let options = command.into_iter().flat_map(clap::Command::get_arguments).chain(fec.get_arguments());
        let options = options.filter(|option| is_given(option.get_id().as_str()));
        let mut options: Vec<String> =
            options.filter_map(|option| option.get_long()).map(str::to_owned).collect();
        options.dedup();
        // Their words are names of presets, shells and commands.
        let reads = !["bench", "completions", "man"].contains(&name);
        let mut words = command.into_iter().flat_map(clap::Command::get_positionals);
        let has_paths = reads && words.any(|word| is_given(word.get_id().as_str()));
        Given { command: String::leak(name.to_owned()), options: Vec::leak(options), has_paths }
    }

    /// The name of the command.
    pub(crate) fn command(&self) -> &'static str {
        self.command
    }

    /// Tells whether something was named that the command would read.
    pub(crate) fn has_inputs(&self) -> bool {
        self.has_paths || ["from", "files-from", "roots"].iter().any(|option| self.has(option))
    }

    /// Tells whether no option was given.
    pub(crate) fn is_bare(&self) -> bool {
        self.options.is_empty()
    }

    /// Tells whether the option was given.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    /// Refuses options that have no effect in this mode.
    ///
    /// # Errors
    /// Wrong use.
    pub(crate) fn check(&self, mode: Mode) -> Result<()> {
        self.only_for(&[mode])
    }

    /// Refuses options that have no effect in any of these modes: while the mode is not known yet, or only that it is
    /// none of the others.
    ///
    /// # Errors
    /// Wrong use.
    pub(crate) fn only_for(&self, modes: &[Mode]) -> Result<()> {
        let Some(command) = COMMANDS.iter().find(|known| known.name == self.command) else { return Ok(()) };
        debug_assert!(modes.iter().all(|mode| command.modes.contains(mode)), "{} {modes:?}", command.name);
        let row = |option: &'static String| {
            command
                .options
                .iter()
                .find(|(options, _)| options.contains(&option.as_str()))
                .map(|row| (option, row.1))
        };
        let mut rows = self.options.iter().filter_map(row);
        match rows.find(|(_, on)| !modes.iter().any(|mode| on.contains(mode))) {
            Some((option, on)) => Err(self.refusal(command, (option, on), modes)),
            None => Ok(()),
        }
    }

    /// Refuses two options that both say how a report is printed.
    ///
    /// # Errors
    /// Wrong use.
    pub(crate) fn check_format(&self) -> Result<()> {
        if !(self.has("json") && self.has("format")) {
            return Ok(());
        }
        let why = format!("{}: --json and --format say both how to print", self.command);
        Err(Failure::usage(why).help("leave one of them out"))
    }

    /// The failure for an option that acts on `on`, and on none of `modes`. It names the option that chose the mode, or
    /// that is missing to choose another.
    fn refusal(&self, command: &Command, (option, on): (&str, &[Mode]), modes: &[Mode]) -> Failure {
        let name = command.name;
        let chooser =
            |mode: &Mode| command.chosen.iter().find(|(_, chosen)| chosen.contains(mode)).map(|row| row.0);
        let advised = |(options, of, _): &&(&[&str], &[Mode], &str)| {
            options.contains(&option) && modes.iter().all(|mode| of.contains(mode))
        };
        let advice = command.advice.iter().find(advised).map(|row| row.2);
        let chosen_by = modes.first().and_then(chooser).filter(|chooser| self.has(chooser));
        let chosen_by = chosen_by.filter(|by| on.iter().all(|mode| chooser(mode) != Some(by)));
        let missing = on
            .first()
            .and_then(chooser)
            .filter(|missing| on.iter().all(|mode| chooser(mode) == Some(missing)));
        if let (None, None, Some(missing)) = (chosen_by, advice, missing.filter(|missing| !self.has(missing)))
        {
            return Failure::usage(format!("{name} --{option}: --{missing} is missing"))
                .help(format!("name it, or leave --{option} out; see fec {name} --help"));
        }
        let with_which = chosen_by.map_or_else(String::new, |by| format!(", and cannot be used with --{by}"));
        // An option is not for the mode that it chooses itself.
        let others: Vec<Mode> = on.iter().filter(|mode| chooser(mode) != Some(option)).copied().collect();
        let for_what =
            if others.is_empty() { String::new() } else { format!("; it is for {}", others.join(", ")) };
        let what = modes.join(", ");
        Failure::usage(format!("{name} --{option}: it does nothing with {what}{with_which}{for_what}")).help(
            advice.map_or_else(|| format!("leave --{option} out, or see fec {name} --help"), str::to_owned),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{COMMANDS, Mode};
    use crate::line::Cli;
    use clap::CommandFactory;

    /// Options of all commands. They set how much is told, or are limits, permissions and ways to the same result,
    /// which hold in every mode.
    const COMMON: [&str; 10] = [
        "quiet",
        "verbose",
        "threads",
        "progress",
        "where",
        "backend",
        "tuning",
        "no-mmap",
        "no-sync",
        "max-memory",
    ];

    /// A new option has to say here what it acts on.
    #[test]
    fn every_option_has_its_place_in_the_table() {
        let mut fec = Cli::command();
        fec.build();
        for command in fec.get_subcommands().filter(|command| command.get_name() != "help") {
            let name = command.get_name();
            let table = COMMANDS.iter().find(|known| known.name == name).unwrap_or_else(|| panic!("{name}"));
            let listed: Vec<&str> =
                table.options.iter().flat_map(|(options, _)| options.iter().copied()).collect();
            let options = command.get_arguments().filter_map(|option| option.get_long());
            let own = |option: &&str| !COMMON.contains(option) && !["help", "version"].contains(option);
            let options: Vec<&str> = options.filter(own).collect();
            for option in &options {
                let count = listed.iter().filter(|listed| *listed == option).count();
                assert_eq!(count, 1, "{name} --{option}");
            }
            for option in &listed {
                assert!(options.contains(option), "{name} has no --{option}");
            }
            let listed = |option: &&str| listed.contains(option);
            for (options, modes) in table.options {
                assert!(modes.iter().all(|mode| table.modes.contains(mode)), "{name}: {options:?}");
            }
            for (option, modes) in table.chosen {
                assert!(
                    listed(option) && modes.iter().all(|mode| table.modes.contains(mode)),
                    "{name}: {option}"
                );
            }
            for (options, modes, advice) in table.advice {
                assert!(options.iter().all(listed), "{name}: {advice}");
                let is_idle = |option: &&str, mode: &Mode| {
                    table.options.iter().any(|(options, on)| options.contains(option) && !on.contains(mode))
                };
                let idle = options.iter().all(|option| modes.iter().all(|mode| is_idle(option, mode)));
                assert!(idle && modes.iter().all(|mode| table.modes.contains(mode)), "{name}: {advice}");
            }
        }
    }
}
