//! Calls and reports of live streams (format specification, section 13.4): the only packets that go back to a sender.
//!
//! A sender *calls* for reports; a receiver *reports* to the address that the call came from. A report proves by the
//! call's token that its sender receives the stream, and a call proves by the report's challenge that its sender
//! receives at its address. Both have the header of the stream's packets, and neither is a packet of the stream.

use super::packet::{
    HEADER, MAGIC, MAX_SEQ, MAX_WINDOW, PacketError, Parameters, TYPE_CALL, TYPE_REPORT, header, parse_header,
};
use super::{array_at, u32_at, u64_at};

/// Most challenges that a call answers.
pub const MOST_ANSWERS: usize = 4;
/// Bytes of a call without answers.
const CALL: usize = HEADER + 20;
/// Bytes of a report.
pub const REPORT: usize = HEADER + 108;

/// A sender's call for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The number of the call; below 2^63.
    pub number: u64,
    /// The sender's clock in microseconds, from a beginning of its own.
    pub time: u64,
    /// A random number of this sender, which reports repeat; not 0.
    pub token: u64,
    /// Challenges of reports that came, at most [`MOST_ANSWERS`].
    pub answers: Vec<u64>,
}

/// A receiver's report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// A random number of this receiver; below 2^63.
    pub receiver: u64,
    /// The token of the call that is answered; not 0.
    pub token: u64,
    /// A random number for the address that the report goes to; not 0.
    pub challenge: u64,
    /// Number of the report; each of a receiver has a higher one.
    pub number: u64,
    /// The time in the newest call.
    pub time: u64,
    /// Microseconds since that call came.
    pub held: u32,
    /// Rows that lost packets wait for now, at most [`MAX_WINDOW`].
    pub lacking: u32,
    /// The receiver's clock, in microseconds since 1970.
    pub clock: u64,
    /// The first source packet that is received.
    pub begin: u64,
    /// The newest known source packet and 1.
    pub heard: u64,
    /// Different source packets that came, of those from `begin` to before `heard`.
    pub received: u64,
    /// The newest row and 1; 0 if none came.
    pub rows: u64,
    /// The first source packet that is waited for; `heard` if none is.
    pub oldest: u64,
    /// Source packets that are lost for good.
    pub lost: u64,
    /// Runs of source packets that did not come.
    pub bursts: u32,
    /// Source packets of the longest of them.
    pub longest: u32,
    /// Microseconds that 99 of 100 payloads did not exceed in waiting.
    pub delay: u32,
}

/// A packet that is a call or a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// A call, for receivers.
    Call(Call),
    /// A report, for senders.
    Report(Report),
}

/// Tells whether a packet, sealed or not, has the type of a call.
pub fn is_call(packet: &[u8]) -> bool {
    packet.starts_with(&MAGIC) && packet.get(5) == Some(&TYPE_CALL)
}

/// Parses a call or a report, which must be the whole of `bytes`. Total: any bytes give one of them or an error.
///
/// # Errors
/// [`PacketError`] by the rules of section 13.4; [`PacketError::Type`] for a packet of a stream.
pub fn parse(bytes: &[u8]) -> Result<(Parameters, Control), PacketError> {
    let (kind, number, parameters, body) = parse_header(bytes, TYPE_CALL..=TYPE_REPORT)?;
    let control = match kind {
        TYPE_CALL => Control::Call(parse_call(number, body)?),
        _ => Control::Report(parse_report(number, body)?),
    };
    Ok((parameters, control))
}

fn parse_call(number: u64, body: &[u8]) -> Result<Call, PacketError> {
    let (head, answers) = body.split_first_chunk::<{ CALL - HEADER }>().ok_or(PacketError::Damaged)?;
    let count = u32_at(head, 16) as usize;
    if count > MOST_ANSWERS {
        return Err(PacketError::Invalid("a call has more than four answers"));
    }
    if answers.len() != 8 * count {
        return Err(PacketError::Damaged);
    }
    let answers = answers.chunks_exact(8).map(|answer| u64::from_le_bytes(array_at(answer, 0))).collect();
    let call = Call { number, time: u64_at(head, 0), token: u64_at(head, 8), answers };
    if call.token == 0 || call.answers.contains(&0) {
        return Err(PacketError::Invalid("a call has a token or an answer of 0"));
    }
    Ok(call)
}

fn parse_report(receiver: u64, body: &[u8]) -> Result<Report, PacketError> {
    let body: &[u8; REPORT - HEADER] = body.try_into().map_err(|_| PacketError::Damaged)?;
    let report = Report {
        receiver,
        token: u64_at(body, 0),
        challenge: u64_at(body, 8),
        number: u64_at(body, 16),
        time: u64_at(body, 24),
        held: u32_at(body, 32),
        lacking: u32_at(body, 36),
        clock: u64_at(body, 40),
        begin: u64_at(body, 48),
        heard: u64_at(body, 56),
        received: u64_at(body, 64),
        rows: u64_at(body, 72),
        oldest: u64_at(body, 80),
        lost: u64_at(body, 88),
        bursts: u32_at(body, 96),
        longest: u32_at(body, 100),
        delay: u32_at(body, 104),
    };
    report.check().map(|()| report)
}

impl Report {
    /// Tells whether the numbers fit one another.
    fn check(&self) -> Result<(), PacketError> {
        let rules = [
            (self.token == 0 || self.challenge == 0, "a report has a token or a challenge of 0"),
            (self.heard >= MAX_SEQ || self.rows >= MAX_SEQ, "a report names a number of 2^63 or more"),
            (self.begin > self.heard, "a report begins behind its end"),
            (
                !(self.begin..=self.heard).contains(&self.oldest),
                "a report waits for a packet out of its range",
            ),
            (
                self.received > self.heard.saturating_sub(self.begin),
                "a report has more packets than were heard of",
            ),
            (self.lost > self.heard, "a report has more lost packets than were sent"),
            (self.lacking > MAX_WINDOW, "a report lacks more rows than a window has packets"),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, rule)) => Err(PacketError::Invalid(rule)),
            None => Ok(()),
        }
    }

    /// The bytes of the report on a stream of these parameters.
    pub fn to_bytes(&self, parameters: &Parameters) -> [u8; REPORT] {
        let mut out = [0; REPORT];
        let body = &mut out[HEADER..];
        let longs = [self.token, self.challenge, self.number, self.time];
        let counts = [self.clock, self.begin, self.heard, self.received, self.rows, self.oldest, self.lost];
        for (at, long) in longs.into_iter().enumerate() {
            body[8 * at..8 * at + 8].copy_from_slice(&long.to_le_bytes());
        }
        body[32..36].copy_from_slice(&self.held.to_le_bytes());
        body[36..40].copy_from_slice(&self.lacking.to_le_bytes());
        for (at, count) in counts.into_iter().enumerate() {
            body[40 + 8 * at..48 + 8 * at].copy_from_slice(&count.to_le_bytes());
        }
        for (at, short) in [self.bursts, self.longest, self.delay].into_iter().enumerate() {
            body[96 + 4 * at..100 + 4 * at].copy_from_slice(&short.to_le_bytes());
        }
        let header = header(parameters, TYPE_REPORT, self.receiver, &out[HEADER..]);
        out[..HEADER].copy_from_slice(&header);
        out
    }
}

impl Call {
    /// The bytes of the call for reports on a stream of these parameters.
    ///
    /// # Panics
    /// When there are more than [`MOST_ANSWERS`] answers.
    pub fn to_bytes(&self, parameters: &Parameters) -> Vec<u8> {
        assert!(self.answers.len() <= MOST_ANSWERS, "a call has four answers at most");
        let mut out = vec![0; HEADER];
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.token.to_le_bytes());
        out.extend_from_slice(&(self.answers.len() as u32).to_le_bytes());
        self.answers.iter().for_each(|answer| out.extend_from_slice(&answer.to_le_bytes()));
        let header = header(parameters, TYPE_CALL, self.number, &out[HEADER..]);
        out[..HEADER].copy_from_slice(&header);
        out
    }
}
