//! Both directions together, over bytes.

use super::key::StreamKey;
use super::output::Output;
use super::receive::{GapPolicy, Opening, PacketSource, ReceiveOptions, receive};
use super::received::Received;
use super::send::{PacketDestination, Sealing, SendOptions, Sent, send};
use super::{LiveError, LostPackets};
use fec_base::context::{Context, Silent};
use fec_base::error::{Class, Place};
use fec_base::io::output::{FileOut, Policy};
use fec_keys::cipher::Cipher;
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

fn received(stream: &[u8], output: Output<'_>, gaps: GapPolicy) -> fec_base::Result<Received> {
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
    let file = FileOut::create(&path, Policy::new().with_sync(false)).unwrap();
    let error = received(&stream, Output::file(file), GapPolicy::Fail).unwrap_err();
    assert!(matches!(error.cause(), Some(LiveError::LostForGood(lost)) if lost.first == gap.first));
    assert_eq!(error.class(), Class::Lost);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays behind");
}

/// The frames of a stream of 400 packets, each with the delimiter behind it, and its payload.
fn framed(stream_id: Option<u64>, sealing: Option<Sealing>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let payload: Vec<u8> = (0..8000u32).map(|i| (i / 3) as u8).collect();
    let mut stream = Vec::new();
    let destination = PacketDestination::Bytes(Output::stream(Place::Nowhere, &mut stream));
    let options =
        SendOptions { stream_id, payload: 20, window: 200, block: 50, sealing, ..SendOptions::default() };
    let context = Context::default();
    let _ = send(Cursor::new(payload.clone()), Place::Nowhere, destination, &options, &context).unwrap();
    let mut frames = vec![Vec::new()];
    for byte in &stream[2..] {
        let frame = frames.last_mut().unwrap();
        frame.push(*byte);
        if frame.ends_with(&[0xFE, 0xFD]) {
            frames.push(Vec::new());
        }
    }
    frames.pop();
    (frames, payload)
}

/// Receives these frames, and gives what came out too.
fn received_of<'a>(
    frames: impl IntoIterator<Item = &'a Vec<u8>>,
    options: &ReceiveOptions,
) -> (fec_base::Result<Received>, Vec<u8>) {
    let stream: Vec<u8> = [0xFE, 0xFD].iter().chain(frames.into_iter().flatten()).copied().collect();
    let source =
        PacketSource::Bytes { place: Place::Nowhere, head: Vec::new(), input: Box::new(Cursor::new(stream)) };
    let mut back = Vec::new();
    let output = Output::stream(Place::Nowhere, &mut back);
    let received = receive(source, output, options, &mut Silent, &Context::default());
    (received, back)
}

/// A stream is whole only if all of it came out, wherever it is cut and however its parts stand.
#[test]
fn whole_is_only_what_begins_at_0_and_reaches_the_end() {
    let key = StreamKey::new([7; 32]);
    for sealing in [None, Some(Sealing { key: key.clone(), cipher: Cipher::best() })] {
        let opening = sealing.as_ref().map(|_| Opening { key: key.clone(), max_age: None });
        let (frames, payload) = framed(None, sealing);
        let (others, marks) = frames.split_at(frames.len() - 3);
        let options = ReceiveOptions { opening, ..ReceiveOptions::default() };
        let strict = ReceiveOptions { gaps: GapPolicy::Fail, ..options.clone() };
        let look = |frames: &[&Vec<u8>], what: &str| {
            let (received, back) = received_of(frames.iter().copied(), &options);
            let received = received.unwrap();
            assert_eq!(received.is_whole(), back == payload && received.ended, "{what}: {received:?}");
            assert_eq!(received.class().is_none(), received.is_whole(), "{what}");
            let (failed, _) = received_of(frames.iter().copied(), &strict);
            match failed {
                Ok(strict) => assert_eq!(strict.is_whole(), received.is_whole(), "{what}"),
                Err(e) => assert!(!received.is_whole() && e.class() == Class::Lost, "{what}: {e}"),
            }
            received
        };
        let all: Vec<&Vec<u8>> = frames.iter().collect();
        for cut in 1..all.len() {
            let _ = look(&all[cut..], &format!("cut before {cut}"));
            let _ = look(&[&all[cut..], &all[..cut]].concat(), &format!("turned by {cut}"));
        }
        let only_marks = look(&marks.iter().collect::<Vec<_>>(), "marks");
        assert_eq!((only_marks.joined_at, only_marks.packets, only_marks.ended), (Some(400), 0, true));
        let first: Vec<_> = marks.iter().chain(others).collect();
        assert!(look(&first, "marks in front").is_whole());
        let backwards: Vec<_> = frames.iter().rev().collect();
        assert!(!look(&backwards, "backwards").is_whole());
    }
}

/// A missing beginning of a file is a gap: it fails where gaps are refused.
#[test]
fn a_beginning_that_is_missing_fails_like_a_gap() {
    let (frames, payload) = framed(None, None);
    let options = ReceiveOptions { gaps: GapPolicy::Fail, ..ReceiveOptions::default() };
    // The first packet is within the first block: it is rebuilt.
    let (received, back) = received_of(&frames[1..], &options);
    assert!(received.unwrap().is_whole() && back == payload);
    for cut in [100, 300, frames.len() - 4, frames.len() - 3] {
        let begins_at = received_of(&frames[cut..], &ReceiveOptions::default()).0.unwrap().joined_at.unwrap();
        let (failed, back) = received_of(&frames[cut..], &options);
        let failed = failed.unwrap_err();
        let Some(LiveError::LostForGood(lost)) = failed.cause() else { panic!("{cut}: {failed}") };
        assert_eq!(*lost, LostPackets { first: 0, count: begins_at });
        assert!(back.is_empty(), "nothing comes out before");
    }
}

/// Two streams in a file make no whole stream, even if one of them is only an end. Each stream can be chosen.
#[test]
fn a_stream_among_others_is_whole_when_it_was_chosen() {
    let ((one, payload), (other, _)) = (framed(Some(1), None), framed(Some(2), None));
    let end = &other[other.len() - 3..];
    for frames in
        [[&one[..], end].concat(), [end, &one[..]].concat(), [&end[..1], &one[..], &end[1..]].concat()]
    {
        let (received, _) = received_of(&frames, &ReceiveOptions::default());
        assert_eq!(received.unwrap().class(), Some(Class::Lost));
        for (stream_id, expected) in [(1, &payload[..]), (2, &[])] {
            let options = ReceiveOptions { stream_id: Some(stream_id), ..ReceiveOptions::default() };
            let (received, back) = received_of(&frames, &options);
            assert_eq!(received.unwrap().is_whole(), stream_id == 1);
            assert!(back == expected, "stream {stream_id}");
        }
    }
}

#[test]
fn what_is_no_stream_is_told_by_what_it_is() {
    let mut back = Vec::new();
    let error = received(&[7; 5000], Output::stream(Place::Nowhere, &mut back), GapPolicy::Skip).unwrap_err();
    assert!(matches!(error.cause(), Some(LiveError::NothingCame { foreign: 0, damaged: 1 })));
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
        assert!(matches!(error.cause(), Some(LiveError::Rate(_))), "{mbps}");
    }
}
