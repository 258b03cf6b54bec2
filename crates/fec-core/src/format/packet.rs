//! Packets of a live stream (format specification, section 13): source, repair and mark.
//!
//! Every packet carries all parameters of its stream, so that a receiver may join anywhere. The payload of a source
//! packet stands inside its *symbol*: the bytes that repair packets protect. The symbol has a checksum of its own, so a
//! wrongly rebuilt packet is never taken for data.

use super::crc::crc32c;
use super::{array_at, is_zero, u32_at, u64_at};
use std::ops::RangeInclusive;
use thiserror::Error;

/// The first bytes of every packet.
pub const MAGIC: [u8; 4] = [0x89, 0x66, 0x65, 0x70];
/// Bytes of the header of every packet.
pub const HEADER: usize = 36;
/// Bytes of a source packet beyond its payload: the header, the length and the payload's checksum.
pub const SOURCE_OVERHEAD: usize = HEADER + SYMBOL_OVERHEAD;
/// Bytes of a symbol in front of the payload: its checksum and its length.
pub const SYMBOL_OVERHEAD: usize = 6;
/// Bytes of a repair packet in front of its symbol.
pub const REPAIR_OVERHEAD: usize = HEADER + 16;
/// Bytes of a mark.
pub const MARK: usize = HEADER + 4;
/// Most source packets in a window.
pub const MAX_WINDOW: u32 = 65_536;
/// Fewest bytes that a stream may name as its largest payload.
pub const MIN_PAYLOAD: u16 = 16;
/// Bound of sequence numbers and row numbers, which are below it.
pub const MAX_SEQ: u64 = 1 << 63;

pub(super) const VERSION: u8 = 1;
const TYPE_SOURCE: u8 = 0;
const TYPE_REPAIR: u8 = 1;
const TYPE_MARK: u8 = 2;
/// The types of [`report`](super::report): no packets of the stream.
pub(super) const TYPE_CALL: u8 = 3;
pub(super) const TYPE_REPORT: u8 = 4;
/// Offset of the header's checksum.
pub(super) const SUM_AT: usize = 32;

/// The way repair packets are made of source packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// A sliding window with constant work for each packet: sixteen lanes of three sums, and 22 packets or sums of
    /// three more a row.
    #[default]
    Bounded,
    /// A sliding window in the manner of Siamese: eight lanes of three sums, and an eighth of the window's
    /// packets a row.
    Classic,
    /// The same rows over independent blocks.
    ClassicBlocks,
    /// Reed-Solomon sets, interleaved over one window after the other.
    Blocks,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 4] =
        [Profile::Bounded, Profile::Classic, Profile::ClassicBlocks, Profile::Blocks];

    /// Its number in a packet.
    pub fn number(self) -> u8 {
        match self {
            Profile::Bounded => 1,
            Profile::Classic => 2,
            Profile::ClassicBlocks => 3,
            Profile::Blocks => 4,
        }
    }

    /// The profile with this number.
    pub fn from_number(number: u8) -> Option<Profile> {
        Profile::ALL.into_iter().find(|profile| profile.number() == number)
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Bounded => "bounded",
            Profile::Classic => "classic",
            Profile::ClassicBlocks => "classic-blocks",
            Profile::Blocks => "blocks",
        }
    }
}

/// The parameters of a stream, which every packet carries.
///
/// Values that come from [`parse`] obey the rules of the specification; [`Parameters::check`] checks others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// The way repair packets are made.
    pub profile: Profile,
    /// The number that tells this stream from others.
    pub stream_id: u64,
    /// Most source packets that one repair packet covers.
    pub window: u32,
    /// Most bytes of a payload.
    pub payload: u16,
    /// The step of the window's start, or packets of an independent block or set.
    pub block: u16,
}

impl Parameters {
    /// Bytes of a symbol.
    pub fn symbol_len(&self) -> usize {
        usize::from(self.payload) + SYMBOL_OVERHEAD
    }

    /// Tells whether the numbers fit one another (specification, section 13.1).
    ///
    /// # Errors
    /// [`PacketError::Invalid`] with the rule that is broken.
    pub fn check(&self) -> Result<(), PacketError> {
        let block = u32::from(self.block);
        let rules = [
            (self.payload < MIN_PAYLOAD, "the largest payload is below 16 bytes"),
            (self.window == 0, "the window is empty"),
            (self.window > MAX_WINDOW, "the window is larger than 65,536 packets"),
            (block == 0, "the block is empty"),
            (
                match self.profile {
                    Profile::Bounded | Profile::Classic => {
                        // Small blocks in a large window would need more memory for sums than for packets.
                        block > self.window.div_ceil(2)
                            || (block < 48 && self.window.div_ceil(block.max(1)) > 8)
                    }
                    Profile::ClassicBlocks => block > self.window,
                    Profile::Blocks => block > 255,
                },
                "the block does not fit the window",
            ),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, rule)) => Err(PacketError::Invalid(rule)),
            None => Ok(()),
        }
    }
}

/// The content of a packet besides the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A payload.
    Source {
        /// The number of this packet; the stream starts at 0.
        seq: u64,
        /// The payload, at most as long as the parameters say.
        payload: &'a [u8],
        /// The payload's checksum, already compared.
        checksum: u32,
    },
    /// A combination of symbols.
    Repair {
        /// The number of the row. No two repair packets of a stream share it.
        row: u64,
        /// The first source packet covered.
        first: u64,
        /// Number of packets covered, at least 1.
        count: u32,
        /// With [`Profile::Blocks`], which repair packet of its window this is; otherwise 0.
        part: u32,
        /// The combination, at most as long as a symbol. Zeros at the end of all its symbols are left out.
        symbol: &'a [u8],
    },
    /// The sender's progress.
    Mark {
        /// Number of source packets sent so far.
        sent: u64,
        /// True if the stream ends here.
        end: bool,
    },
}

/// The reason why bytes are not accepted as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The magic is not there.
    #[error("not a packet of a stream")]
    Magic,
    /// The checksum does not match, or the length is not the one the header implies.
    #[error("the packet is damaged")]
    Damaged,
    /// A version other than 1.
    #[error("packet version {0} is not known to this build (it knows 1)")]
    Version(u8),
    /// A type that this build does not know.
    #[error("packet type {0} is not known to this build")]
    Type(u8),
    /// The packet is sealed with the cipher of this number. Number 0 means that it is not sealed where a [sealed
    /// one](super::sealed_packet) was expected.
    #[error("{}", if *.0 == 0 { "the packet is not sealed" } else { "the packet is sealed" })]
    Authentication(u8),
    /// A profile that this build does not know.
    #[error("profile {0} is not known to this build")]
    Profile(u8),
    /// An intact packet breaks a rule.
    #[error("the packet is not valid: {0}")]
    Invalid(&'static str),
}

/// The checksum inside a symbol: CRC32C of stream id, sequence number, length and payload.
pub fn payload_checksum(stream_id: u64, seq: u64, payload: &[u8]) -> u32 {
    let mut head = [0; 18];
    head[..8].copy_from_slice(&stream_id.to_le_bytes());
    head[8..16].copy_from_slice(&seq.to_le_bytes());
    head[16..].copy_from_slice(&(payload.len() as u16).to_le_bytes());
    crc32c(&[&head, payload])
}

/// Bytes of stream id and sequence number.
pub(crate) const SUMMED_HEAD: usize = 16;
/// Bytes of the checksum that a symbol begins with.
pub(crate) const SUM: usize = 4;

/// [`payload_checksum`] of contiguous bytes: stream id, sequence number, length, payload.
pub(crate) fn summed_checksum(summed: &[u8]) -> u32 {
    crc32c(&[summed])
}

/// The payload of a symbol, and its checksum, if the symbol is one that a sender makes of packet `seq`.
///
/// `symbol` has the length of the stream's symbols. `None` when length, padding or checksum are wrong.
pub fn open_symbol(stream_id: u64, seq: u64, symbol: &[u8]) -> Option<(&[u8], u32)> {
    let (checksum, rest) = symbol.split_first_chunk::<SUM>()?;
    let (len, room) = rest.split_first_chunk::<2>()?;
    let (payload, padding) = room.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
    let checksum = u32::from_le_bytes(*checksum);
    (is_zero(padding) && checksum == payload_checksum(stream_id, seq, payload)).then_some((payload, checksum))
}

/// Parses one packet, which must be the whole of `bytes`. Total: any bytes give a packet or an error.
///
/// # Errors
/// See [`PacketError`], in the order of the specification.
pub fn parse(bytes: &[u8]) -> Result<(Parameters, Body<'_>), PacketError> {
    let (kind, number, parameters, body) = parse_header(bytes, TYPE_SOURCE..=TYPE_MARK)?;
    let body = match kind {
        TYPE_SOURCE => parse_source(&parameters, number, body)?,
        TYPE_REPAIR => parse_repair(&parameters, number, body)?,
        _ => parse_mark(number, body)?,
    };
    Ok((parameters, body))
}

/// Parses the header of a packet whose type is one of `kinds`: its type, number and parameters, and its body.
pub(super) fn parse_header(
    bytes: &[u8],
    kinds: RangeInclusive<u8>,
) -> Result<(u8, u64, Parameters, &[u8]), PacketError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(PacketError::Magic);
    }
    let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(PacketError::Damaged);
    };
    let [version, kind, authentication, profile] = array_at(header, 4);
    if version != VERSION {
        return Err(PacketError::Version(version));
    }
    // Unknown types may have their checksum elsewhere.
    if !kinds.contains(&kind) {
        return Err(PacketError::Type(kind));
    }
    if authentication != 0 {
        return Err(PacketError::Authentication(authentication));
    }
    let summed = if kind == TYPE_SOURCE { &[] } else { body };
    if u32_at(header, SUM_AT) != header_checksum(header, summed) {
        return Err(PacketError::Damaged);
    }
    let parameters = Parameters {
        profile: Profile::from_number(profile).ok_or(PacketError::Profile(profile))?,
        stream_id: u64_at(header, 8),
        window: u32_at(header, 24),
        payload: u16::from_le_bytes(array_at(header, 28)),
        block: u16::from_le_bytes(array_at(header, 30)),
    };
    parameters.check()?;
    let number = u64_at(header, 16);
    if number >= MAX_SEQ {
        return Err(PacketError::Invalid("the sequence number is 2^63 or more"));
    }
    Ok((kind, number, parameters, body))
}

fn parse_source<'a>(parameters: &Parameters, seq: u64, body: &'a [u8]) -> Result<Body<'a>, PacketError> {
    let (checksum, rest) = body.split_first_chunk::<SUM>().ok_or(PacketError::Damaged)?;
    let (len, payload) = rest.split_first_chunk::<2>().ok_or(PacketError::Damaged)?;
    let checksum = u32::from_le_bytes(*checksum);
    if payload.len() != usize::from(u16::from_le_bytes(*len))
        || checksum != payload_checksum(parameters.stream_id, seq, payload)
    {
        return Err(PacketError::Damaged);
    }
    if payload.len() > usize::from(parameters.payload) {
        return Err(PacketError::Invalid("the payload is longer than the stream's largest"));
    }
    Ok(Body::Source { seq, payload, checksum })
}

fn parse_repair<'a>(parameters: &Parameters, row: u64, body: &'a [u8]) -> Result<Body<'a>, PacketError> {
    let (head, symbol) = body.split_first_chunk::<16>().ok_or(PacketError::Damaged)?;
    if !(SYMBOL_OVERHEAD..=parameters.symbol_len()).contains(&symbol.len()) {
        return Err(PacketError::Damaged);
    }
    let (first, count, part) = (u64_at(head, 0), u32_at(head, 8), u32_at(head, 12));
    let block = u64::from(parameters.block);
    if count == 0 || count > parameters.window {
        return Err(PacketError::Invalid("a row covers no packet, or more than the window"));
    }
    if first >= MAX_SEQ - u64::from(count) {
        return Err(PacketError::Invalid("a row covers packets past the last sequence number"));
    }
    let fits = match parameters.profile {
        Profile::Bounded | Profile::Classic => first.is_multiple_of(block) && part == 0,
        Profile::ClassicBlocks => first.is_multiple_of(block) && u64::from(count) <= block && part == 0,
        Profile::Blocks => {
            let sets = count.div_ceil(u32::from(parameters.block));
            (sets == 1 || first.is_multiple_of(u64::from(parameters.window)))
                && part / sets < 256 - count.div_ceil(sets)
        }
    };
    if !fits {
        return Err(PacketError::Invalid("a row does not stand on a block"));
    }
    Ok(Body::Repair { row, first, count, part, symbol })
}

fn parse_mark(sent: u64, body: &[u8]) -> Result<Body<'static>, PacketError> {
    let flags: [u8; 4] = body.try_into().map_err(|_| PacketError::Damaged)?;
    match u32::from_le_bytes(flags) {
        flags @ (0 | 1) => Ok(Body::Mark { sent, end: flags == 1 }),
        _ => Err(PacketError::Invalid("a mark has a flag that is not known")),
    }
}

fn header_checksum(header: &[u8; HEADER], body: &[u8]) -> u32 {
    let mut without = *header;
    without[SUM_AT..].fill(0);
    if body.is_empty() { crc32c(&[&without]) } else { crc32c(&[&without, body]) }
}

/// Writes the checksum of a packet whose header is complete otherwise.
///
/// # Panics
/// When `packet` has no header.
pub fn restore_checksum(packet: &mut [u8]) {
    let (header, body) = packet.split_first_chunk_mut::<HEADER>().expect("a packet has a header");
    let body = if header[5] == TYPE_SOURCE { &[] } else { &*body };
    let sum = header_checksum(header, body);
    header[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
}

/// The header of a packet with the checksum over itself and `body`.
pub(super) fn header(parameters: &Parameters, kind: u8, number: u64, body: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&[VERSION, kind, 0, parameters.profile.number()]);
    header[8..16].copy_from_slice(&parameters.stream_id.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    header[24..28].copy_from_slice(&parameters.window.to_le_bytes());
    header[28..30].copy_from_slice(&parameters.payload.to_le_bytes());
    header[30..32].copy_from_slice(&parameters.block.to_le_bytes());
    let sum = header_checksum(&header, body);
    header[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The header of source packet `seq`. Behind it stands the packet's symbol without padding: the payload's
/// [`payload_checksum`], its length as u16, and the payload.
pub fn source_header(parameters: &Parameters, seq: u64) -> [u8; HEADER] {
    header(parameters, TYPE_SOURCE, seq, &[])
}

/// Writes a source packet to `out`, whose old content is dropped. `checksum` is [`payload_checksum`].
///
/// # Panics
/// When the payload is longer than 65,535 bytes.
pub fn write_source(out: &mut Vec<u8>, parameters: &Parameters, seq: u64, payload: &[u8], checksum: u32) {
    let len = u16::try_from(payload.len()).expect("a payload has at most 65,535 bytes");
    out.clear();
    out.extend_from_slice(&source_header(parameters, seq));
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(payload);
}

/// The row, as a repair packet names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHeader {
    /// The number of the row.
    pub row: u64,
    /// The first source packet covered.
    pub first: u64,
    /// Number of packets covered.
    pub count: u32,
    /// The number of the repair packet within its window; 0 unless the profile is [`Profile::Blocks`].
    pub part: u32,
}

/// Writes a repair packet to `out`, whose old content is dropped.
///
/// # Panics
/// When the symbol is longer than the parameters say, or shorter than a checksum and a length.
pub fn write_repair(out: &mut Vec<u8>, parameters: &Parameters, row: &RowHeader, symbol: &[u8]) {
    assert!((SYMBOL_OVERHEAD..=parameters.symbol_len()).contains(&symbol.len()));
    out.clear();
    out.resize(HEADER, 0);
    out.extend_from_slice(&row.first.to_le_bytes());
    out.extend_from_slice(&row.count.to_le_bytes());
    out.extend_from_slice(&row.part.to_le_bytes());
    out.extend_from_slice(symbol);
    let header = header(parameters, TYPE_REPAIR, row.row, &out[HEADER..]);
    out[..HEADER].copy_from_slice(&header);
}

/// A mark.
pub fn mark(parameters: &Parameters, sent: u64, end: bool) -> [u8; MARK] {
    let flags = u32::from(end).to_le_bytes();
    let mut mark = [0; MARK];
    mark[..HEADER].copy_from_slice(&header(parameters, TYPE_MARK, sent, &flags));
    mark[HEADER..].copy_from_slice(&flags);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of a symbol is the same in parts and in one piece. The value is that of the catalogues.
    #[test]
    fn checksums_of_symbols_are_of_one_piece() {
        assert_eq!(summed_checksum(b"123456789"), 0xE306_9283);
        let summed = b"\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x04\0text";
        assert_eq!(summed_checksum(summed), payload_checksum(5, 6, b"text"));
    }
}
