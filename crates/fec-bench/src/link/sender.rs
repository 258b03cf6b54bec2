//! The side that asks for a test and sends.

use super::conversation::Conversation;
use super::error::LinkError;
use super::line::{Line, Stop};
use super::message::{Arrived, Content, DATA_HEADER, Message, Sent, Wish, stamp};
use super::probe;
use super::report::{LinkReport, Role};
use super::terms::{Result, SILENCE, filler, nanoseconds, on_cores_since};
use super::watcher::LinkWatcher;
use crate::system::process_time;
use fec_core::format::packet::{MIN_PAYLOAD, REPAIR_OVERHEAD, SYMBOL_OVERHEAD};
use fec_core::window::{Encoder, Profile, Ratio, SettingsError, StreamSettings};
use fec_live::address::Address;
use fec_live::impair::Impairment;
use fec_live::paths::Way;
use fec_live::send::{SendOptions, payload_for};
use fec_live::udp::Interface;
use fecfile::Settings;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Time to wait for an answer, unless the caller says otherwise.
const ANSWER: Duration = Duration::from_secs(5);
/// Time to wait for the result of a listener that still answers but has not worked through all of it.
const RESULT: Duration = Duration::from_secs(60);
/// Most time for the end of an interrupted test.
const SHORT_END: Duration = Duration::from_secs(1);

/// The data and duration of a test.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Duration of sending, within [`SECONDS`](super::SECONDS).
    pub time: Duration,
    /// Most Mb/s, headers of UDP and IP not counted; `None` for as fast as possible.
    pub mbps: Option<f64>,
    /// Bytes of a payload; `None` for those of a stream over this route, as far as its packets fit.
    pub payload: Option<u16>,
    /// Repair packets, as a stream has them; `None` for payloads alone.
    pub recovery: Option<Recovery>,
    /// The impairment of datagrams on purpose.
    pub impairment: Option<Impairment>,
    /// Time to wait for somebody to listen and answer; `None` for a short wait for an answer only.
    pub wait: Option<Duration>,
}

/// The repair packets of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Their number.
    pub ratio: Ratio,
    /// Most payloads that each covers.
    pub window: u32,
}

impl Default for LinkOptions {
    /// Ten seconds, as fast as possible, with the recovery that streams have.
    fn default() -> LinkOptions {
        let SendOptions { window, ratio, .. } = SendOptions::default();
        LinkOptions {
            time: Duration::from_secs(10),
            mbps: None,
            payload: None,
            recovery: Some(Recovery { ratio, window }),
            impairment: None,
            wait: None,
        }
    }
}

/// Tests the link to a listener.
///
/// # Errors
/// [`LinkError`]; an interrupted test has a report.
pub fn run(
    to: &Address,
    options: &LinkOptions,
    settings: &Settings,
    watcher: &mut dyn LinkWatcher,
) -> Result<LinkReport> {
    let channel = options.impairment.as_ref().map(Impairment::start).transpose()?;
    let usual = options.payload.unwrap_or_else(|| {
        let way = Way { address: to.clone(), interface: Interface::default() };
        // A missing route is reported by the next step.
        payload_for(&[way], false).unwrap_or(MIN_PAYLOAD)
    });
    // Impossible settings are refused before the listener is asked.
    if usual < MIN_PAYLOAD {
        return Err(SettingsError::Payload(usual).into());
    }
    let window_bytes = match options.recovery {
        Some(recovery) => {
            let parameters = stream(recovery, usual, settings).parameters()?;
            u64::from(parameters.window) * parameters.symbol_len() as u64
        }
        None => 0,
    };
    let mut talk = meet(to, options, window_bytes)?;
    watcher.begun(talk.peer);
    let largest = probe::largest(&mut talk);
    let fits = largest.and_then(|largest| Ok((largest, fitting(usual, options, largest)?)));
    let (largest, payload) = fits.inspect_err(|_| talk.bye())?;
    let encoder = options.recovery.map(|recovery| stream(recovery, payload, settings));
    let encoder = encoder.map(|stream| Encoder::new(&stream, settings.backend)).transpose()?;
    let interval = options.mbps.map(|mbps| Duration::from_secs_f64(f64::from(payload) * 8e-6 / mbps));
    // The sender of a stream with slow input does the same.
    let flushes = interval.is_some_and(|interval| interval >= SendOptions::default().flush);
    let round_trip = talk.round_trip;
    let busy = process_time();
    let room = usize::from(payload) + overhead(options);
    let mut line = Line::new(talk, channel, options.mbps, room, watcher)?;
    let payloads = send(&mut line, encoder, payload, options.time, flushes);
    let counted = line.finish();
    let recovery = options.recovery;
    let sent = Sent {
        on_cores: on_cores_since(busy),
        payloads,
        payload: payload.into(),
        window: recovery.map_or(0, |recovery| recovery.window.into()),
        repair: recovery.map_or(0, |recovery| recovery.ratio.repair().into()),
        source: recovery.map_or(0, |recovery| recovery.ratio.source().into()),
        largest: largest as u64,
        round_trip: round_trip.map_or(0, nanoseconds),
        ..counted
    };
    let (peer, arrived) = result(line, &sent)?;
    Ok(LinkReport::new(Role::Sender, peer, Some(&sent), &arrived, options.mbps))
}

/// The result, from the listener.
fn result(line: Line<'_>, sent: &Sent) -> Result<(std::net::SocketAddr, Arrived)> {
    let Line { mut talk, stop, .. } = line;
    let peer = talk.peer;
    match stop {
        Some(Stop::Failed(e)) => return Err(e),
        Some(Stop::Ended(arrived)) => {
            talk.bye();
            return Ok((peer, *arrived));
        }
        Some(Stop::Interrupted) | None => {}
    }
    let answer = |message: &Message| match message {
        Message::Result(arrived) => Some(*arrived),
        _ => None,
    };
    let arrived = talk.ask(&Message::Finish(*sent), RESULT, SILENCE, answer).map_err(|e| match e {
        LinkError::NoAnswer { .. } | LinkError::NobodyListens(_) => LinkError::Silent(peer),
        other => other,
    })?;
    talk.bye();
    Ok((peer, arrived))
}

/// Finds a listener that accepts the test.
fn meet(to: &Address, options: &LinkOptions, window_bytes: u64) -> Result<Conversation> {
    let nonce = RandomState::new().hash_one(std::process::id());
    let mut talk = Conversation::open(to, nonce, options.wait.is_some())?;
    let wait = options.wait.unwrap_or(ANSWER);
    let cookie = talk.ask(&Message::Hello, wait, wait, |message| match message {
        Message::Cookie(cookie) => Some(*cookie),
        _ => None,
    })?;
    let milliseconds = options.time.as_millis() as u64;
    let wish = Message::Open(Wish { nonce, milliseconds, window_bytes });
    talk.has_met(cookie);
    talk.ask(&wish, ANSWER, ANSWER, |message| (*message == Message::Opened).then_some(()))?;
    Ok(talk)
}

/// The payload of packets that fit.
fn fitting(usual: u16, options: &LinkOptions, largest: usize) -> Result<u16> {
    let most = largest
        .checked_sub(DATA_HEADER + overhead(options))
        .map(|most| most.min(usize::from(u16::MAX)) as u16);
    match most.filter(|most| *most >= MIN_PAYLOAD) {
        Some(most) if usual <= most => Ok(usual),
        Some(most) if options.payload.is_none() => Ok(most),
        most => Err(LinkError::TooLong { payload: usual, largest, most }),
    }
}

/// Bytes of the longest packet beyond its payload.
fn overhead(options: &LinkOptions) -> usize {
    options.recovery.map_or(0, |_| REPAIR_OVERHEAD + SYMBOL_OVERHEAD)
}

fn stream(recovery: Recovery, payload: u16, settings: &Settings) -> StreamSettings {
    StreamSettings {
        stream_id: RandomState::new().hash_one(std::process::id()),
        window: recovery.window,
        block: SendOptions::default().block,
        payload,
        profile: Profile::Bounded,
        ratio: recovery.ratio,
        limit: settings.max_window,
    }
}

/// Sends payloads for `time`, and their repair packets. Returns the number of payloads.
fn send(
    line: &mut Line<'_>,
    mut encoder: Option<Encoder>,
    payload: u16,
    time: Duration,
    flushes: bool,
) -> u64 {
    let mut bytes = [vec![0; 16], filler(usize::from(payload) - 16)].concat();
    let end = Instant::now() + time;
    let mut payloads = 0;
    while line.stop.is_none() && Instant::now() < end {
        stamp(&mut bytes, payloads, line.elapsed());
        match &mut encoder {
            None => line.put(Content::Plain, &bytes),
            Some(encoder) => {
                let mut put = |packet: &[u8]| line.put(Content::Packet, packet);
                if encoder.push(&bytes, &mut put).is_err() {
                    break;
                }
                if flushes {
                    encoder.flush(&mut put);
                }
            }
        }
        payloads += 1;
    }
    line.ends_within(if line.stop.is_some() { SHORT_END } else { time + SHORT_END });
    if let Some(encoder) = &mut encoder {
        encoder.finish(&mut |packet| line.put(Content::Packet, packet));
    }
    payloads
}
