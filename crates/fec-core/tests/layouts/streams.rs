//! Live streams: parameters and packets (section 13).

use super::*;

fn parameters(profile: Profile, (window, payload, block): (u32, u16, u16)) -> Parameters {
    Parameters { profile, stream_id: 5, window, payload, block }
}

/// Section 13.1, rule 2.
#[test]
fn numbers_of_streams_hold_at_their_limits() {
    use Profile::*;
    for (profile, numbers, is_right) in [
        (Bounded, (96, 16, 48), true),
        (Bounded, (96, 15, 48), false),
        (Bounded, (0, 16, 1), false),
        (Bounded, (96, 16, 0), false),
        (Bounded, (96, 16, 49), false),
        (Bounded, (97, 16, 49), true),
        (Classic, (65_536, 16, 48), true),
        (Classic, (65_537, 16, 48), false),
        // D ≥ 48 or ⌈W/D⌉ ≤ 8.
        (Classic, (8 * 47, 16, 47), true),
        (Classic, (8 * 47 + 1, 16, 47), false),
        (Classic, (8 * 48 + 1, 16, 48), true),
        (ClassicBlocks, (9, 16, 9), true),
        (ClassicBlocks, (9, 16, 10), false),
        (Blocks, (9, 16, 255), true),
        (Blocks, (9, 16, 256), false),
    ] {
        assert_eq!(parameters(profile, numbers).check().is_ok(), is_right, "{profile:?} {numbers:?}");
    }
    assert_eq!(parameters(Bounded, (96, 1200, 48)).symbol_len(), 1206);
    let names = [Bounded, Classic, ClassicBlocks, Blocks].map(Profile::name);
    assert_eq!(names, ["bounded", "classic", "classic-blocks", "blocks"]);
}

/// A packet by section 13.1, with a correct checksum.
fn packet(kind: u8, profile: u8, number: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x89, 0x66, 0x65, 0x70, 1, kind, 0, profile];
    bytes.extend(5u64.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    // W 96, P 16, D 48.
    bytes.extend([96, 0, 0, 0, 16, 0, 48, 0, 0, 0, 0, 0]);
    let header = bytes.len();
    bytes.extend(body);
    let summed = if kind == 0 { header } else { bytes.len() };
    let sum = crc32c::crc32c(&bytes[..summed]);
    bytes[32..36].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Section 13.2.
#[test]
fn bodies_of_packets_hold_at_their_limits() {
    let is_invalid = |bytes: &[u8]| matches!(parse(bytes), Err(PacketError::Invalid(_)));
    // Source packets.
    let source = |seq: u64, len: u16, payload: &[u8]| {
        let summed = [&5u64.to_le_bytes()[..], &seq.to_le_bytes(), &len.to_le_bytes(), payload].concat();
        let sum = crc32c::crc32c(&summed);
        assert_eq!(payload_checksum(5, seq, payload) == sum, usize::from(len) == payload.len());
        packet(0, 1, seq, &[&sum.to_le_bytes()[..], &len.to_le_bytes(), payload].concat())
    };
    let last = (1 << 63) - 1;
    let bytes = source(last, 16, b"sixteen bytes of");
    let (read, body) = parse(&bytes).unwrap();
    assert_eq!(read, parameters(Profile::Bounded, (96, 16, 48)));
    assert!(matches!(body, Body::Source { seq, payload: b"sixteen bytes of", .. } if seq == last));
    assert!(is_invalid(&source(1 << 63, 16, b"sixteen bytes of")));
    assert!(is_invalid(&source(0, 17, b"seventeen bytes, ")));
    assert_eq!(parse(&source(0, 3, b"four")), Err(PacketError::Damaged));
    let mut other = source(0, 4, b"four");
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(parse(&other), Err(PacketError::Damaged));
    // Marks.
    for (flags, end) in [(0, false), (1, true)] {
        let bytes = packet(2, 1, 7, &[flags, 0, 0, 0]);
        assert_eq!(parse(&bytes).unwrap().1, Body::Mark { sent: 7, end });
    }
    assert!(is_invalid(&packet(2, 1, 7, &[2, 0, 0, 0])));
    assert_eq!(parse(&packet(2, 1, 7, &[0; 5])), Err(PacketError::Damaged));
    assert_eq!(parse(&packet(3, 1, 7, &[0; 4])), Err(PacketError::Type(3)));
    // Rows.
    let row = |profile, first: u64, count: u32, part: u32, symbol: usize| {
        let numbers = [&first.to_le_bytes()[..], &count.to_le_bytes(), &part.to_le_bytes()].concat();
        packet(1, profile, 3, &[numbers, vec![9; symbol]].concat())
    };
    let bytes = row(1, 48, 96, 0, 22);
    let expected = Body::Repair { row: 3, first: 48, count: 96, part: 0, symbol: &[9; 22] };
    assert_eq!(parse(&bytes).unwrap().1, expected);
    assert!(parse(&row(1, 0, 1, 0, 6)).is_ok());
    for symbol in [5, 23] {
        assert_eq!(parse(&row(1, 48, 96, 0, symbol)), Err(PacketError::Damaged));
    }
    assert!(is_invalid(&row(1, 48, 0, 0, 22)) && is_invalid(&row(1, 48, 97, 0, 22)));
    // The last multiple of 48 from which there are 8 packets: 2^63 mod 48 is 32, and first + count < 2^63.
    let first = (1 << 63) - 32;
    assert!(parse(&row(1, first, 31, 0, 22)).is_ok());
    assert!(is_invalid(&row(1, first, 32, 0, 22)));
    for profile in [1, 2, 3] {
        assert!(is_invalid(&row(profile, 47, 1, 0, 22)) && is_invalid(&row(profile, 48, 1, 1, 22)));
    }
    assert!(parse(&row(3, 48, 48, 0, 22)).is_ok());
    assert!(is_invalid(&row(3, 48, 49, 0, 22)));
    // `blocks`: first mod W = 0 or count ≤ D; ⌊part/s⌋ + ⌈count/s⌉ < 256 with s = ⌈count/D⌉.
    assert!(parse(&row(4, 1, 48, 0, 22)).is_ok() && parse(&row(4, 96, 49, 0, 22)).is_ok());
    assert!(is_invalid(&row(4, 48, 49, 0, 22)));
    assert!(parse(&row(4, 0, 48, 207, 22)).is_ok());
    assert!(is_invalid(&row(4, 0, 48, 208, 22)));
    assert!(parse(&row(4, 0, 96, 2 * 207 + 1, 22)).is_ok());
    assert!(is_invalid(&row(4, 0, 96, 2 * 208, 22)));
}
