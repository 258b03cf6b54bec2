//! Shard files in stores, without a manifest, whose copies of the meta are damaged or hidden by forged headers.

use crate::store::{Memory, bytes_of};
use crate::{class, forged, places};
use fec_base::io::Store;
use fec_base::io::memory::MemoryStore;
use fec_base::io::output::Destination;
use fec_core::block::Code;
use fec_core::digest::Digest;
use fec_core::format::shard_file::{HEADER_LEN, ShardHeader};
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use fec_stores::mend::{StoredRepair, StoredRepaired};
use fec_stores::stored::{Stored, StoredRestored};
use fecfile::error::{Class, EncodingError, Result};
use fecfile::payload::Options;
use fecfile::seal::{SealedTo, Sealing};
use fecfile::{Context, encode};
use std::ffi::OsStr;
use std::sync::Arc;

/// The objects of a payload, 2 + 1 shard files at two places.
struct Bare {
    stores: Vec<Arc<Memory>>,
    payload: Vec<u8>,
    root: Digest,
}

const N: usize = 3;

impl Bare {
    fn new(sealing: Option<Sealing>) -> Bare {
        let (made, payload) = (MemoryStore::new(), bytes_of(21, 300_000));
        let options = Options {
            sealing: sealing.map(Arc::new),
            set_size: Some(65_536),
            ..Options::new(Code::new(2, 1).expect("a code"))
        };
        let root = encode::to_store(&payload, b"name", &made, &options, &Context::default());
        let root = root.expect("it is made").root;
        let stores: Vec<Arc<Memory>> = (0..2).map(|nth| Arc::new(Memory::new(nth, 1))).collect();
        let name = if options.sealing.is_some() { "payload" } else { "name" };
        for index in 0..N {
            let file = made.open(OsStr::new(&format!("{name}.{index:03}.shard"))).expect("a file");
            let mut bytes = vec![0; file.size().expect("a length") as usize];
            file.read_exact_at(0, &mut bytes).expect("its bytes");
            stores[index % 2].objects().insert(forged::key(&root, index), bytes);
        }
        Bare { stores, payload, root }
    }

    /// Changes these objects.
    fn change(&self, indices: &[usize], change: impl Fn(&mut [u8])) {
        for index in indices {
            let mut objects = self.stores[index % 2].objects();
            change(objects.get_mut(&forged::key(&self.root, *index)).expect("it is there"));
        }
    }

    fn restore(&self, keys: Option<&Keys>) -> Result<StoredRestored> {
        let (places, mut out) = (places(&self.stores, 2), Vec::new());
        let stored = Stored::find(&places, self.root, None)?;
        let opener = stored.opener(keys)?;
        let restored = stored.restore(opener.as_ref(), Destination::writer(&mut out), &Context::default());
        assert!(restored.is_err() || out == self.payload, "other bytes");
        restored
    }

    /// The class of a verify and its margin.
    fn verify(&self, deep: bool) -> (Option<Class>, i64) {
        let places = places(&self.stores, 2);
        let stored = Stored::find_everywhere(&places, self.root, None).expect("it is found");
        let verified = stored.verify(deep, &Context::default()).expect("it is looked at");
        let survives = verified.segments[0].survival.to_string();
        assert!(verified.margin() != 0 || survives == "nothing", "{survives}");
        (verified.class(), verified.margin())
    }

    fn repair(&self) -> Result<StoredRepaired> {
        let places = places(&self.stores, 2);
        let stored = Stored::find_everywhere(&places, self.root, None).expect("it is found");
        let how = StoredRepair { to: (0..2).collect(), now: true, deep: true, dry_run: false };
        stored.repair(&how, &Context::default())
    }
}

/// The place of a byte of both copies of the meta, by the header in front.
fn metas(file: &[u8]) -> [usize; 2] {
    let header = ShardHeader::parse(file.first_chunk().expect("a header")).expect("a header");
    header.encoding.layout().metas().map(|at| at as usize)
}

fn damage_head(file: &mut [u8]) {
    let [head, _] = metas(file);
    file[head] ^= 1;
}

fn damage_tail(file: &mut [u8]) {
    let [_, tail] = metas(file);
    file[tail] ^= 1;
}

fn hide_in_front(file: &mut [u8]) {
    let tail: [u8; HEADER_LEN] = *file.last_chunk().expect("a header");
    forged::forge(file, 0);
    *file.last_chunk_mut().expect("a header") = tail;
}

const ALL: [usize; N] = [0, 1, 2];

/// A way to damage objects.
type Way = &'static dyn Fn(&Bare);

/// A copy that is not good costs nothing while another is.
#[test]
fn a_single_good_copy_of_the_meta_suffices() {
    let ways: [(&str, Way); 6] = [
        ("heads", &|bare| bare.change(&ALL, damage_head)),
        ("tails", &|bare| bare.change(&ALL, damage_tail)),
        ("hidden in front", &|bare| bare.change(&ALL, hide_in_front)),
        ("first headers", &|bare| bare.change(&ALL, |file| file[40] ^= 1)),
        ("both in two", &|bare| {
            bare.change(&[0, 1], damage_head);
            bare.change(&ALL, damage_tail);
        }),
        ("a hidden last one", &|bare| {
            bare.change(&[0, 1], damage_tail);
            bare.change(&[0, 1], damage_head);
            bare.change(&ALL, hide_in_front);
        }),
    ];
    for (what, way) in ways {
        let bare = Bare::new(None);
        way(&bare);
        let restored = bare.restore(None).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(restored.trouble, Vec::<String>::new(), "{what}");
        assert_eq!(bare.verify(true), (Some(Class::Mendable), 0), "{what}");
        assert!(matches!(bare.verify(false), (None, 1) | (Some(Class::Mendable), 0)), "{what}");
        let repaired = bare.repair().unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(repaired.class(false), None, "{what}");
        assert_eq!(bare.verify(true), (None, 1), "{what}");
    }
}

/// The payload is proved without its meta, and the loss is told.
#[test]
fn a_payload_whose_meta_is_lost_is_restored() {
    for (forged, meta_len) in [(&[][..], 0), (&[0], 0), (&[1], 200), (&[2], 65_536)] {
        let bare = Bare::new(None);
        bare.change(&ALL, damage_tail);
        bare.change(&ALL, damage_head);
        bare.change(forged, |file| forged::forge(file, meta_len));
        let what = format!("{meta_len} bytes in {forged:?}");
        let restored = bare.restore(None).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(restored.trouble.iter().any(|line| line.contains("no copy of the meta")), "{what}");
        for deep in [false, true] {
            let (class, margin) = bare.verify(deep);
            assert!(class == Some(Class::Mendable) && margin >= 0, "{what}: {class:?}, {margin}");
        }
        let error = bare.repair().expect_err(&what);
        assert!(matches!(error.cause(), Some(EncodingError::MetaLost)), "{what}: {error}");
    }
}

/// Ciphertext never comes out as if others had sealed it.
#[test]
fn a_sealed_payload_opens_by_any_copy_and_is_refused_without_one() {
    let identity = Identity::generate(KeyKind::X25519).expect("a key");
    let recipient = identity.recipient();
    let keys = Keys::Identities(vec![identity]);
    let sealing =
        || Some(Sealing { to: SealedTo::Recipients(vec![recipient.clone()]), cipher: Cipher::best() });
    for way in [damage_head, damage_tail, hide_in_front] {
        let bare = Bare::new(sealing());
        bare.change(&ALL, way);
        let _ = bare.restore(None).expect_err("no key is given");
        let _ = bare.restore(Some(&keys)).expect("it opens");
    }
    for lie in [false, true] {
        let bare = Bare::new(sealing());
        bare.change(&ALL, damage_tail);
        bare.change(&ALL, damage_head);
        bare.change(if lie { &ALL } else { &[] }, |file| forged::forge(file, 0));
        let (class, words) = class(&bare.restore(None).expect_err("its seal is lost"));
        assert_eq!((class, words.contains("every copy of its seal is lost")), (Class::Lost, true), "{words}");
    }
}
