//! Which options act on what a command was given. An option without effect is refused: its user believes that it acts,
//! and exit code 0 would confirm that.

pub(crate) mod table;

use crate::failure::{Failure, Result};
use clap::ArgMatches;
use clap::parser::ValueSource;
use fec_core::params::Form;
use table::{COMMANDS, Mode};

/// The mode of an encoding of this form.
pub(crate) fn mode_of(form: Form) -> Mode {
    match form {
        Form::Shards => table::SHARDS,
        Form::Container => table::CONTAINER,
        Form::Sidecar => table::SIDECAR,
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
        let command = self.command;
        let acts_on = |option: &'static String| Some((option, acts_on(command, option, mode)?));
        let idle = self.options.iter().filter_map(acts_on).find(|(_, on)| !on.contains(&mode));
        let Some((option, on)) = idle else { return Ok(()) };
        let for_what = match on {
            [] => String::new(),
            on => format!("; it is for {}", on.join(", ")),
        };
        Err(Failure::usage(format!("{command} --{option}: it does nothing with {mode}{for_what}"))
            .help(format!("leave --{option} out, or see fec {command} --help")))
    }
}

/// The modes that an option of a command acts on; `None` for options of all commands. `mode` has to be one of the
/// command's.
fn acts_on(command: &str, option: &str, mode: Mode) -> Option<&'static [Mode]> {
    let command = COMMANDS.iter().find(|known| known.name == command)?;
    debug_assert!(command.modes.contains(&mode), "{} {mode}", command.name);
    let row = command.options.iter().find(|(options, _)| options.contains(&option))?;
    Some(row.1)
}

#[cfg(test)]
mod tests {
    use super::table::COMMANDS;
    use crate::args::Cli;
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
            for option in listed {
                assert!(options.contains(&option), "{name} has no --{option}");
            }
            for (options, modes) in table.options {
                assert!(modes.iter().all(|mode| table.modes.contains(mode)), "{name}: {options:?}");
            }
        }
    }
}
