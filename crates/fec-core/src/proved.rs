//! Shards that prove themselves, in three calls, for protocols of one's own: whoever has the root tells an intact shard
//! from any other bytes, and restores the payload from any k of them.
//!
//! ```
//! use fec_core::{Root, encode_proved};
//!
//! let payload = b"the only copy of something";
//! let (root, shards) = encode_proved(3, 2, payload)?;
//! // The root goes a way that is trusted, as bytes or as text; the shards go any way.
//! let root: Root = root.to_string().parse()?;
//!
//! let mut received = shards[2..].to_vec();
//! assert_eq!(root.check(&received[0].shard, &received[0].proof)?, 2);
//! assert_eq!(root.decode(&received)?, payload);
//! received[1].shard[0] ^= 1;
//! assert!(root.check(&received[1].shard, &received[1].proof).is_err());
//! assert!(root.decode(&received).is_err(), "two are left, and three are needed");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The payload is one set. A proof is the header of a shard file without meta and, behind it, the shard's path (format
//! specification, sections 6.1 and 8), so a shard file of a single set can be cut into both. Payloads beyond memory
//! take [`set`](crate::set), and files and streams the crate `fecfile`.

use crate::block::{Code, CodeError, ShardBuf};
use crate::digest::{Digest, HashKind};
use crate::error::FormatError;
use crate::format::shard_file::{Encoding, HEADER_LEN, ShardHeader};
use crate::gf256::kernel::Backend;
use crate::params::{Form, GroupGeometry, SHORT_SHARD};
use crate::set::{EncodedSet, PlanCache, Run, SetDecoder, SetEncoder, SetError, shard_is_proved};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A root: 32 bytes that name exactly one encoding of exactly one payload. As text it is 64 hexadecimal digits; small
/// and capital ones are read, small ones written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root(pub Digest);

impl From<Digest> for Root {
    fn from(root: Digest) -> Root {
        Root(root)
    }
}

impl From<Root> for Digest {
    fn from(root: Root) -> Digest {
        root.0
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root({self})")
    }
}

/// Text that is no root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a root is 64 hexadecimal digits")]
pub struct NoRoot;

impl FromStr for Root {
    type Err = NoRoot;

    /// # Errors
    /// [`NoRoot`] for anything but 64 hexadecimal digits; white space around them is refused too.
    fn from_str(text: &str) -> Result<Root, NoRoot> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8).ok_or(NoRoot);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut root = [0; 32];
        if pairs.len() != root.len() || !rest.is_empty() {
            return Err(NoRoot);
        }
        for (byte, [high, low]) in root.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Root(root))
    }
}

/// A shard and what proves it to whoever has the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedShard {
    /// The shard: a multiple of 64 bytes, as many in all shards of a payload.
    pub shard: Vec<u8>,
    /// The proof: 192 bytes, and 32 for each level of the set's tree; 224 to 480 in all.
    pub proof: Vec<u8>,
}

/// The reason why a payload is not encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// There is no such code: k is 0, or k + m is more than 256.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The payload is too long for a single set: it has more than k times 64 MiB.
    #[error(transparent)]
    TooLong(#[from] FormatError),
}

/// The reason why bytes are not a shard under a root, or do not restore its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The proof is damaged, or none of this kind.
    #[error("the proof is damaged")]
    Proof,
    /// The proof is of another root.
    #[error("the proof is of another root")]
    OtherRoot,
    /// The shard is damaged, or belongs to another proof.
    #[error("the shard is not the one of its proof")]
    Shard,
    /// Too few intact shards, or the root is of shards that are no codeword.
    #[error(transparent)]
    Set(#[from] SetError),
}

/// Encodes a payload of up to k · 64 MiB to k + m shards, with BLAKE3: any k of them restore it.
///
/// Shard i is part i of the payload for i < k, padded with zeros, and a recovery shard from k on. The same payload, k
/// and m give the same bytes everywhere.
///
/// Cost: memory for k + m shards of ⌈length / k⌉ bytes, and the work of [`encode`](crate::encode) and of one hash over
/// all of it.
///
/// # Errors
/// [`EncodeError::Code`], [`EncodeError::TooLong`].
pub fn encode_proved(k: usize, m: usize, payload: &[u8]) -> Result<(Root, Vec<ProvedShard>), EncodeError> {
    let (code, hash) = (Code::new(k, m)?, HashKind::Blake3);
    let set_size = (payload.len() as u64).max(SHORT_SHARD * k as u64);
    let geometry = GroupGeometry::whole(Form::Shards, hash, code, set_size, payload.len() as u64)?;
    let shape = geometry.shape();
    let mut originals = ShardBuf::new(k, shape.shard_len);
    for (row, bytes) in originals.iter_mut().zip(payload.chunks(shape.shard_len)) {
        row[..bytes.len()].copy_from_slice(bytes);
    }
    let mut encoded = EncodedSet::new(shape);
    let rows: Vec<&[u8]> = originals.iter().collect();
    // The tree over a single set is its root.
    let tree = SetEncoder::new(code, hash, Backend::best()).encode(0, &rows, &mut encoded, Run::default());
    let encoding = Encoding::new(geometry, tree, &[]);
    let proved = |(index, shard): (usize, &[u8])| {
        let mut proof = ShardHeader { index: index as u32, encoding }.to_bytes().to_vec();
        proof.resize(HEADER_LEN + shape.proof_len(), 0);
        encoded.write_path(index, &mut proof[HEADER_LEN..]);
        ProvedShard { shard: shard.to_vec(), proof }
    };
    let shards = originals.iter().chain(encoded.recovery().iter()).enumerate().map(proved).collect();
    Ok((Root(encoding.root), shards))
}

impl Root {
    /// Tells whether `shard` is a shard under this root, by its proof. Returns its index: below k it is an original.
    ///
    /// Cost: one hash of the shard, and of a path.
    ///
    /// # Errors
    /// [`ProofError::Proof`], [`ProofError::OtherRoot`], [`ProofError::Shard`].
    pub fn check(&self, shard: &[u8], proof: &[u8]) -> Result<u32, ProofError> {
        let (header, path) = self.header(shard, proof)?;
        let Encoding { geometry, tree, .. } = &header.encoding;
        match shard_is_proved(geometry, tree, 0, header.index, shard, path) {
            true => Ok(header.index),
            false => Err(ProofError::Shard),
        }
    }

    /// The header in a proof and the path behind it, if they are of this root and of a shard of this length.
    fn header<'p>(&self, shard: &[u8], proof: &'p [u8]) -> Result<(ShardHeader, &'p [u8]), ProofError> {
        let (header, path) = proof.split_first_chunk::<HEADER_LEN>().ok_or(ProofError::Proof)?;
        let header = ShardHeader::parse(header).map_err(|_| ProofError::Proof)?;
        let shape = header.encoding.geometry.shape();
        if header.encoding.root != self.0 {
            return Err(ProofError::OtherRoot);
        }
        if shape.sets != 1 || header.encoding.meta_len != 0 || path.len() != shape.proof_len() {
            return Err(ProofError::Proof);
        }
        if shard.len() != shape.shard_len { Err(ProofError::Shard) } else { Ok((header, path)) }
    }

    /// Restores the payload from any k intact shards under this root. Others do no harm, and neither does an order or a
    /// shard that comes twice. The payload that was encoded comes out, or an error.
    ///
    /// Cost: one hash of k shards, decoding as in [`decode`](crate::decode), and memory for twice the shards that are
    /// used.
    ///
    /// # Errors
    /// [`ProofError::Set`]: fewer than k are intact, or whoever made the root cheated. With no shard under this root
    /// at all, what is wrong with the last one; [`ProofError::Proof`] if there is none.
    pub fn decode<'s>(
        &self,
        shards: impl IntoIterator<Item = &'s ProvedShard>,
    ) -> Result<Vec<u8>, ProofError> {
        let mut wrong = ProofError::Proof;
        let mut found = Vec::new();
        for ProvedShard { shard, proof } in shards {
            match self.header(shard, proof) {
                Ok((header, path)) => found.push((header, &shard[..], path)),
                Err(error) => wrong = error,
            }
        }
        // The root binds all that headers share.
        let encoding = found.first().ok_or(wrong)?.0.encoding;
        let (geometry, k) = (&encoding.geometry, encoding.geometry.shape().code.k());
        // Memory for k shards is taken when as many bytes are there.
        if found.len() < k {
            let is_intact = |(header, shard, path): &(ShardHeader, &[u8], &[u8])| {
                shard_is_proved(geometry, &encoding.tree, 0, header.index, shard, path)
            };
            let intact: BTreeSet<u32> =
                found.iter().filter(|found| is_intact(found)).map(|found| found.0.index).collect();
            return Err(SetError::TooFew { intact: intact.len(), needed: k }.into());
        }
        let mut decoder = SetDecoder::for_payload(geometry.shape());
        let mut reading = decoder.begin(geometry, &encoding.tree, 0);
        for (header, shard, path) in found {
            if reading.intact() < k && !reading.is_intact(header.index) {
                reading.slot(header.index).copy_from_slice(shard);
                reading.check(header.index, &[path], Run::default());
            }
        }
        let decoded = reading.decode(&PlanCache::new(Backend::best()), Run::default());
        let decoded = decoded.map_err(SetError::from)?;
        Ok(decoded.payload().flat_map(|(_, bytes)| bytes).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    /// Payloads of any length, from every choice of k shards, in any order, with a shard that comes twice.
    #[test]
    fn any_k_shards_restore_the_payload_and_fewer_do_not() {
        for len in [0, 1, 63, 64, 192, 193, 10_000] {
            let payload = payload(len);
            let (root, shards) = encode_proved(3, 2, &payload).unwrap();
            for (index, ProvedShard { shard, proof }) in shards.iter().enumerate() {
                assert_eq!(root.check(shard, proof), Ok(index as u32));
            }
            for chosen in 0..1u32 << 5 {
                let mut some: Vec<&ProvedShard> =
                    shards.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, s)| s).collect();
                some.reverse();
                some.extend(some.first().copied());
                let intact = chosen.count_ones() as usize;
                let expected = match intact {
                    0 => Err(ProofError::Proof),
                    1 | 2 => Err(SetError::TooFew { intact, needed: 3 }.into()),
                    _ => Ok(payload.clone()),
                };
                assert_eq!(root.decode(some), expected, "{len} bytes, shards {chosen:b}");
            }
        }
    }

    #[test]
    fn codes_of_all_sizes_have_proofs_and_what_cannot_be_is_refused() {
        for (k, m) in [(1, 0), (1, 255), (256, 0), (33, 67), (128, 128)] {
            let payload = payload(20_000);
            let (root, shards) = encode_proved(k, m, &payload).unwrap();
            assert_eq!(shards.len(), k + m);
            assert!(shards.iter().all(|shard| (224..=480).contains(&shard.proof.len())));
            assert_eq!(root.decode(&shards[m..]).unwrap(), payload, "{k} + {m}");
        }
        assert!(matches!(encode_proved(0, 1, b""), Err(EncodeError::Code(_))));
        assert!(matches!(encode_proved(200, 57, b""), Err(EncodeError::Code(_))));
    }

    #[test]
    fn a_payload_of_more_than_a_set_is_refused() {
        let most = vec![0; (64 << 20) + 1];
        assert!(matches!(encode_proved(1, 0, &most), Err(EncodeError::TooLong(_))));
        assert!(encode_proved(1, 0, &most[1..]).is_ok());
    }

    /// No bit of a shard or a proof counts for nothing.
    #[test]
    fn every_bit_counts() {
        let (root, shards) = encode_proved(3, 2, &payload(100)).unwrap();
        for ProvedShard { shard, proof } in &shards {
            for bit in 0..8 * shard.len() {
                let mut shard = shard.clone();
                shard[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(root.check(&shard, proof), Err(ProofError::Shard));
            }
            for bit in 0..8 * proof.len() {
                let mut proof = proof.clone();
                proof[bit / 8] ^= 1 << (bit % 8);
                assert!(root.check(shard, &proof).is_err(), "bit {bit} of the proof");
            }
        }
    }

    #[test]
    fn what_belongs_elsewhere_is_told() {
        let (root, shards) = encode_proved(3, 2, &payload(100)).unwrap();
        let (other, others) = encode_proved(3, 2, &payload(101)).unwrap();
        let [first, second] = [&shards[0], &shards[1]];
        assert_eq!(other.check(&first.shard, &first.proof), Err(ProofError::OtherRoot));
        assert_eq!(other.decode(&shards), Err(ProofError::OtherRoot));
        assert_eq!(root.check(&first.shard, &second.proof), Err(ProofError::Shard));
        for len in [0, 191, 192, first.proof.len() - 1] {
            assert_eq!(root.check(&first.shard, &first.proof[..len]), Err(ProofError::Proof), "{len}");
        }
        let longer = [&first.proof[..], &[0; 32]].concat();
        assert_eq!(root.check(&first.shard, &longer), Err(ProofError::Proof));
        for shard in [&first.shard[..63], &[&first.shard[..], &[0]].concat(), &[]] {
            assert_eq!(root.check(shard, &first.proof), Err(ProofError::Shard));
        }
        // Damaged shards and those of others do no harm among enough intact ones.
        let mut damaged = second.clone();
        damaged.shard[0] ^= 1;
        let mixed = others.iter().chain([&damaged]).chain(&shards[2..]);
        assert_eq!(root.decode(mixed).unwrap(), payload(100));
        let few = others.iter().chain([&damaged, &damaged]).chain(&shards[3..]);
        assert_eq!(root.decode(few), Err(SetError::TooFew { intact: 2, needed: 3 }.into()));
    }

    /// The bytes are those of a group of one set (format specification, section 6), and nothing else is a proof.
    #[test]
    fn a_proof_is_a_header_of_one_set_without_meta() {
        let (root, shards) = encode_proved(3, 2, &payload(100)).unwrap();
        let header = ShardHeader::parse(shards[4].proof.first_chunk().unwrap()).unwrap();
        assert_eq!((header.index, header.encoding.root), (4, root.0));
        let Encoding { geometry, tree, meta_hash, .. } = header.encoding;
        assert_eq!(meta_hash, HashKind::Blake3.digest(b""));
        let path = &shards[4].proof[HEADER_LEN..];
        // The same shard, in an encoding with meta: the shard is as proved, and the meta is not at hand.
        let with_meta = Encoding::new(geometry, tree, b"meta");
        let proof = [&ShardHeader { index: 4, encoding: with_meta }.to_bytes()[..], path].concat();
        assert_eq!(Root(with_meta.root).check(&shards[4].shard, &proof), Err(ProofError::Proof));
        let code = geometry.shape().code;
        let two = GroupGeometry::whole(Form::Shards, HashKind::Blake3, code, 3 * 4096, 6 * 4096).unwrap();
        assert_eq!(two.shape().sets, 2);
        let of_two = Encoding::new(two, tree, &[]);
        let proof = [&ShardHeader { index: 4, encoding: of_two }.to_bytes()[..], path, &[0; 32]].concat();
        assert_eq!(Root(of_two.root).check(&[0; 4096], &proof), Err(ProofError::Proof));
    }

    #[test]
    fn a_root_is_read_as_it_is_written() {
        let root = Root(std::array::from_fn(|i| i as u8 * 9));
        let text = root.to_string();
        assert!(text.starts_with("0009121b") && text.len() == 64);
        assert_eq!((text.parse(), text.to_uppercase().parse()), (Ok(root), Ok(root)));
        assert_eq!(format!("{root:?}"), format!("Root({text})"));
        let wrong =
            ["", "0", &text[1..], &format!("{text}0"), &format!(" {text}"), &format!("g{}", &text[1..])];
        for text in wrong.into_iter().chain([&*"é".repeat(32), &*format!("+{}", &text[1..])]) {
            assert_eq!(text.parse::<Root>(), Err(NoRoot), "{text}");
        }
    }
}
