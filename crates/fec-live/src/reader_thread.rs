//! A thread that reads an input, so that its user can wait with a clock, and the system's buffers are emptied while the
//! user works. A few buffers go round; when all are full, reading waits.

use super::chunk::Chunk;
use super::udp::PacketReceiver;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Most bytes of a byte stream for each read.
const READ: usize = 256 << 10;
/// Buffers that go round between the threads.
const BUFFERS: usize = 12;
/// Time in which a thread that waits for packets tells that none came, and notices that nobody wants them any more.
pub(super) const NOTICE: Duration = Duration::from_millis(100);

/// The next result of an input.
#[derive(Debug)]
pub(super) enum Next {
    /// Data was read.
    Chunk(Chunk),
    /// Nothing came in time.
    Nothing,
    /// The input has ended.
    End,
    /// The input cannot be read further.
    Failed(io::Error),
}

/// A thread that reads an input, as its user sees it.
pub(super) struct ReaderThread {
    full: Receiver<io::Result<Chunk>>,
    empty: SyncSender<Chunk>,
}

impl ReaderThread {
    /// Reads a byte stream; `head` is its beginning, which was read before.
    pub(super) fn of_bytes(head: Vec<u8>, mut input: impl Read + Send + 'static) -> io::Result<ReaderThread> {
        let mut head = Some(head).filter(|head| !head.is_empty());
        ReaderThread::start(move |chunk| {
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
    pub(super) fn of_packets(receiver: Arc<PacketReceiver>) -> io::Result<ReaderThread> {
        ReaderThread::start(move |chunk| receiver.receive(chunk, NOTICE).map(|()| true))
    }

    /// Starts the thread; `fill` reads into a chunk and returns whether there may be more.
    fn start(
        mut fill: impl FnMut(&mut Chunk) -> io::Result<bool> + Send + 'static,
    ) -> io::Result<ReaderThread> {
        let (filled, full) = sync_channel::<io::Result<Chunk>>(BUFFERS);
        let (empty, emptied) = sync_channel::<Chunk>(BUFFERS);
        for _ in 0..BUFFERS {
            // The channel holds all of them.
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
        Ok(ReaderThread { full, empty })
    }

    /// Waits for the next result until `deadline`, or without an end.
    pub(super) fn next(&self, deadline: Option<Instant>) -> Next {
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

    /// The result that is already there, if any; it counts as taken.
    pub(super) fn try_next(&self) -> Next {
        self.next(Some(Instant::now()))
    }

    /// Returns a buffer, to be filled again.
    pub(super) fn give_back(&self, chunk: Chunk) {
        // The channel holds all of them; a thread that has ended needs none.
        let _ = self.empty.try_send(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input of these results, one after the other.
    struct Script(Vec<io::Result<&'static [u8]>>);

    impl Read for Script {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0)?;
            out[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    fn bytes_of(next: Next) -> Vec<u8> {
        match next {
            Next::Chunk(chunk) => chunk.parts().flatten().copied().collect(),
            other => panic!("{other:?}"),
        }
    }

    /// The bytes that were read before come first, an interrupted read is repeated, and the end comes once, behind all.
    #[test]
    fn a_byte_stream_comes_in_order_to_its_end() {
        for head in [&b"head"[..], b""] {
            let interrupted = || Err(io::ErrorKind::Interrupted.into());
            let script = Script(vec![interrupted(), Ok(b"one"), interrupted(), interrupted(), Ok(b"two")]);
            let reader = ReaderThread::of_bytes(head.to_vec(), script).expect("a thread");
            let (mut all, mut end) = (Vec::new(), None);
            for _ in 0..100 {
                match reader.next(None) {
                    Next::Chunk(chunk) => {
                        chunk.parts().for_each(|part| all.extend_from_slice(part));
                        reader.give_back(chunk);
                    }
                    other => {
                        end = Some(other);
                        break;
                    }
                }
            }
            assert!(matches!(end, Some(Next::End)), "{end:?}");
            assert_eq!(all, [head, b"onetwo"].concat());
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_behind_what_could() {
        let script = Script(vec![Ok(b"one"), Err(io::ErrorKind::PermissionDenied.into()), Ok(b"two")]);
        let reader = ReaderThread::of_bytes(Vec::new(), script).expect("a thread");
        assert_eq!(bytes_of(reader.next(None)), b"one");
        let Next::Failed(error) = reader.next(None) else { panic!("it failed") };
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(matches!(reader.next(None), Next::End));
    }

    /// Waiting for an input ends in time, and costs nothing that comes later.
    #[test]
    fn a_wait_ends_in_time() {
        let (sender, receiver) = std::sync::mpsc::channel::<u8>();
        struct Waiting(Receiver<u8>);
        impl Read for Waiting {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                Ok(self.0.recv().map_or(0, |byte| {
                    out[0] = byte;
                    1
                }))
            }
        }
        let reader = ReaderThread::of_bytes(Vec::new(), Waiting(receiver)).expect("a thread");
        let begun = Instant::now();
        assert!(matches!(reader.try_next(), Next::Nothing));
        assert!(matches!(reader.next(Some(begun + Duration::from_millis(30))), Next::Nothing));
        assert!(begun.elapsed() >= Duration::from_millis(30));
        // More than there are buffers: each goes round.
        for byte in 0..3 * BUFFERS as u8 {
            sender.send(byte).expect("it is wanted");
            let Next::Chunk(chunk) = reader.next(None) else { panic!("it comes") };
            assert_eq!(chunk.parts().collect::<Vec<_>>(), [[byte]]);
            reader.give_back(chunk);
        }
        drop(sender);
        let rest = std::iter::from_fn(|| match reader.next(None) {
            Next::End => None,
            next => Some(bytes_of(next)),
        });
        assert!(rest.flatten().next().is_none(), "the end brings nothing");
    }
}
