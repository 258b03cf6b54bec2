//! The outgoing data of a test: numbered datagrams, impaired if asked, paced, many with one system call. The line also
//! hears the listener, and sends nothing without it.

use super::conversation::Conversation;
use super::error::LinkError;
use super::message::{Arrived, Content, Data, Message, SMALLEST_PROBE, Sent};
use super::terms::{Result, SILENCE, nanoseconds};
use super::watcher::LinkWatcher;
use fec_live::impair::Channel;
use fec_live::pace::Pace;
use fec_live::udp::{PacketSender, is_refused};
use std::io;
use std::time::{Duration, Instant};

/// Interval at which the line checks for messages of the listener.
const LOOK: Duration = Duration::from_millis(50);
/// Longer pauses are spent listening.
const LONG_PAUSE: Duration = Duration::from_millis(20);
/// Interval at which a slow sender shows its presence.
const SHOW: Duration = Duration::from_secs(1);
/// Interval of the watcher's reports.
const TELL: Duration = Duration::from_secs(1);

/// Reason why no more is sent.
pub(super) enum Stop {
    /// A signal asked for the end.
    Interrupted,
    /// The listener ended the test.
    Ended(Box<Arrived>),
    /// An error ended the test.
    Failed(LinkError),
}

/// The way out.
pub(super) struct Line<'a> {
    pub(super) talk: Conversation,
    sender: PacketSender,
    channel: Option<Channel>,
    pace: Option<Pace>,
    watcher: &'a mut dyn LinkWatcher,
    datagram: Vec<u8>,
    /// Bytes of the longest body.
    room: usize,
    began: Instant,
    last: Instant,
    /// Times of the last message heard, of the last check for messages, of the last sign of presence, and of the
    /// watcher's last report.
    heard: Instant,
    looked: Instant,
    shown: Instant,
    told: Instant,
    numbered: u64,
    bytes: u64,
    /// Once this is set, only data that belongs to the end of an interrupted test is sent.
    pub(super) stop: Option<Stop>,
    /// Time at which even the end of a test has to be over.
    over: Option<Instant>,
}

impl<'a> Line<'a> {
    pub(super) fn new(
        talk: Conversation,
        channel: Option<Channel>,
        mbps: Option<f64>,
        room: usize,
        watcher: &'a mut dyn LinkWatcher,
    ) -> Result<Line<'a>> {
        let sender = PacketSender::new(talk.socket()?, talk.peer).map_err(|e| talk.network(e))?;
        let now = Instant::now();
        Ok(Line {
            talk,
            sender,
            channel,
            pace: mbps.map(|mbps| Pace::new(mbps, now)),
            watcher,
            datagram: Vec::new(),
            room,
            began: now,
            last: now,
            heard: now,
            looked: now,
            shown: now,
            told: now,
            numbered: 0,
            bytes: 0,
            stop: None,
            over: None,
        })
    }

    /// Time since the test began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Sends a datagram, and waits for as long as the rate demands.
    pub(super) fn put(&mut self, content: Content, body: &[u8]) {
        let now = Instant::now();
        match (&self.stop, self.over) {
            (None, None) => {}
            (None | Some(Stop::Interrupted), Some(over)) if now < over => {}
            _ => return,
        }
        let (session, number) = (self.talk.session, self.numbered);
        let sent_at = nanoseconds(now - self.began);
        Data { session, content, number, sent_at, body }.write(self.room, &mut self.datagram);
        self.numbered += 1;
        self.bytes += self.datagram.len() as u64;
        self.last = now;
        let sent = match &mut self.channel {
            None => self.sender.send(&self.datagram),
            Some(channel) => {
                let (sender, mut sent) = (&mut self.sender, Ok(()));
                channel.send(&self.datagram, &mut |datagram| {
                    if sent.is_ok() {
                        sent = sender.send(datagram);
                    }
                });
                sent
            }
        };
        self.note(sent);
        let wait = self.pace.as_mut().and_then(|pace| pace.sent(self.datagram.len(), now));
        match wait {
            Some(wait) => {
                let flushed = self.sender.flush();
                self.note(flushed);
                self.rest(now + wait);
            }
            None if now >= self.looked + LOOK => self.look(Duration::ZERO),
            None => {}
        }
    }

    /// Sends only data that belongs to the end from now on, at most for `time`.
    pub(super) fn ends_within(&mut self, time: Duration) {
        self.over = Some(Instant::now() + time);
    }

    /// Sends all waiting data, and returns the totals.
    pub(super) fn finish(&mut self) -> Sent {
        if let Some(mut channel) = self.channel.take() {
            let (sender, mut sent) = (&mut self.sender, Ok(()));
            channel.flush(&mut |datagram| {
                if sent.is_ok() {
                    sent = sender.send(datagram);
                }
            });
            self.note(sent);
            self.channel = Some(channel);
        }
        let flushed = self.sender.flush();
        self.note(flushed);
        Sent {
            sent: self.numbered,
            impaired: self.channel.as_ref().map_or(0, Channel::lost),
            unsent: self.sender.unsent(),
            bytes: self.bytes,
            time: nanoseconds(self.last - self.began),
            interrupted: matches!(self.stop, Some(Stop::Interrupted)).into(),
            ..Sent::default()
        }
    }

    fn note(&mut self, sent: io::Result<()>) {
        if let Err(e) = sent {
            let cause = match is_refused(&e) {
                true => LinkError::Silent(self.talk.peer),
                false => self.talk.network(e),
            };
            self.stop.get_or_insert(Stop::Failed(cause));
        }
    }

    /// Waits until `until`.
    fn rest(&mut self, until: Instant) {
        loop {
            let now = Instant::now();
            if now >= self.looked + LOOK {
                self.look(Duration::ZERO);
            }
            let left = until.saturating_duration_since(now);
            if left < LONG_PAUSE {
                return std::thread::sleep(left);
            }
            if self.stop.is_some() {
                return;
            }
            if now >= self.shown + SHOW {
                self.shown = now;
                if let Err(e) = self.talk.say(&Message::Probe(SMALLEST_PROBE as u64)) {
                    self.stop.get_or_insert(Stop::Failed(e));
                }
            }
            self.look(left.min(LOOK));
        }
    }

    /// Takes in messages, and waits for them, at most for `limit`.
    fn look(&mut self, limit: Duration) {
        let heard = self.talk.hear(limit);
        let now = Instant::now();
        self.looked = now;
        if fec_base::program::interrupt::interrupted() {
            self.stop.get_or_insert(Stop::Interrupted);
        }
        match heard {
            Err(LinkError::NobodyListens(peer)) => {
                self.stop.get_or_insert(Stop::Failed(LinkError::Silent(peer)));
            }
            Err(e) => {
                self.stop.get_or_insert(Stop::Failed(e));
            }
            Ok(messages) => {
                for message in messages {
                    self.heard = now;
                    match message {
                        Message::Result(arrived) => {
                            self.stop.get_or_insert(Stop::Ended(Box::new(arrived)));
                        }
                        Message::Alive(so_far) if now >= self.told + TELL => {
                            self.told = now;
                            self.watcher.so_far(&so_far);
                        }
                        _ => {}
                    }
                }
            }
        }
        if now >= self.heard + SILENCE {
            self.stop.get_or_insert(Stop::Failed(LinkError::Silent(self.talk.peer)));
        }
    }
}
