//! `fec manifest`: the digests that a sidecar keeps, as other tools check them.

use super::open;
use crate::args;
use crate::failure::{Exit, Failure, Result, misuse};
use crate::settings::Settings;
use crate::sign::args::Trusted;
use fecfile::Error;
use fecfile::seal::SealError;
use fecfile::sidecar::Sidecar;
use fecfile::sidecar::manifest::{Listed, manifest};
use std::io::Write;

pub(crate) fn run(args: &args::Manifest, settings: &Settings) -> Result<Exit> {
    let keys = args.open.keys()?;
    if keys.is_none() && !Sidecar::starts(&args.sidecar)? && Sidecar::is_sealed(&args.sidecar)? {
        return Err(Error::at("list", args.sidecar.as_path(), SealError::NoKey).into());
    }
    let nobody = Trusted { signer: Vec::new(), signature: None };
    let (sidecar, _) = open(&args.sidecar, args.root, &nobody, keys.as_ref(), settings)?;
    let listed = if args.sha256 { Listed::Sha256 } else { Listed::Blake3 };
    let lines = manifest(&sidecar, listed).ok_or_else(|| {
        misuse("list", &args.sidecar, "SHA-256 was not recorded")
            .help("protect again with --sha256, or list BLAKE3 with --b3")
    })?;
    let mut out = std::io::stdout().lock();
    out.write_all(&lines).and_then(|()| out.flush()).map_err(Failure::stdout)?;
    Ok(Exit::Done)
}
