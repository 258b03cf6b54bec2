//! The commands on protected files, on a system that is no Unix: each one is refused. Whatever a sidecar says of names,
//! times, owners and links could not be kept there.

use crate::say::failure::{Exit, Failure, Result};

pub(crate) mod protect {
    use super::{Exit, Result, refused};
    use crate::line::Protect;
    use crate::settings::Settings;

    pub(crate) fn run(_: &Protect, _: &Settings) -> Result<Exit> {
        Err(refused("protect"))
    }
}

pub(crate) mod manifest {
    use super::{Exit, Result, refused};
    use crate::line::Manifest;
    use crate::settings::Settings;

    pub(crate) fn run(_: &Manifest, _: &Settings) -> Result<Exit> {
        Err(refused("manifest"))
    }
}

pub(crate) mod verify {
    use super::{Exit, Result, refused};
    use crate::line::Verify;
    use crate::say::table::Row;
    use crate::settings::Settings;
    use fec_core::digest::Digest;
    use fec_keys::age::Keys;
    use std::path::Path;

    pub(crate) fn part(_: &Verify, _: &Settings) -> Result<Option<Exit>> {
        Ok(None)
    }

    pub(crate) fn run(_: &Path, _: &Verify, _: &Settings) -> Result<Exit> {
        Err(refused("verify"))
    }

    pub(crate) fn row(
        _: &Path,
        _: Option<Digest>,
        _: Option<&Keys>,
        _: &Verify,
        _: &Settings,
    ) -> Result<Row> {
        Err(refused("verify"))
    }
}

pub(crate) mod repair {
    use super::{Exit, Result, refused};
    use crate::line::Repair;
    use crate::run::own::Own;
    use crate::say::repair_table::Row;
    use crate::settings::Settings;
    use fec_keys::age::Keys;
    use std::path::Path;

    pub(crate) fn part(_: &Repair, _: &Settings) -> Result<Option<Exit>> {
        Ok(None)
    }

    pub(crate) fn run(_: &Path, _: &Own, _: &Repair, _: &Settings) -> Result<Exit> {
        Err(refused("repair"))
    }

    pub(crate) fn row(_: &Path, _: &Own, _: Option<&Keys>, _: &Repair, _: &Settings) -> Result<Row> {
        Err(refused("repair"))
    }
}

pub(crate) mod copies {
    use crate::settings::Settings;
    use std::path::PathBuf;

    /// All of them: a copy is known by its record alone.
    pub(crate) fn without(sidecars: Vec<PathBuf>, _: &[PathBuf], _: &Settings) -> Vec<PathBuf> {
        sidecars
    }
}

fn refused(command: &str) -> Failure {
    Failure::usage(format!(
        "{command}: sidecars are for Unix: this system keeps other times, owners and links"
    ))
    .help("use Linux, as in WSL, for files that stay where they are")
}
