//! Opening sealed payloads.
//!
//! A restored file is opened where it stands, before it gets its name. A payload for a writer goes through
//! `Unsealed`, which checks all chunks of a group before it writes the first. No temporary file holds plaintext.

use super::error::SealError;
use super::keys::{associated, chunk_key, nonce, private_key};
use fec_base::error::{Action, Error, Place, Result, WriteFailure};
use fec_base::io::ReadAt;
use fec_base::io::system::{self, make_hole};
use fec_base::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::meta::Meta;
use fec_core::format::seal::{self, CHUNK, SEALED_CHUNK, Seal, SealedKind};
use fec_keys::age::{self, Keys};
use fec_keys::cipher::{AeadKey, Cipher, KEY, NONCE};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// Chunks that are opened in place at the same time.
const BATCH: u64 = 32;

/// The available part of a sealed payload.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Its bytes, as far as they are known.
    pub sealed_len: u64,
    /// True if more followed and is lost: the last available byte is not the payload's end.
    pub is_cut: bool,
}

impl Extent {
    /// Bytes of chunk `number`, and whether it is the last.
    fn chunk(self, number: u64) -> (u64, bool) {
        let start = number * SEALED_CHUNK as u64;
        let len = (self.sealed_len - start).min(SEALED_CHUNK as u64);
        (len, !self.is_cut && start + len == self.sealed_len)
    }
}

/// The contents of a seal.
pub(super) struct Opened {
    pub(super) cipher: Cipher,
    pub(super) content: SealedKind,
    pub(super) content_key: Zeroizing<[u8; KEY]>,
    pub(super) private: Meta,
    /// SHA-256 of the first seal of the payload.
    pub(super) first: [u8; 32],
}

impl Opened {
    /// Gets the content key from a seal, and opens its private part.
    pub(super) fn new(bytes: &[u8], keys: &Keys) -> std::result::Result<Opened, SealError> {
        let seal = Seal::parse(bytes)?;
        let cipher = Cipher::from_number(seal.cipher).expect("the parser knows the ciphers");
        let content_key = age::open(seal.age_file, keys)?;
        let content_key = Zeroizing::new(content_key[..].try_into().map_err(|_| SealError::ContentKey)?);
        let mut private = Zeroizing::new(seal.private.to_vec());
        let key = private_key(cipher, &content_key, seal.again.as_ref());
        let opened = key.open(&[0; NONCE], seal.public, &mut private).map_err(|_| SealError::PrivatePart)?;
        let private = Meta::parse(seal::unpadded(opened)?)?;
        let first = associated(bytes, seal.again.as_ref());
        Ok(Opened { cipher, content: seal.content, content_key, private, first })
    }
}

/// Opens one sealed payload.
pub struct Opener {
    key: AeadKey,
    associated: [u8; 32],
    content: SealedKind,
    private: Meta,
    /// The place of the payload.
    place: Place,
}

impl Opener {
    /// Gets the content key from the seal, and opens its private part.
    ///
    /// # Errors
    /// [`SealError::Format`] for a seal that breaks a rule; [`SealError::Age`] when no key fits;
    /// [`SealError::PrivatePart`].
    pub fn new(bytes: &[u8], keys: &Keys) -> std::result::Result<Opener, SealError> {
        let opened = Opened::new(bytes, keys)?;
        let key = chunk_key(opened.cipher, &opened.content_key);
        Ok(Opener {
            key,
            associated: opened.first,
            content: opened.content,
            private: opened.private,
            place: Place::Nowhere,
        })
    }

    /// The same opener, whose errors name `place`.
    pub fn of(self, place: Place) -> Opener {
        Opener { place, ..self }
    }

    fn error(&self, cause: SealError) -> Error {
        Error::at(Action::Open, self.place.clone(), cause)
    }

    /// The kind of the payload.
    pub fn content(&self) -> SealedKind {
        self.content
    }

    /// The recorded name of the file.
    pub fn name(&self) -> Option<&[u8]> {
        self.private.name.as_deref()
    }

    /// Bytes of the payload in `sealed` sealed bytes.
    ///
    /// # Errors
    /// [`SealError::Length`].
    pub fn plain_len(&self, sealed: u64) -> Result<u64> {
        seal::plain_len(sealed).ok_or_else(|| self.error(SealError::Length(sealed)))
    }

    /// Bytes of the payload in the available part of a sealed one.
    ///
    /// # Errors
    /// As [`plain_len`](Opener::plain_len).
    pub fn opened_len(&self, extent: Extent) -> Result<u64> {
        let Extent { sealed_len, is_cut } = extent;
        if !is_cut {
            return self.plain_len(sealed_len);
        }
        let (chunks, rest) = (sealed_len / SEALED_CHUNK as u64, sealed_len % SEALED_CHUNK as u64);
        Ok(chunks * CHUNK as u64 + rest.saturating_sub(seal::TAG as u64))
    }

    /// Opens a chunk in place, and returns its plaintext.
    ///
    /// # Errors
    /// [`SealError::Chunk`]; [`SealError::CutChunk`].
    fn open_chunk<'a>(&self, number: u64, is_last: bool, bytes: &'a mut [u8]) -> Result<&'a mut [u8]> {
        if !is_last && bytes.len() < SEALED_CHUNK {
            return Err(self.error(SealError::CutChunk(number)));
        }
        let opened = self.key.open(&nonce(number, is_last), &self.associated, bytes);
        opened.map_err(|_| self.error(SealError::Chunk(number)))
    }

    /// Opens a sealed payload, or a part of it, in place in a file. Chunk `part.start / 65,536` stands at 0, and all
    /// other chunks of the part follow it. Afterwards the part stands at 0, and bytes behind it must not be used. With
    /// `gaps`, chunks that are not authentic become zeros.
    ///
    /// # Errors
    /// [`SealError::Chunk`]; errors of the file, made by `fail`.
    pub fn open_file(
        &self,
        file: &(dyn WriteAt + Sync),
        (extent, part): (Extent, &Range<u64>),
        gaps: bool,
        threads: Threads,
        fail: &WriteFailure<'_>,
    ) -> Result<()> {
        let chunks = self.opened_len(extent)?.div_ceil(CHUNK as u64).max((!extent.is_cut).into());
        let first = part.start / CHUNK as u64;
        // An empty part, in the last chunk or behind it, still proves a chunk if there is one.
        let end = part.end.div_ceil(CHUNK as u64).max(first + 1).min(chunks);
        let rooms: Vec<Mutex<Zeroizing<Vec<u8>>>> =
            (0..BATCH.min(end.saturating_sub(first))).map(|_| Mutex::default()).collect();
        let mut next = first;
        while next < end {
            let count = (end - next).min(BATCH) as usize;
            let error: Mutex<Option<Error>> = Mutex::new(None);
            let lost = AtomicU64::new(0);
            let note = |e: Error| {
                lock(&error).get_or_insert(e);
            };
            // All of a batch is read before any of it is written: plaintext never overwrites ciphertext that is still
            // needed.
            threads.run(count, &|nth| {
                let mut room = lock(&rooms[nth]);
                match self.read_chunk(file, first, next + nth as u64, (extent, gaps), &mut room, fail) {
                    Ok(true) => {}
                    Ok(false) => drop(lost.fetch_or(1 << nth, Ordering::Relaxed)),
                    Err(e) => note(e),
                }
            });
            threads.run(count, &|nth| {
                let start = (next + nth as u64) * CHUNK as u64;
                let room = lock(&rooms[nth]);
                let from = part.start.max(start).min(start + room.len() as u64);
                let to = part.end.min(start + room.len() as u64).max(from);
                let bytes = &room[(from - start) as usize..(to - start) as usize];
                let is_lost = lost.load(Ordering::Relaxed) >> nth & 1 == 1;
                let write = |at: u64| match is_lost {
                    true => file.write_zeros_at(at, bytes.len()),
                    false => file.write_all_at(at, bytes),
                };
                if lock(&error).is_none()
                    && let Err(e) = write(from - part.start)
                {
                    note(fail(e));
                }
            });
            into_value(error).map_or(Ok(()), Err)?;
            next += count as u64;
        }
        Ok(())
    }

    /// Reads and opens chunk `number` of a file that begins with chunk `first`. Returns false if it became zeros.
    fn read_chunk(
        &self,
        file: &dyn WriteAt,
        first: u64,
        number: u64,
        (extent, gaps): (Extent, bool),
        room: &mut Vec<u8>,
        fail: &WriteFailure<'_>,
    ) -> Result<bool> {
        let (len, is_last) = extent.chunk(number);
        room.resize(len as usize, 0);
        file.read_exact_at((number - first) * SEALED_CHUNK as u64, room).map_err(fail)?;
        let opened = self.open_chunk(number, is_last, room).map(|plain| plain.len());
        room.truncate(len as usize - seal::TAG);
        match opened {
            Err(_) if gaps => {
                room.fill(0);
                Ok(false)
            }
            opened => opened.map(|_| true),
        }
    }

    /// Opens consecutive whole chunks, from number `first` on, of a sealed payload of `sealed_len` bytes.
    ///
    /// # Errors
    /// [`SealError::Chunk`].
    pub fn open_chunks(
        &self,
        first: u64,
        sealed_len: u64,
        mut chunks: Zeroizing<Vec<u8>>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let mut plain = Zeroizing::new(Vec::with_capacity(chunks.len()));
        for (number, chunk) in (first..).zip(chunks.chunks_mut(SEALED_CHUNK)) {
            let is_last = number * SEALED_CHUNK as u64 + chunk.len() as u64 == sealed_len;
            plain.extend_from_slice(self.open_chunk(number, is_last, chunk)?);
        }
        Ok(plain)
    }

    /// The bytes of a sealed payload that a part of the payload needs.
    pub fn sealed_range(part: &Range<u64>, sealed_len: u64) -> Range<u64> {
        let first = part.start / CHUNK as u64;
        let end = part.end.div_ceil(CHUNK as u64).max(first + 1);
        let at = |chunk: u64| chunk.saturating_mul(SEALED_CHUNK as u64).min(sealed_len);
        at(first)..at(end)
    }
    /// The bytes of the payload whose chunks are whole in the range `sealed` of a sealed payload of `sealed_len` bytes.
    pub fn opened_range(sealed: &Range<u64>, sealed_len: u64) -> Range<u64> {
        let is_last = sealed.end == sealed_len;
        let tags = seal::TAG as u64 * sealed.end.div_ceil(SEALED_CHUNK as u64);
        let end = if is_last { sealed_len - tags } else { sealed.end / SEALED_CHUNK as u64 * CHUNK as u64 };
        sealed.start.div_ceil(SEALED_CHUNK as u64) * CHUNK as u64..end
    }
}

/// The opener that a reader of an encoding needs, if it is sealed.
///
/// # Errors
/// Errors of [`SealError`] that say why the payload cannot be read, or not with these keys.
pub fn opener(
    is_sealed: bool,
    meta: Option<&Meta>,
    keys: Option<&Keys>,
    wanted: SealedKind,
) -> std::result::Result<Option<Opener>, SealError> {
    let seal = match (is_sealed, meta) {
        (false, _) if keys.is_some() => return Err(SealError::NotSealed),
        (false, _) => return Ok(None),
        (true, None) => return Err(SealError::Lost),
        (true, Some(meta)) => meta.seal.as_deref(),
    };
    match (seal, keys) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(SealError::NoSeal),
        (Some(_), None) => Err(SealError::NoKey),
        (Some(seal), Some(keys)) => {
            let opener = Opener::new(seal, keys)?;
            match (opener.content(), wanted) {
                (SealedKind::Sidecar, SealedKind::Payload) => Err(SealError::IsSidecar),
                (SealedKind::Payload, SealedKind::Sidecar) => Err(SealError::IsPayload),
                _ => Ok(Some(opener)),
            }
        }
    }
}

/// A file that can be opened in place.
pub trait WriteAt: ReadAt {
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// Those of the system.
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()>;

    /// Writes `len` zeros at `offset`, within the file: a hole, if the file system has holes.
    ///
    /// # Errors
    /// Those of the system.
    fn write_zeros_at(&self, offset: u64, len: usize) -> std::io::Result<()> {
        self.write_all_at(offset, &vec![0; len])
    }
}

impl WriteAt for std::fs::File {
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        system::write_all_at(self, bytes, offset)
    }

    fn write_zeros_at(&self, offset: u64, len: usize) -> std::io::Result<()> {
        match make_hole(self, offset, len as u64) {
            true => Ok(()),
            false => self.write_all_at(offset, &vec![0; len]),
        }
    }
}

/// A writer that opens data from front to back. Without an opener, the data goes out unchanged.
pub struct Unsealed<'a> {
    opener: Option<&'a Opener>,
    out: &'a mut dyn Write,
    opening: Opening,
}

/// The progress of opening a sealed payload.
#[derive(Clone, Default)]
pub struct Opening {
    number: u64,
    /// Bytes that are not opened yet: less than a chunk, or a chunk that may be the last.
    held: Zeroizing<Vec<u8>>,
    /// True if chunks that are not authentic become zeros.
    gaps: bool,
    /// Bytes of plaintext written.
    plain_len: u64,
}

/// The end of a piece that is released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The piece ends nothing: more follows, perhaps of the same chunk.
    Nothing,
    /// The wanted part ends, with a chunk that others follow.
    Part,
    /// The payload ends.
    Payload,
}

impl Opening {
    /// Begins at a chunk.
    pub fn from_chunk(number: u64) -> Opening {
        Opening { number, ..Opening::default() }
    }

    /// With `gaps`, chunks that are not authentic become zeros: some of them are known to be lost.
    pub fn with_gaps(gaps: bool) -> Opening {
        Opening { gaps, ..Opening::default() }
    }

    /// Opens the held chunk, and writes its plaintext. Returns the error if it is not authentic.
    fn open(&mut self, opener: &Opener, is_last: bool, out: &mut dyn Write) -> io::Result<Option<Error>> {
        let number = self.number;
        let sealed = self.held.len();
        let opened = opener.open_chunk(number, is_last, &mut self.held).map(|plain| plain.len());
        let plain = match opened {
            // Only the first chunk may be empty: no payload is sealed in two ways.
            Ok(0) if number > 0 => return Ok(Some(opener.error(SealError::Chunk(number)))),
            Ok(plain) => plain,
            Err(_) if self.gaps => {
                self.held.fill(0);
                sealed.saturating_sub(seal::TAG)
            }
            Err(error) => return Ok(Some(error)),
        };
        out.write_all(&self.held[..plain])?;
        self.plain_len += plain as u64;
        self.number += 1;
        self.held.clear();
        Ok(None)
    }
}

/// A writer that opens the bytes written to it.
struct Through<'a> {
    opener: &'a Opener,
    opening: &'a mut Opening,
    out: &'a mut dyn Write,
    /// The reason why a chunk is not authentic, which makes a write fail.
    failure: Option<Error>,
}

impl Write for Through<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.opening.held.len() == SEALED_CHUNK {
                self.failure = self.opening.open(self.opener, false, self.out)?;
                if self.failure.is_some() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            let held = &mut self.opening.held;
            // All memory is reserved at once, since a growing buffer leaves copies behind.
            let room = SEALED_CHUNK - held.len();
            held.reserve_exact(room);
            let (part, behind) = rest.split_at(rest.len().min(room));
            held.extend_from_slice(part);
            rest = behind;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<'a> Unsealed<'a> {
    /// A writer that continues `opening`.
    pub fn new(opener: Option<&'a Opener>, out: &'a mut dyn Write, opening: Opening) -> Unsealed<'a> {
        Unsealed { opener, out, opening }
    }

    /// The progress, for a later writer.
    pub fn pause(self) -> Opening {
        self.opening
    }

    /// Bytes of plaintext written, of a sealed payload.
    pub fn plain_len(&self) -> Option<u64> {
        self.opener.map(|_| self.opening.plain_len)
    }

    /// Writes the output of `write`, opened; nothing of it, unless all of it is authentic. `write` is called twice for
    /// that.
    ///
    /// # Errors
    /// [`SealError::Chunk`]; errors of `write`; errors of the writer, made by `fail`.
    pub fn release(
        &mut self,
        end: End,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
        fail: &WriteFailure<'_>,
    ) -> Result<()> {
        let Some(opener) = self.opener else { return write(self.out) };
        let mut tried = self.opening.clone();
        open_all(opener, &mut tried, &mut io::sink(), end, write, fail)?;
        drop(tried);
        open_all(opener, &mut self.opening, self.out, end, write, fail)
    }
}

fn open_all(
    opener: &Opener,
    opening: &mut Opening,
    out: &mut dyn Write,
    end: End,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
    fail: &WriteFailure<'_>,
) -> Result<()> {
    let mut through = Through { opener, opening, out, failure: None };
    if let Err(error) = write(&mut through) {
        return Err(through.failure.take().unwrap_or(error));
    }
    let Through { opening, out, .. } = through;
    match end {
        End::Nothing => Ok(()),
        _ => opening.open(opener, end == End::Payload, out).map_err(fail)?.map_or(Ok(()), Err),
    }
}
