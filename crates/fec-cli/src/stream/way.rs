//! The way of a packet from the encoder into the world: impairment, pacing, and a byte stream or a network.

use super::address::Address;
use super::frame::{DELIMITER, Framer};
use super::impair::Channel;
use super::output::{Output, Place};
use super::pace::Pace;
use super::send::Job;
use super::udp::{MAX_DATAGRAM, Sender};
use crate::failure::{Exit, Failure, Result, show};
use crate::sys::output::{self, FileOut};
use fec_core::format::packet::{REPAIR_OVERHEAD, SYMBOL_OVERHEAD};
use std::io;
use std::time::Instant;

/// What went out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) payload: u64,
    pub(super) source: u64,
    pub(super) repair: u64,
    pub(super) marks: u64,
    pub(super) bytes: u64,
}

/// The way of a packet from the encoder into the world.
pub(super) struct Way {
    channel: Option<Channel>,
    pace: Option<Pace>,
    pub(super) sink: Sink,
    pub(super) tally: Tally,
    /// The first failure; after it nothing is sent.
    failed: Option<Failure>,
    /// Something was sent since the last flush.
    busy: bool,
    /// When something was sent last, seen at the flush after it.
    pub(super) last_sent: Instant,
}

impl Way {
    pub(super) fn new(channel: Option<Channel>, mbps: Option<f64>, sink: Sink) -> Way {
        let now = Instant::now();
        let pace = mbps.map(|mbps| Pace::new(mbps, now));
        Way { channel, pace, sink, tally: Tally::default(), failed: None, busy: false, last_sent: now }
    }

    /// Sends a packet. A failure is kept for [`Way::result`].
    pub(super) fn send(&mut self, packet: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        // The type of a packet is its sixth byte.
        match packet.get(5) {
            Some(0) => self.tally.source += 1,
            Some(1) => self.tally.repair += 1,
            _ => self.tally.marks += 1,
        }
        self.tally.bytes += packet.len() as u64;
        let (sink, failed) = (&mut self.sink, &mut self.failed);
        let mut out = |packet: &[u8]| {
            if let (None, Err(e)) = (&failed, sink.send(packet)) {
                *failed = Some(e);
            }
        };
        match &mut self.channel {
            Some(channel) => channel.send(packet, &mut out),
            None => out(packet),
        }
        self.busy = true;
        if let Some(wait) = self.pace.as_mut().and_then(|pace| pace.sent(packet.len(), Instant::now())) {
            if let Err(e) = self.sink.flush() {
                self.failed.get_or_insert(e);
            }
            std::thread::sleep(wait);
        }
    }

    /// Packets that the impairment lost.
    pub(super) fn lost(&self) -> u64 {
        self.channel.as_ref().map_or(0, Channel::lost)
    }

    /// Sends what the impairment holds back, and all else that waits.
    pub(super) fn release(&mut self) -> Result<()> {
        let (sink, failed) = (&mut self.sink, &mut self.failed);
        if let Some(channel) = &mut self.channel {
            channel.flush(&mut |packet| {
                if let (None, Err(e)) = (&failed, sink.send(packet)) {
                    *failed = Some(e);
                }
            });
        }
        self.flush()
    }

    /// Sends all that waits.
    pub(super) fn flush(&mut self) -> Result<()> {
        if std::mem::take(&mut self.busy) {
            self.last_sent = Instant::now();
        }
        self.result()?;
        self.sink.flush()
    }

    /// The failure of what was sent before.
    pub(super) fn result(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// Where packets go.
pub(super) enum Sink {
    Bytes { framer: Box<Framer>, frame: Vec<u8>, output: Output },
    Udp { address: Address, sender: Sender },
}

impl Sink {
    /// Opens what -o names. `largest` is the length of the longest packet.
    pub(super) fn open(job: &Job<'_>, largest: usize) -> Result<Sink> {
        let place = match job.output {
            None => Place::Stdout(output::stdout_for_data()?),
            Some(path) if path.as_os_str() == "-" => Place::Stdout(output::stdout_for_data()?),
            Some(path) if Address::is_one(path) => {
                let address = Address::parse(path)?;
                if largest > MAX_DATAGRAM {
                    let most = MAX_DATAGRAM - SYMBOL_OVERHEAD - REPAIR_OVERHEAD;
                    return Err(Failure::usage(format!(
                        "send to {address}: the packets do not fit into datagrams"
                    ))
                    .help(format!(
                        "choose a --packet of at most {most} bytes; 1350 pass nearly everywhere"
                    )));
                }
                let sender = Sender::open(&address, &job.options.interface())?;
                return Ok(Sink::Udp { address, sender });
            }
            Some(path) if output::is_special(path) => {
                Place::Special(path.into(), output::open_special(path)?)
            }
            Some(path) => {
                let policy = job.settings.policy(job.force);
                output::check_absent(path, policy)?;
                if job.input.as_os_str() != "-" && output::is_same(path, job.input) {
                    return Err(Failure::usage(format!("write {}: it is the input", show(path)))
                        .help("choose another output with -o"));
                }
                Place::File(path.into(), FileOut::create(path, policy)?)
            }
        };
        let mut output = Output::new(place);
        // Whatever stands before, perhaps the end of a stream that was cut: here a frame begins.
        output.write(&DELIMITER)?;
        Ok(Sink::Bytes { framer: Box::new(Framer::new()), frame: Vec::new(), output })
    }

    fn send(&mut self, packet: &[u8]) -> Result<()> {
        match self {
            Sink::Bytes { framer, frame, output } => {
                frame.clear();
                framer.frame(packet, frame);
                output.write(frame)
            }
            Sink::Udp { address, sender } => sender.send(packet).map_err(|e| send_failure(address, &e)),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Sink::Bytes { output, .. } => output.flush(),
            Sink::Udp { address, sender } => sender.flush().map_err(|e| send_failure(address, &e)),
        }
    }

    /// Its name for people.
    pub(super) fn name(&self) -> String {
        match self {
            Sink::Bytes { output, .. } => output.name(),
            Sink::Udp { address, .. } => address.to_string(),
        }
    }

    /// Packets that the system did not take.
    pub(super) fn unsent(&self) -> u64 {
        match self {
            Sink::Bytes { .. } => 0,
            Sink::Udp { sender, .. } => sender.unsent(),
        }
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Sink::Bytes { output, .. } if output.is_stdout())
    }

    /// Gives a file its name.
    pub(super) fn commit(self) -> Result<()> {
        match self {
            Sink::Bytes { output, .. } => output.commit(),
            Sink::Udp { .. } => Ok(()),
        }
    }
}

fn send_failure(address: &Address, cause: &io::Error) -> Failure {
    let failure = Failure::new(Exit::Io, format!("send to {address}: {cause}"));
    match cause.raw_os_error() {
        Some(libc::EMSGSIZE) => {
            failure.help("the way there takes smaller packets only: choose a smaller --packet")
        }
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            failure.help("there is no way to that address; for multicast name the network with --interface")
        }
        _ => failure,
    }
}
