//! `fec manifest`: prints the digests of a sidecar in the format of b3sum and sha256sum.

use crate::line;
use crate::line::sign::Trusted;
use crate::plan::manifest::{FOUND, Found};
use crate::plan::options::SIDECAR;
use crate::plan::refused;
use crate::run::sidecar::opened::{Opening, open};
use crate::run::survey::survey;
use crate::run::target::ENDING;
use crate::run::target::quoted;
use crate::say::failure::{Exit, Failure, Result};
use crate::settings::{Settings, print_lines};
use fec_base::error::Action;
use fec_base::names::{hex, show_bytes, show_input};
use fec_core::digest::Digest;
use fec_sidecar::kind;
use fec_sidecar::manifest::{Listed, digests, manifest};
use fecfile::Error;
use fecfile::seal::SealError;
use serde::Serialize;
use std::path::Path;

/// The output of `manifest --json`.
#[derive(Serialize)]
struct Report {
    root: String,
    hash: &'static str,
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    path: String,
    digest: String,
}

pub(crate) fn run(args: &line::Manifest, settings: &Settings) -> Result<Exit> {
    settings.given.check(SIDECAR)?;
    let keys = args.open.keys()?;
    let starts = kind::starts(&args.sidecar)?;
    if keys.is_none() && !starts && kind::is_sealed(&args.sidecar)? {
        return Err(Error::at(Action::List, args.sidecar.as_path(), SealError::NoKey).into());
    }
    let nobody = Trusted::default();
    let opening = Opening { root: args.root, trusted: &nobody, keys: keys.as_ref(), base: None };
    let opened = open(&args.sidecar, opening, settings);
    let (sidecar, _) = opened.map_err(|failure| match failure.exit {
        Exit::Lost if !starts => other_kind(&args.sidecar).unwrap_or(failure),
        _ => failure,
    })?;
    let (listed, hash) = if args.sha256 { (Listed::Sha256, "sha256") } else { (Listed::Blake3, "blake3") };
    let none = || refused_as(Found::Sidecar { has_digests: false }, &args.sidecar);
    if settings.json {
        let files = digests(&sidecar, listed).ok_or_else(none)?;
        let file = |(path, digest): (&[u8], &Digest)| File { path: show_bytes(path), digest: hex(digest) };
        let files = files.into_iter().map(file).collect();
        let root = hex(&sidecar.root());
        let report = Report { root, hash, files };
        return settings.report(&report, Exit::Done, "", false).map(|()| Exit::Done);
    }
    print_lines(&manifest(&sidecar, listed).ok_or_else(none)?)?;
    Ok(Exit::Done)
}

/// The error for a file that is no sidecar, but may be intact.
fn other_kind(path: &Path) -> Option<Failure> {
    if path.extension().is_some_and(|ending| ending == ENDING) {
        return None;
    }
    let is_encoding = survey(&[path.to_path_buf()]).is_ok_and(|found| !found.encodings.is_empty());
    Some(refused_as(if is_encoding { Found::Encoding } else { Found::Nothing }, path))
}

fn refused_as(found: Found, path: &Path) -> Failure {
    refused(&found, FOUND, |name| match name {
        "path" => show_input(path),
        _ => format!("fec verify {}", quoted(path)),
    })
}
