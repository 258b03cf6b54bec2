//! Protects a payload with 14 shards in a store in memory, damages and loses some of them, and restores it.

use fec_core::block::Code;

use fecfile::io::memory::MemoryStore;
use fecfile::payload::Options;
use fecfile::{Archive, Context, Destination, Input, Wish, encode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let payload: Vec<u8> = (0..1_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (store, context) = (MemoryStore::new(), Context::default());

    // Any 10 of the 14 shards restore the payload. The root names exactly this encoding of exactly these bytes.
    let options = Options::new(Code::new(10, 4)?);
    let root = encode::to_store(&payload, b"numbers", &store, &options, &context)?.root;

    // Three shards are lost, and one is damaged.
    for index in [0, 5, 12] {
        store.remove(format!("numbers.{index:03}.shard")).ok_or("it was there")?;
    }
    let mut damaged = store.get("numbers.007.shard").ok_or("it is there")?.to_vec();
    damaged[50_000] ^= 1;
    store.put("numbers.007.shard", damaged);

    let archive = Archive::open(&Input::of_store(&store)?, Some(root), &context)?;
    let found = archive.verify(false, &context)?;
    println!("restorable: {:?}, may still lose {:?}", found.is_restorable, found.may_still_lose());
    let mut restored = Vec::new();
    let report = archive.restore(Destination::writer(&mut restored), Wish::default(), &context)?;
    assert!(report.is_whole() && restored == payload);
    println!(
        "{} bytes restored, {} of {} sets mended",
        restored.len(),
        report.outcome.mended_sets,
        report.sets
    );
    Ok(())
}
