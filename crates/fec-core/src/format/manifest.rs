//! Manifest: the list of the segments of a payload that stands in stores (format specification, section 18).

use super::meta::{MAX_META, Meta};
use super::shard_file::{Encoding, HEADER_LEN, ShardHeader};
use super::{array_at, check_start, checksum, is_zero, u32_at, u64_at};
use crate::block::Code;
use crate::digest::{Digest, HashKind};
use crate::error::FormatError;

/// The first eight bytes of a manifest.
pub const MAGIC: [u8; 8] = *b"\x89fecL\r\n\x1a";
/// The most bytes of a manifest.
pub const MAX_MANIFEST: usize = 16 << 20;
/// The most targets that a manifest names.
pub const MAX_TARGETS: usize = 1024;
/// The most bytes of a target's URL, and of its domain.
pub const MAX_TEXT: usize = 2048;

/// Bytes in front of the segments.
const FRONT: usize = 64;
/// The form of the segments.
const SHARD_FILES: u8 = 1;

/// The segments of a payload, each an encoding of its own, and the stores that got their shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The hash of its root, and of all segments.
    pub hash: HashKind,
    /// k and m of all segments.
    pub code: Code,
    /// Payload bytes of every segment but the last.
    pub segment_len: u64,
    /// The segments, in the order of the payload; at least one.
    pub segments: Vec<Encoding>,
    /// Facts about the payload: its name.
    pub meta: Meta,
    /// The stores that got the shards. They are hints, since a repair may change them.
    pub targets: Vec<ManifestTarget>,
}

/// A store that shards were sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestTarget {
    /// Its URL, or its path.
    pub url: String,
    /// The failure domain: targets of one domain fail together.
    pub domain: String,
}

impl ManifestTarget {
    /// Tells whether a manifest may name this target: 1 to [`MAX_TEXT`] bytes each, without control characters.
    pub fn is_plain(&self) -> bool {
        is_plain(&self.url) && is_plain(&self.domain)
    }
}

fn is_plain(text: &str) -> bool {
    (1..=MAX_TEXT).contains(&text.len()) && !text.chars().any(char::is_control)
}

impl Manifest {
    /// Bytes of the payload.
    pub fn payload_len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.geometry.payload_len()).sum()
    }

    /// Start of a segment in the payload, in bytes.
    pub fn segment_start(&self, segment: usize) -> u64 {
        segment as u64 * self.segment_len
    }

    /// The most segments that fit a manifest with this meta and these targets.
    pub fn most_segments(meta: &Meta, targets: &[ManifestTarget]) -> u64 {
        let texts: usize = targets.iter().map(|target| 4 + target.url.len() + target.domain.len()).sum();
        let rest = FRONT + meta.to_bytes().len() + texts;
        (MAX_MANIFEST.saturating_sub(rest) / HEADER_LEN) as u64
    }

    /// Its root: the plain hash of its bytes.
    pub fn root(&self) -> Digest {
        self.hash.digest(&self.to_bytes())
    }

    /// The manifest's bytes; opening them under its root gives this manifest again.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; FRONT];
        let meta = self.meta.to_bytes();
        for encoding in &self.segments {
            out.extend_from_slice(&ShardHeader { index: 0, encoding: *encoding }.to_bytes());
        }
        out.extend_from_slice(&meta);
        for text in self.targets.iter().flat_map(|target| [&target.url, &target.domain]) {
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        let len = out.len() as u32;
        out[..8].copy_from_slice(&MAGIC);
        out[16..20].copy_from_slice(&len.to_le_bytes());
        out[20..24].copy_from_slice(&(self.segments.len() as u32).to_le_bytes());
        out[24..32].copy_from_slice(&self.segment_len.to_le_bytes());
        out[32..36].copy_from_slice(&[1, self.hash.number(), SHARD_FILES, 0]);
        out[36..38].copy_from_slice(&(self.code.k() as u16).to_le_bytes());
        out[38..40].copy_from_slice(&(self.code.m() as u16).to_le_bytes());
        out[40..48].copy_from_slice(&self.payload_len().to_le_bytes());
        out[48..52].copy_from_slice(&(self.targets.len() as u32).to_le_bytes());
        out[52..56].copy_from_slice(&(meta.len() as u32).to_le_bytes());
        let sum = checksum(&out);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Takes the bytes of the manifest whose root is `root`.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] when the bytes have another root; the first rule of section 18 that they break.
    pub fn open(root: &Digest, bytes: &[u8]) -> Result<Manifest, FormatError> {
        let hash = bytes.get(33).and_then(|number| HashKind::from_number(*number));
        if bytes.len() > MAX_MANIFEST || hash.is_none_or(|hash| hash.digest(bytes) != *root) {
            return Err(FormatError::Damaged("the root of the manifest"));
        }
        Manifest::parse(bytes)
    }

    /// Parses bytes, whatever their root. Total: any bytes give a manifest or an error.
    ///
    /// # Errors
    /// The first rule of section 18 that they break.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, FormatError> {
        let damaged = FormatError::Damaged("the length of the manifest");
        if bytes.len() < FRONT {
            return Err(damaged);
        }
        check_start(bytes, &MAGIC)?;
        if bytes.len() > MAX_MANIFEST || u32_at(bytes, 16) as usize != bytes.len() {
            return Err(damaged);
        }
        if u32_at(bytes, 8) != checksum(bytes) {
            return Err(FormatError::Checksum("the manifest"));
        }
        let invalid = FormatError::Manifest;
        let hash = HashKind::from_number(bytes[33]).ok_or(FormatError::Hash(bytes[33]))?;
        if bytes[34] != SHARD_FILES {
            return Err(FormatError::Form(bytes[34]));
        }
        if bytes[35] != 0 {
            return Err(FormatError::Flags(bytes[35]));
        }
        if !is_zero(&bytes[12..16]) || !is_zero(&bytes[56..FRONT]) {
            return Err(invalid("a zero field is not zero"));
        }
        let (k, m) = (usize::from(u16_at(bytes, 36)), usize::from(u16_at(bytes, 38)));
        let code = Code::new(k, m).map_err(|_| invalid("no code has so many shards"))?;
        let (segments, targets, meta) = (u32_at(bytes, 20), u32_at(bytes, 48), u32_at(bytes, 52));
        let mut rest = &bytes[FRONT..];
        if segments == 0 || rest.len() / HEADER_LEN < segments as usize {
            return Err(invalid("the number of segments"));
        }
        let segment_len = u64_at(bytes, 24);
        let headers = take(&mut rest, segments as usize * HEADER_LEN)?;
        let segments = parse_segments(headers, hash, code, segment_len)?;
        let payload_len = segments
            .iter()
            .try_fold(0u64, |sum, segment| sum.checked_add(segment.geometry.payload_len()))
            .filter(|sum| *sum < crate::params::MAX_PAYLOAD)
            .ok_or(invalid("the length of the payload"))?;
        if segment_len == 0 || payload_len != u64_at(bytes, 40) {
            return Err(invalid("the length of the payload"));
        }
        if meta as usize > MAX_META {
            return Err(invalid("the length of the meta"));
        }
        let meta = Meta::parse(take(&mut rest, meta as usize)?)?;
        if targets as usize > MAX_TARGETS {
            return Err(invalid("the number of targets"));
        }
        let targets = (0..targets)
            .map(|_| Ok(ManifestTarget { url: take_text(&mut rest)?, domain: take_text(&mut rest)? }))
            .collect::<Result<Vec<_>, FormatError>>()?;
        if !rest.is_empty() {
            return Err(invalid("bytes behind its end"));
        }
        Ok(Manifest { hash, code, segment_len, segments, meta, targets })
    }
}

/// Parses the headers of segments of `segment_len` bytes, which share hash and code; the last may be shorter.
fn parse_segments(
    headers: &[u8],
    hash: HashKind,
    code: Code,
    segment_len: u64,
) -> Result<Vec<Encoding>, FormatError> {
    let invalid = FormatError::Manifest;
    let (headers, _) = headers.as_chunks::<HEADER_LEN>();
    let parse = |(nth, header): (usize, &[u8; HEADER_LEN])| {
        let header = ShardHeader::parse(header)?;
        let shape = header.encoding.geometry.shape();
        let len = header.encoding.geometry.payload_len();
        let is_last = nth + 1 == headers.len();
        if header.index != 0 || shape.hash != hash || shape.code != code {
            return Err(invalid("a segment has another index, hash or code"));
        }
        // A segment of no bytes belongs to a payload of no bytes only.
        if len > segment_len || (len < segment_len && !is_last) || (len == 0 && headers.len() > 1) {
            return Err(invalid("the length of a segment"));
        }
        Ok(header.encoding)
    };
    headers.iter().enumerate().map(parse).collect()
}

/// Takes a text with its length from the front.
fn take_text(rest: &mut &[u8]) -> Result<String, FormatError> {
    let len = usize::from(u16_at(take(rest, 2)?, 0));
    let text = std::str::from_utf8(take(rest, len)?).ok().filter(|text| is_plain(text));
    text.map(str::to_owned).ok_or(FormatError::Manifest("a target or domain is no plain text"))
}

/// Takes bytes from the front.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], FormatError> {
    let (front, behind) = rest.split_at_checked(len).ok_or(FormatError::Manifest("it is cut short"))?;
    *rest = behind;
    Ok(front)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Form, GroupGeometry};

    fn manifest(lens: &[u64], segment_len: u64) -> Manifest {
        let (hash, code) = (HashKind::Blake3, Code::new(3, 2).expect("a code"));
        let segments = lens.iter().map(|len| {
            let geometry = GroupGeometry::whole(Form::Shards, hash, code, 1 << 20, *len).expect("a geometry");
            Encoding::new(geometry, [7; 32], b"")
        });
        let target =
            |nth: usize| ManifestTarget { url: format!("s3://bucket-{nth}/x"), domain: format!("d{nth}") };
        Manifest {
            hash,
            code,
            segment_len,
            segments: segments.collect(),
            meta: Meta::with_name(b"letters.tar").expect("a name"),
            targets: (0..3).map(target).collect(),
        }
    }

    #[test]
    fn manifests_come_back_and_nothing_else_opens() {
        for (lens, segment_len) in
            [(&[10_000, 10_000, 77][..], 10_000), (&[10_000], 10_000), (&[0], 1 << 30), (&[5], 1 << 30)]
        {
            let manifest = manifest(lens, segment_len);
            let (bytes, root) = (manifest.to_bytes(), manifest.root());
            assert_eq!(Manifest::open(&root, &bytes), Ok(manifest.clone()));
            let room = Manifest::most_segments(&manifest.meta, &manifest.targets) as usize - lens.len();
            assert!((0..HEADER_LEN).contains(&(MAX_MANIFEST - bytes.len() - room * HEADER_LEN)));
            assert_eq!(manifest.payload_len(), lens.iter().sum::<u64>());
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << (at % 8);
                assert!(Manifest::open(&root, &changed).is_err(), "byte {at}");
                // With a new checksum, the bytes break a rule or change a field that may vary.
                let sum = checksum(&changed);
                changed[8..12].copy_from_slice(&sum.to_le_bytes());
                if let Ok(other) = Manifest::parse(&changed) {
                    assert_eq!(other.to_bytes(), changed, "byte {at}");
                }
            }
            for len in 0..bytes.len() {
                assert!(Manifest::parse(&bytes[..len]).is_err());
            }
        }
    }

    #[test]
    fn rules_of_segments() {
        let parsed = |manifest: &Manifest| Manifest::parse(&manifest.to_bytes());
        for (lens, segment_len) in [
            (&[10_000, 77, 10_000][..], 10_000),
            (&[10_000, 10_001], 10_000),
            (&[10_000, 0], 10_000),
            (&[10_001], 10_000),
            (&[0], 0),
            (&[], 10_000),
        ] {
            assert!(
                matches!(parsed(&manifest(lens, segment_len)), Err(FormatError::Manifest(_))),
                "{lens:?}"
            );
        }
        let mut other = manifest(&[10_000, 50], 10_000);
        other.code = Code::new(3, 3).expect("a code");
        assert!(parsed(&other).is_err());
        let mut other = manifest(&[10_000, 50], 10_000);
        other.targets[1].domain = "a\nb".into();
        assert!(parsed(&other).is_err());
    }
}
