//! Sealed packets (format specification, section 13.3): each is encrypted and authentic on its own.
//!
//! The codec knows nothing of sealing: packets are sealed when they leave the encoder, and opened before they reach the
//! decoder. Repair packets therefore combine packets in the clear. A person without the key only sees that packets of a
//! stream go by, and their lengths.

use super::key::StreamKey;
use fec_base::io::system::since_1970;
use fec_core::format::packet::{HEADER, PacketError};
use fec_core::format::sealed_packet::{self, HEAD, Sealed};
use fec_core::window::Replays;
use fec_keys::cipher::{AeadKey, Cipher, derive};
use std::time::Duration;

/// The salt of all keys.
const SALT: &[u8] = b"fec live stream";

/// Most streams whose keys a receiver remembers.
const MOST_STREAMS: usize = 64;

/// Most receivers whose keys a sender remembers.
const MOST_RECEIVERS: usize = 64;

/// The key of one stream, by HKDF-SHA256 (RFC 5869).
fn key_of(cipher: Cipher, key: &StreamKey, stream_id: u64) -> AeadKey {
    let info = [&b"fec stream 1, sender to receivers"[..], &[cipher.number()], &stream_id.to_le_bytes()];
    AeadKey::new(cipher, &derive(SALT, key.bytes(), &info))
}

/// The key of one receiver's reports on a stream.
fn report_key(cipher: Cipher, key: &StreamKey, stream_id: u64, receiver: u64) -> AeadKey {
    let (stream_id, receiver) = (stream_id.to_le_bytes(), receiver.to_le_bytes());
    let info = [&b"fec stream 1, receiver to sender"[..], &[cipher.number()], &stream_id, &receiver];
    AeadKey::new(cipher, &derive(SALT, key.bytes(), &info))
}

/// The time by this machine's clock, in seconds since 1970, modulo 2^32.
fn now() -> u32 {
    seconds(since_1970())
}

/// The seconds of a time since 1970, modulo 2^32.
fn seconds(time: Duration) -> u32 {
    time.as_secs() as u32
}

/// Seals the packets of one stream.
pub(super) struct Sealer {
    cipher: Cipher,
    key: AeadKey,
    /// Packets sealed so far: no two have the same nonce.
    counter: u64,
    sealed: Vec<u8>,
}

impl Sealer {
    /// A sealer for the stream of this number, which no other stream of this key may have.
    pub(super) fn new(key: &StreamKey, cipher: Cipher, stream_id: u64) -> Sealer {
        Sealer::with(cipher, key_of(cipher, key, stream_id))
    }

    fn with(cipher: Cipher, key: AeadKey) -> Sealer {
        Sealer { cipher, key, counter: 0, sealed: Vec::new() }
    }

    pub(super) fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Seals a whole packet.
    pub(super) fn seal(&mut self, packet: &[u8]) -> &[u8] {
        self.seal_at(packet, now())
    }

    fn seal_at(&mut self, packet: &[u8], time: u32) -> &[u8] {
        let (head, counter) =
            (sealed_packet::head(packet, self.cipher.number(), time, self.counter), self.counter);
        self.counter = counter.checked_add(1).expect("no stream has 2^64 packets");
        self.sealed.clear();
        self.sealed.extend_from_slice(&head);
        self.sealed.extend_from_slice(&packet[HEADER..]);
        let tag = self.key.seal(&sealed_packet::nonce(&head), &head, &mut self.sealed[head.len()..]);
        self.sealed.extend_from_slice(&tag);
        &self.sealed
    }
}

/// The reason why a packet is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotOpened {
    /// It is no packet, or a packet that this build does not know.
    NoPacket(PacketError),
    /// It is not sealed.
    Unsealed,
    /// It was sealed with another key or none, forged, or damaged.
    Forged,
    /// It came before, or is so old that this cannot be told.
    Copy,
    /// It is authentic, and was sealed this many seconds ago by the clocks of both ends (in the future if negative).
    Stale(i32),
}

/// Opens packets of one key, and of any stream.
pub(super) struct Opener {
    key: StreamKey,
    /// Most seconds by which the clocks of both ends may differ, including the way; `None` for any.
    max_age: Option<u32>,
    /// The streams, the most recently opened last.
    streams: Vec<Opened>,
    /// Time at which the newest packet was sealed.
    newest: Option<u32>,
}

/// A stream with an opened packet.
struct Opened {
    stream_id: u64,
    cipher: Cipher,
    key: AeadKey,
    replays: Replays,
}

impl Opener {
    pub(super) fn new(key: StreamKey, max_age: Option<u32>) -> Opener {
        Opener { key, max_age, streams: Vec::new(), newest: None }
    }

    /// A sealer for the reports of the receiver of this number, which no other receiver of the stream may have; `None`
    /// before a packet of the stream was opened.
    pub(super) fn report_sealer(&self, stream_id: u64, receiver: u64) -> Option<Sealer> {
        let stream = self.streams.iter().find(|stream| stream.stream_id == stream_id)?;
        Some(Sealer::with(stream.cipher, report_key(stream.cipher, &self.key, stream_id, receiver)))
    }

    /// Opens a packet in place, and returns it. Bytes that are no packet may be changed. `came` is the time at which
    /// the system received it, since 1970; packets that waited for a stopped receiver are no recording.
    pub(super) fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        came: Option<Duration>,
    ) -> Result<&'a mut [u8], NotOpened> {
        self.open_at(bytes, came.map_or_else(now, seconds))
    }

    fn open_at<'a>(&mut self, bytes: &'a mut [u8], now: u32) -> Result<&'a mut [u8], NotOpened> {
        let sealed = sealed_packet::parse(bytes).map_err(|error| match error {
            PacketError::Authentication(0) => NotOpened::Unsealed,
            // A short packet is not a sealed one.
            PacketError::Damaged if sealed_packet::is_sealed(bytes) == Some(false) => NotOpened::Unsealed,
            error => NotOpened::NoPacket(error),
        })?;
        let cipher = Cipher::from_number(sealed.authentication)
            .ok_or(NotOpened::NoPacket(PacketError::Authentication(sealed.authentication)))?;
        let known = self
            .streams
            .iter()
            .rposition(|stream| stream.stream_id == sealed.stream_id && stream.cipher == cipher);
        match known {
            Some(at) => {
                let stream = &mut self.streams[at];
                if stream.replays.is_known(sealed.counter) {
                    return Err(NotOpened::Copy);
                }
                decrypt(&stream.key, &sealed, bytes)?;
                is_fresh(&sealed, self.max_age, now)?;
                stream.replays.note(sealed.counter);
                if at + 1 < self.streams.len() {
                    let stream = self.streams.remove(at);
                    self.streams.push(stream);
                }
            }
            None => {
                let key = key_of(cipher, &self.key, sealed.stream_id);
                decrypt(&key, &sealed, bytes)?;
                is_fresh(&sealed, self.max_age, now)?;
                // A stream that begins now is newer than the known ones: others are recordings.
                if let (Some(_), Some(newest)) = (self.max_age, self.newest)
                    && (newest.wrapping_sub(sealed.time) as i32) > 0
                {
                    return Err(NotOpened::Stale(now.wrapping_sub(sealed.time) as i32));
                }
                if self.streams.len() == MOST_STREAMS {
                    self.streams.remove(0);
                }
                let mut replays = Replays::default();
                replays.note(sealed.counter);
                self.streams.push(Opened { stream_id: sealed.stream_id, cipher, key, replays });
            }
        }
        if self.newest.is_none_or(|newest| (sealed.time.wrapping_sub(newest) as i32) > 0) {
            self.newest = Some(sealed.time);
        }
        Ok(sealed.packet(bytes))
    }
}

/// Opens the reports on one stream. Copies are the caller's affair: a report has a number.
pub(super) struct ReportOpener {
    key: StreamKey,
    cipher: Cipher,
    stream_id: u64,
    /// The receivers that have reported, the most recent last.
    receivers: Vec<(u64, AeadKey)>,
}

impl ReportOpener {
    /// An opener for reports on the stream of this number, which is sealed with `cipher`.
    pub(super) fn new(key: &StreamKey, cipher: Cipher, stream_id: u64) -> ReportOpener {
        ReportOpener { key: key.clone(), cipher, stream_id, receivers: Vec::new() }
    }

    /// Opens a report in place, and returns it; `None` if it is not authentic. Bytes that are no report may be changed.
    pub(super) fn open<'a>(&mut self, bytes: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let sealed = sealed_packet::parse(bytes).ok()?;
        if sealed.authentication != self.cipher.number() || sealed.stream_id != self.stream_id {
            return None;
        }
        let known = self.receivers.iter().position(|(receiver, _)| *receiver == sealed.number);
        let (receiver, key) = match known {
            Some(at) => self.receivers.remove(at),
            None => (sealed.number, report_key(self.cipher, &self.key, self.stream_id, sealed.number)),
        };
        let opened = decrypt(&key, &sealed, bytes).is_ok();
        if opened || known.is_some() {
            if self.receivers.len() == MOST_RECEIVERS {
                self.receivers.remove(0);
            }
            self.receivers.push((receiver, key));
        }
        opened.then(|| sealed.packet(bytes))
    }
}

/// Decrypts the sealed part of a packet in place, if it is authentic.
fn decrypt(key: &AeadKey, sealed: &Sealed, bytes: &mut [u8]) -> Result<(), NotOpened> {
    key.open(&sealed.nonce(), &sealed.head, &mut bytes[HEAD..]).map(|_| ()).map_err(|_| NotOpened::Forged)
}

/// Tells whether an authentic packet was sealed recently, as far as clocks tell.
fn is_fresh(sealed: &Sealed, max_age: Option<u32>, now: u32) -> Result<(), NotOpened> {
    let age = now.wrapping_sub(sealed.time) as i32;
    match max_age {
        Some(most) if age.unsigned_abs() > most => Err(NotOpened::Stale(age)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::format::packet::{self, Parameters, Profile};
    use serde_json::Value;

    fn bytes_of(vector: &Value, field: &str) -> Vec<u8> {
        let hex = vector[field].as_str().expect("a field in hexadecimal");
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("digits")).collect()
    }

    /// The vectors of scripts/oracle, whose ciphers are written from their specifications.
    #[test]
    fn packets_are_sealed_as_the_other_implementation_does() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/stream-sealed.json");
        let vectors: Vec<Value> =
            serde_json::from_slice(&std::fs::read(file).expect("the vectors are there"))
                .expect("they are JSON");
        assert!(vectors.len() >= 16);
        for vector in &vectors {
            let number = |field: &str| vector[field].as_u64().expect("a number");
            let key = StreamKey::new(bytes_of(vector, "key").try_into().expect("32 bytes"));
            let (packet, sealed) = (bytes_of(vector, "packet"), bytes_of(vector, "sealed"));
            let cipher = Cipher::from_number(number("authentication") as u8).expect("a cipher");
            let stream_id = u64::from_le_bytes(packet[8..16].try_into().expect("8 bytes"));
            if number("counter") < u64::MAX {
                let mut sealer = Sealer::new(&key, cipher, stream_id);
                sealer.counter = number("counter");
                assert!(sealer.seal_at(&packet, number("time") as u32) == sealed, "{vector}");
            }
            let mut opener = Opener::new(key, Some(0));
            let time = number("time") as u32;
            let opened = opener.open_at(&mut sealed.clone(), time).map(|opened| opened.to_vec());
            assert!(opened == Ok(packet), "{vector}");
            assert_eq!(opener.open_at(&mut sealed.clone(), time), Err(NotOpened::Copy), "{vector}");
        }
    }

    /// A report is sealed with its receiver's key, and opens with no other. A call is a packet of the stream.
    #[test]
    fn reports_are_sealed_as_the_other_implementation_does() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/stream-reports.json");
        let vectors: Vec<Value> =
            serde_json::from_slice(&std::fs::read(file).expect("the vectors are there"))
                .expect("they are JSON");
        let key = StreamKey::read(std::path::Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/golden/stream/sealed.key"
        )));
        let key = key.expect("the key of the vectors");
        let mut seen = 0;
        for vector in vectors.iter().filter(|vector| vector["error"].is_null()) {
            let packet = bytes_of(vector, "packet");
            let number = |at: usize| u64::from_le_bytes(packet[at..at + 8].try_into().expect("8 bytes"));
            let (stream_id, receiver) = (number(8), number(16));
            for of in vector["sealed"].as_array().expect("a list") {
                seen += 1;
                let cipher = Cipher::from_number(of["authentication"].as_u64().expect("a number") as u8);
                let (cipher, expected) = (cipher.expect("a cipher"), bytes_of(of, "bytes"));
                let is_report = packet[5] == 4;
                let mut sealer = if is_report {
                    Sealer::with(cipher, report_key(cipher, &key, stream_id, receiver))
                } else {
                    Sealer::new(&key, cipher, stream_id)
                };
                sealer.counter = of["counter"].as_u64().expect("a number");
                let time = of["time"].as_u64().expect("a number") as u32;
                assert!(sealer.seal_at(&packet, time) == expected, "{vector}");
                let mut opener = ReportOpener::new(&key, cipher, stream_id);
                let opened = opener.open(&mut expected.clone()).map(|opened| opened.to_vec());
                assert_eq!(opened, is_report.then_some(packet.clone()), "{vector}");
                let other = match cipher {
                    Cipher::Aes256Gcm => Cipher::ChaCha20Poly1305,
                    _ => Cipher::Aes256Gcm,
                };
                for mut wrong in [
                    ReportOpener::new(&key, cipher, stream_id ^ 1),
                    ReportOpener::new(&key, other, stream_id),
                    ReportOpener::new(&StreamKey::new([3; 32]), cipher, stream_id),
                ] {
                    assert!(wrong.open(&mut expected.clone()).is_none(), "{vector}");
                }
                for bit in (0..8 * expected.len()).step_by(7) {
                    let mut changed = expected.clone();
                    changed[bit / 8] ^= 1 << (bit % 8);
                    assert!(opener.open(&mut changed).is_none(), "bit {bit}");
                }
            }
        }
        assert!(seen >= 14, "{seen}");
    }

    /// Opens a copy.
    fn open(opener: &mut Opener, packet: &[u8], now: u32) -> Result<(), NotOpened> {
        opener.open_at(&mut packet.to_vec(), now).map(|_| ())
    }

    fn mark(stream_id: u64, sent: u64) -> Vec<u8> {
        let parameters =
            Parameters { profile: Profile::Bounded, stream_id, window: 60, payload: 20, block: 15 };
        packet::mark(&parameters, sent, false).to_vec()
    }

    #[test]
    fn no_two_packets_have_one_nonce() {
        let mut sealer = Sealer::new(&StreamKey::new([1; 32]), Cipher::Aes256Gcm, 3);
        let mut nonces = std::collections::HashSet::new();
        for _ in 0..100 {
            // The same packet is sealed in the same second.
            assert!(nonces.insert(sealer.seal_at(&mark(3, 7), 5)[36..44].to_vec()));
        }
    }

    /// A packet has the age that it had on arrival, however long it waited for its receiver.
    #[test]
    fn what_waited_here_is_no_recording() {
        let key = StreamKey::new([1; 32]);
        let mut sealer = Sealer::new(&key, Cipher::Aes256Gcm, 3);
        let mut opener = Opener::new(key.clone(), Some(10));
        for (came, expected) in [(1005, None), (1010, None), (1011, Some(NotOpened::Stale(11)))] {
            let mut sealed = sealer.seal_at(&mark(3, 7), 1000).to_vec();
            let came = Duration::from_millis(came * 1000 + 500);
            assert_eq!(opener.open(&mut sealed, Some(came)).err(), expected, "{came:?}");
        }
        let mut sealed = sealer.seal_at(&mark(3, 7), 1000).to_vec();
        assert!(matches!(opener.open(&mut sealed, None), Err(NotOpened::Stale(_))), "by the clock");
    }

    #[test]
    fn whatever_is_changed_is_not_opened() {
        let key = StreamKey::new([1; 32]);
        for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
            let sealed = Sealer::new(&key, cipher, 3).seal_at(&mark(3, 7), 1000).to_vec();
            let mut opener = Opener::new(key.clone(), Some(10));
            for bit in 0..8 * sealed.len() {
                let mut changed = sealed.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(open(&mut opener, &changed, 1000).is_err(), "{cipher:?}: bit {bit}");
            }
            for len in 0..sealed.len() {
                assert!(open(&mut opener, &sealed[..len], 1000).is_err());
            }
            let mut open = |packet: &[u8], now| open(&mut opener, packet, now);
            assert_eq!(open(&mark(3, 7), 1000), Err(NotOpened::Unsealed));
            let other = Sealer::new(&StreamKey::new([2; 32]), cipher, 3).seal_at(&mark(3, 7), 1000).to_vec();
            assert_eq!(open(&other, 1000), Err(NotOpened::Forged));
            assert_eq!(open(&sealed, 1011), Err(NotOpened::Stale(11)));
            assert_eq!(open(&sealed, 989), Err(NotOpened::Stale(-11)));
            assert_eq!(open(&sealed, 1010), Ok(()));
            assert_eq!(open(&sealed, 1010), Err(NotOpened::Copy));
            assert_eq!(open(&sealed, 1011), Err(NotOpened::Copy), "it is known whatever the time");
        }
        let mut sealer = Sealer::new(&key, Cipher::Aes256Gcm, 3);
        let last = sealed_packet::parse(sealer.seal_at(&mark(3, 7), u32::MAX)).expect("a sealed packet");
        assert_eq!(is_fresh(&last, Some(9), 4), Ok(()), "past 2106");
    }

    #[test]
    fn a_stream_from_before_another_is_a_recording() {
        let key = StreamKey::new([1; 32]);
        let mut opener = Opener::new(key.clone(), Some(10));
        let mut at = |id: u64, counter: u64, time: u32| {
            let mut sealer = Sealer::new(&key, Cipher::Aes256Gcm, id);
            sealer.counter = counter;
            open(&mut opener, sealer.seal_at(&mark(id, 1), time), 1005)
        };
        assert_eq!(at(1, 0, 1000), Ok(()));
        assert_eq!(at(2, 0, 999), Err(NotOpened::Stale(6)));
        assert_eq!(at(2, 0, 1000), Ok(()));
        // Packets of a known stream may overtake one another.
        assert_eq!(at(1, 1, 999), Ok(()));
    }

    /// Streams come and go; the receiver's own is not forgotten for others.
    #[test]
    fn streams_are_told_apart() {
        let key = StreamKey::new([1; 32]);
        let mut opener = Opener::new(key.clone(), None);
        let mut first = Sealer::new(&key, Cipher::Aes256Gcm, 0);
        let early = first.seal_at(&mark(0, 1), 1).to_vec();
        assert_eq!(open(&mut opener, &early, now()), Ok(()));
        for id in 1..500 {
            let other = Sealer::new(&key, Cipher::Aes256Gcm, id).seal_at(&mark(id, 1), 1).to_vec();
            assert_eq!(open(&mut opener, &other, now()), Ok(()));
            let next = first.seal_at(&mark(0, id), 1).to_vec();
            assert_eq!(open(&mut opener, &next, now()), Ok(()));
            assert_eq!(open(&mut opener, &early, now()), Err(NotOpened::Copy));
        }
        assert_eq!(opener.streams.len(), MOST_STREAMS);
    }
}
