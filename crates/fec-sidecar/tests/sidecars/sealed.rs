//! Sealed sidecars: opened, updated and mended by calls. Nothing of files is in them in the clear.

use crate::arena::*;
use fec_core::random::SplitMix64;
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use fec_sidecar::examine::{Scope, State, examine, examine_deep};
use fec_sidecar::kind;
use fec_sidecar::protect::{Protect, Protected, protect};
use fec_sidecar::repair::{Mend, repair};
use fec_sidecar::update::update;
use fec_sidecar::{Proof, Sidecar, SidecarError};
use fecfile::seal::{SealError, SealedTo, Sealing};
use fecfile::{Class, Error};
use std::fs;
use std::sync::Arc;

/// A folder `d` with files whose names all contain `hush`, its sealed sidecar, and the key.
struct Shut {
    arena: Arena,
    sealing: Arc<Sealing>,
    keys: Keys,
    protected: Protected,
}

fn key() -> (Arc<Sealing>, Keys) {
    let identity = Identity::generate(KeyKind::X25519).expect("a key");
    let to = SealedTo::Recipients(vec![identity.recipient()]);
    (Arc::new(Sealing { to, cipher: Cipher::best() }), Keys::Identities(vec![identity]))
}

impl Shut {
    fn new() -> Shut {
        let arena = Arena::new();
        for nth in 0..6 {
            arena.write(format!("d/hush-{nth}"), &payload(nth, 40_000 + 7000 * nth as usize));
        }
        arena.write("d/hush/hush-small", b"a small file with words in it that are found again");
        let (sealing, keys) = key();
        let how = How::of_percent(30);
        let protected =
            arena.with_job(&how, |job| protect(&Protect { sealing: Some(&sealing), ..*job }, &context()));
        Shut { arena, sealing, keys, protected: protected.expect("it is protected") }
    }

    fn open(&self) -> Result<Sidecar, Error> {
        let (path, root) = (self.arena.path("d.fecp"), self.protected.root);
        Sidecar::open_sealed(&path, (Some(root), None), &self.keys, &context().settings)
            .map(|opened| opened.0)
    }

    fn mend(&self, how: &Mend<'_>) -> Result<fec_sidecar::repair::Mended, Error> {
        repair(&self.open()?, &self.arena.base(), how, &context())
    }

    fn update(&self, sealing: Option<&Arc<Sealing>>, keys: Option<&Keys>) -> Result<Protected, Error> {
        let run = |job: &Protect<'_>| update(&Protect { sealing, keys, ..*job }, (None, None), &context());
        self.arena.with_job(&How::default(), run).map(|updated| updated.sidecar)
    }
}

fn holds(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|part| part == what)
}

#[test]
fn nothing_is_told_without_the_key_and_all_with_it() {
    let shut = Shut::new();
    let arena = &shut.arena;
    let (whole, bytes) = (tree(&arena.path("d")), arena.read("d.fecp"));
    assert_eq!((shut.protected.metadata, shut.protected.sidecar_len), (None, bytes.len() as u64));
    assert!(!holds(&bytes, b"hush"));
    let digest = fec_core::digest::HashKind::Blake3.digest(&arena.read("d/hush-3"));
    assert!(!holds(&bytes, &digest[..16]));
    assert!(kind::is_sealed(&arena.path("d.fecp")).unwrap() && !kind::starts(&arena.path("d.fecp")).unwrap());
    let sidecar = shut.open().unwrap();
    assert_eq!(
        (sidecar.proof(), sidecar.was_sealed(), sidecar.metadata_root()),
        (Proof::Metadata, true, None)
    );
    assert!(examine_deep(&sidecar, &arena.base(), &context()).unwrap().is_intact());
    fs::remove_file(arena.path("d/hush-1")).unwrap();
    rot(&arena.path("d/hush-2"), 5000, &[0xaa; 3000]);
    let found = examine(&sidecar, &arena.base(), Scope::All, &context()).unwrap();
    assert_eq!(states_of(&sidecar, &found).len(), 2);
    let mended = shut.mend(&reverting()).unwrap();
    assert!(mended.failed.is_empty() && tree(&arena.path("d")) == whole && arena.read("d.fecp") == bytes);
    // Another key does not open it, and another root is not its own.
    let path = arena.path("d.fecp");
    let refused =
        |root, keys| Sidecar::open_sealed(&path, (root, None), keys, &context().settings).unwrap_err();
    let (_, other) = key();
    assert_eq!(refused(None, &other).class(), Class::Untrue);
    assert_eq!(refused(Some([7; 32]), &shut.keys).class(), Class::Untrue);
}

/// A plain sidecar does not take the place of a sealed one, nor the other way round.
#[test]
fn what_is_sealed_stays_sealed() {
    let shut = Shut::new();
    let arena = &shut.arena;
    let cause = |result: Result<Protected, Error>| result.unwrap_err();
    let is = |error: &Error, wanted: fn(&SealError) -> bool| error.cause().is_some_and(wanted);
    assert!(is(&cause(arena.try_protect(&How::forced())), |e| matches!(e, SealError::StaysSealed)));
    arena.write("d/hush-new", &payload(90, 30_000));
    assert!(is(&cause(shut.update(Some(&shut.sealing), None)), |e| matches!(e, SealError::NoKey)));
    assert!(is(&cause(shut.update(None, Some(&shut.keys))), |e| matches!(e, SealError::NobodyNamed)));
    assert_eq!(cause(shut.update(Some(&shut.sealing), Some(&key().1))).class(), Class::Untrue);
    fs::remove_file(arena.path("d.fecp")).unwrap();
    arena.protect(&How::default());
    assert!(is(&cause(shut.update(Some(&shut.sealing), None)), |e| matches!(e, SealError::StaysPlain)));
    assert!(is(&shut.open().unwrap_err(), |e| matches!(e, SealError::NotSealed)));
}

#[test]
fn an_update_seals_all_of_it_with_another_key() {
    let shut = Shut::new();
    let (arena, (other, others)) = (&shut.arena, key());
    let before = arena.read("d.fecp");
    arena.write("d/hush-new", &payload(90, 30_000));
    let updated = shut.update(Some(&other), Some(&shut.keys)).unwrap();
    let now = arena.read("d.fecp");
    assert!(!holds(&now, b"hush") && updated.sidecar_len == now.len() as u64 && now != before);
    let path = arena.path("d.fecp");
    assert!(Sidecar::open_sealed(&path, (None, None), &shut.keys, &context().settings).is_err());
    let shut = Shut { sealing: other, keys: others, protected: updated, ..shut };
    let whole = tree(&shut.arena.path("d"));
    fs::remove_file(shut.arena.path("d/hush-new")).unwrap();
    rot(&shut.arena.path("d/hush-5"), 0, &[0xaa; 3000]);
    let _ = shut.mend(&reverting()).unwrap();
    assert!(tree(&shut.arena.path("d")) == whole);
    // An update without changes writes nothing.
    let now = shut.arena.read("d.fecp");
    let again = shut.update(Some(&shut.sealing), Some(&shut.keys)).unwrap();
    assert!(shut.arena.read("d.fecp") == now && again.files == 8);
}

/// Damage within what the container mends costs nothing, bit for bit; of more, the rest still mends files.
#[test]
fn the_sidecar_is_mended_with_the_key() {
    let shut = Shut::new();
    let arena = &shut.arena;
    let (whole, bytes) = (tree(&arena.path("d")), arena.read("d.fecp"));
    for (at, len) in [(bytes.len() / 2, 6000), (0, 300)] {
        rot(&arena.path("d.fecp"), at as u64, &vec![0xaa; len]);
        rot(&arena.path("d/hush-0"), 100, &[0xaa; 2000]);
        let found = examine(&shut.open().unwrap(), &arena.base(), Scope::All, &context()).unwrap();
        assert!(found.container_damaged && !found.sidecar_is_intact());
        let quick = examine(&shut.open().unwrap(), &arena.base(), Scope::Quick, &context()).unwrap();
        assert!(!quick.container_damaged, "a quick look reads nothing of it");
        let dry = shut.mend(&Mend { dry_run: true, ..reverting() }).unwrap();
        assert!(dry.sidecar && arena.read("d.fecp") != bytes);
        let mended = shut.mend(&reverting()).unwrap();
        assert!(mended.sidecar && mended.sidecar_left.is_none(), "{mended:?}");
        assert!(arena.read("d.fecp") == bytes && tree(&arena.path("d")) == whole);
    }
}

/// Whatever happens to the sidecar, files are in their old state or stay as they were left.
#[test]
fn damage_anywhere() {
    let shut = Shut::new();
    let arena = &shut.arena;
    let (whole, bytes) = (tree(&arena.path("d")), arena.read("d.fecp"));
    let (mut random, mut mended) = (SplitMix64::new(21), 0);
    for round in 0..24 {
        let mut damaged = bytes.clone();
        let at = random.index(bytes.len() - 9000);
        match random.index(4) {
            0 => damaged[at] ^= 1,
            1 => damaged[at..at + 1 + random.index(9000)].fill(0xaa),
            2 => damaged.truncate(at),
            _ => drop(damaged.splice(at..at, payload(round, 1 + random.index(2000)))),
        }
        arena.write("d.fecp", &damaged);
        let name = format!("d/hush-{}", random.index(6));
        rot(&arena.path(&name), random.index(30_000) as u64, &payload(round, 1 + random.index(4000)));
        let before = tree(&arena.path("d"));
        let done = shut.mend(&reverting());
        let after = tree(&arena.path("d"));
        if after == whole {
            mended += 1;
        } else {
            assert!(after == before && done.is_err(), "round {round}");
            arena.write("d.fecp", &bytes);
            let _ = shut.mend(&reverting()).unwrap();
            assert!(tree(&arena.path("d")) == whole);
        }
    }
    assert!(mended > 12, "{mended} of 24");
}

/// Two sidecars in one file are never taken for one, and neither is lost.
#[test]
fn two_sealed_sidecars_in_one_file_are_ambiguous() {
    let shut = Shut::new();
    let arena = &shut.arena;
    let sealed = arena.read("d.fecp");
    arena.write("d/hush-0", b"something else");
    let run = |job: &Protect<'_>| protect(&Protect { sealing: Some(&shut.sealing), ..*job }, &context());
    let theirs = arena.with_job(&How::forced(), run).unwrap();
    assert_ne!(theirs.root, shut.protected.root);
    let refused = shut.open().unwrap_err();
    assert_eq!(refused.class(), Class::Untrue, "{refused}");
    let both = [&sealed[..], &arena.read("d.fecp")].concat();
    arena.write("d.fecp", &both);
    let path = arena.path("d.fecp");
    let refused = Sidecar::open_sealed(&path, (None, None), &shut.keys, &context().settings).unwrap_err();
    assert_eq!(refused.class(), Class::Usage, "{refused}");
    let mended = shut.mend(&reverting()).unwrap();
    assert!(mended.sidecar_left.is_some() && arena.read("d.fecp") == both);
    assert!(arena.read("d/hush-0") == payload(0, 40_000));
    assert!(!matches!(refused.cause(), Some(SidecarError::Busy)));
    let found = examine(&shut.open().unwrap(), &arena.base(), Scope::All, &context()).unwrap();
    assert_eq!(found.count(State::Edited), 0);
}
