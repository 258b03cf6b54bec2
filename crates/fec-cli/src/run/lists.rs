//! `--backend list` and `--tuning list`: print the choices instead of running the command.

use crate::line::Common;
use crate::plan::common::check_lists;
use crate::plan::given::Given;
use crate::run::tuned;
use crate::say::failure::{Exit, Failure, Result};
use crate::say::state::Head;
use crate::settings::print_line;
use fec_base::names::show;
use fec_core::gf256::kernel::{Backend, Tuning};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The values that ask for a list. A shell may replace `?` by the name of a file with one letter.
const LIST: [&str; 2] = ["list", "?"];

/// Prints the lists that are asked for. Returns whether there were any.
///
/// # Errors
/// Wrong use, if there are inputs: the exit code would say that they were read.
pub(crate) fn run(common: &Common, given: Given) -> Result<bool> {
    let asks = |option: &Option<String>| option.as_deref().is_some_and(|value| LIST.contains(&value));
    let lists =
        Lists { backends: asks(&common.backend).then(backends), tuning: asks(&common.tuning).then(tuning) };
    if lists.backends.is_none() && lists.tuning.is_none() {
        return Ok(false);
    }
    check_lists(given, if lists.backends.is_some() { "--backend" } else { "--tuning" })?;
    match common.json {
        true => {
            let line = serde_json::to_string(&Head::new(given.command(), Exit::Done).with(&lists));
            print_line(&line.map_err(|e| Failure::new(Exit::Io, format!("write the list: {e}")))?)?;
        }
        false => print_line(&lists.text())?,
    }
    Ok(true)
}

#[derive(Serialize)]
struct Lists {
    /// The kernels of this machine, the fastest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    backends: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<TuningList>,
}

#[derive(Serialize)]
struct TuningList {
    /// The processor whose settings are used here.
    chosen: &'static str,
    /// The file that the settings come from, if this user keeps some.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<PathBuf>,
    settings: BTreeMap<&'static str, String>,
    /// The allowed values of each setting.
    allowed: BTreeMap<&'static str, &'static str>,
    /// The processors that are known by name.
    processors: Vec<&'static str>,
}

fn backends() -> Vec<&'static str> {
    Backend::available().map(Backend::name).collect()
}

fn tuning() -> TuningList {
    let (own, kept) = tuned::own(Backend::best());
    TuningList {
        chosen: own.name(),
        kept,
        settings: own.settings().collect(),
        allowed: Tuning::allowed().collect(),
        processors: Tuning::names().collect(),
    }
}

impl Lists {
    /// Each line begins with the value to write.
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.backends.iter().flatten().map(|name| (*name).to_owned()).collect();
        if let Some(TuningList { chosen, kept, settings, allowed, processors }) = &self.tuning {
            lines.extend(processors.iter().map(|name| match name == chosen {
                true => format!("{name:<22}  chosen for this machine"),
                false => (*name).to_owned(),
            }));
            lines.extend(kept.iter().map(|path| format!("the settings below are kept in {}", show(path))));
            lines.extend(settings.iter().map(|(name, value)| {
                let change = format!("{name}={value}");
                format!("{change:<22}  {}", allowed[name])
            }));
        }
        lines.join("\n")
    }
}
