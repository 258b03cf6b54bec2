//! The messages between the two sides of a test, as bytes. Parsing is total and strict: bytes that this build would not
//! have written are no message.

use super::terms::nanoseconds;
use std::time::Duration;

const MAGIC: [u8; 4] = [0x89, b'f', b'e', b'l'];
const VERSION: u8 = 1;
/// Bytes in front of a message's own.
const HEADER: usize = 16;
/// Bytes in front of test data.
pub(super) const DATA_HEADER: usize = 32;
/// Bytes of a sender's request: longer than every answer, so that a listener never sends more bytes than it got.
pub(super) const REQUEST: usize = 512;

/// The content of a datagram of test data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A payload.
    Plain = 1,
    /// A packet of a live stream.
    Packet = 2,
}

/// A datagram of test data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data<'a> {
    pub(super) session: u64,
    pub(super) content: Content,
    pub(super) number: u64,
    /// Time of sending, in ns by the sender's clock.
    pub(super) sent_at: u64,
    pub(super) body: &'a [u8],
}

impl<'a> Data<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Data<'a>> {
        let (header, room) = bytes.split_first_chunk::<DATA_HEADER>()?;
        let content = match kind_of(header)? {
            (1, _) => Content::Plain,
            (2, _) => Content::Packet,
            _ => return None,
        };
        let (body, padding) =
            room.split_at_checked(usize::from(u16::from_le_bytes([header[6], header[7]])))?;
        if padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let [session, number, sent_at] = [8, 16, 24].map(|at| word(header, at));
        Some(Data { session, content, number, sent_at, body })
    }

    /// Writes it to `out`, whose old content is dropped, with room for a body of `room` bytes.
    ///
    /// # Panics
    /// If the body is longer than 65,535 bytes, which fits no datagram.
    pub(super) fn write(&self, room: usize, out: &mut Vec<u8>) {
        let len = u16::try_from(self.body.len()).expect("a body fits a datagram");
        out.clear();
        write_header(self.content as u8, len, self.session, out);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.sent_at.to_le_bytes());
        out.extend_from_slice(self.body);
        out.resize(out.len().max(DATA_HEADER + room), 0);
    }
}

/// A message of one side.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// Is anybody there?
    Hello,
    /// Yes: the sender of this number is where it claims to be.
    Cookie(u64),
    /// The named test should begin.
    Open(Wish),
    /// The test may begin.
    Opened,
    /// The test may not begin.
    Refused(Reason),
    /// A datagram of the given length.
    Probe(u64),
    /// A datagram of the given length arrived.
    Probed(u64),
    /// The listener is there; so much has arrived.
    Alive(SoFar),
    /// All was sent.
    Finish(Sent),
    /// The result.
    Result(Arrived),
    /// The end.
    Bye,
}

/// The test that a sender proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The number of its Hello.
    pub(super) nonce: u64,
    pub(super) milliseconds: u64,
    /// Bytes of the stream's window; 0 without recovery.
    pub(super) window_bytes: u64,
}

/// Reason why a listener refuses a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Another test is going on.
    Busy,
    /// The window takes more than this many bytes.
    Window(u64),
    /// The test takes longer than this many seconds.
    Long(u64),
    /// The listener speaks this other version.
    Version(u64),
}

/// The packets that have arrived until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// ns since the test began.
    pub nanoseconds: u64,
    /// Packets that arrived, without copies.
    pub received: u64,
    /// Packets known to have been sent: up to the last that arrived.
    pub sent: u64,
    /// Bytes of the datagrams that arrived.
    pub bytes: u64,
}

/// Makes a struct of numbers, with its words in the order of its fields.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(super) struct $name { $($(#[$field_doc])* pub(super) $field: u64,)+ }

        impl $name {
            const WORDS: usize = [$(stringify!($field)),+].len();

            fn words(&self) -> [u64; Self::WORDS] {
                [$(self.$field),+]
            }

            fn from_words(words: &[u64]) -> Option<$name> {
                let [$($field),+] = *<&[u64; Self::WORDS]>::try_from(words).ok()?;
                Some($name { $($field),+ })
            }
        }
    };
}

words! {
    /// The sender's account of a test. Times are in ns.
    Sent {
        /// Numbered datagrams.
        sent,
        /// Numbered datagrams that were lost on purpose.
        impaired,
        /// Numbered datagrams that the system did not take.
        unsent,
        /// Bytes of all numbered datagrams.
        bytes,
        /// Time from the first to the last.
        time,
        /// Time on cores; all ones if the system does not tell.
        on_cores,
        /// Number of payloads in them or protected by them.
        payloads,
        /// Bytes of each payload.
        payload,
        /// Packets of the window; 0 without recovery.
        window,
        /// Repair packets …
        repair,
        /// … for source packets.
        source,
        /// Bytes of the largest datagram that came whole; 0 if unknown.
        largest,
        /// The round trip of the quickest answer.
        round_trip,
        /// 1 if the test ended early.
        interrupted,
    }
}

words! {
    /// The listener's account of a test. Times are in ns.
    Arrived {
        /// Datagrams, without copies.
        received,
        /// Copies of datagrams that had come before.
        doubled,
        /// Datagrams that came behind one with a higher number.
        reordered,
        /// The largest distance between such a datagram and the highest number before it.
        reordered_by,
        /// Runs of lost datagrams.
        bursts,
        /// Datagrams of the longest run.
        longest_burst,
        /// Bytes of the received datagrams.
        bytes,
        /// Time from the first to the last.
        time,
        /// Time on cores; all ones if the system does not tell.
        on_cores,
        /// Number of drops by the system, of data that was not read in time; all ones if it does not tell.
        dropped,
        /// Payloads that came as they were sent.
        payloads_before,
        /// Payloads, including rebuilt ones.
        payloads_after,
        /// Payloads that came out with other bytes than were sent.
        wrong,
        /// Interarrival jitter, RFC 3550.
        jitter,
        /// Delay of datagrams beyond the quickest: median, 99th percentile, maximum.
        delay_median,
        delay_high,
        delay_most,
        /// The same for payloads in order; all ones without recovery.
        after_median,
        after_high,
        after_most,
        /// Datagrams that the listener knows to have been sent: up to the highest number.
        highest,
        /// 1 if the test ended early here.
        interrupted,
    }
}

impl Message {
    /// The message, and its session or nonce.
    pub(super) fn parse(bytes: &[u8]) -> Option<(u64, Message)> {
        let (kind, [0, 0]) = kind_of(bytes)? else { return None };
        let (header, body) = bytes.split_first_chunk::<HEADER>()?;
        let (words, padded) = shape(kind)?;
        if body.len() < 8 * words {
            return None;
        }
        let (own, padding) = body.split_at(8 * words);
        let is_probe = kind == PROBE;
        if !is_probe && (bytes.len() != padded || padding.iter().any(|byte| *byte != 0)) {
            return None;
        }
        let own: Vec<u64> = own.chunks_exact(8).map(|chunk| word(chunk, 0)).collect();
        let message = match (kind, &own[..]) {
            (HELLO, []) => Message::Hello,
            (COOKIE, [cookie]) => Message::Cookie(*cookie),
            (OPEN, [nonce, milliseconds, window_bytes]) => Message::Open(Wish {
                nonce: *nonce,
                milliseconds: *milliseconds,
                window_bytes: *window_bytes,
            }),
            (OPENED, []) => Message::Opened,
            (REFUSED, [0, 0]) => Message::Refused(Reason::Busy),
            (REFUSED, [1, most]) => Message::Refused(Reason::Window(*most)),
            (REFUSED, [2, most]) => Message::Refused(Reason::Long(*most)),
            (REFUSED, [3, version]) => Message::Refused(Reason::Version(*version)),
            (PROBE, [size]) if *size == bytes.len() as u64 => Message::Probe(*size),
            (PROBED, [size]) => Message::Probed(*size),
            (ALIVE, [nanoseconds, received, sent, bytes]) => Message::Alive(SoFar {
                nanoseconds: *nanoseconds,
                received: *received,
                sent: *sent,
                bytes: *bytes,
            }),
            (FINISH, words) => Message::Finish(Sent::from_words(words)?),
            (RESULT, words) => Message::Result(Arrived::from_words(words)?),
            (BYE, []) => Message::Bye,
            _ => return None,
        };
        Some((word(header, 8), message))
    }

    /// Its bytes, for this session or nonce.
    pub(super) fn bytes(&self, session: u64) -> Vec<u8> {
        let (kind, words) = match self {
            Message::Hello => (HELLO, vec![]),
            Message::Cookie(cookie) => (COOKIE, vec![*cookie]),
            Message::Open(wish) => (OPEN, vec![wish.nonce, wish.milliseconds, wish.window_bytes]),
            Message::Opened => (OPENED, vec![]),
            Message::Refused(reason) => (
                REFUSED,
                match *reason {
                    Reason::Busy => vec![0, 0],
                    Reason::Window(most) => vec![1, most],
                    Reason::Long(most) => vec![2, most],
                    Reason::Version(version) => vec![3, version],
                },
            ),
            Message::Probe(size) => (PROBE, vec![*size]),
            Message::Probed(size) => (PROBED, vec![*size]),
            Message::Alive(so_far) => {
                (ALIVE, vec![so_far.nanoseconds, so_far.received, so_far.sent, so_far.bytes])
            }
            Message::Finish(sent) => (FINISH, sent.words().to_vec()),
            Message::Result(arrived) => (RESULT, arrived.words().to_vec()),
            Message::Bye => (BYE, vec![]),
        };
        let mut out = Vec::with_capacity(REQUEST);
        write_header(kind, 0, session, &mut out);
        words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        let padded = match self {
            Message::Probe(size) => *size as usize,
            _ => shape(kind).map_or(0, |(_, padded)| padded),
        };
        out.resize(padded.max(out.len()), 0);
        out
    }
}

/// The version and the nonce of a datagram that begins a talk in another version.
pub(super) fn other_version(bytes: &[u8]) -> Option<(u8, u64)> {
    let (header, _) = bytes.split_first_chunk::<HEADER>()?;
    let is_one = header.starts_with(&MAGIC) && header[4] != VERSION && header[5] == HELLO;
    (is_one && bytes.len() >= REQUEST).then(|| (header[4], word(header, 8)))
}

/// The version that this build speaks.
pub(super) fn version() -> u64 {
    VERSION.into()
}

const HELLO: u8 = 16;
const COOKIE: u8 = 17;
const OPEN: u8 = 18;
const OPENED: u8 = 19;
const REFUSED: u8 = 20;
const PROBE: u8 = 21;
const PROBED: u8 = 22;
const ALIVE: u8 = 23;
const FINISH: u8 = 24;
const RESULT: u8 = 25;
const BYE: u8 = 26;

/// The fewest bytes of a probe.
pub(super) const SMALLEST_PROBE: usize = HEADER + 8;

/// The words of a type of message, and its bytes.
fn shape(kind: u8) -> Option<(usize, usize)> {
    let short = |words| (words, HEADER + 8 * words);
    Some(match kind {
        HELLO => (0, REQUEST),
        COOKIE => short(1),
        OPEN => (3, REQUEST),
        OPENED | BYE => short(0),
        REFUSED => short(2),
        PROBE | PROBED => short(1),
        ALIVE => short(4),
        FINISH => (Sent::WORDS, REQUEST),
        RESULT => short(Arrived::WORDS),
        _ => return None,
    })
}

/// The type and the two bytes behind it, if the first bytes are those of a datagram of this version.
fn kind_of(bytes: &[u8]) -> Option<(u8, [u8; 2])> {
    let (magic, rest) = bytes.split_first_chunk::<4>()?;
    match rest {
        [VERSION, kind, a, b, ..] if *magic == MAGIC => Some((*kind, [*a, *b])),
        _ => None,
    }
}

fn write_header(kind: u8, len: u16, session: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&session.to_le_bytes());
}

/// The eight bytes at `at`, as a number; 0 if they are missing.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Number and time of a payload, written at its start.
pub(super) fn stamp(payload: &mut [u8], number: u64, at: Duration) {
    if let Some(head) = payload.first_chunk_mut::<16>() {
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[8..].copy_from_slice(&nanoseconds(at).to_le_bytes());
    }
}

/// Number and time of a payload, and the bytes behind them.
pub(super) fn read_stamp(payload: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (head, rest) = payload.split_first_chunk::<16>()?;
    Some((word(head, 0), word(head, 8), rest))
}

#[cfg(test)]
mod tests {
    use super::super::terms::UNKNOWN;
    use super::*;

    fn all() -> Vec<Message> {
        let so_far = SoFar { nanoseconds: 1, received: 2, sent: 3, bytes: 4 };
        let wish = Wish { nonce: 5, milliseconds: 6, window_bytes: 7 };
        vec![
            Message::Hello,
            Message::Cookie(8),
            Message::Open(wish),
            Message::Opened,
            Message::Refused(Reason::Busy),
            Message::Refused(Reason::Window(9)),
            Message::Refused(Reason::Long(10)),
            Message::Refused(Reason::Version(11)),
            Message::Probe(1472),
            Message::Probed(1472),
            Message::Alive(so_far),
            Message::Finish(Sent { sent: 12, interrupted: 13, ..Sent::default() }),
            Message::Result(Arrived { received: 14, interrupted: UNKNOWN, ..Arrived::default() }),
            Message::Bye,
        ]
    }

    #[test]
    fn messages_come_back_and_nothing_else_is_one() {
        for message in all() {
            let bytes = message.bytes(77);
            assert_eq!(Message::parse(&bytes), Some((77, message.clone())));
            for cut in 0..bytes.len() {
                assert_eq!(Message::parse(&bytes[..cut]), None, "{message:?} cut to {cut}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(Message::parse(&longer), None, "{message:?} and a byte");
            // Every bit of the header counts, and padding is 0.
            for bit in 0..64 {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Message::parse(&other), Some((77, message.clone())), "{message:?}, bit {bit}");
            }
            if bytes.len() == REQUEST {
                let mut other = bytes.clone();
                other[REQUEST - 1] = 1;
                assert_eq!(Message::parse(&other), None, "{message:?}");
            }
            assert!(Data::parse(&bytes).is_none());
        }
    }

    #[test]
    fn no_answer_is_longer_than_what_is_asked() {
        for message in all() {
            let len = message.bytes(0).len();
            match message {
                Message::Hello | Message::Open(_) | Message::Finish(_) => assert_eq!(len, REQUEST),
                Message::Probe(_) => {}
                Message::Probed(_) => assert_eq!(len, SMALLEST_PROBE),
                _ => assert!(len < REQUEST, "{message:?}"),
            }
        }
    }

    #[test]
    fn data_comes_back() {
        let data = Data { session: 1, content: Content::Packet, number: 2, sent_at: 3, body: b"body" };
        let mut bytes = Vec::new();
        for room in [0, 4, 9] {
            data.write(room, &mut bytes);
            assert_eq!(bytes.len(), DATA_HEADER + room.max(4));
            assert_eq!(Data::parse(&bytes), Some(data));
            assert_eq!(Message::parse(&bytes), None);
            (0..DATA_HEADER + 4).for_each(|cut| assert_eq!(Data::parse(&bytes[..cut]), None));
            let other = [&bytes[..], &[1]].concat();
            assert_eq!(Data::parse(&other), None, "padding is 0");
        }
        let mut payload = [9; 20];
        stamp(&mut payload, 4, Duration::from_nanos(5));
        assert_eq!(read_stamp(&payload), Some((4, 5, &[9; 4][..])));
    }

    #[test]
    fn another_version_is_known_by_its_hello() {
        let mut hello = Message::Hello.bytes(3);
        assert_eq!(other_version(&hello), None);
        hello[4] = 9;
        assert_eq!(other_version(&hello), Some((9, 3)));
        assert_eq!(other_version(&hello[..100]), None, "an answer must not be longer");
    }
}
