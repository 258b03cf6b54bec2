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
use std::path::{Path, PathBuf};

const POLICY: Policy = Policy::new().with_sync(false);

/// A folder with a payload, and two encodings of it; a shard file is missing.
struct Encoded {
    folder: tempfile::TempDir,
    payload: Vec<u8>,
    options: Options,
}

impl Encoded {
    fn new() -> Encoded {
        let folder = tempfile::tempdir().expect("a folder");
        let payload = (0..4_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 17) as u8).collect();
        let options = Options { set_size: Some(64 << 10), ..Options::new(Code::new(10, 4).expect("a code")) };
        let place = Encoded { folder, payload, options };
        let (payload, options, context) = (&place.payload, &place.options, Context::default());
        fs::write(place.at("payload"), payload).expect("a file");
        let shards = Folder::new(place.at("shards"), POLICY);
        let _ = encode::to_store(payload, b"name", &shards, options, &context).expect("shards");
        let container = place.at("container");
        let _ =
            encode::to_file(Source::Payload(payload), &container, POLICY, options, &context).expect("one");
        fs::remove_file(place.at("shards/name.003.shard")).expect("a shard");
        place
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    fn open(&self, name: &str, context: &Context<'_>) -> fecfile::error::Result<Archive> {
        Archive::open(&Input::of_paths(&[self.at(name)])?, None, context)
    }
}

#[test]
fn every_way_to_encode_can_be_cancelled() {
    let place = Encoded::new();
    let payload_digests = PayloadDigests { sha256: true, blake3: false };
    let digests = Options { payload_digests, ..place.options.clone() };
    ends("shard files", place.home(), |context, out| {
        encode::to_store(&place.payload, b"name", &Folder::new(out, POLICY), &place.options, context)
            .map(drop)
    });
    ends("a container", place.home(), |context, out| {
        let source = SourceFile::open(&place.at("payload"), context)?;
        encode::to_file(Source::Payload(&source), out, POLICY, &place.options, context).map(drop)
    });
    ends("digests", place.home(), |context, out| {
        encode::to_file(Source::Payload(&place.payload), out, POLICY, &digests, context).map(drop)
    });
    let grouped = Options { grouping: Grouping::Sets(4), ..place.options.clone() };
    ends("a pipe", place.home(), |context, _| {
        let mut pipe = &place.payload[..];
        let source = Source::Pipe(&mut pipe, fecfile::error::Place::Nowhere);
        encode::to_writer(source, io::sink(), &fecfile::error::Place::Nowhere, &grouped, context).map(drop)
    });
    ends("what is kept", place.home(), |context, _| {
        let output = keep::Output::File(&place.at("container"));
        keep::encode(&place.payload, output, POLICY, &place.options, context).map(drop)
    });
}

#[test]
fn every_way_to_decode_can_be_cancelled() {
    let place = Encoded::new();
    for name in ["shards", "container"] {
        ends(name, place.home(), |context, out| {
            place
                .open(name, context)?
                .restore(Destination::File(out, POLICY), Wish::default(), context)
                .map(drop)
        });
        ends(name, place.home(), |context, _| {
            let wish = Wish { strict: true, ..Wish::default() };
            place.open(name, context)?.restore(Destination::writer(&mut io::sink()), wish, context).map(drop)
        });
        ends(name, place.home(), |context, _| place.open(name, context)?.verify(false, context).map(drop));
        ends(name, place.home(), |context, _| place.open(name, context)?.verify(true, context).map(drop));
    }
    ends("a range", place.home(), |context, out| {
        let all = PayloadRange::ALL;
        place
            .open("container", context)?
            .restore_range(all, None, Destination::File(out, POLICY), context)
            .map(drop)
    });
    ends("a repair", place.home(), |context, out| {
        let how = Repair { out: Some(out), policy: POLICY, dry_run: false };
        place.open("shards", context)?.repair(how, context).map(drop)
    });
    ends("a container in a pipe", place.home(), |context, out| {
        let input = File::open(place.at("container")).expect("a file");
        let pipe =
            Pipe { input, place: Path::new("-"), beginning: Beginning::Other, wanted: None, keys: None };
        pipe::restore(pipe, Destination::File(out, POLICY), context).map(drop)
    });
    ends("a pipe that is verified", place.home(), |context, _| {
        let input = File::open(place.at("container")).expect("a file");
        Archive::in_pipe(input, Path::new("-"), Beginning::Other, None, context)?
            .verify(false, context)
            .map(drop)
    });
}
