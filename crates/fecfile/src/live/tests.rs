//! Both directions together, over bytes.

use super::LiveError;
use super::output::Output;
use super::receive::{GapPolicy, PacketSource, ReceiveOptions, receive};
use super::received::Received;
use super::send::{PacketDestination, SendOptions, Sent, send};
use crate::context::{Context, Silent};
use crate::error::{Class, ErrorKind, Place};
use crate::io::output::{ANYBODY, FileOut, Policy};
use std::io::Cursor;

/// 3000 packets of 100 bytes, some of which are lost on the way.
fn sent(impairment: &str) -> (Vec<u8>, Vec<u8>, Sent) {
    let payload: Vec<u8> = (0..300_000u32).map(|i| (i / 7) as u8).collect();
    let mut stream = Vec::new();
    let destination = PacketDestination::Bytes(Output::stream(Place::Nowhere, &mut stream));
    let impairment = Some(impairment.parse().unwrap());
    let options = SendOptions { payload: 100, window: 600, block: 60, impairment, ..SendOptions::default() };
    let input = Cursor::new(payload.clone());
    let sent = send(input, Place::Nowhere, destination, &options, &Context::default()).unwrap();
    (payload, stream, sent)
}

fn received(stream: &[u8], output: Output<'_>, gaps: GapPolicy) -> crate::Result<Received> {
    let input = Box::new(Cursor::new(stream.to_vec()));
    let source = PacketSource::Bytes { place: Place::Nowhere, head: Vec::new(), input };
    let options = ReceiveOptions { gaps, ..ReceiveOptions::default() };
    receive(source, output, &options, &mut Silent, &Context::default())
}

#[test]
fn what_is_lost_is_rebuilt_and_counted() {
    let (payload, stream, sent) = sent("random:0.05,reorder:5,seed:2");
    assert_eq!((sent.payload_bytes, sent.source_packets, sent.unsent), (300_000, 3000, 0));
    let mut back = Vec::new();
    let received = received(&stream, Output::stream(Place::Nowhere, &mut back), GapPolicy::Skip).unwrap();
    assert!(received.is_whole() && received.class().is_none());
    assert!(back == payload);
    assert_eq!((received.packets, received.lost, received.parameters), (3000, 0, Some(sent.parameters)));
    assert!(received.rebuilt > 50 && received.arrived < 3000 + sent.repair_packets);
}

#[test]
fn gaps_are_named_filled_or_the_end() {
    let (payload, stream, _) = sent("burst:500,1000");
    let mut back = Vec::new();
    let skipped = received(&stream, Output::stream(Place::Nowhere, &mut back), GapPolicy::Skip).unwrap();
    assert_eq!(skipped.class(), Some(Class::Lost));
    assert_eq!(skipped.gaps.iter().map(|gap| gap.count).sum::<u64>(), skipped.lost);
    assert_eq!(back.len() as u64 + 100 * skipped.lost, 300_000);
    let mut back = Vec::new();
    let seen = received(&stream, Output::stream(Place::Nowhere, &mut back), GapPolicy::Zero).unwrap();
    assert!(seen.arrived > 0);
    let gap = skipped.gaps[0];
    let missing = 100 * gap.first as usize..100 * (gap.first + gap.count) as usize;
    assert!(back.len() == payload.len() && back[missing.clone()].iter().all(|byte| *byte == 0));
    assert!(back[..missing.start] == payload[..missing.start]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let file = FileOut::create(&path, Policy { force: false, sync: false, permissions: ANYBODY }).unwrap();
    let error = received(&stream, Output::file(file), GapPolicy::Fail).unwrap_err();
    assert!(matches!(&error.kind, ErrorKind::Live(LiveError::LostForGood(lost)) if lost.first == gap.first));
    assert_eq!(error.class(), Class::Lost);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn what_is_no_stream_is_told_by_what_it_is() {
    let mut back = Vec::new();
    let error = received(&[7; 5000], Output::stream(Place::Nowhere, &mut back), GapPolicy::Skip).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Live(LiveError::NothingCame { foreign: 0, damaged: 1 })));
    assert!(back.is_empty());
}

#[test]
fn rates_that_cannot_be_kept_are_refused() {
    for mbps in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut stream = Vec::new();
        let destination = PacketDestination::Bytes(Output::stream(Place::Nowhere, &mut stream));
        let options = SendOptions { mbps: Some(mbps), ..SendOptions::default() };
        let context = Context::default();
        let error = send(std::io::empty(), Place::Nowhere, destination, &options, &context).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Live(LiveError::Rate(_))), "{mbps}");
    }
}
