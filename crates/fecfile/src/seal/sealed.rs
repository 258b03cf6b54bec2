//! Sealed payloads, which stand for their plaintexts.

use super::sealer::Sealer;
use crate::payload::{Payload, Source};
use fec_base::error::{Place, Result};
use fec_core::executor::lock;
use fec_core::format::seal::{self, CHUNK, SEALED_CHUNK};
use std::io::{self, Read};
use std::sync::Mutex;
use zeroize::{Zeroize, Zeroizing};

/// A sealed payload, which stands for its plaintext.
///
/// Each read of a part of a chunk seals the chunk again, so long reads cost less. If the input changes while it is
/// sealed, the output may mix versions. As long as each byte is read once, no keystream is reused for two versions of a
/// byte.
pub struct SealedPayload<'a> {
    payload: &'a dyn Payload,
    sealer: &'a Sealer,
    /// Buffers for chunks that are read in pieces.
    spare: Mutex<Vec<Chunk>>,
}

/// A buffer for a chunk, wiped when dropped.
type Chunk = Zeroizing<Vec<u8>>;

impl<'a> SealedPayload<'a> {
    /// Seals all of `payload`; the sealer must seal no other payload.
    pub fn new(payload: &'a dyn Payload, sealer: &'a Sealer) -> SealedPayload<'a> {
        SealedPayload { payload, sealer, spare: Mutex::default() }
    }

    /// Seals chunk `number` into `out`, which has the length of the sealed chunk.
    fn chunk(&self, number: u64, out: &mut [u8]) -> Result<()> {
        let start = number * CHUNK as u64;
        let len = out.len() - seal::TAG;
        let is_last = start + len as u64 == self.payload.size();
        if len > 0 {
            self.payload.read_at(start, &mut out[..len])?;
        }
        self.sealer.seal_chunk(number, is_last, out);
        Ok(())
    }

    /// A buffer for a chunk.
    fn room(&self) -> Chunk {
        lock(&self.spare).pop().unwrap_or_else(|| Zeroizing::new(vec![0; SEALED_CHUNK]))
    }
}

impl Payload for SealedPayload<'_> {
    fn size(&self) -> u64 {
        seal::sealed_len(self.payload.size())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_parts(offset, &mut [out])
    }

    fn read_parts(&self, offset: u64, parts: &mut [&mut [u8]]) -> Result<()> {
        let (size, mut at) = (self.size(), offset);
        // The rest of the last chunk behind the part before.
        let mut room: Option<Chunk> = None;
        let mut held = None;
        for part in parts {
            let mut out = &mut **part;
            while !out.is_empty() {
                let number = at / SEALED_CHUNK as u64;
                let start = number * SEALED_CHUNK as u64;
                let len = (size - start).min(SEALED_CHUNK as u64) as usize;
                let skip = (at - start) as usize;
                let (piece, rest) = out.split_at_mut(out.len().min(len - skip));
                if piece.len() == len {
                    self.chunk(number, piece)?;
                } else {
                    let room = room.get_or_insert_with(|| self.room());
                    if held != Some(number) {
                        self.chunk(number, &mut room[..len])?;
                        held = Some(number);
                    }
                    piece.copy_from_slice(&room[skip..skip + piece.len()]);
                }
                at += piece.len() as u64;
                out = rest;
            }
        }
        lock(&self.spare).extend(room);
        Ok(())
    }

    fn gains_by_length(&self) -> bool {
        true
    }

    fn check_unchanged(&self) -> Result<()> {
        self.payload.check_unchanged()
    }

    fn place(&self) -> Place {
        self.payload.place()
    }
}

/// A sealed payload from a pipe, from front to back.
pub struct SealedReader<'a, R> {
    inner: R,
    sealer: &'a Sealer,
    number: u64,
    /// The outgoing chunk, and how many of its bytes have gone out.
    chunk: Zeroizing<Vec<u8>>,
    gone: usize,
    /// The byte behind the chunk, which shows that it is not the last.
    ahead: Option<u8>,
    has_ended: bool,
}

impl<'a, R: Read> SealedReader<'a, R> {
    /// Seals all that `inner` reads; the sealer must seal nothing else.
    pub fn new(inner: R, sealer: &'a Sealer) -> SealedReader<'a, R> {
        let chunk = Zeroizing::new(Vec::with_capacity(SEALED_CHUNK));
        SealedReader { inner, sealer, number: 0, chunk, gone: 0, ahead: None, has_ended: false }
    }

    /// Reads and seals the next chunk.
    fn next(&mut self) -> io::Result<()> {
        self.chunk.clear();
        self.gone = 0;
        self.chunk.extend(self.ahead.take());
        let missing = CHUNK - self.chunk.len();
        self.inner.by_ref().take(missing as u64).read_to_end(&mut self.chunk)?;
        let mut ahead = Zeroizing::new(Vec::with_capacity(1));
        if self.chunk.len() == CHUNK {
            self.inner.by_ref().take(1).read_to_end(&mut ahead)?;
        }
        self.ahead = ahead.first().copied();
        self.has_ended = self.ahead.is_none();
        let len = self.chunk.len() + seal::TAG;
        self.chunk.resize(len, 0);
        self.sealer.seal_chunk(self.number, self.has_ended, &mut self.chunk);
        self.number += 1;
        Ok(())
    }
}

impl<R: Read> Read for SealedReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wants_next = self.gone == self.chunk.len() && !self.has_ended && !out.is_empty();
        if wants_next && let Err(error) = self.next() {
            // Unsealed bytes are never given out.
            self.chunk.zeroize();
            self.gone = 0;
            return Err(error);
        }
        let take = out.len().min(self.chunk.len() - self.gone);
        out[..take].copy_from_slice(&self.chunk[self.gone..self.gone + take]);
        self.gone += take;
        Ok(take)
    }
}

/// A source in its coded form: sealed, if there is a sealer.
pub enum Coded<'s, 'k> {
    /// A source that is not sealed.
    Plain(Source<'s>),
    /// A payload of known length.
    Payload(SealedPayload<'k>),
    /// A pipe, and its name.
    Pipe(SealedReader<'k, &'s mut (dyn Read + Send + 's)>, Place),
}

impl<'s: 'k, 'k> Coded<'s, 'k> {
    /// Seals `source` if there is a sealer.
    pub fn new(source: Source<'s>, sealer: Option<&'k Sealer>) -> Coded<'s, 'k> {
        match (source, sealer) {
            (source, None) => Coded::Plain(source),
            (Source::Payload(payload), Some(sealer)) => Coded::Payload(SealedPayload::new(payload, sealer)),
            (Source::Pipe(pipe, place), Some(sealer)) => Coded::Pipe(SealedReader::new(pipe, sealer), place),
        }
    }

    /// The source of the coded bytes.
    pub fn source(&mut self) -> Source<'_> {
        match self {
            Coded::Plain(Source::Payload(payload)) => Source::Payload(*payload),
            Coded::Plain(Source::Pipe(pipe, place)) => Source::Pipe(*pipe, place.clone()),
            Coded::Payload(payload) => Source::Payload(payload),
            Coded::Pipe(pipe, place) => Source::Pipe(pipe, place.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
