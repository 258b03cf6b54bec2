//! Files that a repair believes without a root or a signature: those that were named, and one's own.

use crate::line;
use crate::plan::refused;
use crate::plan::repair::{FOUND, Found};
use crate::run::proofs::Proofs;
use crate::say::failure::{Failure, Result};
use crate::settings::Settings;
use fec_base::error::Action;
use fec_base::io::own::{Stands, look};
use fec_base::names::show;
use std::fs::{File, Metadata};
use std::path::Path;

/// Refuses a sidecar or a container that was found, and not named, and that another user may have put there: what it
/// says would be written over files. A root or a signature proves what it says.
pub(crate) fn check_own(path: &Path, args: &line::Repair, settings: &Settings) -> Result<Own> {
    let is_proved = args.root.is_some() || !args.trusted.signer.is_empty();
    if is_proved || args.inputs.iter().any(|input| input == path) {
        return Ok(Own::default());
    }
    match look(path).map_err(|e| Failure::io(Action::Read, path, e))? {
        Stands::Own(file, stat) => Ok(Own(Some((file, stat)))),
        _ => Err(not_own(path, args, settings)),
    }
}

fn not_own(path: &Path, args: &line::Repair, settings: &Settings) -> Failure {
    refused(&Found::NotOwn, FOUND, |name| match name {
        "path" => show(path),
        _ => Proofs::of_repair(args, settings).command("repair", path),
    })
}

/// A file that was named or has to be proved, or one's own file, which stays open: no other file can get its inode
/// meanwhile.
#[derive(Default)]
pub(crate) struct Own(Option<(File, Metadata)>);

impl Own {
    /// Refuses a sidecar that was opened from another file, which came to stand at its path.
    #[cfg(unix)]
    pub(crate) fn check(
        &self,
        sidecar: &fec_sidecar::Sidecar,
        args: &line::Repair,
        settings: &Settings,
    ) -> Result<()> {
        match &self.0 {
            Some((_, stat)) if !sidecar.is_of(stat) => Err(not_own(sidecar.path(), args, settings)),
            _ => Ok(()),
        }
    }
}
