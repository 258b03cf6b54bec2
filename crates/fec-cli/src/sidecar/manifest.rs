//! `fec manifest`: the digests that a sidecar keeps, as other tools check them.

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse};
use crate::settings::Settings;
use fecfile::sidecar::Sidecar;
use fecfile::sidecar::manifest::{Listed, manifest};
use std::io::Write;

pub(crate) fn run(args: &args::Manifest, settings: &Settings) -> Result<Exit> {
    let sidecar = Sidecar::open(&args.sidecar, args.root, &settings.library)?;
    let listed = if args.sha256 { Listed::Sha256 } else { Listed::Blake3 };
    let lines = manifest(&sidecar, listed).ok_or_else(|| {
        misuse("list", &args.sidecar, "SHA-256 was not recorded")
            .help("protect again with --sha256, or list BLAKE3 with --b3")
    })?;
    let mut out = std::io::stdout().lock();
    out.write_all(&lines).and_then(|()| out.flush()).map_err(Failure::stdout)?;
    Ok(Exit::Done)
}
