//! Payloads, their sources, and the options of encoding.

use crate::error::{Action, Error, Place, Result};
use crate::seal::error::SealError;
use crate::seal::sealer::{Sealer, Sealing};
use fec_base::context::Context;
use fec_base::io::source::SourceFile;
use fec_base::threads::spawn_or_do;
use fec_core::block::Code;
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::format::meta::Meta;
use fec_core::format::seal::SealedKind;
use fec_core::params::default_set_size;
use fec_keys::sign::SecretKey;
use std::io::{self, Read};
use std::sync::Arc;

/// The options of encoding.
#[derive(Clone, Debug)]
pub struct Options {
    /// k original and m recovery shards.
    pub code: Code,
    /// The hash of digests and roots.
    pub hash: HashKind,
    /// Payload bytes of a set; `None` is the default for the code, at most 4 MiB.
    pub set_size: Option<u64>,
    /// The way a container is cut into groups.
    pub grouping: Grouping,
    /// Digests of the payload to record in the meta. Computing them takes another pass, so the payload must have a
    /// known length.
    pub payload_digests: PayloadDigests,
    /// The holders of keys for whom the payload is sealed before it is encoded. Each encoding gets a key of its own.
    pub sealing: Option<Arc<Sealing>>,
    /// The key that signs the root; the signature stands behind each shard file and behind the index of a container.
    pub signing: Option<Arc<SecretKey>>,
    /// With `true` shard files get the outlines of their shards, about 0.2 % more bytes: a few bytes can be proved then
    /// without the whole shard. Containers and shards of SHA-256 have none.
    pub outlines: bool,
}

/// The digests of the payload to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadDigests {
    /// SHA-256.
    pub sha256: bool,
    /// BLAKE3.
    pub blake3: bool,
}

impl PayloadDigests {
    /// Tells whether any digest is to be recorded.
    pub fn any(self) -> bool {
        self.sha256 || self.blake3
    }
}

/// The groups of a container (docs/FORMAT.md, section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// A single group if payload and output are regular files, else groups of a bounded size.
    #[default]
    Auto,
    /// Groups of this many sets.
    Sets(u32),
}

impl Options {
    /// BLAKE3 and the default sizes.
    pub fn new(code: Code) -> Options {
        Options {
            code,
            hash: HashKind::Blake3,
            set_size: None,
            grouping: Grouping::Auto,
            payload_digests: PayloadDigests::default(),
            sealing: None,
            signing: None,
            outlines: false,
        }
    }

    /// Payload bytes of a set, for a payload of this length, if the length is known.
    pub fn set_size(&self, payload_len: Option<u64>) -> u64 {
        self.set_size.unwrap_or_else(|| default_set_size(self.code, payload_len))
    }

    /// The sealer of the payload, if it is to be sealed; kind and name go into the seal.
    #[doc(hidden)]
    pub fn sealer(&self, kind: SealedKind, name: Option<&[u8]>, threads: usize) -> Result<Option<Sealer>> {
        let Some(sealing) = &self.sealing else { return Ok(None) };
        if self.payload_digests.any() {
            return Err(Error::new(Action::Seal, SealError::Digests));
        }
        Sealer::new(sealing, kind, name, threads).map(Some)
    }

    /// `meta` with the digests of the payload, if the options ask for them.
    pub(crate) fn meta(&self, payload: &dyn Payload, meta: Meta, context: &Context<'_>) -> Result<Meta> {
        if !self.payload_digests.any() {
            return Ok(meta);
        }
        let (sha256, blake3) = digests(payload, self.payload_digests, context)?;
        Ok(Meta { sha256, blake3, ..meta })
    }
}

impl Default for Options {
    /// 33 + 67 shards: any 33 of 100 restore the payload.
    fn default() -> Options {
        Options::new(Code::new(33, 67).expect("33 + 67 shards are a code"))
    }
}

/// A payload of known length that is read at positions, by several threads.
pub trait Payload: Sync {
    /// The number of bytes.
    fn size(&self) -> u64;

    /// Copies the bytes from `offset` into `out`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Copies the bytes from `offset` into `parts`, one after the other.
    ///
    /// # Errors
    /// Those of [`read_at`](Payload::read_at).
    fn read_parts(&self, mut offset: u64, parts: &mut [&mut [u8]]) -> Result<()> {
        parts.iter_mut().try_for_each(|part| {
            let at = offset;
            offset += part.len() as u64;
            self.read_at(at, part)
        })
    }

    /// Tells whether one long read costs less than several short ones of the same bytes.
    fn gains_by_length(&self) -> bool {
        false
    }

    /// Fails if the payload changed since it was opened, as far as can be seen.
    ///
    /// # Errors
    /// [`Changed`](crate::ErrorKind::Changed).
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// The place that errors name.
    fn place(&self) -> Place {
        Place::Nowhere
    }
}

impl Payload for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(&self[offset as usize..][..out.len()]);
        Ok(())
    }
}

impl Payload for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        Payload::read_at(&&self[..], offset, out)
    }
}

impl Payload for SourceFile {
    fn size(&self) -> u64 {
        SourceFile::size(self)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        SourceFile::read_at(self, offset, out)
    }

    fn check_unchanged(&self) -> Result<()> {
        SourceFile::check_unchanged(self)
    }

    fn place(&self) -> Place {
        self.path().into()
    }
}

/// Bytes of a payload that are hashed at a time.
const PIECE: usize = 1 << 20;

/// SHA-256 and BLAKE3 of a payload, as far as they are wanted, each on a thread of its own.
pub(crate) fn digests(
    payload: &dyn Payload,
    wanted: PayloadDigests,
    context: &Context<'_>,
) -> Result<(Option<Digest>, Option<Digest>)> {
    let meter = context.meter(Action::Hash, Some(payload.size()));
    let mut sha256 = wanted.sha256.then(|| PlainHasher::new(HashKind::Sha256));
    let mut blake3 = wanted.blake3.then(|| PlainHasher::new(HashKind::Blake3));
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < payload.size() {
        let len = (payload.size() - at).min(PIECE as u64) as usize;
        payload.read_at(at, &mut piece[..len])?;
        std::thread::scope(|scope| {
            let bytes = &piece[..len];
            if let Some(sha256) = &mut sha256 {
                let mut hash = || sha256.update(bytes);
                if context.settings.threads > 1 { spawn_or_do(scope, hash) } else { hash() }
            }
            if let Some(blake3) = &mut blake3 {
                blake3.update(bytes);
            }
        });
        meter.add(len as u64);
        meter.check()?;
        at += len as u64;
    }
    meter.finish();
    Ok((sha256.map(PlainHasher::finish), blake3.map(PlainHasher::finish)))
}

/// The input of a container, read from front to back.
pub enum Source<'a> {
    /// A payload of known length.
    Payload(&'a dyn Payload),
    /// A pipe, and the place that errors name.
    Pipe(&'a mut (dyn Read + Send), Place),
}

impl Source<'_> {
    /// The place that errors name.
    pub fn place(&self) -> Place {
        match self {
            Source::Payload(payload) => payload.place(),
            Source::Pipe(_, place) => place.clone(),
        }
    }

    /// The number of bytes, if it is known.
    pub fn size(&self) -> Option<u64> {
        match self {
            Source::Payload(payload) => Some(payload.size()),
            Source::Pipe(..) => None,
        }
    }

    /// Fills `out` with the bytes from `offset` on, as far as there are any, and returns their number. All bytes before
    /// `offset` have to be read already.
    #[doc(hidden)]
    pub fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<usize> {
        match self {
            Source::Payload(payload) => {
                let len = (payload.size() - offset).min(out.len() as u64) as usize;
                payload.read_at(offset, &mut out[..len])?;
                Ok(len)
            }
            Source::Pipe(pipe, place) => {
                let mut filled = 0;
                while filled < out.len() {
                    match pipe.read(&mut out[filled..]) {
                        Ok(0) => break,
                        Ok(n) => filled += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(Error::io(Action::Read, place.clone(), e)),
                    }
                }
                Ok(filled)
            }
        }
    }

    pub(crate) fn check_unchanged(&self) -> Result<()> {
        match self {
            Source::Payload(payload) => payload.check_unchanged(),
            Source::Pipe(..) => Ok(()),
        }
    }
}
