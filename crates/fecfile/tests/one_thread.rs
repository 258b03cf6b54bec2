//! An operation that gets a single thread computes on that thread alone.

use fec_base::io::folder::Folder;
use fec_base::io::output::{Destination, Policy};
use fec_base::io::source::SourceFile;
use fec_core::block::Code;
use fec_keys::age::{Identity, KeyKind, Recipient};
use fec_keys::cipher::Cipher;
use fecfile::payload::{Options, PayloadDigests, Source};
use fecfile::seal::{SealedTo, Sealing};
use fecfile::{Archive, Context, Input, Settings, Wish, encode};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn tasks() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux").count()
}

/// Runs `work`; returns the largest number of additional threads of this process meanwhile.
fn more_threads(work: impl FnOnce()) -> usize {
    let (has_begun, is_over, most) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The thread of the call before may still be there. It must not count only here.
            while !has_begun.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(tasks(), Ordering::Relaxed);
            }
        });
        let before = tasks();
        has_begun.store(true, Ordering::Release);
        work();
        is_over.store(true, Ordering::Relaxed);
        most.load(Ordering::Relaxed).saturating_sub(before)
    })
}

/// This file has a single test, so that threads of other tests do not count.
#[test]
fn one_thread_is_one_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let payload = folder.path().join("payload");
    let bytes: Vec<u8> = (0..20_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&payload, bytes).expect("a file");
    let context = Context::new(Settings { threads: 1, sync: false, ..Settings::new() });
    let policy = Policy::new().with_force(true).with_sync(false);
    let code = Code::new(10, 4).expect("a code");
    let plain = || Options::new(code);
    let identity = || Identity::generate(KeyKind::X25519).expect("a key").recipient();
    let to: Vec<Recipient> = (0..600).map(|_| identity()).collect();
    let sealing = Sealing { to: SealedTo::Recipients(to), cipher: Cipher::best() };
    let sealed = Options { sealing: Some(Arc::new(sealing)), ..plain() };
    let digested = Options { payload_digests: PayloadDigests { sha256: true, blake3: true }, ..plain() };
    let container = folder.path().join("container");
    let encode = |options: &Options| {
        let source = SourceFile::open(&payload, &context).expect("the file");
        encode::to_file(Source::Payload(&source), &container, policy, options, &context)
            .expect("a container");
    };
    let shards = folder.path().join("shards");
    let of = |path: &Path| Input::of_paths(&[PathBuf::from(path)]).expect("it is there");
    assert_eq!(more_threads(|| encode(&sealed)), 0, "600 recipients");
    assert_eq!(more_threads(|| encode(&digested)), 0, "both digests of the payload");
    let archive = Archive::open(&of(&container), None, &context).expect("an encoding");
    let strict = Wish { strict: true, ..Wish::default() };
    let restore = || {
        let restored = archive.restore(Destination::writer(&mut std::io::sink()), strict, &context);
        assert!(restored.expect("it is restored").is_whole());
    };
    assert_eq!(more_threads(restore), 0, "restoring");
    assert_eq!(more_threads(|| drop(archive.verify(true, &context).expect("it is there"))), 0, "verifying");
    let to_store = || {
        let source = SourceFile::open(&payload, &context).expect("the file");
        let store = Folder::new(shards.clone(), policy);
        encode::to_store(&source, b"payload", &store, &plain(), &context).expect("shard files");
    };
    assert_eq!(more_threads(to_store), 0, "shard files");
    let archive = Archive::open(&of(&shards), None, &context).expect("an encoding");
    assert_eq!(
        more_threads(|| drop(archive.verify(false, &context).expect("it is there"))),
        0,
        "shard files"
    );
}
