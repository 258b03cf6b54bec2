//! Opening sealed payloads.

use super::error::SealError;
use super::keys::{associated, chunk_key, nonce, private_key};
use crate::age::{self, Keys};
use crate::cipher::{AeadKey, Cipher, NONCE};
use crate::error::{Error, Result, WriteFailure};
use crate::io::ReadAt;
use crate::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::meta::Meta;
use fec_core::format::seal::{self, CHUNK, SEALED_CHUNK, Seal, SealedKind};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Mutex;
use zeroize::Zeroizing;

/// Chunks that are opened at the same time, where they stand in a file.
const BATCH: u64 = 32;

/// Opens one sealed payload.
pub struct Opener {
    key: AeadKey,
    associated: [u8; 32],
    content: SealedKind,
    private: Meta,
}

impl Opener {
    /// Gets the content key from the seal, and opens its private part.
    ///
    /// # Errors
    /// [`SealError::Format`] for a seal that breaks a rule; [`SealError::Age`] when no key fits; [`SealError::PrivatePart`].
    pub fn new(bytes: &[u8], keys: &Keys) -> std::result::Result<Opener, SealError> {
        let seal = Seal::parse(bytes)?;
        let cipher = Cipher::from_number(seal.cipher).expect("the parser knows the ciphers");
        let content_key = age::open(seal.age_file, keys)?;
        let content_key = content_key[..].try_into().map_err(|_| SealError::ContentKey)?;
        let mut private = Zeroizing::new(seal.private.to_vec());
        let opened = private_key(cipher, content_key).open(&[0; NONCE], seal.public, &mut private);
        let opened = opened.map_err(|_| SealError::PrivatePart)?;
        let private = Meta::parse(seal::unpadded(opened)?)?;
        let (key, associated) = (chunk_key(cipher, content_key), associated(bytes));
        Ok(Opener { key, associated, content: seal.content, private })
    }

    /// What is sealed.
    pub fn content(&self) -> SealedKind {
        self.content
    }

    /// The recorded name of the file.
    pub fn name(&self) -> Option<&[u8]> {
        self.private.name.as_deref()
    }

    /// Bytes of the payload, of a sealed one of so many.
    ///
    /// # Errors
    /// [`SealError::Length`].
    pub fn plain_len(&self, sealed: u64) -> Result<u64> {
        seal::plain_len(sealed).ok_or_else(|| Error::new("open", SealError::Length(sealed)))
    }

    /// Opens a chunk where it stands; its plaintext.
    ///
    /// # Errors
    /// [`SealError::Chunk`].
    fn open_chunk<'a>(&self, number: u64, is_last: bool, bytes: &'a mut [u8]) -> Result<&'a mut [u8]> {
        let opened = self.key.open(&nonce(number, is_last), &self.associated, bytes);
        opened.map_err(|_| Error::new("open", SealError::Chunk(number)))
    }

    /// Opens a sealed payload, or a part of it, where it stands in a file: at 0 there stands chunk `part.start / 65,536`, and
    /// behind it all others that the part touches. Afterwards the part stands at 0; what is behind it is not to be used. With
    /// `gaps`, chunks that are not authentic become zeros.
    ///
    /// # Errors
    /// [`SealError::Chunk`]; those of the file by `fail`.
    pub(crate) fn open_file(
        &self,
        file: &(dyn WriteAt + Sync),
        (sealed_len, part): (u64, &Range<u64>),
        gaps: bool,
        threads: Threads,
        fail: &WriteFailure<'_>,
    ) -> Result<()> {
        let plain_len = self.plain_len(sealed_len)?;
        let chunks = plain_len.div_ceil(CHUNK as u64).max(1);
        let first = part.start / CHUNK as u64;
        // An empty part in the last chunk, or behind it, still proves a chunk where there is one.
        let end = part.end.div_ceil(CHUNK as u64).max(first + 1).min(chunks);
        let rooms: Vec<Mutex<Zeroizing<Vec<u8>>>> =
            (0..BATCH.min(end.saturating_sub(first))).map(|_| Mutex::default()).collect();
        let mut next = first;
        while next < end {
            let count = (end - next).min(BATCH) as usize;
            let error: Mutex<Option<Error>> = Mutex::new(None);
            let note = |e: Error| {
                lock(&error).get_or_insert(e);
            };
            // All of a batch is read before any of it is written: plaintext never reaches ciphertext that is still wanted.
            threads.run(count, &|nth| {
                let mut room = lock(&rooms[nth]);
                if let Err(e) =
                    self.read_chunk(file, first, next + nth as u64, (sealed_len, gaps), &mut room, fail)
                {
                    note(e);
                }
            });
            threads.run(count, &|nth| {
                let start = (next + nth as u64) * CHUNK as u64;
                let room = lock(&rooms[nth]);
                let from = part.start.max(start).min(start + room.len() as u64);
                let to = part.end.min(start + room.len() as u64).max(from);
                let bytes = &room[(from - start) as usize..(to - start) as usize];
                if lock(&error).is_none()
                    && let Err(e) = file.write_all_at(from - part.start, bytes)
                {
                    note(fail(e));
                }
            });
            into_value(error).map_or(Ok(()), Err)?;
            next += count as u64;
        }
        Ok(())
    }

    /// Reads and opens chunk `number` of a file that begins with chunk `first`.
    fn read_chunk(
        &self,
        file: &dyn WriteAt,
        first: u64,
        number: u64,
        (sealed_len, gaps): (u64, bool),
        room: &mut Vec<u8>,
        fail: &WriteFailure<'_>,
    ) -> Result<()> {
        let start = number * SEALED_CHUNK as u64;
        let len = (sealed_len - start).min(SEALED_CHUNK as u64);
        room.resize(len as usize, 0);
        file.read_exact_at(start - first * SEALED_CHUNK as u64, room).map_err(fail)?;
        let opened = self.open_chunk(number, start + len == sealed_len, room).map(|plain| plain.len());
        room.truncate(len as usize - seal::TAG);
        match opened {
            Err(_) if gaps => room.fill(0),
            opened => drop(opened?),
        }
        Ok(())
    }

    /// The bytes of a sealed payload that a part of the payload needs.
    pub(crate) fn sealed_range(part: &Range<u64>, sealed_len: u64) -> Range<u64> {
        let first = part.start / CHUNK as u64;
        let end = part.end.div_ceil(CHUNK as u64).max(first + 1);
        let at = |chunk: u64| chunk.saturating_mul(SEALED_CHUNK as u64).min(sealed_len);
        at(first)..at(end)
    }
}

/// What a reader of an encoding does about its seal.
///
/// # Errors
/// Those of [`SealError`] that say why it cannot be read, or not with these keys.
pub(crate) fn opener(
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

/// A file that is opened where it stands.
pub(crate) trait WriteAt: ReadAt {
    /// Writes all of `bytes` at a place.
    ///
    /// # Errors
    /// Those of the system.
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()>;
}

impl WriteAt for std::fs::File {
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }
}

/// A writer that opens what goes through it, from front to back: each chunk goes out when it is proved. Without an opener all goes
/// through as it is.
pub(crate) struct Unsealed<'a> {
    opener: Option<&'a Opener>,
    out: &'a mut dyn Write,
    opening: Opening,
    /// Why a write failed, where it was not the writer behind.
    failure: Option<Error>,
}

/// How far a sealed payload was opened.
#[derive(Default)]
pub(crate) struct Opening {
    number: u64,
    /// Bytes that are not opened yet: less than a chunk, or one of which it is not known whether it is the last.
    held: Zeroizing<Vec<u8>>,
    /// Chunks that are not authentic become zeros.
    gaps: bool,
    /// The last chunk that comes is not the last of the payload.
    goes_on: bool,
    /// Bytes of plaintext that went out.
    plain_len: u64,
}

impl Opening {
    /// Begins at a chunk, and ends with one behind which the payload may go on.
    pub(crate) fn from_chunk(number: u64, goes_on: bool) -> Opening {
        Opening { number, goes_on, ..Opening::default() }
    }

    fn push(&mut self, opener: &Opener, mut bytes: &[u8], out: &mut dyn Write) -> io::Result<Option<Error>> {
        let missing = SEALED_CHUNK - self.held.len();
        self.held.reserve_exact(missing);
        while !bytes.is_empty() {
            if self.held.len() == SEALED_CHUNK
                && let Some(error) = self.open(opener, false, out)?
            {
                return Ok(Some(error));
            }
            let (part, rest) = bytes.split_at(bytes.len().min(SEALED_CHUNK - self.held.len()));
            self.held.extend_from_slice(part);
            bytes = rest;
        }
        Ok(None)
    }

    /// Opens what is held, a whole chunk, and writes its plaintext; why it is not authentic, if it is not.
    fn open(&mut self, opener: &Opener, is_last: bool, out: &mut dyn Write) -> io::Result<Option<Error>> {
        let number = self.number;
        let sealed = self.held.len();
        let opened = opener.open_chunk(number, is_last, &mut self.held).map(|plain| plain.len());
        let plain = match opened {
            // Only the first chunk may be empty: no payload is sealed in two ways.
            Ok(0) if number > 0 => return Ok(Some(Error::new("open", SealError::Chunk(number)))),
            Ok(plain) => plain,
            Err(_) if self.gaps && sealed >= seal::TAG => {
                self.held.fill(0);
                sealed - seal::TAG
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

impl<'a> Unsealed<'a> {
    pub(crate) fn new(opener: Option<&'a Opener>, out: &'a mut dyn Write) -> Unsealed<'a> {
        Unsealed::resume(opener, out, Opening::default())
    }

    /// Goes on where another one stopped.
    pub(crate) fn resume(
        opener: Option<&'a Opener>,
        out: &'a mut dyn Write,
        opening: Opening,
    ) -> Unsealed<'a> {
        Unsealed { opener, out, opening, failure: None }
    }

    /// How far it is, for one that goes on later.
    pub(crate) fn pause(self) -> Opening {
        self.opening
    }

    /// Whether chunks that are not authentic become zeros, since something is known to be lost.
    pub(crate) fn zeros_for_gaps(&mut self, gaps: bool) {
        self.opening.gaps = gaps;
    }

    /// Bytes of plaintext that went out, of a payload that is sealed.
    pub(crate) fn plain_len(&self) -> Option<u64> {
        self.opener.map(|_| self.opening.plain_len)
    }

    /// What failed, when something that wrote to this one fails.
    pub(crate) fn result<T>(&mut self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.failure.take().unwrap_or(error))
    }

    /// The end of the payload: its last chunk goes out.
    ///
    /// # Errors
    /// [`SealError::Chunk`]; those of the writer, by `fail`.
    pub(crate) fn end(&mut self, fail: &WriteFailure<'_>) -> Result<()> {
        let Some(opener) = self.opener else { return Ok(()) };
        self.opening.open(opener, !self.opening.goes_on, self.out).map_err(fail)?.map_or(Ok(()), Err)
    }
}

impl Write for Unsealed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(opener) = self.opener else { return self.out.write(bytes) };
        match self.opening.push(opener, bytes, self.out)? {
            None => Ok(bytes.len()),
            Some(error) => {
                self.failure = Some(error);
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
