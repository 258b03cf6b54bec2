//! Live streams through lossy lines: encoding and decoding, rebuilt packets and lost ones, beside an ideal code on the
//! same line; and the transport without any code.

use super::window::{PAYLOAD, SOURCES};
use crate::error::{Error, Result};
use crate::lab::{Lab, megabits};
use crate::loopback::{self, Transport};
use crate::rows::filled;
use crate::table::{FigureTable, Findings, figure, key};
use fec_core::block::ShardBuf;
use fec_core::gf256::kernel::Backend;
use fec_core::window::simulate::{self, Generator};
use fec_core::window::{Decoder, Encoder, Event, Limits, Profile, Ratio, StreamSettings};
use fec_live::loss::{Loss, LossModel};
use std::time::Duration;

/// Profiles with their block; the ideal code has the windows of the first one.
const PROFILES: [(Profile, u16); 3] =
    [(Profile::Bounded, 240), (Profile::ClassicBlocks, 240), (Profile::Blocks, 240)];

const WINDOW: u32 = 6000;

/// Loss models, unless others are requested.
const MODELS: [&str; 3] = ["random:0.1", "ge:0.05,50", "burst:300"];

/// The seed of loss models: every run loses the same packets.
const SEED: u64 = 1;

/// Most time of measuring each way of the transport.
const TRANSPORT: Duration = Duration::from_secs(1);

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    let models = match &lab.options.losses[..] {
        [] => MODELS.iter().map(|text| text.parse().expect("a loss model")).collect(),
        asked => asked.to_vec(),
    };
    // Whole windows, as many as memory allows, since their packets are kept.
    let window_bytes = u64::from(WINDOW) * (PAYLOAD as u64 + 100) * (SOURCES as u64 + 1) / SOURCES as u64;
    let windows =
        (lab.settings.max_memory / 2 / window_bytes).clamp(2, if lab.options.quick { 3 } else { 5 });
    let count = windows * u64::from(WINDOW);
    let judged = count - u64::from(WINDOW);
    let mut table = table(count);
    lab.plan(PROFILES.len() * (1 + models.len()) + 2);
    // The lines start before the work: a file that is no trace is refused at once.
    models.iter().try_for_each(|loss| start(loss).map(drop))?;
    let settings = PROFILES.map(|(profile, block)| settings(lab, profile, block));
    let lines = models.iter().map(|loss| Ok((loss, lost_by_ideal_code(loss, &settings[0], count, judged)?)));
    let lines: Vec<(&Loss, usize)> = lines.collect::<Result<_>>()?;
    let payloads = filled(SOURCES, PAYLOAD.next_multiple_of(64));
    for settings in &settings {
        profile_rows(lab, &mut table, settings, &payloads, count, &lines)?;
    }
    let mut notes = vec![
        format!("losses of the first {judged} packets: repair packets for the others would come later"),
        "the ideal code has random coefficients over the windows of bounded, on the same line; times are those of a whole stream, with the making of encoder or decoder".to_owned(),
    ];
    let transport = transport(lab, &mut notes);
    Ok(Findings::new(vec![table, transport], notes))
}

fn table(count: u64) -> FigureTable {
    FigureTable::new(
        "stream",
        format!(
            "{count} packets of {PAYLOAD} B, one repair packet for {SOURCES}, window {WINDOW}, one thread: Mb/s are payload bits"
        ),
        [
            key("profile", "profile"),
            key("loss", "loss"),
            figure("encode_us", "encode µs", 0),
            figure("encode_megabits_per_second", "encode Mb/s", 0),
            figure("decode_us", "decode µs", 0),
            figure("decode_megabits_per_second", "decode Mb/s", 0),
            figure("lost", "lost", 0),
            figure("rebuilt", "rebuilt", 0),
            figure("lost_for_good", "lost for good", 0),
            figure("ideal_lost_for_good", "by ideal code", 0),
        ],
    )
}

/// A line that loses the same packets each time.
fn start(loss: &Loss) -> Result<LossModel> {
    loss.start(SEED).map_err(|cause| Error::Loss { loss: loss.clone(), cause: cause.into() })
}

/// Number of packets below `judged` that an ideal code loses for good.
fn lost_by_ideal_code(loss: &Loss, settings: &StreamSettings, count: u64, judged: u64) -> Result<usize> {
    let mut line = start(loss)?;
    let outcome = simulate::stream(Generator::Ideal, settings, count, || line.next_is_lost())?;
    Ok(outcome.lost.iter().filter(|seq| **seq < judged).count())
}

/// Encodes `count` payloads, and decodes the packets that come through each line, beside the losses of an ideal code.
fn profile_rows(
    lab: &mut Lab,
    table: &mut FigureTable,
    settings: &StreamSettings,
    payloads: &ShardBuf,
    count: u64,
    lines: &[(&Loss, usize)],
) -> Result<()> {
    let (name, backend) = (settings.profile.name(), lab.settings.backend);
    let bytes = count * PAYLOAD as u64;
    let judged = count - u64::from(WINDOW);
    let sent = SentStream::new(settings, backend, payloads, count)?;
    let encoded = lab.measure(&format!("encode, {name}"), false, || {
        let mut encoder = Encoder::new(settings, backend).expect("it was made before");
        push(&mut encoder, payloads, count, &mut |packet| {
            std::hint::black_box(packet);
        });
    });
    for (loss, ideal) in lines {
        let arrived = sent.through(start(loss)?);
        let mut losses = Losses::default();
        let decoded = lab.measure(&format!("decode, {name}, {loss}"), false, || {
            losses = decode(limits(settings), backend, &arrived, judged);
        });
        let (Some(encoded), Some(decoded)) = (&encoded, decoded) else { continue };
        table.row([
            ("profile", name.into()),
            ("loss", loss.to_string().into()),
            ("encode_us", encoded.time.scaled(1e6).into()),
            ("encode_megabits_per_second", megabits(bytes, encoded.time.median).into()),
            ("decode_us", decoded.time.scaled(1e6).into()),
            ("decode_megabits_per_second", megabits(bytes, decoded.time.median).into()),
            ("lost", (losses.rebuilt + losses.lost).into()),
            ("rebuilt", losses.rebuilt.into()),
            ("lost_for_good", losses.lost.into()),
            ("ideal_lost_for_good", (*ideal).into()),
        ]);
    }
    Ok(())
}

fn settings(lab: &Lab, profile: Profile, block: u16) -> StreamSettings {
    StreamSettings {
        stream_id: 1,
        window: WINDOW,
        block,
        payload: PAYLOAD as u16,
        profile,
        ratio: Ratio::new(1, SOURCES as u16).expect("neither is 0"),
        limit: lab.settings.max_window,
    }
}

fn limits(settings: &StreamSettings) -> Limits {
    Limits { window_bytes: settings.limit, ..Limits::default() }
}

/// Sends `count` payloads.
fn push(encoder: &mut Encoder, payloads: &ShardBuf, count: u64, emit: &mut dyn FnMut(&[u8])) {
    for seq in 0..count as usize {
        let payload = &payloads.row(seq % payloads.rows())[..PAYLOAD];
        encoder.push(payload, emit).expect("the payload fits, and there are few");
    }
}

/// All packets of a stream, in the order of sending.
struct SentStream {
    bytes: Vec<u8>,
    /// End of each packet in `bytes`.
    ends: Vec<usize>,
}

impl SentStream {
    fn new(
        settings: &StreamSettings,
        backend: Backend,
        payloads: &ShardBuf,
        count: u64,
    ) -> Result<SentStream> {
        let mut encoder = Encoder::new(settings, backend)?;
        let mut sent = SentStream { bytes: Vec::new(), ends: Vec::new() };
        push(&mut encoder, payloads, count, &mut |packet| {
            sent.bytes.extend_from_slice(packet);
            sent.ends.push(sent.bytes.len());
        });
        Ok(sent)
    }

    /// The packets that arrive.
    fn through(&self, mut line: LossModel) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let packets = starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end]);
        packets.filter(|_| !line.next_is_lost()).collect()
    }
}

/// The fates of the packets that were lost on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Losses {
    rebuilt: usize,
    lost: usize,
}

/// Receives packets, and counts those with numbers below `judged`.
fn decode(limits: Limits, backend: Backend, arrived: &[&[u8]], judged: u64) -> Losses {
    let mut decoder = Decoder::new(limits, backend);
    let mut losses = Losses::default();
    let mut drain = |decoder: &mut Decoder| {
        while let Some(event) = decoder.next() {
            match event {
                Event::Packet { seq, payload, rebuilt } => {
                    std::hint::black_box(payload);
                    losses.rebuilt += usize::from(rebuilt && seq < judged);
                }
                Event::Gap { first, count } => {
                    losses.lost += (first + count).min(judged).saturating_sub(first) as usize;
                }
                Event::End => break,
            }
        }
    };
    for packet in arrived {
        decoder.receive(packet);
        drain(&mut decoder);
    }
    decoder.give_up_before(u64::MAX);
    drain(&mut decoder);
    losses
}

/// Packets over loopback, without any code.
fn transport(lab: &mut Lab, notes: &mut Vec<String>) -> FigureTable {
    let columns = [
        key("way", "way"),
        figure("sent", "sent", 0),
        figure("received", "received", 0),
        figure("packets_per_second", "packets/s", 0),
        figure("megabits_per_second", "Mb/s", 0),
    ];
    let title = format!("Packets of {PAYLOAD} B over loopback, two threads, no code: what arrives");
    let mut table = FigureTable::new("transport", title, columns);
    for (way, name) in [(Transport::Batched, "GSO and GRO"), (Transport::Single, "a system call for each")] {
        let Some(share) = lab.share(&format!("loopback, {name}")) else { continue };
        match loopback::measure(way, PAYLOAD, share.min(TRANSPORT)) {
            Ok(rate) => table.row([
                ("way", name.into()),
                ("sent", (rate.sent as usize).into()),
                ("received", (rate.received as usize).into()),
                ("packets_per_second", rate.per_second.into()),
                ("megabits_per_second", (rate.per_second * PAYLOAD as f64 * 8e-6).into()),
            ]),
            Err(e) => notes.push(format!("loopback, {name}: not measured: {e}")),
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transmissions 10 and 11 are packets 9 and 10, behind a repair packet: lost and rebuilt. All packets of a burst
    /// that no window can repair are counted.
    #[test]
    fn losses_are_counted_where_they_are_judged() {
        let ratio = Ratio::new(1, SOURCES as u16).expect("neither is 0");
        let settings = StreamSettings {
            stream_id: 1,
            window: 120,
            block: 24,
            payload: PAYLOAD as u16,
            profile: Profile::Bounded,
            ratio,
            limit: 1 << 20,
        };
        let payloads = filled(SOURCES, PAYLOAD.next_multiple_of(64));
        let sent = SentStream::new(&settings, Backend::best(), &payloads, 600).expect("a stream");
        assert_eq!(sent.ends.len(), 700);
        let losses = |loss: &str, judged| {
            let line = loss.parse::<Loss>().expect("a model").start(SEED).expect("no file");
            decode(limits(&settings), Backend::best(), &sent.through(line), judged)
        };
        assert_eq!(losses("burst:2,10", 600), Losses { rebuilt: 2, lost: 0 });
        assert_eq!(losses("burst:2,10", 10), Losses { rebuilt: 1, lost: 0 });
        assert_eq!(losses("burst:2,10", 9), Losses::default());
        // 210 transmissions from packet 180 on are 180 source packets, of which 20 rows can give back no more.
        let Losses { rebuilt, lost } = losses("burst:210,210", 600);
        assert_eq!(rebuilt + lost, 180);
        assert!(lost > 150, "{lost}");
    }
}
