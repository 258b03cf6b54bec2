//! Datagrams as they come. The caller reads them, or a thread does, so that the system's buffers are emptied while a
//! decoder works.

use fec_live::Chunk;
use fec_live::udp::PacketReceiver;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Buffers that go round between the threads.
const BUFFERS: usize = 12;
/// Time in which the thread tells that no datagram came, and notices that nobody wants datagrams any more.
const NOTICE: Duration = Duration::from_millis(50);

/// Waits for datagrams, at most for the given time, and replaces the chunk's content by those that came. The chunk is
/// empty if none came.
pub(super) type Next<'a> = dyn FnMut(&mut Chunk, Duration) -> io::Result<()> + 'a;

/// Calls `work` with datagrams that a thread of its own receives.
pub(super) fn beside<T>(
    receiver: &PacketReceiver,
    work: impl FnOnce(&mut Next<'_>) -> io::Result<T>,
) -> io::Result<T> {
    let (filled, full) = sync_channel::<io::Result<Chunk>>(BUFFERS);
    let (empty, emptied) = sync_channel::<Chunk>(BUFFERS + 1);
    for _ in 0..BUFFERS {
        // The channel holds all of them.
        let _ = empty.try_send(Chunk::default());
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        std::thread::Builder::new().name("input".into()).spawn_scoped(scope, move || {
            while let Ok(mut chunk) = emptied.recv() {
                let received = receiver.receive(&mut chunk, NOTICE);
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let is_last = received.is_err();
                if filled.send(received.map(|()| chunk)).is_err() || is_last {
                    return;
                }
            }
        })?;
        let mut next = |chunk: &mut Chunk, limit: Duration| {
            let read = std::mem::take(chunk);
            if !read.bytes.is_empty() {
                let _ = empty.try_send(read);
            }
            match full.recv_timeout(limit) {
                Ok(filled) => *chunk = filled?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
            }
            Ok(())
        };
        let done = work(&mut next);
        is_over.store(true, Ordering::Relaxed);
        // Both ends are dropped, so that the thread waits for neither.
        drop((full, empty));
        done
    })
}
