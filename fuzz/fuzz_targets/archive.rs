//! Containers and shard files as a whole, from memory: any bytes; and our own containers with pieces lost, repeated,
//! moved and changed. The payload restored under a root is the one that was encoded under it.
#![no_main]

use fec_base::io::output::Destination;
use fec_core::digest::Digest;
use fec_core::format::shard_file::{HEADER_LEN, MAGIC};
use fec_fuzz::edit;

use fecfile::{Archive, Context, Input, Object, Settings, Wish, decode_reader, encode_reader, verify_reader};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

struct Encoded {
    payload: Vec<u8>,
    container: Vec<u8>,
    root: Digest,
}

static CONTAINERS: LazyLock<Vec<Encoded>> = LazyLock::new(|| {
    [0, 1, 700, 3000]
        .into_iter()
        .map(|len: u32| {
            let payload: Vec<u8> = (0..len).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let mut container = Vec::new();
            let root = encode_reader(&payload[..], &mut container, &context()).expect("it is encoded").root;
            Encoded { payload, container, root }
        })
        .collect()
});

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(&MAGIC) {
        // Files have a header at both ends: every second header ends a file.
        let headers: Vec<usize> = memchr::memmem::find_iter(bytes, &MAGIC).collect();
        let ends = headers.iter().skip(1).step_by(2).map(|at| (at + HEADER_LEN).min(bytes.len()));
        let mut from = 0;
        let objects = ends.map(|end| {
            let file = &bytes[from.min(end)..end];
            from = end;
            object(file)
        });
        return open(&Input::Several(objects.collect()), None, None);
    }
    let Some((first, rest)) = bytes.split_first() else { return };
    if *first >= 0x80 {
        let mut out = Vec::new();
        let _ = decode_reader(bytes, &mut out, None, &context());
        let _ = verify_reader(bytes, None, &context());
        return open(&Input::One(object(bytes)), None, None);
    }
    let Encoded { payload, container, root } = &CONTAINERS[usize::from(*first) % CONTAINERS.len()];
    let mut damaged = container.clone();
    edit(&mut damaged, rest);
    let mut out = Vec::new();
    if decode_reader(&damaged[..], &mut out, Some(*root), &context()).is_ok() {
        assert!(out == *payload, "what is restored from a pipe is what was encoded");
    }
    open(&Input::One(object(&damaged)), Some(*root), Some(payload));
});

fn context() -> Context<'static> {
    let settings = Settings { threads: 1, sync: false, map: false, ..Settings::new() };
    Context::new(settings)
}

fn object(bytes: &[u8]) -> Object {
    Object::new("input", Arc::new(Arc::<[u8]>::from(bytes))).expect("memory has a size")
}

/// Opens, verifies and restores; a whole payload must be `expected`, if that is known.
fn open(input: &Input, root: Option<Digest>, expected: Option<&Vec<u8>>) {
    let context = context();
    let archive = match Archive::open(input, root, &context) {
        Ok(archive) => archive,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let verified = archive.verify(true, &context);
    let mut out = Vec::new();
    let restored = archive.restore(Destination::writer(&mut out), Wish::default(), &context);
    if let Ok(restored) = &restored
        && restored.is_whole()
    {
        assert!(expected.is_none_or(|expected| out == *expected), "what is restored is what was encoded");
        assert!(verified.is_ok_and(|verified| verified.is_restorable != Some(false)), "and verify says so");
    }
}
