//! Input that is read by a thread of its own, so that whoever works on it can wait with a clock, and so that the
//! system's buffers are emptied while it works. A few buffers go round; when all are full, reading waits.

use super::udp::Receiver;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver as Taker, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Bytes read of a byte stream at a time, at most.
const READ: usize = 256 << 10;
/// Buffers that go round between the threads.
const BUFFERS: usize = 12;
/// How long a thread that waits for packets takes to notice that nobody wants them any more.
const NOTICE: Duration = Duration::from_millis(500);

/// What was read at a time.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// Where in `bytes` something stands, and how it is divided: into datagrams of so many bytes each, the last one
    /// perhaps shorter. A byte stream has one piece that is not divided.
    pub(crate) pieces: Vec<(Range<usize>, usize)>,
}

impl Chunk {
    /// The datagrams, or the bytes that were read.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|(range, stride)| self.bytes[range.clone()].chunks((*stride).max(1)))
    }
}

/// What comes next of an input.
#[derive(Debug)]
pub(crate) enum Next {
    Chunk(Chunk),
    /// Nothing came in time.
    Nothing,
    End,
    Failed(io::Error),
}

/// The end of an input at which it is taken out.
pub(crate) struct Feed {
    full: Taker<io::Result<Chunk>>,
    empty: SyncSender<Chunk>,
}

impl Feed {
    /// Reads a byte stream, of which `head` was read before.
    pub(crate) fn of_bytes(head: Vec<u8>, mut input: impl Read + Send + 'static) -> io::Result<Feed> {
        let mut head = Some(head).filter(|head| !head.is_empty());
        Feed::start(move |chunk| {
            let len = match head.take() {
                Some(head) => {
                    chunk.bytes = head;
                    chunk.bytes.len()
                }
                None => {
                    chunk.bytes.resize(READ, 0);
                    loop {
                        match input.read(&mut chunk.bytes) {
                            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                            other => break other?,
                        }
                    }
                }
            };
            chunk.pieces.clear();
            chunk.pieces.push((0..len, len));
            Ok(len > 0)
        })
    }

    /// Receives datagrams.
    pub(crate) fn of_packets(receiver: Receiver) -> io::Result<Feed> {
        Feed::start(move |chunk| receiver.receive(chunk, NOTICE).map(|()| true))
    }

    /// Starts the thread; `fill` reads into a chunk and tells whether there may be more.
    fn start(mut fill: impl FnMut(&mut Chunk) -> io::Result<bool> + Send + 'static) -> io::Result<Feed> {
        let (filled, full) = sync_channel::<io::Result<Chunk>>(BUFFERS);
        let (empty, emptied) = sync_channel::<Chunk>(BUFFERS);
        for _ in 0..BUFFERS {
            // There is room for all of them.
            let _ = empty.try_send(Chunk::default());
        }
        std::thread::Builder::new().name("input".into()).spawn(move || {
            // Ends when the other side has gone, at the end of the input, or with an error.
            while let Ok(mut chunk) = emptied.recv() {
                let more = fill(&mut chunk);
                let (last, item) = match more {
                    Ok(more) => (!more, Ok(chunk)),
                    Err(e) => (true, Err(e)),
                };
                if filled.send(item).is_err() || last {
                    break;
                }
            }
        })?;
        Ok(Feed { full, empty })
    }

    /// What comes next, waiting until `deadline` for it, or without an end.
    pub(crate) fn next(&self, deadline: Option<Instant>) -> Next {
        let item = match deadline {
            None => self.full.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => self.full.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        };
        match item {
            Ok(Ok(chunk)) => Next::Chunk(chunk),
            Ok(Err(e)) => Next::Failed(e),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Whether something is there already; it counts as taken.
    pub(crate) fn try_next(&self) -> Next {
        self.next(Some(Instant::now()))
    }

    /// Gives a buffer back to be filled again.
    pub(crate) fn give_back(&self, chunk: Chunk) {
        // There is room for all; a thread that has ended needs none.
        let _ = self.empty.try_send(chunk);
    }
}
