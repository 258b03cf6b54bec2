//! Times the stages of each thread: the figures that `fec --where` shows.
//!
//! A thread is in one stage at a time. A stage that begins inside another takes its place until it ends, so the stages
//! of a thread add up to its time, and nothing counts twice. Each stretch is timed by the wall clock and by the
//! thread's own clock: the difference is waiting, for a device, a pipe, or a core that something else had. Unless a
//! program calls [`start`], entering a stage is one relaxed load. Times are kept for the process, not for an operation:
//! a program that starts this runs one operation at a time.

use crate::io::system;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::executor::lock;
use fec_core::gf256::kernel::Backend;
use fec_core::observe::{Observer, Phase};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The stages of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Anything outside the other stages.
    Other,
    /// Reading payload or shards from a file, a mapping or a pipe.
    Read,
    /// Computing recovery shards or missing originals in the kernel.
    Code,
    /// Computing digests of shards, and checking the proofs of shards that were read.
    Hash,
    /// Computing trees and roots.
    Tree,
    /// Writing to files, devices and pipes; also giving outputs their names.
    Write,
    /// Waiting until outputs are on the disk.
    Sync,
    /// Waiting for another thread.
    Wait,
}

/// All stages, in the order in which they are reported.
pub const STAGES: [Stage; 8] = [
    Stage::Read,
    Stage::Code,
    Stage::Hash,
    Stage::Tree,
    Stage::Write,
    Stage::Sync,
    Stage::Other,
    Stage::Wait,
];

impl Stage {
    /// The stage's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Other => "other",
            Stage::Read => "read",
            Stage::Code => "code",
            Stage::Hash => "hash",
            Stage::Tree => "tree",
            Stage::Write => "write",
            Stage::Sync => "sync",
            Stage::Wait => "wait",
        }
    }
}

/// Time and bytes of one stage of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Time by the wall clock.
    pub wall: Duration,
    /// Time by the thread's own clock: the time that a core worked for it.
    pub core: Duration,
    /// Bytes of payload or shards that went through the stage.
    pub bytes: u64,
}

/// A thread that ended, or the main thread so far.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Time from the thread's first moment to its last, by one reading of the clock at each end.
    pub wall: Duration,
    /// Time in a run queue: the thread could have run, but something else had the core. `None` where the system does
    /// not tell.
    pub queued: Option<Duration>,
    /// Time and bytes of each stage, by its number.
    pub stages: [Spent; 8],
}

/// The code, hash and kernel of the work, from which reports compute the limits of kernel and hash.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The code.
    pub code: Code,
    /// The hash of digests.
    pub hash: HashKind,
    /// The kernel.
    pub backend: Backend,
}

static ON: AtomicBool = AtomicBool::new(false);
static ENDED: Mutex<Vec<Thread>> = Mutex::new(Vec::new());
static WORK: Mutex<Option<Work>> = Mutex::new(None);

fn ended() -> MutexGuard<'static, Vec<Thread>> {
    lock(&ENDED)
}

struct Running {
    began: Instant,
    queued: Option<Duration>,
    stage: Stage,
    /// The stage that the codec's phase interrupts.
    outer: Stage,
    since: (Instant, Duration),
    stages: [Spent; 8],
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// The calling thread's time in run queues so far.
fn queued() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

fn now() -> (Instant, Duration) {
    let core = system::thread_time();
    (Instant::now(), core)
}

impl Running {
    /// Adds the time until now to the stage that ends.
    fn change(&mut self, stage: Stage) -> Stage {
        let (wall, core) = now();
        let spent = &mut self.stages[self.stage as usize];
        spent.wall += wall - self.since.0;
        spent.core += core.saturating_sub(self.since.1);
        self.since = (wall, core);
        std::mem::replace(&mut self.stage, stage)
    }
}

/// Tells whether stages are timed.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Starts timing stages, with the calling thread as the first.
pub fn start() {
    ON.store(true, Ordering::Relaxed);
    begin_thread(Stage::Other);
}

/// Records code, hash and kernel once they are known.
pub fn tell_work(code: Code, hash: HashKind, backend: Backend) {
    if is_on() {
        *lock(&WORK) = Some(Work { code, hash, backend });
    }
}

/// The stage of the calling thread, for threads that it starts.
pub fn current() -> Stage {
    if !is_on() {
        return Stage::Other;
    }
    RUNNING.with_borrow(|running| running.as_ref().map_or(Stage::Other, |running| running.stage))
}

fn begin_thread(stage: Stage) {
    let queued = queued();
    let since = now();
    RUNNING.set(Some(Running {
        began: since.0,
        queued,
        stage,
        outer: stage,
        since,
        stages: Default::default(),
    }));
}

/// A timed thread; its account ends when this is dropped.
pub struct ThreadGuard(bool);

/// Times the calling thread, which begins in `stage`.
pub fn thread(stage: Stage) -> ThreadGuard {
    let on = is_on();
    if on {
        begin_thread(stage);
    }
    ThreadGuard(on)
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        if self.0 {
            end_thread();
        }
    }
}

fn end_thread() {
    if let Some(mut running) = RUNNING.take() {
        running.change(Stage::Other);
        let wall = running.began.elapsed();
        let queued = queued().zip(running.queued).map(|(now, then)| now.saturating_sub(then));
        ended().push(Thread { wall, queued, stages: running.stages });
    }
}

/// A stage of the calling thread; it ends when this is dropped.
#[must_use = "the stage ends at once"]
pub struct Guard(Option<Stage>);

/// Enters a stage that handles `bytes` bytes of payload or shards.
pub fn enter(stage: Stage, bytes: u64) -> Guard {
    if !is_on() {
        return Guard(None);
    }
    RUNNING.with_borrow_mut(|running| {
        let before = running.as_mut().map(|running| {
            running.stages[stage as usize].bytes += bytes;
            running.change(stage)
        });
        Guard(before)
    })
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            RUNNING.with_borrow_mut(|running| {
                if let Some(running) = running {
                    running.change(before);
                }
            });
        }
    }
}

/// Adds bytes to the current stage of the calling thread, for callers that do not know the number beforehand.
pub fn add_bytes(bytes: u64) {
    if is_on() {
        RUNNING.with_borrow_mut(|running| {
            if let Some(running) = running {
                running.stages[running.stage as usize].bytes += bytes;
            }
        });
    }
}

/// Ends the main thread's account. Returns all accounts, the main one last, with code, hash and kernel.
pub fn stop() -> (Vec<Thread>, Option<Work>) {
    end_thread();
    let work = *lock(&WORK);
    (std::mem::take(&mut ended()), work)
}

/// Runs `work` with accounts of its own, and returns these, the calling thread's last. In the accounts around it, if
/// there are any, `work` is time of the caller's stage.
pub fn account<T>(work: impl FnOnce() -> T) -> (T, Vec<Thread>) {
    let outer = (RUNNING.take(), std::mem::take(&mut *ended()), ON.swap(true, Ordering::Relaxed));
    begin_thread(Stage::Other);
    let done = work();
    end_thread();
    let threads = std::mem::replace(&mut *ended(), outer.1);
    ON.store(outer.2, Ordering::Relaxed);
    RUNNING.set(outer.0);
    (done, threads)
}

/// Returns to a stage that [`current`] gave, whatever was entered since.
pub fn resume(stage: Stage) {
    std::mem::forget(enter(stage, 0));
}

/// Turns the codec's phases into stages.
#[derive(Debug)]
pub struct Observed;

impl Observer for Observed {
    fn begin(&self, phase: Phase) {
        if is_on() {
            RUNNING.with_borrow_mut(|running| {
                if let Some(running) = running {
                    running.outer = running.change(stage_of(phase));
                }
            });
        }
    }

    fn end(&self, phase: Phase, bytes: u64) {
        if !is_on() {
            return;
        }
        RUNNING.with_borrow_mut(|running| {
            if let Some(running) = running {
                running.stages[stage_of(phase) as usize].bytes += bytes;
                running.change(running.outer);
            }
        });
    }
}

fn stage_of(phase: Phase) -> Stage {
    match phase {
        Phase::Encode | Phase::Decode | Phase::Reencode => Stage::Code,
        Phase::Digest | Phase::Check => Stage::Hash,
        Phase::Tree | Phase::Plan => Stage::Tree,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    /// A single test covers everything: the switch is the process's.
    #[test]
    fn stages_of_a_thread_add_up_to_its_time() {
        start();
        let worker = std::thread::spawn(|| {
            let _thread = thread(Stage::Wait);
            let read = enter(Stage::Read, 4);
            add_bytes(6);
            sleep(Duration::from_millis(20));
            {
                let _hash = enter(Stage::Hash, 7);
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(20) {}
            }
            sleep(Duration::from_millis(10));
            drop(read);
            sleep(Duration::from_millis(10));
        });
        worker.join().expect("the worker ends");
        let ((), inner) = account(|| drop(enter(Stage::Write, 5)));
        let (threads, _) = stop();
        // The calling thread is the last of each account, and the inner account is no part of the outer.
        let written = |threads: &[Thread]| threads.last().map(|t| t.stages[Stage::Write as usize].bytes);
        assert_eq!((written(&inner), written(&threads)), (Some(5), Some(0)));
        // Threads of other tests are timed too.
        let own = |thread: &&Thread| thread.stages[Stage::Read as usize].bytes == 10;
        let worker = threads.iter().find(own).expect("the worker was timed");
        let sum: Duration = worker.stages.iter().map(|spent| spent.wall).sum();
        let off = sum.abs_diff(worker.wall).as_secs_f64() / worker.wall.as_secs_f64();
        assert!(off < 0.03, "{worker:?}");
        let at = |stage: Stage| worker.stages[stage as usize];
        assert_eq!((at(Stage::Read).bytes, at(Stage::Hash).bytes), (10, 7));
        assert!(at(Stage::Read).wall >= Duration::from_millis(30), "{worker:?}");
        assert!(at(Stage::Wait).wall >= Duration::from_millis(10), "{worker:?}");
        // The clock of threads ticks 64 times a second on Windows.
        if cfg!(windows) {
            return;
        }
        // A sleep is waiting in any stage; a busy loop is not, as long as it has the core.
        assert!(at(Stage::Read).core < Duration::from_millis(5), "{worker:?}");
        assert!(at(Stage::Hash).core >= Duration::from_millis(1), "{worker:?}");
    }
}
