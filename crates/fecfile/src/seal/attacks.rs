//! Attacks by somebody who can write to the places of shards but has no key. The forged payload is well formed, with
//! right checksums, digests and roots, and the reader knows no root. No byte of the forgery may come out.

use super::sealer::{SealedTo, Sealer, Sealing};
use crate::archive::Archive;
use crate::forms::container::writer;
use crate::input::{Input, Object};
use crate::leftovers::Beginning;
use crate::payload::{Payload, Source};
use crate::pipe::{self, Pipe};
use crate::range::PayloadRange;
use crate::restore::Wish;
use crate::seal::SealedPayload;
use fec_base::context::Context;
use fec_base::error::{Action, Place};
use fec_base::io::output::{Destination, Policy};
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::meta::Meta;
use fec_core::format::seal::{CHUNK, SEALED_CHUNK, SealedKind};
use fec_core::params::ContainerLayout;
use fec_core::random::SplitMix64;
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use std::path::Path;
use std::sync::Arc;

/// A sealed payload, before it is coded.
#[derive(Clone)]
struct Sealed {
    plain: Vec<u8>,
    sealed: Vec<u8>,
    seal: Vec<u8>,
    is_marked: bool,
}

fn sealed(identity: &Identity, cipher: Cipher, len: usize, random: &mut SplitMix64) -> Sealed {
    let plain: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
    let sealing = Sealing { to: SealedTo::Recipients(vec![identity.recipient()]), cipher };
    let sealer = Sealer::new(&sealing, SealedKind::Payload, Some(b"name"), 1).expect("a sealer");
    let payload = SealedPayload::new(&plain, &sealer);
    let mut sealed = vec![0; payload.size() as usize];
    payload.read_at(0, &mut sealed).expect("it is in memory");
    Sealed { sealed, seal: sealer.meta().seal.expect("a seal"), is_marked: true, plain: plain.clone() }
}

impl Sealed {
    /// A container of the payload, in groups of `sets` sets.
    fn container(&self, sets: u32) -> Vec<u8> {
        let code = Code::new(3, 1).expect("a code");
        let mut layout =
            ContainerLayout::new(HashKind::Blake3, code, 12 << 10, Some(sets)).expect("a layout");
        if self.is_marked {
            layout = layout.sealed();
        }
        let meta = Meta { seal: Some(self.seal.clone()), ..Meta::default() }.to_bytes();
        let mut out = Vec::new();
        let source = Source::Payload(&self.sealed as &dyn Payload);
        let fail = |e| fec_base::Error::io(Action::Write, Place::Nowhere, e);
        writer::write(source, &mut out, &fail, &layout, &meta, &Context::default()).expect("it is in memory");
        out
    }

    fn chunks(&self) -> Vec<Vec<u8>> {
        self.sealed.chunks(SEALED_CHUNK).map(<[u8]>::to_vec).collect()
    }
}

/// Reads a container in every way: the output, and whether it was reported as right. A file that did not appear has no
/// output.
fn read(container: Vec<u8>, keys: &Keys, folder: &Path) -> Vec<(&'static str, Vec<u8>, bool)> {
    let context = Context::default();
    let mut ways = Vec::new();
    let bytes: Arc<[u8]> = container.into();
    let open = || {
        let input = Input::One(Object::new("x.fec", Arc::new(bytes.clone())).expect("it is in memory"));
        let archive = Archive::open(&input, None, &context)?;
        let opener = archive.opener(Some(keys))?.expect("what is not sealed is refused");
        Ok::<_, fec_base::Error>((archive, opener))
    };
    let path = folder.join("out");
    let policy = Policy::new().with_force(true).with_sync(false);
    for (name, partial) in [("file", false), ("file, partial", true)] {
        let done = open().and_then(|(archive, opener)| {
            let wish = Wish { partial, opener: Some(&opener), ..Wish::default() };
            archive.restore(Destination::File(&path, policy), wish, &context)
        });
        let out = std::fs::read(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        ways.push((name, out, done.is_ok_and(|restored| restored.is_whole())));
    }
    let mut out = Vec::new();
    let done = open().and_then(|(archive, opener)| {
        let wish = Wish { opener: Some(&opener), ..Wish::default() };
        archive.restore(Destination::writer(&mut out), wish, &context)
    });
    ways.push(("writer", out, done.is_ok_and(|restored| restored.is_whole())));
    let mut out = Vec::new();
    let done = open().and_then(|(archive, opener)| {
        archive.restore_range(PayloadRange::ALL, Some(&opener), Destination::writer(&mut out), &context)
    });
    ways.push(("range", out, done.is_ok_and(|restored| restored.is_whole())));
    let mut out = Vec::new();
    let input = Pipe {
        input: &bytes[..],
        place: Path::new("-"),
        beginning: Beginning::Other,
        wanted: None,
        keys: Some(keys),
    };
    let done = pipe::restore(input, Destination::writer(&mut out), &context);
    ways.push(("pipe", out, done.is_ok_and(|restored| restored.is_whole())));
    ways
}

/// An attack: its name, and the forged bytes.
fn attack(kind: u64, random: &mut SplitMix64, mine: &Sealed, others: &[Sealed]) -> (&'static str, Sealed) {
    let mut forged = mine.clone();
    let mut below = |bound: usize| (random.next() % bound as u64) as usize;
    let name = match kind {
        2..=4 | 6 => attack_chunks(kind, &mut below, &mut forged, others),
        7..=9 => attack_seal(kind, &mut below, &mut forged, others),
        12.. => {
            forged.is_marked = false;
            "it is not marked as sealed"
        }
        _ => attack_bytes(kind, &mut below, &mut forged, others),
    };
    (name, forged)
}

/// Forges bytes of the payload, wherever chunks begin.
fn attack_bytes(
    kind: u64,
    below: &mut impl FnMut(usize) -> usize,
    forged: &mut Sealed,
    others: &[Sealed],
) -> &'static str {
    match kind {
        0 => {
            let at = below(forged.sealed.len());
            forged.sealed[at] ^= 1 << below(8);
            "a bit of a chunk is flipped"
        }
        1 => {
            forged.sealed.truncate(below(forged.sealed.len()));
            "it is cut"
        }
        5 => {
            forged.sealed.extend_from_slice(&others[below(others.len())].sealed);
            "another one is joined to it"
        }
        10 => {
            forged.sealed.extend(std::iter::repeat_n(0, 1 + below(SEALED_CHUNK)));
            "something is added"
        }
        _ => {
            forged.sealed.clone_from(&forged.plain);
            "it is not encrypted"
        }
    }
}

/// Forges the list of chunks; each chunk stays as it was sealed.
fn attack_chunks(
    kind: u64,
    below: &mut impl FnMut(usize) -> usize,
    forged: &mut Sealed,
    others: &[Sealed],
) -> &'static str {
    let mut chunks = forged.chunks();
    let name = match kind {
        2 => {
            chunks.truncate(below(chunks.len()));
            "it is cut between chunks"
        }
        3 => {
            let (a, b) = (below(chunks.len()), below(chunks.len()));
            if a == b {
                let repeated = chunks[a].clone();
                chunks.insert(a, repeated);
            } else {
                chunks.swap(a, b);
            }
            "chunks change places, or one comes twice"
        }
        4 => {
            chunks.remove(below(chunks.len()));
            "a chunk is left out"
        }
        _ => {
            let theirs = others[below(others.len())].chunks();
            let at = below(chunks.len().min(theirs.len()));
            chunks[at] = theirs[at].clone();
            "a chunk of another one stands in its place"
        }
    };
    forged.sealed = chunks.concat();
    name
}

/// Forges the seal.
fn attack_seal(
    kind: u64,
    below: &mut impl FnMut(usize) -> usize,
    forged: &mut Sealed,
    others: &[Sealed],
) -> &'static str {
    match kind {
        7 => {
            forged.seal = others[below(others.len())].seal.clone();
            "it has the seal of another one"
        }
        8 => {
            let at = below(forged.seal.len());
            forged.seal[at] ^= 1 << below(8);
            "a bit of the seal is flipped"
        }
        _ => {
            forged.seal.truncate(below(forged.seal.len()));
            "the seal is cut"
        }
    }
}

/// Kinds of attacks.
const KINDS: u64 = 13;

#[test]
fn nothing_that_was_not_sealed_with_the_key_comes_out() {
    let number = |name: &str, usual: u64| {
        std::env::var(name)
            .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let (count, seed) = (number("FEC_ATTACKS", 300), number("FEC_SEED", 16));
    let mut random = SplitMix64::new(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let identity = Identity::generate(KeyKind::X25519).expect("an identity");
    let stranger = Keys::Identities(vec![Identity::generate(KeyKind::X25519).expect("an identity")]);
    let mut lens = vec![0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 4 * CHUNK + 77];
    lens.extend((0..3).map(|_| (random.next() % 400_000) as usize));
    let all: Vec<Sealed> = lens
        .iter()
        .flat_map(|len| Cipher::ALL.map(|cipher| (*len, cipher)))
        .map(|(len, cipher)| sealed(&identity, cipher, len, &mut random))
        .collect();
    let keys = Keys::Identities(vec![identity]);
    for mine in &all {
        for (way, out, is_right) in read(mine.container(1), &keys, folder.path()) {
            assert!(out == mine.plain && is_right, "{way}: {} bytes", mine.plain.len());
        }
        for (way, out, is_right) in read(mine.container(1), &stranger, folder.path()) {
            assert!(out.is_empty() && !is_right, "{way}: the wrong key");
        }
    }
    let mut refused = 0;
    for nth in 0..count {
        let (mine, others) = all.split_at(1 + (random.next() % (all.len() as u64 - 1)) as usize);
        let mine = &mine[mine.len() - 1];
        let (name, forged) = attack(nth % KINDS, &mut random, mine, others);
        let is_same = (&forged.sealed, &forged.seal, forged.is_marked) == (&mine.sealed, &mine.seal, true);
        // A container has a single group, or several.
        let sets = if random.next().is_multiple_of(2) { 64 } else { 1 };
        for (way, out, is_right) in read(forged.container(sets), &keys, folder.path()) {
            let context = format!("attack {nth}, {name}, {way}, {} bytes", mine.plain.len());
            if is_same {
                assert!(out == mine.plain && is_right, "{context}: it is the same");
                continue;
            }
            assert!(!is_right, "{context}: it is said to be right");
            // Groups before the forged one may have gone to a writer.
            assert!(mine.plain.starts_with(&out), "{context}: something else came out");
            assert!(sets == 1 || out.is_empty(), "{context}: {} bytes came out of one group", out.len());
            assert!(!way.starts_with("file") || out.is_empty(), "{context}: a file appeared");
        }
        refused += u64::from(!is_same);
    }
    eprintln!("{refused} of {refused} attacks refused, {} changed nothing", count - refused);
}
