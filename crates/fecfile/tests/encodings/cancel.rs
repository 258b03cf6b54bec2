//! Every operation ends soon after the caller has cancelled it, and leaves nothing partial behind.

use crate::cancelled::ends;
use fec_base::io::folder::Folder;
use fec_base::io::source::SourceFile;
use fec_core::block::Code;
use fecfile::forms::Beginning;
use fecfile::payload::{Grouping, Options, PayloadDigests, Source};
use fecfile::pipe::{self, Pipe};
use fecfile::{Archive, Context, Destination, Input, PayloadRange, Policy, Repair, Wish, encode, keep};
use std::fs::{self, File};
use std::io;
use std::path::Path;

#[test]
fn every_operation_can_be_cancelled() {
    let home = tempfile::tempdir().expect("a folder");
    let at = |name: &str| home.path().join(name);
    let payload: Vec<u8> = (0..4_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 17) as u8).collect();
    let policy = Policy::new().with_sync(false);
    let options = Options { set_size: Some(64 << 10), ..Options::new(Code::new(10, 4).expect("a code")) };
    let digests =
        Options { payload_digests: PayloadDigests { sha256: true, blake3: false }, ..options.clone() };
    fs::write(at("payload"), &payload).expect("a file");
    let context = Context::default();
    let folder = |path: &Path| Folder::new(path, policy);
    let _ = encode::to_store(&payload, b"name", &folder(&at("shards")), &options, &context).expect("shards");
    let _ = encode::to_file(Source::Payload(&payload), &at("container"), policy, &options, &context)
        .expect("one");
    fs::remove_file(at("shards/name.003.shard")).expect("a shard");
    let open =
        |name: &str, context: &Context<'_>| Archive::open(&Input::of_paths(&[at(name)])?, None, context);
    let home = home.path();

    ends("shard files", home, |context, out| {
        encode::to_store(&payload, b"name", &folder(out), &options, context).map(drop)
    });
    ends("a container", home, |context, out| {
        let source = SourceFile::open(&at("payload"), true)?;
        encode::to_file(Source::Payload(&source), out, policy, &options, context).map(drop)
    });
    ends("digests", home, |context, out| {
        encode::to_file(Source::Payload(&payload), out, policy, &digests, context).map(drop)
    });
    let grouped = Options { grouping: Grouping::Sets(4), ..options.clone() };
    ends("a pipe", home, |context, _| {
        let mut pipe = &payload[..];
        let source = Source::Pipe(&mut pipe, fecfile::error::Place::Nowhere);
        encode::to_writer(source, io::sink(), &fecfile::error::Place::Nowhere, &grouped, context).map(drop)
    });
    ends("what is kept", home, |context, _| {
        let output = keep::Output::File(&at("container"));
        keep::encode(&payload, output, policy, &options, context).map(drop)
    });
    for name in ["shards", "container"] {
        ends(name, home, |context, out| {
            open(name, context)?.restore(Destination::File(out, policy), Wish::default(), context).map(drop)
        });
        ends(name, home, |context, _| {
            let wish = Wish { strict: true, ..Wish::default() };
            open(name, context)?.restore(Destination::writer(&mut io::sink()), wish, context).map(drop)
        });
        ends(name, home, |context, _| open(name, context)?.verify(false, context).map(drop));
        ends(name, home, |context, _| open(name, context)?.verify(true, context).map(drop));
    }
    ends("a range", home, |context, out| {
        let all = PayloadRange::ALL;
        open("container", context)?
            .restore_range(all, None, Destination::File(out, policy), context)
            .map(drop)
    });
    ends("a repair", home, |context, out| {
        let how = Repair { out: Some(out), policy, dry_run: false };
        open("shards", context)?.repair(how, context).map(drop)
    });
    ends("a container in a pipe", home, |context, out| {
        let place = Path::new("-");
        let input = File::open(at("container")).expect("a file");
        let pipe = Pipe { input, place, beginning: Beginning::Other, wanted: None, keys: None };
        pipe::restore(pipe, Destination::File(out, policy), context).map(drop)
    });
    ends("a pipe that is verified", home, |context, _| {
        let input = File::open(at("container")).expect("a file");
        Archive::in_pipe(input, Path::new("-"), Beginning::Other, None, context)?
            .verify(false, context)
            .map(drop)
    });
}
