//! Meta: the small typed list that the root binds (format specification, section 7).

use crate::digest::{Digest, HashKind};
use crate::error::FormatError;

/// The most bytes that meta may have.
pub const MAX_META: usize = 65_536;
/// The most bytes of a name.
pub const MAX_NAME: usize = 255;

const TYPE_NAME: u8 = 2;
const TYPE_SHA256: u8 = 3;
const TYPE_BLAKE3: u8 = 5;
const TYPE_ANNEXES: u8 = 7;
const TYPE_SEAL: u8 = 9;
/// Bytes that bind the annexes of one type.
const BOUND_ANNEX_LEN: usize = 44;

/// Facts about a payload besides its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Meta {
    /// The file's name: raw bytes, one path component.
    pub name: Option<Vec<u8>>,
    /// SHA-256 of the payload, as the writer claims.
    pub sha256: Option<Digest>,
    /// BLAKE3 of the payload, as the writer claims.
    pub blake3: Option<Digest>,
    /// Annexes that are bound to the root, by ascending type. The list may be present and empty.
    pub annexes: Option<Vec<BoundAnnexes>>,
    /// The seal of a sealed payload, which [`seal::Seal`](super::seal::Seal) parses.
    pub seal: Option<Vec<u8>>,
    /// Entries of other odd types: type and value, by ascending type. They have no meaning in this version.
    pub others: Vec<(u8, Vec<u8>)>,
}

/// The data of all annexes of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoundAnnexes {
    /// The annexes' type.
    pub kind: u32,
    /// Bytes of the annexes' data in all.
    pub len: u64,
    /// The plain hash of the annexes' joined data.
    pub digest: Digest,
}

impl Meta {
    /// Meta with a name.
    ///
    /// # Errors
    /// [`FormatError::Meta`] when the name is not one path component of 1–255 bytes.
    pub fn with_name(name: &[u8]) -> Result<Meta, FormatError> {
        check_name(name)?;
        Ok(Meta { name: Some(name.to_vec()), ..Meta::default() })
    }

    /// Parses meta bytes; entries of unknown odd types are kept as they are.
    ///
    /// # Errors
    /// [`FormatError::CriticalMeta`] for an unknown even type, [`FormatError::Meta`] for the rest.
    pub fn parse(bytes: &[u8]) -> Result<Meta, FormatError> {
        check_len(bytes.len())?;
        let mut meta = Meta::default();
        let mut rest = bytes;
        let mut before = None;
        while !rest.is_empty() {
            let [kind, low, high, after @ ..] = rest else {
                return Err(FormatError::Meta("an entry is cut short"));
            };
            let len = usize::from(u16::from_le_bytes([*low, *high]));
            if before.is_some_and(|b| b >= *kind) {
                return Err(FormatError::Meta("the types are not strictly ascending"));
            }
            let value = after.get(..len).ok_or(FormatError::Meta("an entry is longer than the meta"))?;
            match *kind {
                TYPE_NAME => {
                    check_name(value)?;
                    meta.name = Some(value.to_vec());
                }
                TYPE_SHA256 => meta.sha256 = Some(payload_digest(value)?),
                TYPE_BLAKE3 => meta.blake3 = Some(payload_digest(value)?),
                TYPE_ANNEXES => meta.annexes = Some(bound_annexes(value)?),
                // The seal is not checked here: only a key holder needs it, and is told of a broken rule.
                TYPE_SEAL => meta.seal = Some(value.to_vec()),
                even if even % 2 == 0 => return Err(FormatError::CriticalMeta(even)),
                odd => meta.others.push((odd, value.to_vec())),
            }
            before = Some(*kind);
            rest = &after[len..];
        }
        Ok(meta)
    }

    /// Parses a copy of the meta that must have the plain hash `meta_hash`.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] when the hash is another; those of [`Meta::parse`].
    pub fn open(hash: HashKind, meta_hash: &Digest, bytes: &[u8]) -> Result<Meta, FormatError> {
        if hash.digest(bytes) != *meta_hash {
            return Err(FormatError::Damaged("the hash of the meta"));
        }
        Meta::parse(bytes)
    }

    /// The meta bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut entries: Vec<(u8, Vec<u8>)> = self.others.clone();
        let mut entry = |kind: u8, value: &[u8]| entries.push((kind, value.to_vec()));
        self.name.iter().for_each(|name| entry(TYPE_NAME, name));
        self.sha256.iter().for_each(|digest| entry(TYPE_SHA256, digest));
        self.blake3.iter().for_each(|digest| entry(TYPE_BLAKE3, digest));
        if let Some(annexes) = &self.annexes {
            let bytes = |annexes: &BoundAnnexes| {
                [&annexes.kind.to_le_bytes()[..], &annexes.len.to_le_bytes(), &annexes.digest].concat()
            };
            entry(TYPE_ANNEXES, &annexes.iter().flat_map(bytes).collect::<Vec<u8>>());
        }
        self.seal.iter().for_each(|seal| entry(TYPE_SEAL, seal));
        entries.sort_by_key(|(kind, _)| *kind);
        let bytes = |(kind, value): &(u8, Vec<u8>)| {
            [&[*kind][..], &(value.len() as u16).to_le_bytes(), value].concat()
        };
        entries.iter().flat_map(bytes).collect()
    }
}

/// Refuses meta that is too long.
pub(super) fn check_len(len: usize) -> Result<(), FormatError> {
    if len > MAX_META {
        return Err(FormatError::Meta("it is longer than 65,536 bytes"));
    }
    Ok(())
}

fn payload_digest(value: &[u8]) -> Result<Digest, FormatError> {
    value.try_into().map_err(|_| FormatError::Meta("a digest of the payload has 32 bytes"))
}

fn bound_annexes(value: &[u8]) -> Result<Vec<BoundAnnexes>, FormatError> {
    let (entries, rest) = value.as_chunks::<BOUND_ANNEX_LEN>();
    let bound = |entry: &[u8; BOUND_ANNEX_LEN]| BoundAnnexes {
        kind: super::u32_at(entry, 0),
        len: super::u64_at(entry, 4),
        digest: super::array_at(entry, 12),
    };
    let annexes: Vec<BoundAnnexes> = entries.iter().map(bound).collect();
    let is_ascending = annexes.windows(2).all(|pair| pair[0].kind < pair[1].kind);
    if !rest.is_empty() || !is_ascending {
        return Err(FormatError::Meta("the list of annexes is not one of types in ascending order"));
    }
    Ok(annexes)
}

fn check_name(name: &[u8]) -> Result<(), FormatError> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(FormatError::Meta("a name has 1 to 255 bytes"));
    }
    if name.iter().any(|b| matches!(b, b'/' | 0)) || name == b"." || name == b".." {
        return Err(FormatError::Meta("a name is one path component"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_round_trips_and_every_rule_rejects() {
        let meta = Meta::with_name(b"a.tar").unwrap();
        assert_eq!(Meta::parse(&meta.to_bytes()), Ok(meta.clone()));
        assert_eq!(Meta::parse(b""), Ok(Meta::default()));
        let unknown = Meta { others: vec![(1, b"yz".to_vec()), (11, b"x".to_vec())], ..meta.clone() };
        assert_eq!(unknown.to_bytes(), b"\x01\x02\x00yz\x02\x05\x00a.tar\x0b\x01\x00x");
        assert_eq!(Meta::parse(&unknown.to_bytes()), Ok(unknown), "unknown odd types are kept");
        let annexes = [3, 9].map(|kind| BoundAnnexes { kind, len: 7, digest: [kind as u8; 32] });
        let full = Meta {
            name: Some(b"a".to_vec()),
            sha256: Some([1; 32]),
            blake3: Some([2; 32]),
            annexes: Some(annexes.to_vec()),
            seal: Some(b"seal".to_vec()),
            others: Vec::new(),
        };
        assert_eq!(Meta::parse(&full.to_bytes()), Ok(full));
        // An empty list of annexes breaks no rule, and repairs write it again.
        let no_annexes = Meta { annexes: Some(Vec::new()), ..Meta::default() };
        assert_eq!(
            (Meta::parse(b"\x07\x00\x00"), &no_annexes.to_bytes()[..]),
            (Ok(no_annexes.clone()), &b"\x07\x00\x00"[..])
        );
        assert_eq!(Meta::parse(b"\x04\x00\x00"), Err(FormatError::CriticalMeta(4)));
        for bad in [
            &b"\x02"[..],
            b"\x02\x01",
            b"\x02\x00\x00",
            b"\x02\x02\x00a",
            b"\x02\x01\x00ax",
            b"\x09\x00\x00\x02\x01\x00a",
            b"\x03\x00\x00",
            b"\x05\x01\x00a",
            b"\x07\x01\x00a",
            b"\x02\x01\x00a\x02\x01\x00a",
            b"\x02\x01\x00/",
            b"\x02\x01\x00\0",
            b"\x02\x01\x00.",
            b"\x02\x02\x00..",
        ] {
            assert!(matches!(Meta::parse(bad), Err(FormatError::Meta(_))), "{bad:?}");
        }
        let longest = Meta::with_name(&[b'n'; 255]).unwrap();
        assert!(Meta::parse(&longest.to_bytes()).is_ok());
        assert!(Meta::with_name(&[b'n'; 256]).is_err());
    }
}
