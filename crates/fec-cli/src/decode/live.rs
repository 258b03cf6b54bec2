//! Live streams, as far as they share their inputs and outputs with what `decode` restores.

use super::{Decoding, Target};
use crate::archive::inputs::{ContainerFile, restorable_streams};
use crate::archive::show_root;
use crate::failure::{Exit, Failure, Result, show};
use crate::stream::address::Address;
use crate::stream::output::{Output, Place};
use crate::stream::receive::{self, Source};
use crate::sys::output::{self, FileOut};
use std::fs::File;
use std::io;
use std::path::Path;

impl Decoding<'_> {
    /// Receives a live stream.
    pub(super) fn live(&self, source: Source) -> Result<Exit> {
        let input = match &source {
            Source::Bytes { path, .. } => path.as_path(),
            Source::Udp(_) => Path::new("-"),
        };
        let place = match self.container_target(input)? {
            Target::File(path) => {
                let file = FileOut::create(&path, self.policy)?;
                Place::File(path, file)
            }
            Target::Special(path) => {
                let file = output::open_special(&path)?;
                Place::Special(path, file)
            }
            Target::Stdout => Place::Stdout(output::stdout_for_data()?),
        };
        let (options, settings) = (&self.args.live, self.settings);
        receive::run(receive::Job { source, output: Output::new(place), options, settings })
    }

    /// What --stream and udp:// name.
    pub(super) fn live_source(&self) -> Result<Source> {
        let path = match &self.args.inputs[..] {
            [] => Path::new("-"),
            [path] => path,
            _ => {
                return Err(
                    Failure::usage("decode: a stream stands alone").help("name one file or one address")
                );
            }
        };
        if Address::is_one(path) {
            if self.wants_proofs() {
                return Err(Failure::usage(
                    "decode: a stream has no root, and is written as far as it comes",
                )
                .help("leave --root, --partial and --early out"));
            }
            return Ok(Source::Udp(Address::parse(path)?));
        }
        let input = if path.as_os_str() == "-" {
            use std::os::fd::AsFd;
            let fd = io::stdin().as_fd().try_clone_to_owned().map_err(|e| Failure::io("read", path, &e))?;
            File::from(fd)
        } else {
            File::open(path).map_err(|e| Failure::io("read", path, &e))?
        };
        if input.metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(Failure::usage(format!("read {}: it is a folder", show(path)))
                .help("name a file that fec encode --stream wrote"));
        }
        Ok(Source::Bytes { path: path.to_path_buf(), head: Vec::new(), input })
    }

    /// Whether something is asked for that live streams do not have: a root, or parts that are proved by themselves.
    pub(super) fn wants_proofs(&self) -> bool {
        self.args.root.is_some() || self.args.partial || self.args.early
    }

    /// Refuses a file that starts like a live stream and holds another encoding that can be restored.
    pub(super) fn only_live(&self, input: &ContainerFile) -> Result<()> {
        let roots = match restorable_streams(input, None, self.settings) {
            // Headers that imitate records without end lead to nothing.
            Err(failure) if failure.exit == Exit::Refused => return Ok(()),
            other => other?,
        };
        if roots.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> =
            roots.into_iter().map(|root| format!("\n  root {}", show_root(root))).collect();
        let message =
            format!("{}: a live stream and encodings are here:{}", show(&input.path), lines.concat());
        Err(Failure::usage(message).help("choose the stream with --stream, or an encoding with --root"))
    }

    /// Refuses options of live streams for an input that is none.
    pub(super) fn not_live(&self, path: &Path) -> Result<()> {
        match self.args.live.only_for_streams() {
            None => Ok(()),
            Some(option) => Err(Failure::usage(format!(
                "decode {}: it is no stream, and {option} is for streams",
                show(path)
            ))
            .help("if it is a stream whose beginning is damaged, add --stream")),
        }
    }
}
