//! The rules of geometries at their limits.

use super::*;

fn code(k: usize, m: usize) -> Code {
    Code::new(k, m).unwrap()
}

#[test]
fn default_shapes_are_those_of_the_specification() {
    for (k, m, sets) in [(33, 67, 3), (86, 14, 10)] {
        let size = default_set_size(code(k, m), None);
        assert_eq!(size, 4 << 20);
        let layout = ContainerLayout::new(HashKind::Blake3, code(k, m), size, None).unwrap();
        assert_eq!(layout.shape().sets, sets, "{k}+{m}");
    }
    assert_eq!(default_set_size(code(1, 255), None), 65_536);
    // Sets grow from 4 TiB on, as long as they fit the memory of readers.
    assert_eq!(default_set_size(code(33, 67), Some(1 << 42)), 4 << 20);
    assert_eq!(default_set_size(code(33, 67), Some(5 << 40)), 8 << 20);
    assert_eq!(default_set_size(code(33, 67), Some(1 << 60)), 8 << 20);
    assert_eq!(default_set_size(code(86, 14), Some(1 << 60)), 32 << 20);
    // 2^20 sets are not too many.
    assert_eq!(default_set_size(code(64, 64), Some(1 << 42)), 4 << 20);
    assert_eq!(default_set_size(code(64, 64), Some((1 << 42) + 1)), 8 << 20);
}

/// Section 4: bit 4 of the flags, at offset 3, says so. Readers ignore the bits above it, and keep them.
#[test]
fn a_sealed_group_has_bit_4_of_the_flags() {
    let hash = HashKind::Blake3;
    let plain = GroupGeometry::whole(Form::Shards, hash, code(2, 1), 8192, 1000).unwrap();
    for high in 0u8..16 {
        let mut bytes = plain.to_bytes();
        bytes[3] = high << 4 | 1;
        let read = GroupGeometry::parse(&bytes, Form::Shards).unwrap();
        assert_eq!(read.shape().is_sealed(), high % 2 == 1);
        assert_eq!(read.sealed().to_bytes()[3], (high | 1) << 4 | 1);
    }
    let layout = ContainerLayout::new(hash, code(2, 1), 8192, None).unwrap();
    assert!(layout.sealed().shape().is_sealed() && !layout.shape().is_sealed());
}

#[test]
fn forms_have_names_and_numbers() {
    for (form, name, number) in
        [(Form::Shards, "shards", 1), (Form::Container, "container", 2), (Form::Sidecar, "sidecar", 3)]
    {
        let group = GroupGeometry::whole(form, HashKind::Blake3, code(2, 1), 8192, 1000).unwrap();
        assert_eq!((form.name(), group.to_bytes()[2]), (name, number));
    }
}

/// A geometry block with these fields, of BLAKE3 and 2+1.
fn block(form: u8, flags: u8, (shard_len, sets): (u32, u32), payload_len: u64, tail: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&[1, 1, form, flags, 2, 0, 1, 0]);
    bytes[8..12].copy_from_slice(&shard_len.to_le_bytes());
    bytes[12..16].copy_from_slice(&sets.to_le_bytes());
    bytes[16..24].copy_from_slice(&payload_len.to_le_bytes());
    bytes[24..].copy_from_slice(&tail.to_le_bytes());
    bytes
}

/// Section 4.3: ⌈100,000 / 8192⌉ sets, and shards of 64·⌈100,000 / (64·2·13)⌉ bytes.
#[test]
fn what_a_group_holds() {
    let hash = HashKind::Blake3;
    let group = GroupGeometry::whole(Form::Container, hash, code(2, 1), 8192, 100_000).unwrap();
    let shape = group.shape();
    assert_eq!((shape.sets, shape.shard_len), (13, 3904));
    assert_eq!((shape.capacity(), shape.set_bytes()), (2 * 13 * 3904, 3 * 3904));
    assert_eq!((group.number(), group.is_last()), (0, true));
    // Section 5: the shards lie in the payload by their index, and those of one index by their set.
    assert_eq!(group.shard_offset(3, 1), (13 + 3) * 3904);
    assert_eq!((group.shard_payload(0, 0), group.shard_payload(12, 1)), (3904, 100_000 - 25 * 3904));
    let full = ContainerLayout::new(hash, code(2, 1), 8192, Some(1)).unwrap().group(5, 8192, false);
    assert_eq!((full.number(), full.is_last()), (5, false));
    assert_eq!(full.with_number(7).to_bytes(), block(2, 0, (4096, 1), 8192, 7));
}

/// Section 4.1, rule by rule: values at the limit pass, and values one beyond it do not.
#[test]
fn rules_of_groups_hold_at_their_limits() {
    let parse = |bytes| GroupGeometry::parse(&bytes, Form::Container);
    let refused = |what: &'static str, value: u64, limit: u64| {
        Err(FormatError::Limit { what, value: value.into(), limit: limit.into() })
    };
    let invalid = |why| Err(FormatError::NotCanonical(why));
    // 2. Payload bytes and g.
    let long = block(2, 1, (64, 1), 1 << 63, 0);
    assert_eq!(parse(long), refused("the payload length", 1 << 63, (1 << 63) - 1));
    assert!(parse(block(2, 0, (4096, 1), 8192, (1 << 32) - 2)).is_ok());
    let beyond = block(2, 0, (4096, 1), 8192, (1 << 32) - 1);
    assert_eq!(parse(beyond), refused("the number of groups", (1 << 32) - 1, (1 << 32) - 2));
    // 3. L.
    let odd = block(2, 0, (4097, 1), 2 * 4097, 0);
    assert_eq!(parse(odd), invalid("the shard length is not a multiple of 64"));
    // 4. Two sets of 8192 bytes are enough, and three are too many.
    assert!(parse(block(2, 1, (4096, 2), 16_384, 0)).is_ok());
    assert_eq!(parse(block(2, 1, (2752, 3), 16_384, 0)), invalid("more sets than the payload needs"));
    // 6. L ≥ 4096 before the last group.
    let short = block(2, 0, (4032, 1), 2 * 4032, 0);
    assert_eq!(parse(short), invalid("the shards of a group before the last are too short"));
    // Shard files have one group: g = 0 and the last flag.
    let parse = |bytes| GroupGeometry::parse(&bytes, Form::Shards);
    let one = invalid("shard files and sidecars have one group");
    assert!(parse(block(1, 1, (4096, 1), 8192, 0)).is_ok());
    assert_eq!(parse(block(1, 0, (4096, 1), 8192, 0)), one);
    assert_eq!(parse(block(1, 1, (4096, 1), 8192, 1)), one);
    // A writer does not make what a reader refuses.
    let whole = GroupGeometry::whole(Form::Shards, HashKind::Blake3, code(128, 1), 1 << 33, 1 << 63);
    assert_eq!(whole, refused("the payload length", 1 << 63, (1 << 63) - 1));
}

/// Section 4.1, rules 3 and 5, and section 4.2.
#[test]
fn rules_of_payloads_hold_at_their_limits() {
    let parse = |shape, payload_len, groups| FileGeometry::parse(&block(2, 0, shape, payload_len, groups));
    let is_wrong = |parsed| matches!(parsed, Err(FormatError::NotCanonical(_)));
    assert_eq!(parse((64, 1), 0, 0), Err(FormatError::NotCanonical("there are no groups")));
    assert!(is_wrong(parse((4032, 1), 2 * 8064, 2)), "shards are too short");
    // C is 8192, and N is 3.
    assert!(is_wrong(parse((4096, 1), 16_384, 3)) && is_wrong(parse((4096, 1), 24_577, 3)));
    let p = parse((4096, 1), 16_385, 3).unwrap();
    assert!(parse((4096, 1), 24_576, 3).is_ok());
    assert_eq!(p.group(1).to_bytes(), block(2, 0, (4096, 1), 8192, 1));
    assert_eq!(p.group(2).to_bytes(), block(2, 1, (64, 1), 1, 2));
    // With N = 1, the group has P's L and G, though fewer sets of this L would do.
    let p = parse((5440, 93), 1_000_000, 1).unwrap();
    assert_eq!(p.group(0).to_bytes(), block(2, 1, (5440, 93), 1_000_000, 0));
}

#[test]
fn a_chain_ends_with_the_group_that_its_payload_implies() {
    let layout =
        |k, set_size, sets| ContainerLayout::new(HashKind::Blake3, code(k, 1), set_size, Some(sets)).unwrap();
    let small = layout(2, 8192, 1);
    let is_wrong = |p| matches!(p, Err(FormatError::NotCanonical(_)));
    assert!(small.file(&small.group(1, 8192, true)).is_ok());
    assert!(is_wrong(small.file(&small.sealed().group(1, 8192, true))), "the flags are others");
    assert!(
        is_wrong(small.file(&layout(2, 8192, 2).group(1, 8193, true))),
        "it is longer than the one before"
    );
    // 2^23 groups of 2^40 bytes are one byte too many.
    let large = layout(128, 128 * 4096, 1 << 21);
    let end = |payload_len| large.file(&large.group((1 << 23) - 1, payload_len, true));
    assert_eq!(end((1 << 40) - 1).unwrap().payload_len(), (1 << 63) - 1);
    assert!(is_wrong(end(1 << 40)));
}

#[test]
fn what_a_writer_picks_a_reader_accepts() {
    let hash = HashKind::Blake3;
    for (k, m) in [(1, 0), (1, 1), (2, 1), (10, 4), (33, 67), (86, 14), (200, 56), (1, 255)] {
        let short = SHORT_SHARD * k as u64;
        for set_size in [short - 63, short, short + 1, 3 * short] {
            for b in [0, 1, short - 1, short, short + 1, 2 * short, 5 * short - 7, 7 * short, 9 * short + 64]
            {
                for form in [Form::Shards, Form::Container] {
                    let whole = GroupGeometry::whole(form, hash, code(k, m), set_size, b).unwrap();
                    assert_eq!(GroupGeometry::parse(&whole.to_bytes(), form), Ok(whole));
                }
                for group_sets in [None, Some(1), Some(3)] {
                    let layout = ContainerLayout::new(hash, code(k, m), set_size, group_sets).unwrap();
                    let piece = layout.piece_len();
                    let count = b.div_ceil(piece).max(1);
                    let mut last = None;
                    for g in 0..count {
                        let len = (b - g * piece).min(piece);
                        let pg = layout.group(g as u32, len, g + 1 == count);
                        assert_eq!(GroupGeometry::parse(&pg.to_bytes(), Form::Container), Ok(pg));
                        last = Some(pg);
                    }
                    let p = layout.file(&last.unwrap()).unwrap();
                    assert_eq!(FileGeometry::parse(&p.to_bytes()), Ok(p));
                    assert_eq!(p.group(count as u32 - 1), last.unwrap());
                    assert_eq!(p.payload_len(), b);
                }
            }
        }
        let small = GroupGeometry::whole(Form::Shards, hash, code(k, m), short - 64 * k as u64, 1 << 20);
        assert_eq!(small, Err(FormatError::SmallSet { least: short }));
    }
}

#[test]
fn lengths_to_2_64_neither_overflow_nor_pass() {
    let p = GroupGeometry::whole(Form::Shards, HashKind::Blake3, code(2, 1), 8192, 1000).unwrap();
    for field in [8..12, 12..16, 16..24, 24..32] {
        let mut bytes = p.to_bytes();
        bytes[field.clone()].fill(0xff);
        assert!(GroupGeometry::parse(&bytes, Form::Shards).is_err(), "{field:?}");
        bytes[2] = 2;
        assert!(GroupGeometry::parse(&bytes, Form::Container).is_err(), "{field:?}");
        bytes[3] = 0;
        assert!(GroupGeometry::parse(&bytes, Form::Container).is_err(), "{field:?}");
        assert!(FileGeometry::parse(&bytes).is_err(), "{field:?}");
    }
    // k·G·L is 2^66 and 0 modulo 2^64: no payload.
    let mut bytes = p.to_bytes();
    bytes[2..4].copy_from_slice(&[2, 0]);
    bytes[4..8].copy_from_slice(&[0, 1, 0, 0]);
    bytes[8..12].copy_from_slice(&(1u32 << 26).to_le_bytes());
    bytes[12..16].copy_from_slice(&(1u32 << 31).to_le_bytes());
    bytes[16..24].fill(0);
    assert!(GroupGeometry::parse(&bytes, Form::Container).is_err());
}
