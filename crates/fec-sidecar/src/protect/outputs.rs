//! The destination of a sidecar: its own file or, if it is sealed, a container that holds all of it.

use crate::catalog::metadata::Sidecar;
use fec_base::context::Context;
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::output::{FileOut, Policy, if_any, set_mode_if_any};
use fec_base::io::temporary::{Appended, parent};
use fec_core::block::Code;
use fec_core::format::seal::SealedKind;
use fecfile::payload::{Options, Payload, Source};
use fecfile::report::Written;
use fecfile::seal::SealError;
use fecfile::seal::Sealing;
use fecfile::within::SecretSpool;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of a sealed sidecar that are copied at a time.
const PIECE: usize = 1 << 20;

/// Originals of the container for each recovery shard; one more recovery shard is added.
const ORIGINALS_FOR_ONE: usize = 7;
/// The most originals.
const MOST_ORIGINALS: u64 = 112;
/// The fewest bytes of an original, if there are several.
const LEAST_ORIGINAL: u64 = 4096;

/// A new sidecar: written to its file, or kept to be sealed.
pub(crate) enum NewSidecar<'a> {
    /// The file, which appears when it is whole.
    Plain(FileOut),
    /// The bytes to be sealed, and the recipients.
    Sealed(SecretSpool, &'a Arc<Sealing>),
}

impl<'a> NewSidecar<'a> {
    /// Begins a sidecar that will be `path`.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn new(
        path: &Path,
        policy: Policy,
        sealing: Option<&'a Arc<Sealing>>,
    ) -> Result<NewSidecar<'a>> {
        match sealing {
            Some(sealing) => Ok(NewSidecar::Sealed(SecretSpool::within(parent(path))?, sealing)),
            None => {
                let out = FileOut::create(path, policy)?;
                if let Ok(old) = std::fs::metadata(path) {
                    // The sidecar lists names that not everybody may know, so no permission is added.
                    let mode = narrowed(old.mode(), policy);
                    set_mode_if_any(out.file(), mode).map_err(|e| out.failure(e))?;
                }
                Ok(NewSidecar::Plain(out))
            }
        }
    }

    pub(crate) fn put(&self, at: u64, bytes: &[u8]) -> Result<()> {
        match self {
            NewSidecar::Plain(out) => out.put(at, bytes),
            NewSidecar::Sealed(spool, _) => spool.put(at, bytes),
        }
    }

    /// Completes a sidecar of `len` bytes. Returns the container of a sealed one.
    ///
    /// # Errors
    /// Those of the file; [`SealError`](fecfile::seal::SealError).
    pub(crate) fn finish(
        self,
        len: u64,
        path: &Path,
        policy: Policy,
        context: &Context<'_>,
    ) -> Result<Option<Written>> {
        match self {
            NewSidecar::Plain(out) => out.commit(len).map(|()| None),
            NewSidecar::Sealed(spool, sealing) => {
                write((&spool, len), path, policy, sealing, context).map(Some)
            }
        }
    }
}

/// The permissions of an old sidecar, less those that a new one would not get.
fn narrowed(old: u32, policy: Policy) -> u32 {
    old & policy.permissions & 0o777
}

/// An updated sidecar: its file is appended to, or all of it is sealed anew.
pub(crate) enum UpdatedSidecar<'a> {
    /// The file. Appended bytes are cut off again if the update fails.
    Plain(Appended),
    /// The whole sidecar, and the recipients.
    Sealed(SecretSpool, &'a Arc<Sealing>),
}

impl<'a> UpdatedSidecar<'a> {
    /// Takes over the first `len` bytes of the old sidecar.
    ///
    /// # Errors
    /// Those of the files; [`SealError`](fecfile::seal::SealError).
    pub(crate) fn new(
        old: &Sidecar,
        len: u64,
        path: &Path,
        policy: Policy,
        sealing: Option<&'a Arc<Sealing>>,
    ) -> Result<UpdatedSidecar<'a>> {
        let fail = |e| Error::io(Action::Write, path, e);
        match (old.was_sealed(), sealing) {
            (false, None) => {
                let file = old.open_to_write(Action::Update)?;
                // New bytes may be those of a file that fewer users may read than the others.
                let mode = file.metadata().map_err(fail)?.mode();
                set_mode_if_any(&file, narrowed(mode, policy)).map_err(fail)?;
                if old.len > len {
                    // The rest is of an interrupted update.
                    file.set_len(len).map_err(fail)?;
                }
                Ok(UpdatedSidecar::Plain(Appended::new(file, len)))
            }
            (true, Some(sealing)) => {
                let spool = SecretSpool::within(parent(path))?;
                let mut piece = Zeroizing::new(vec![0; PIECE]);
                let mut at = 0;
                while at < len {
                    let count = (len - at).min(PIECE as u64) as usize;
                    let read = old.file.read_exact_at(at, &mut piece[..count]);
                    read.map_err(|_| Error::at(Action::Update, path, SealError::BeyondContainer))?;
                    spool.put(at, &piece[..count])?;
                    at += count as u64;
                }
                Ok(UpdatedSidecar::Sealed(spool, sealing))
            }
            (true, None) => Err(Error::at(Action::Update, path, SealError::NobodyNamed)),
            (false, Some(_)) => Err(Error::at(Action::Update, path, SealError::StaysPlain)),
        }
    }

    pub(crate) fn put(&self, at: u64, bytes: &[u8], path: &Path) -> Result<()> {
        match self {
            UpdatedSidecar::Plain(out) => out.put(at, bytes).map_err(|e| Error::io(Action::Write, path, e)),
            UpdatedSidecar::Sealed(spool, _) => spool.put(at, bytes),
        }
    }

    /// Sets the length, before the last pieces are written.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        match self {
            UpdatedSidecar::Plain(out) => out.set_len(len),
            UpdatedSidecar::Sealed(..) => Ok(()),
        }
    }

    /// Syncs the written bytes to the disk.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            UpdatedSidecar::Plain(out) => fec_base::io::system::sync_data(out.file()),
            UpdatedSidecar::Sealed(..) => Ok(()),
        }
    }

    /// Completes a sidecar of `len` bytes. Returns the container of a sealed one.
    ///
    /// # Errors
    /// Those of the file; [`SealError`](fecfile::seal::SealError).
    pub(crate) fn finish(
        self,
        len: u64,
        path: &Path,
        policy: Policy,
        context: &Context<'_>,
    ) -> Result<Option<Written>> {
        match self {
            UpdatedSidecar::Plain(out) => {
                out.commit();
                Ok(None)
            }
            UpdatedSidecar::Sealed(spool, sealing) => {
                let policy = policy.with_force(true).with_sync(context.settings.sync);
                write((&spool, len), path, policy, sealing, context).map(Some)
            }
        }
    }
}

/// A sidecar that waits to be sealed.
struct Waiting<'a> {
    spool: &'a SecretSpool,
    len: u64,
}

impl Payload for Waiting<'_> {
    fn size(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.spool.get(offset, out).map_err(|e| Error::io(Action::Read, Place::Temporary, e))
    }

    fn place(&self) -> Place {
        Place::Temporary
    }
}

/// Seals a sidecar of `len` bytes into a new file, which replaces an old one if `policy` allows.
///
/// # Errors
/// Those of the files; [`SealError`](fecfile::seal::SealError).
fn write(
    (spool, len): (&SecretSpool, u64),
    path: &Path,
    policy: Policy,
    sealing: &Arc<Sealing>,
    context: &Context<'_>,
) -> Result<Written> {
    let k = len.div_ceil(LEAST_ORIGINAL).clamp(1, MOST_ORIGINALS) as usize;
    let code = Code::new(k, k.div_ceil(ORIGINALS_FOR_ONE) + 1).expect("fewer than 256 shards");
    let options = Options { sealing: Some(Arc::clone(sealing)), ..Options::new(code) };
    let old = std::fs::metadata(path);
    let waiting = Waiting { spool, len };
    let source = Source::Payload(&waiting);
    let written =
        fecfile::within::encode_file(source, SealedKind::Sidecar, path, policy, &options, &context.silent())?;
    if let Ok(old) = old {
        let mode = Permissions::from_mode(narrowed(old.mode(), policy));
        if_any(std::fs::set_permissions(path, mode)).map_err(|e| Error::io(Action::Write, path, e))?;
    }
    Ok(written)
}
