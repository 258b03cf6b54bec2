//! The side that waits for a test and tells what arrived. Anybody can send it anything: the parent module lists the
//! harm that is ruled out.

use super::conversation::check_one_machine;
use super::delay::{Jitter, Transits};
use super::error::LinkError;
use super::intake::{self, Next};
use super::message::{
    Arrived, Content, Data, Message, Reason, SMALLEST_PROBE, Sent, SoFar, Wish, other_version, read_stamp,
    version,
};
use super::report::{LinkReport, Role};
use super::terms::{ALIVE, LONGEST, Result, SILENCE, UNKNOWN, filler, nanoseconds, on_cores_since};
use super::tracker::Tracker;
use super::watcher::LinkWatcher;
use crate::system::process_time;
use fec_base::error::Action;
use fec_core::window::{Decoder, Event, Limits};
use fec_live::address::Address;
use fec_live::udp::{Drops, Interface, PacketReceiver};
use fec_live::{Arrival, Chunk};
use fecfile::Settings;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

/// Time in which a listener notices that it must stop.
const NOTICE: Duration = Duration::from_millis(100);
/// Time of a look from which the listener must have been stopped.
const STOPPED: Duration = Duration::from_secs(1);
/// Silence that ends the wait for missing packets after all was sent.
const DRAIN: Duration = Duration::from_millis(300);
/// Most time of that wait.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);
/// Time for which a listener that has told the result still answers for it.
const LINGER: Duration = Duration::from_secs(2);
/// The same after an interruption.
const SHORT_LINGER: Duration = Duration::from_millis(500);
/// Extra time of a test, beside twice its announced length: for the search of the largest packet, and the end.
const SLACK: Duration = Duration::from_secs(60);
/// Interval of the watcher's reports.
const TELL: Duration = Duration::from_secs(1);

/// The way a listener waits.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Time for which it waits for a test.
    pub wait: Duration,
}

impl Default for ListenOptions {
    /// Ten minutes: a person walks to the other machine.
    fn default() -> ListenOptions {
        ListenOptions { wait: Duration::from_secs(600) }
    }
}

/// A socket that tests can come to.
pub struct Listener {
    receiver: PacketReceiver,
    address: SocketAddr,
}

impl Listener {
    /// Listens at an address of this machine, or on all of them.
    ///
    /// # Errors
    /// Those of [`PacketReceiver::open`]; [`LinkError::NotOneMachine`] for a group.
    pub fn open(address: &Address) -> Result<Listener> {
        if let Some(local) = address.local()?.filter(|local| !local.ip().is_unspecified()) {
            check_one_machine(local)?;
        }
        let receiver = PacketReceiver::open(address, &Interface::default())?;
        let fail = |e| fecfile::Error::io(Action::ReceiveOn, address, e);
        let address = receiver.local_addr().map_err(fail)?;
        Ok(Listener { receiver, address })
    }

    /// Waits for a test, takes part in it, and returns its result. After a test that was called off before it began, it
    /// waits for the next. If it was interrupted, or the sender fell silent, the result covers the time until then.
    ///
    /// # Errors
    /// [`LinkError::NobodyCame`], [`LinkError::Interrupted`]; errors of the socket.
    pub fn serve(
        &self,
        options: &ListenOptions,
        settings: &Settings,
        watcher: &mut dyn LinkWatcher,
    ) -> Result<LinkReport> {
        watcher.listening(self.address);
        let fail = |cause| LinkError::Network { address: self.address, cause };
        let began = Instant::now();
        loop {
            // Each test has a new door: cookies of the last one open nothing.
            let door = Door { secret: RandomState::new(), most_window: settings.max_window };
            let opening = self.opening(&door, began, options.wait)?;
            let peer = opening.arrival.from;
            watcher.begun(peer);
            let mut session = Session::new(&self.receiver, &door, opening, settings);
            let done = if opening.wish.window_bytes > 0 {
                intake::beside(&self.receiver, |next| session.run(next, watcher))
            } else {
                session.run(&mut |chunk, limit| self.receiver.receive(chunk, limit), watcher)
            };
            done.map_err(fail)?;
            if !session.is_called_off() {
                let arrived = session.arrived();
                return Ok(LinkReport::new(Role::Listener, peer, session.told.as_ref(), &arrived, None));
            }
        }
    }

    /// Waits for a sender with a cookie, from `began` on for at most `wait`.
    fn opening(&self, door: &Door, mut began: Instant, wait: Duration) -> Result<Opening> {
        let mut chunk = Chunk::default();
        loop {
            if fec_base::program::interrupt::interrupted() {
                return Err(LinkError::Interrupted);
            }
            let asked = Instant::now();
            let left = wait.saturating_sub(asked - began);
            let received = self.receiver.receive(&mut chunk, left.min(NOTICE));
            received.map_err(|cause| LinkError::Network { address: self.address, cause })?;
            let opening = (chunk.datagrams())
                .find_map(|(arrival, bytes)| door.greet(&self.receiver, arrival, bytes, false));
            if let Some(opening) = opening {
                return Ok(opening);
            }
            if asked.elapsed() >= STOPPED {
                // A stopped process has not waited.
                began = Instant::now();
            } else if left.is_zero() {
                return Err(LinkError::NobodyCame { address: self.address, waited: wait });
            }
        }
    }
}

/// Decides who may begin a test.
struct Door {
    secret: RandomState,
    /// Most bytes of a window.
    most_window: u64,
}

/// A test that begins.
#[derive(Clone, Copy)]
struct Opening {
    arrival: Arrival,
    session: u64,
    wish: Wish,
}

impl Door {
    /// A number that only a receiver at this address can know.
    fn cookie(&self, from: SocketAddr, nonce: u64) -> u64 {
        self.secret.hash_one((from, nonce))
    }

    /// Answers an unknown sender, with fewer bytes than came, and keeps nothing; unless a test begins.
    fn greet(
        &self,
        receiver: &PacketReceiver,
        arrival: &Arrival,
        bytes: &[u8],
        is_busy: bool,
    ) -> Option<Opening> {
        // An answer that does not go out counts as lost.
        let answer = |message: Message, about| {
            let _ = receiver.answer(arrival, &message.bytes(about));
        };
        if let Some((_, nonce)) = other_version(bytes) {
            answer(Message::Refused(Reason::Version(version())), nonce);
            return None;
        }
        let (about, message) = Message::parse(bytes)?;
        match message {
            Message::Hello if is_busy => answer(Message::Refused(Reason::Busy), about),
            Message::Hello => answer(Message::Cookie(self.cookie(arrival.from, about)), about),
            Message::Open(wish) if about == self.cookie(arrival.from, wish.nonce) => {
                match self.objection(&wish, is_busy) {
                    Some(reason) => answer(Message::Refused(reason), about),
                    None => {
                        answer(Message::Opened, about);
                        return Some(Opening { arrival: *arrival, session: about, wish });
                    }
                }
            }
            _ => {}
        }
        None
    }

    fn objection(&self, wish: &Wish, is_busy: bool) -> Option<Reason> {
        if is_busy {
            Some(Reason::Busy)
        } else if wish.window_bytes > self.most_window {
            Some(Reason::Window(self.most_window))
        } else if Duration::from_millis(wish.milliseconds) > LONGEST {
            Some(Reason::Long(LONGEST.as_secs()))
        } else {
            None
        }
    }
}

/// A test in progress.
struct Session<'a> {
    receiver: &'a PacketReceiver,
    door: &'a Door,
    opening: Opening,
    began: Instant,
    /// Time of the last message of the test.
    heard: Instant,
    /// All packets that came before this moment were taken.
    empty_at: Option<Instant>,
    tracker: Tracker,
    bytes: u64,
    /// Times at which the system received the first and the last datagram, in ns since 1970.
    span: Option<(i64, i64)>,
    jitter: Jitter,
    before: Transits,
    recovery: Option<Recovered>,
    drops: Drops,
    dropped_before: Option<u64>,
    on_cores_before: Option<Duration>,
    /// The sender's account, and the time of its first arrival.
    told: Option<Sent>,
    told_at: Instant,
    /// Time of the last test data.
    data_at: Instant,
    /// The result told to the sender, and the time of telling.
    result: Option<(Arrived, Instant)>,
    is_over: bool,
}

/// The output of the decoder.
struct Recovered {
    decoder: Decoder,
    payloads: u64,
    wrong: u64,
    after: Transits,
    filler: Vec<u8>,
}

impl<'a> Session<'a> {
    fn new(
        receiver: &'a PacketReceiver,
        door: &'a Door,
        opening: Opening,
        settings: &Settings,
    ) -> Session<'a> {
        // The limits of a stream receiver without a deadline.
        let limits = Limits { window_bytes: settings.max_window, prompt: true, ..Limits::default() };
        let recovery = (opening.wish.window_bytes > 0).then(|| Recovered {
            decoder: Decoder::new(limits, settings.backend),
            payloads: 0,
            wrong: 0,
            after: Transits::new(),
            filler: filler(usize::from(u16::MAX)),
        });
        let (now, drops) = (Instant::now(), receiver.drops());
        Session {
            receiver,
            door,
            opening,
            began: now,
            heard: now,
            empty_at: None,
            tracker: Tracker::new(),
            bytes: 0,
            span: None,
            jitter: Jitter::default(),
            before: Transits::new(),
            recovery,
            dropped_before: drops.count(),
            drops,
            on_cores_before: process_time(),
            told: None,
            told_at: now,
            data_at: now,
            result: None,
            is_over: false,
        }
    }

    /// Runs until the sender has its result, is silent for too long, or the test is longer than any may be.
    fn run(&mut self, next: &mut Next<'_>, watcher: &mut dyn LinkWatcher) -> io::Result<()> {
        let most = 2 * Duration::from_millis(self.opening.wish.milliseconds) + SLACK;
        let (mut chunk, mut alive, mut tell) = (Chunk::default(), self.began, self.began + TELL);
        while !self.is_over {
            let now = Instant::now();
            if self.result.is_none() && now >= alive {
                alive = now + ALIVE;
                self.say(&Message::Alive(self.so_far()));
            }
            if now >= tell && self.told.is_none() {
                tell = now + TELL;
                watcher.so_far(&self.so_far());
            }
            let is_stopped = fec_base::program::interrupt::interrupted();
            if is_stopped && self.result.is_none() {
                let arrived = Arrived { interrupted: 1, ..self.arrived() };
                self.result = Some((arrived, now));
                // The sender did not ask for it, and one copy should arrive.
                (0..3).for_each(|_| self.say(&Message::Result(arrived)));
            }
            let linger = if is_stopped { SHORT_LINGER } else { LINGER };
            let limit = match self.result {
                Some((_, at)) if now >= at + linger => return Ok(()),
                Some(_) => NOTICE,
                None if self.was_quiet_until(self.heard + SILENCE) || now >= self.began + most => {
                    return Ok(());
                }
                None => NOTICE.min(alive.saturating_duration_since(now)),
            };
            next(&mut chunk, limit)?;
            self.take(&chunk);
            self.tell_result();
        }
        Ok(())
    }

    /// Tells whether `then` is past, and no packet from before waits. (Packets that a stopped listener has missed wait
    /// in its socket.)
    fn was_quiet_until(&self, then: Instant) -> bool {
        self.empty_at.is_some_and(|at| at >= then)
    }

    /// Tells whether the sender found before it sent anything that it cannot run the test.
    fn is_called_off(&self) -> bool {
        self.is_over && self.told.is_none() && self.result.is_none() && self.tracker.sent() == 0
    }

    fn say(&self, message: &Message) {
        // A message that does not go out counts as lost.
        let _ = self.receiver.answer(&self.opening.arrival, &message.bytes(self.opening.session));
    }

    fn so_far(&self) -> SoFar {
        SoFar {
            nanoseconds: nanoseconds(self.began.elapsed()),
            received: self.tracker.received(),
            sent: self.tracker.sent(),
            bytes: self.bytes,
        }
    }

    fn take(&mut self, chunk: &Chunk) {
        self.empty_at = self.empty_at.max(chunk.empty_at);
        let Opening { session, arrival: Arrival { from, .. }, .. } = self.opening;
        let now = Instant::now();
        for (arrival, bytes) in chunk.datagrams() {
            if arrival.from != from {
                self.door.greet(self.receiver, arrival, bytes, true);
                continue;
            }
            if let Some(data) = Data::parse(bytes) {
                if data.session == session {
                    (self.heard, self.data_at) = (now, now);
                    self.data(&data, arrival, bytes.len());
                }
                continue;
            }
            let Some((about, message)) = Message::parse(bytes) else { continue };
            if about != session {
                continue;
            }
            self.heard = now;
            match message {
                Message::Open(_) => self.say(&Message::Opened),
                Message::Probe(size) if size >= SMALLEST_PROBE as u64 => self.say(&Message::Probed(size)),
                Message::Finish(sent) => match self.result {
                    Some((arrived, _)) => self.say(&Message::Result(arrived)),
                    None if self.told.is_none() => {
                        self.told = Some(sent);
                        self.told_at = now;
                    }
                    None => {}
                },
                Message::Bye => self.is_over = true,
                _ => {}
            }
        }
    }

    /// Tells the sender the result, once it has sent all, and nothing more is to be expected.
    fn tell_result(&mut self) {
        let (None, Some(sent)) = (self.result, self.told) else { return };
        let now = Instant::now();
        let expected = sent.sent.saturating_sub(sent.impaired).saturating_sub(sent.unsent);
        let is_all = self.tracker.received() >= expected;
        let is_quiet = self.was_quiet_until(self.told_at.max(self.data_at) + DRAIN);
        if is_all || is_quiet || now >= self.told_at + DRAIN_LIMIT {
            let arrived = self.arrived();
            self.say(&Message::Result(arrived));
            self.result = Some((arrived, now));
        }
    }

    fn data(&mut self, data: &Data<'_>, arrival: &Arrival, len: usize) {
        if self.result.is_some() {
            return;
        }
        let is_new = self.tracker.take(data.number);
        let at = arrival.at.map_or_else(since_1970, |at| at.as_nanos() as i64);
        if is_new {
            self.bytes += len as u64;
            let (first, _) = *self.span.get_or_insert((at, at));
            self.span = Some((first, at));
            let transit = at.wrapping_sub(data.sent_at as i64);
            self.jitter.take(transit);
            self.before.take(transit);
        }
        if let (Some(recovery), Content::Packet) = (&mut self.recovery, data.content) {
            recovery.decoder.receive(data.body);
            recovery.drain();
        }
    }

    /// The result until now.
    fn arrived(&mut self) -> Arrived {
        if let Some((arrived, _)) = self.result {
            return arrived;
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.decoder.give_up_before(u64::MAX);
            recovery.drain();
        }
        let counts = self.tracker.finish(self.told.map(|sent| sent.sent));
        let least = self.jitter.least();
        let [delay_median, delay_high, delay_most] = self.before.beyond(least).unwrap_or([UNKNOWN; 3]);
        let after = self.recovery.as_ref().and_then(|recovery| recovery.after.beyond(least));
        let [after_median, after_high, after_most] = after.unwrap_or([UNKNOWN; 3]);
        let (payloads_before, payloads_after, wrong) = match &self.recovery {
            Some(recovery) => (recovery.decoder.statistics().received, recovery.payloads, recovery.wrong),
            None => (counts.received, counts.received, 0),
        };
        Arrived {
            received: counts.received,
            doubled: counts.doubled,
            reordered: counts.reordered,
            reordered_by: counts.reordered_by,
            bursts: counts.bursts,
            longest_burst: counts.longest_burst,
            bytes: self.bytes,
            time: self.span.map_or(0, |(first, last)| last.saturating_sub(first).max(0) as u64),
            on_cores: on_cores_since(self.on_cores_before),
            dropped: match (self.drops.count(), self.dropped_before) {
                (Some(now), Some(before)) => now.saturating_sub(before),
                _ => UNKNOWN,
            },
            payloads_before,
            payloads_after,
            wrong,
            jitter: self.jitter.jitter(),
            delay_median,
            delay_high,
            delay_most,
            after_median,
            after_high,
            after_most,
            highest: self.tracker.sent(),
            interrupted: 0,
        }
    }
}

impl Recovered {
    /// Takes the decoder's events.
    fn drain(&mut self) {
        let mut now = None;
        while let Some(event) = self.decoder.next() {
            let Event::Packet { seq, payload, .. } = event else { continue };
            let now = *now.get_or_insert_with(since_1970);
            match read_stamp(payload) {
                Some((number, at, rest)) if number == seq && self.filler.starts_with(rest) => {
                    self.payloads += 1;
                    self.after.take(now.wrapping_sub(at as i64));
                }
                _ => self.wrong += 1,
            }
        }
    }
}

/// Now, in ns since 1970, by the clock of the system's receive times.
fn since_1970() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}
