//! Secret keys and their files, with a passphrase or without; signing.

use super::error::{MOST_BLOCKS, MOST_MEMORY, SignError};
use super::id::KeyId;
use super::ml_dsa;
use super::public::{ALGORITHM, HYBRID, Signer};
use super::signature::{METADATA, PREHASHED, Signature, hashed, post_quantum_message};
use super::text;
use crate::passphrases::make_key;
use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use ed25519_dalek::{Signer as _, SigningKey};
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::output::write_secret;
use fec_base::io::system;
use fec_base::names::hex;
use fec_core::digest::Digest;
use hkdf::Hkdf;
use sha2::Sha256;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// The most bytes of a file with a secret key.
const LONGEST_FILE: usize = 4096;
/// Bytes behind the comment: algorithms, salt and limits; then key number, seed, public key and checksum.
const STORED_LEN: usize = HEAD_LEN + KEY_LEN;
const HEAD_LEN: usize = 54;
/// Bytes that a passphrase encrypts.
const KEY_LEN: usize = 104;
const SCRYPT: [u8; 2] = *b"Sc";
const UNENCRYPTED: [u8; 2] = [0; 2];
const CHECKSUM: [u8; 2] = *b"B2";

/// The limits in new files: 256 MiB and about a second.
const NEW_MEMORY: u64 = 1 << 28;
const NEW_WORK: u64 = 1 << 23;
/// The info of HKDF for the seed of ML-DSA-65.
const DERIVED: &[u8] = b"fec/1 signatures: ML-DSA-65";
/// r of scrypt.
const R: u32 = 8;

/// A secret key. It is overwritten when it is dropped.
pub struct SecretKey {
    id: KeyId,
    /// The seed and the public key of Ed25519.
    bytes: Zeroizing<[u8; 64]>,
    /// The seed of ML-DSA-65, of a hybrid key.
    post_quantum: Option<ml_dsa::Seed>,
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretKey({}, …)", self.id)
    }
}

impl SecretKey {
    /// A new key of minisign, from the system's source of randomness.
    ///
    /// # Errors
    /// Those of that source.
    pub fn generate() -> Result<SecretKey> {
        SecretKey::generated(false)
    }

    /// A new hybrid key: its signatures are those of Ed25519 and of ML-DSA-65.
    ///
    /// # Errors
    /// Those of the system's source of randomness.
    pub fn generate_hybrid() -> Result<SecretKey> {
        SecretKey::generated(true)
    }

    fn generated(is_hybrid: bool) -> Result<SecretKey> {
        let (mut id, mut seed) = ([0; 8], Zeroizing::new([0; 32]));
        random(&mut id)?;
        random(&mut seed[..])?;
        let pair = SigningKey::from_bytes(&seed);
        let mut bytes = Zeroizing::new([0; 64]);
        bytes[..32].copy_from_slice(&seed[..]);
        bytes[32..].copy_from_slice(pair.verifying_key().as_bytes());
        let post_quantum = is_hybrid.then(|| post_quantum_seed(&bytes));
        Ok(SecretKey { id: KeyId(id), bytes, post_quantum })
    }

    /// A key from its two halves, which must belong together.
    fn new(
        id: KeyId,
        bytes: Zeroizing<[u8; 64]>,
        is_hybrid: bool,
    ) -> std::result::Result<SecretKey, SignError> {
        SigningKey::from_keypair_bytes(&bytes)
            .map_err(|_| SignError::NotASecretKey("its halves do not belong together"))?;
        let post_quantum = is_hybrid.then(|| post_quantum_seed(&bytes));
        Ok(SecretKey { id, bytes, post_quantum })
    }

    /// The public key.
    pub fn signer(&self) -> Signer {
        let post_quantum = self.post_quantum.as_ref().map(|seed| Arc::from(ml_dsa::public_key(seed)));
        Signer { id: self.id, key: self.bytes[32..].try_into().expect("32 bytes"), post_quantum }
    }

    /// Signs a root, with the time of the system's clock.
    ///
    /// # Panics
    /// The system has no randomness for a hybrid key, as in the other calls that sign.
    pub fn sign_root(&self, root: &Digest) -> Signature {
        self.sign_root_at(root, now())
    }

    /// Signs a root, with the time `time` in seconds since 1970.
    pub fn sign_root_at(&self, root: &Digest, time: u64) -> Signature {
        self.sign(root, &format!("timestamp:{time}\tfec root"))
    }

    /// Signs the root of a sidecar and E of its metadata, which binds times and permissions too, with the time of the
    /// system's clock.
    pub fn sign_sidecar(&self, root: &Digest, metadata: &Digest) -> Signature {
        self.sign(root, &format!("timestamp:{}\tfec root\t{METADATA}{}", now(), hex(metadata)))
    }

    pub(super) fn sign(&self, root: &Digest, trusted: &str) -> Signature {
        let pair = SigningKey::from_keypair_bytes(&self.bytes).expect("they belong together");
        let signature = pair.sign(&hashed(root)).to_bytes();
        let global = pair.sign(&[&signature[..], trusted.as_bytes()].concat()).to_bytes();
        let signed = [&PREHASHED[..], &self.id.0, &signature].concat();
        let post_quantum = self.post_quantum.as_ref().map(|seed| {
            let message = post_quantum_message(root, trusted);
            ml_dsa::sign(seed, message.as_bytes()).expect("the system has randomness")
        });
        let text = text::signature(&signed, trusted, &global, post_quantum.as_ref().map(|made| &made[..]));
        Signature::parse(text.as_bytes()).expect("it has the form of a signature")
    }

    /// The text of the key's file. A passphrase encrypts it by scrypt with 256 MiB, which takes a second or more.
    ///
    /// # Errors
    /// Those of the system's source of randomness; [`SignError::Memory`].
    pub fn to_text(&self, passphrase: Option<&str>) -> Result<Zeroizing<String>> {
        let mut stored = Zeroizing::new([0; STORED_LEN]);
        let is_hybrid = self.post_quantum.is_some();
        stored[..2].copy_from_slice(if is_hybrid { &HYBRID } else { &ALGORITHM });
        stored[4..6].copy_from_slice(&CHECKSUM);
        stored[HEAD_LEN..][..8].copy_from_slice(&self.id.0);
        stored[HEAD_LEN + 8..][..64].copy_from_slice(&self.bytes[..]);
        let kind = if is_hybrid { "fec (Ed25519 and ML-DSA-65)" } else { "minisign" };
        let comment = match passphrase {
            None => format!("{kind} secret key, not encrypted"),
            Some(passphrase) => {
                stored[2..4].copy_from_slice(&SCRYPT);
                random(&mut stored[6..38])?;
                stored[38..46].copy_from_slice(&NEW_WORK.to_le_bytes());
                stored[46..54].copy_from_slice(&NEW_MEMORY.to_le_bytes());
                let sum = checksum(&stored);
                stored[HEAD_LEN + 72..].copy_from_slice(&sum[..]);
                encrypt(&mut stored, passphrase).map_err(|cause| Error::new(Action::MakeKey, cause))?;
                format!("{kind} encrypted secret key")
            }
        };
        Ok(text::commented(&comment, &stored[..]))
    }

    /// Writes the key's file, which only its owner may read. The file must not exist.
    ///
    /// # Errors
    /// Those of the file, and of [`SecretKey::to_text`].
    pub fn write(&self, path: &Path, passphrase: Option<&str>) -> Result<()> {
        let text = self.to_text(passphrase)?;
        write_secret(path, text.as_bytes())
    }
}

/// A secret key in the form of its file, perhaps encrypted.
pub struct StoredKey(Zeroizing<[u8; STORED_LEN]>);

impl std::fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredKey(…)")
    }
}

impl StoredKey {
    /// Reads a file with a secret key.
    ///
    /// # Errors
    /// Those of the file, and of [`StoredKey::parse`].
    pub fn read(path: &Path) -> Result<StoredKey> {
        let file = text::read(path, LONGEST_FILE).map_err(|e| Error::io(Action::ReadSecretKey, path, e))?;
        let parsed = file
            .ok_or(SignError::NotASecretKey("its file is not text of at most 4096 bytes"))
            .and_then(|file| StoredKey::parse(&file));
        parsed.map_err(|cause| Error::at(Action::ReadSecretKey, path, cause))
    }

    /// Parses the two lines of a secret key.
    ///
    /// # Errors
    /// [`SignError::NotASecretKey`], and [`SignError::Costly`] when the passphrase takes more than 1 GiB of memory.
    pub fn parse(file: &str) -> std::result::Result<StoredKey, SignError> {
        let wrong = SignError::NotASecretKey;
        let lines = text::lines::<2>(file).filter(|[comment, _]| text::is_untrusted(comment));
        let [_, key] = lines.ok_or(wrong("its file should have a line of comment and a line of base64"))?;
        let stored = StoredKey(text::decoded::<STORED_LEN>(key).ok_or(wrong("its length is wrong"))?);
        let head = &stored.0[..HEAD_LEN];
        if head[..2] != ALGORITHM && head[..2] != HYBRID || head[4..6] != CHECKSUM {
            return Err(wrong("its algorithm is not Ed25519, nor that with ML-DSA-65"));
        }
        if head[2..4] != SCRYPT && head[2..4] != UNENCRYPTED {
            return Err(wrong("it is not encrypted the way minisign does it"));
        }
        let cost = Cost::of(&stored.0);
        if stored.is_encrypted() && (cost.memory() > MOST_MEMORY || cost.blocks() > MOST_BLOCKS) {
            return Err(SignError::Costly { memory: cost.memory(), blocks: cost.blocks() });
        }
        Ok(stored)
    }

    /// Tells whether the key needs a passphrase.
    pub fn is_encrypted(&self) -> bool {
        self.0[2..4] == SCRYPT
    }

    /// Opens the key. Takes up to 1 GiB of memory and some seconds if the key is encrypted.
    ///
    /// # Errors
    /// [`SignError::PassphraseNeeded`], [`SignError::Passphrase`], [`SignError::Memory`], [`SignError::NotASecretKey`].
    pub fn open(&self, passphrase: Option<&str>) -> std::result::Result<SecretKey, SignError> {
        let mut stored = self.0.clone();
        if self.is_encrypted() {
            encrypt(&mut stored, passphrase.ok_or(SignError::PassphraseNeeded)?)?;
            // The checksum exposes a wrong passphrase; an unencrypted key has no checksum.
            if stored[HEAD_LEN + 72..] != checksum(&stored)[..] {
                return Err(SignError::Passphrase);
            }
        }
        let id = KeyId(stored[HEAD_LEN..][..8].try_into().expect("eight bytes"));
        let bytes = Zeroizing::new(stored[HEAD_LEN + 8..][..64].try_into().expect("64 bytes"));
        SecretKey::new(id, bytes, stored[..2] == HYBRID)
    }
}

/// The seed of ML-DSA-65 that follows from the seed of Ed25519. An attacker who breaks the public key of the latter has
/// the scalar that a hash makes of that seed, and not the seed.
fn post_quantum_seed(bytes: &[u8; 64]) -> ml_dsa::Seed {
    let mut seed = Zeroizing::new([0; 32]);
    let made = Hkdf::<Sha256>::new(None, &bytes[..32]).expand(DERIVED, &mut seed[..]);
    made.expect("32 bytes are not too many");
    seed
}

/// BLAKE2b-256 of algorithm, key number, seed and public key.
fn checksum(stored: &[u8; STORED_LEN]) -> Zeroizing<[u8; 32]> {
    let hash = Blake2b::<U32>::new().chain_update(&stored[..2]).chain_update(&stored[HEAD_LEN..][..72]);
    Zeroizing::new(hash.finalize().into())
}

/// Encrypts or decrypts everything behind the limits, with the key that scrypt derives from the passphrase under these
/// limits.
fn encrypt(stored: &mut [u8; STORED_LEN], passphrase: &str) -> std::result::Result<(), SignError> {
    let Cost { log_n, p } = Cost::of(stored);
    let params = scrypt::Params::new(log_n, R, p);
    let params = params.map_err(|_| SignError::NotASecretKey("no passphrase can have its limits"))?;
    let mut mask = Zeroizing::new([0; KEY_LEN]);
    make_key(passphrase.as_bytes(), &stored[6..38], &params, &mut mask[..])?;
    stored[HEAD_LEN..].iter_mut().zip(mask.iter()).for_each(|(byte, mask)| *byte ^= mask);
    Ok(())
}

/// The cost of a passphrase: N and p of scrypt.
struct Cost {
    log_n: u8,
    p: u32,
}

impl Cost {
    /// The cost that libsodium's `crypto_pwhash_scryptsalsa208sha256` derives from the two limits in a file.
    fn of(stored: &[u8; STORED_LEN]) -> Cost {
        let number = |at: usize| u64::from_le_bytes(stored[at..][..8].try_into().expect("eight bytes"));
        let (work, memory) = (number(38).max(32_768), number(46));
        let log_of = |most: u64| (1..63).find(|log| 1 << log > most / 2).unwrap_or(63);
        if work < memory / 32 {
            return Cost { log_n: log_of(work / (4 * u64::from(R))), p: 1 };
        }
        let log_n = log_of(memory / (128 * u64::from(R)));
        let p = ((work / 4) >> log_n).min(0x3fff_ffff) as u32 / R;
        Cost { log_n, p }
    }

    /// Bytes of memory: the larger of scrypt's two tables.
    fn memory(&self) -> u64 {
        (128 * u64::from(R)).saturating_mul((1 << self.log_n).max(u64::from(self.p)))
    }

    /// Blocks of 128·r bytes that scrypt fills and mixes.
    fn blocks(&self) -> u64 {
        u64::from(self.p).saturating_mul(1 << self.log_n)
    }
}

/// Seconds since 1970, by the system's clock.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn random(out: &mut [u8]) -> Result<()> {
    system::random(out).map_err(|e| Error::io(Action::MakeKey, Place::Nowhere, e))
}
