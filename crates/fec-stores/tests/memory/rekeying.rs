//! Payloads that get other recipients: who can open them then, and what is sent for it.

use crate::places;
use crate::store::{Memory, Ways, bytes_of};
use fec_base::io::output::Destination;
use fec_core::block::Code;
use fec_core::digest::Digest;
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use fec_stores::forget::Forget;
use fec_stores::rekey::Rekeyed;
use fec_stores::send::{SendOptions, send};
use fec_stores::stored::Stored;
use fecfile::Context;
use fecfile::error::{Class, Error};
use fecfile::payload::{Options, Source};
use fecfile::seal::{SealedTo, Sealing};
use std::sync::Arc;

/// A payload that was sealed for somebody and sent to five places.
struct Sealed {
    stores: Vec<Arc<Memory>>,
    payload: Vec<u8>,
    root: Digest,
    keys: Keys,
}

fn somebody() -> (SealedTo, Keys) {
    let identity = Identity::generate(KeyKind::X25519).expect("a key");
    (SealedTo::Recipients(vec![identity.recipient()]), Keys::Identities(vec![identity]))
}

impl Sealed {
    fn new(is_sealed: bool) -> Sealed {
        let stores: Vec<_> = (0..5).map(|nth| Arc::new(Memory::new(nth, 3))).collect();
        let (payload, (to, keys)) = (bytes_of(4, 200_000), somebody());
        let sealing = is_sealed.then(|| Arc::new(Sealing { to, cipher: Cipher::best() }));
        let options = SendOptions {
            encode: Options { sealing, ..Options::new(Code::new(6, 4).expect("a code")) },
            segment_len: 80_000,
            spool: None,
            uploads: 4,
            crowded: false,
            enough: false,
            permissions: 0o600,
        };
        let places = places(&stores, 0);
        let sent = send(Source::Payload(&payload), b"name", &places, &options, &Context::default());
        Sealed { stores, payload, root: sent.expect("it is sent").root, keys }
    }

    fn rekey(&self, root: Digest, keys: &Keys, to: &SealedTo) -> Result<Rekeyed, Error> {
        let places = places(&self.stores, 0);
        Stored::find(&places, root, None)?.rekey(keys, to, &Context::default())
    }

    /// Restores what has this root with these keys, and asserts that no wrong byte comes out.
    fn opens(&self, root: Digest, keys: &Keys) -> Result<(), Error> {
        let (places, mut out) = (places(&self.stores, 0), Vec::new());
        let stored = Stored::find(&places, root, None)?;
        let opener = stored.opener(Some(keys))?.expect("it is sealed");
        assert_eq!(opener.name(), Some(&b"name"[..]));
        let done = stored.restore(Some(&opener), Destination::writer(&mut out), &Context::default())?;
        assert!(done.trouble.is_empty() && out == self.payload);
        Ok(())
    }
}

#[test]
fn others_open_it_then_and_only_the_manifest_is_sent() {
    let sealed = Sealed::new(true);
    let shards = |nth: usize| sealed.stores[nth].shards();
    let before: Vec<Vec<String>> = (0..5).map(shards).collect();
    sealed.stores.iter().for_each(|store| store.forget_calls());
    let (to, keys) = somebody();
    let done = sealed.rekey(sealed.root, &sealed.keys, &to).expect("it gets another recipient");
    assert_eq!((done.class(), &done.manifests[..]), (None, &[0, 1, 2, 3, 4][..]));
    assert!(done.manifest_bytes < 2000, "{}", done.manifest_bytes);
    assert!(sealed.stores.iter().all(|store| store.calls().puts == 1));
    assert_eq!((0..5).map(shards).collect::<Vec<_>>(), before);
    sealed.opens(done.root, &keys).expect("the new one opens it");
    let error = sealed.opens(done.root, &sealed.keys).expect_err("the old one does not");
    assert_eq!(error.class(), Class::Untrue);
    // With the old root the old one still does.
    sealed.opens(sealed.root, &sealed.keys).expect("the old manifest is there");
    // Once more, by the new one.
    let (to, last) = somebody();
    let again = sealed.rekey(done.root, &keys, &to).expect("it gets another one");
    sealed.opens(again.root, &last).expect("the last one opens it");
    // Without the old manifests the shards are still needed.
    for root in [sealed.root, done.root] {
        let (places, context) = (places(&sealed.stores, 0), Context::default());
        let plan = Forget::plan(&places, root, false, &context).expect("it can be removed");
        assert_eq!(plan.run(&context).expect("it is removed").removed.objects, 5);
    }
    let _ = sealed.opens(sealed.root, &sealed.keys).expect_err("its manifest is gone");
    sealed.opens(again.root, &last).expect("the shards are there");
    assert_eq!((0..5).map(shards).collect::<Vec<_>>(), before);
}

#[test]
fn nothing_is_sent_when_it_cannot_be_opened_or_is_not_sealed() {
    let sealed = Sealed::new(true);
    let (to, other) = somebody();
    sealed.stores.iter().for_each(|store| store.forget_calls());
    let error = sealed.rekey(sealed.root, &other, &to).expect_err("another key");
    assert_eq!(error.class(), Class::Untrue);
    let plain = Sealed::new(false);
    let error = plain.rekey(plain.root, &other, &to).expect_err("it is not sealed");
    assert!(error.class() == Class::Untrue && error.to_string().contains("not sealed"), "{error}");
    // The root of a segment: its seal is elsewhere.
    let segment = {
        let places = places(&sealed.stores, 0);
        Stored::find(&places, sealed.root, None).expect("it is found").manifest().segments[0].root
    };
    let error = sealed.rekey(segment, &sealed.keys, &to).expect_err("a segment has no seal");
    assert!(error.class() == Class::Untrue && error.to_string().contains("the seal"), "{error}");
    let puts: u64 = sealed.stores.iter().map(|store| store.calls().puts).sum();
    assert_eq!(puts, 0);
}

#[test]
fn places_that_fail_are_told() {
    let sealed = Sealed::new(true);
    let (to, keys) = somebody();
    sealed.stores[1].set(Ways { read_only: true, ..Ways::default() });
    let done = sealed.rekey(sealed.root, &sealed.keys, &to).expect("it arrives elsewhere");
    assert_eq!((done.class(), done.missing[0].place, done.missing.len()), (Some(Class::Mendable), 1, 1));
    sealed.opens(done.root, &keys).expect("the new one opens it");
    sealed.stores.iter().for_each(|store| store.set(Ways { read_only: true, ..Ways::default() }));
    let error = sealed.rekey(sealed.root, &sealed.keys, &to).expect_err("it arrives nowhere");
    assert_eq!(error.class(), Class::Io);
}
