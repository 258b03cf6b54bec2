//! `fec encode --stream`: from a file or pipe to packets.

use super::args;
use super::feed::{Chunk, Feed, Next};
use super::sent::Sent;
use super::way::{Sink, Way};
use crate::failure::{Exit, Failure, Result, show};
use crate::settings::{SCHEMA_VERSION, Settings};
use fec_core::format::packet::{REPAIR_OVERHEAD, SYMBOL_OVERHEAD};
use fec_core::window::{self, Encoder};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the end is told over a network, where every packet may be lost, and how long apart.
const ENDS: u32 = 5;
const END_PAUSE: Duration = Duration::from_millis(20);
/// A silent stream says so often that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// What `encode --stream` was asked for.
pub(crate) struct Job<'a> {
    pub(crate) input: &'a Path,
    pub(crate) output: Option<&'a Path>,
    pub(crate) force: bool,
    pub(crate) options: &'a args::Send,
    pub(crate) settings: &'a Settings,
}

pub(crate) fn run(job: &Job<'_>) -> Result<Exit> {
    let started = Instant::now();
    let options = job.options;
    let stream_id = match options.stream_id {
        Some(id) => id,
        None => random_id()?,
    };
    let wanted = window::StreamSettings {
        stream_id,
        window: options.window,
        block: options.block,
        payload: options.packet,
        profile: options.profile.into(),
        ratio: options.rate,
        limit: job.settings.max_window,
    };
    let mut encoder = Encoder::new(&wanted, job.settings.backend).map_err(|e| refused(&e))?;
    let parameters = *encoder.parameters();
    let channel = match &options.impair {
        None => None,
        Some(impairment) => Some(impairment.start().map_err(|cause| Failure::new(Exit::Io, cause))?),
    };
    let input = open_input(job.input)?;
    let sink = Sink::open(job, usize::from(options.packet) + SYMBOL_OVERHEAD + REPAIR_OVERHEAD)?;
    let mut way = Way::new(channel, options.mbps, sink);
    let feed = Feed::of_bytes(Vec::new(), input).map_err(|e| Failure::io("read", job.input, &e))?;
    let progress = job.settings.live_progress("encode");

    let mut packets = Packetizer {
        encoder: &mut encoder,
        way: &mut way,
        partial: Vec::with_capacity(usize::from(options.packet)),
        payload: usize::from(options.packet),
        wait: Duration::from_millis(options.flush_ms.into()),
        waiting_since: None,
    };
    loop {
        let next = match feed.try_next() {
            // Before waiting, what there is goes out.
            Next::Nothing => {
                packets.way.flush()?;
                feed.next(Some(packets.deadline()))
            }
            ready => ready,
        };
        match next {
            Next::Chunk(chunk) => {
                packets.take(&chunk)?;
                progress.add(chunk.parts().map(|part| part.len() as u64).sum());
                feed.give_back(chunk);
            }
            Next::Nothing => packets.timer()?,
            Next::Failed(e) => return Err(Failure::io("read", job.input, &e)),
            Next::End => break,
        }
    }
    packets.finish()?;
    progress.finish();
    let tally = way.tally;
    let (lost, unsent) = (way.lost(), way.sink.unsent());
    let (output, stdout_is_data) = (way.sink.name(), way.sink.is_stdout());
    way.sink.commit()?;
    let report = Sent {
        schema_version: SCHEMA_VERSION,
        command: "encode",
        form: "stream",
        input: show(job.input),
        output,
        stream_id: format!("{stream_id:016x}"),
        profile: parameters.profile.name(),
        rate: format!("{}/{}", options.rate.repair(), options.rate.source()),
        window: parameters.window,
        block: parameters.block,
        packet: parameters.payload,
        payload_bytes: tally.payload,
        source_packets: tally.source,
        repair_packets: tally.repair,
        marks: tally.marks,
        sent_bytes: tally.bytes,
        impaired_lost: lost,
        unsent,
        backend: job.settings.backend.name(),
        seconds: started.elapsed().as_secs_f64(),
    };
    job.settings.report(&report, &report.describe(), stdout_is_data)?;
    Ok(Exit::Done)
}

/// A number that no other stream has.
fn random_id() -> Result<u64> {
    let mut id = [0; 8];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| Failure::new(Exit::Io, format!("choose a stream number: {}", io::Error::from(e))))?;
    Ok(u64::from_le_bytes(id))
}

fn refused(cause: &window::SettingsError) -> Failure {
    let failure = Failure::new(Exit::Refused, format!("encode --stream: {cause}"));
    match cause {
        window::SettingsError::Memory { .. } => {
            failure.help("choose a smaller --window or --packet, or allow more with --max-memory")
        }
        window::SettingsError::Window(_) => failure.help("choose another --window"),
        window::SettingsError::Payload(_) => failure.help("choose another --packet"),
        window::SettingsError::Block(_) => failure.help("choose another --block"),
        _ => failure.help("choose fewer repair packets with --rate, or another --profile"),
    }
}

fn open_input(path: &Path) -> Result<File> {
    if path.as_os_str() == "-" {
        use std::os::fd::AsFd;
        let fd = io::stdin().as_fd().try_clone_to_owned();
        return Ok(fd.map_err(|e| Failure::io("read", path, &e))?.into());
    }
    let meta = std::fs::metadata(path).map_err(|e| Failure::io("read", path, &e))?;
    if meta.is_dir() {
        return Err(Failure::usage(format!("read {}: it is a folder", show(path)))
            .help(format!("pack it first: tar c {0} | fec encode --stream -", show(path))));
    }
    File::open(path).map_err(|e| Failure::io("read", path, &e))
}

/// Cuts what was read into payloads and watches the clock.
struct Packetizer<'a> {
    encoder: &'a mut Encoder,
    way: &'a mut Way,
    /// Bytes that are not a full packet yet.
    partial: Vec<u8>,
    payload: usize,
    wait: Duration,
    /// When the oldest byte came that is not sent and covered by a repair packet.
    waiting_since: Option<Instant>,
}

impl Packetizer<'_> {
    fn take(&mut self, chunk: &Chunk) -> Result<()> {
        for mut bytes in chunk.parts() {
            while !bytes.is_empty() {
                let room = self.payload - self.partial.len();
                let (piece, rest) = bytes.split_at(room.min(bytes.len()));
                bytes = rest;
                if self.waiting_since.is_none() {
                    self.waiting_since = Some(Instant::now());
                }
                if self.partial.is_empty() && piece.len() == self.payload {
                    self.push(piece)?;
                    continue;
                }
                self.partial.extend_from_slice(piece);
                if self.partial.len() == self.payload {
                    self.push_partial()?;
                }
            }
        }
        if self.wait.is_zero() {
            self.push_partial()?;
        }
        Ok(())
    }

    fn push(&mut self, payload: &[u8]) -> Result<()> {
        let repairs = self.way.tally.repair;
        let way = &mut *self.way;
        way.tally.payload += payload.len() as u64;
        self.encoder
            .push(payload, &mut |packet| way.send(packet))
            .map_err(|e| Failure::new(Exit::Refused, format!("encode --stream: {e}")))?;
        // A repair packet that was due covers all packets up to this one.
        if way.tally.repair > repairs {
            self.waiting_since = None;
        }
        way.result()
    }

    fn push_partial(&mut self) -> Result<()> {
        if self.partial.is_empty() {
            return Ok(());
        }
        let partial = std::mem::take(&mut self.partial);
        let done = self.push(&partial);
        self.partial = partial;
        self.partial.clear();
        done
    }

    /// When the timer is due.
    fn deadline(&self) -> Instant {
        let flush = self.waiting_since.map(|since| since + self.wait);
        let alive = self.way.last_sent + KEEP_ALIVE;
        flush.map_or(alive, |flush| flush.min(alive))
    }

    fn timer(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.waiting_since.is_some_and(|since| now >= since + self.wait) {
            self.push_partial()?;
            let way = &mut *self.way;
            self.encoder.flush(&mut |packet| way.send(packet));
            self.waiting_since = None;
            self.way.release()?;
        }
        if now >= self.way.last_sent + KEEP_ALIVE {
            let way = &mut *self.way;
            self.encoder.keep_alive(&mut |packet| way.send(packet));
        }
        self.way.result()
    }

    fn finish(mut self) -> Result<()> {
        self.push_partial()?;
        let way = &mut *self.way;
        let mut end = Vec::new();
        self.encoder.finish(&mut |packet| {
            way.send(packet);
            end.clear();
            end.extend_from_slice(packet);
        });
        way.release()?;
        if let Sink::Udp { .. } = way.sink {
            for _ in 0..ENDS {
                std::thread::sleep(END_PAUSE);
                way.send(&end);
                way.release()?;
            }
        }
        Ok(())
    }
}
