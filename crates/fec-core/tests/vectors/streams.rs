//! The golden vectors of packets and live streams, sealed ones too.

use super::*;

fn kind(error: &PacketError) -> &'static str {
    match error {
        PacketError::Magic => "magic",
        PacketError::Damaged => "damaged",
        PacketError::Version(_) => "version",
        PacketError::Type(_) => "type",
        PacketError::Authentication(_) => "authentication",
        PacketError::Profile(_) => "profile",
        PacketError::Invalid(_) => "invalid",
        other => panic!("{other:?} is not in the vectors"),
    }
}

/// A packet that breaks no rule is written again as it was.
#[test]
fn packets() {
    for vector in list(&vectors("stream-packets.json"), 200) {
        let name = str_of(vector, "name");
        let bytes = hex(str_of(vector, "packet"));
        let parsed = packet::parse(&bytes);
        assert_eq!(parsed.as_ref().err().map(kind), vector["error"].as_str(), "{name}: {:?}", parsed.err());
        let Ok((parameters, body)) = parsed else { continue };
        let mut out = b"what was there".to_vec();
        match body {
            Body::Source { seq, payload, checksum } => {
                packet::write_source(&mut out, &parameters, seq, payload, checksum);
                let mut symbol = out[packet::HEADER..].to_vec();
                symbol.resize(parameters.symbol_len(), 0);
                let opened = packet::open_symbol(parameters.stream_id, seq, &symbol);
                assert_eq!(opened, Some((payload, checksum)), "{name}");
                let wrong = |symbol: &[u8]| packet::open_symbol(parameters.stream_id, seq, symbol).is_none();
                if let Some(padding) = symbol.get_mut(6 + payload.len()) {
                    *padding = 1;
                    assert!(wrong(&symbol), "{name}: its padding is not zero");
                    symbol[6 + payload.len()] = 0;
                }
                symbol[0] ^= 1;
                assert!(wrong(&symbol), "{name}: its checksum is wrong");
            }
            Body::Repair { row, first, count, part, symbol } => {
                let row = RowHeader { row, first, count, part };
                packet::write_repair(&mut out, &parameters, &row, symbol);
            }
            Body::Mark { sent, end } => out = packet::mark(&parameters, sent, end).to_vec(),
        }
        assert_eq!(out, bytes, "{name}");
        out[packet::HEADER - 4..packet::HEADER].fill(0x55);
        packet::restore_checksum(&mut out);
        assert_eq!(out, bytes, "{name}");
    }
}

/// The bytes of the vectors' generator: 64 bits of state, Knuth's MMIX constants.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let next =
        |x: &u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(next(&seed), next).map(|x| (x >> 56) as u8).take(len).collect()
}

/// The payloads of a stream: mostly full, some short, some empty.
fn payloads(vector: &Value) -> Vec<Vec<u8>> {
    let (most, seed) = (number(vector, "packet") as usize, number(vector, "seed"));
    let lens = noise(seed, number(vector, "packets") as usize).into_iter().map(|x| match x {
        0..160 => most,
        160..=170 => 0,
        _ => usize::from(x) * most / 255,
    });
    let lens: Vec<usize> = lens.collect();
    let bytes = noise(seed + 1, lens.iter().sum());
    let starts = lens.iter().scan(0, |end, len| Some(std::mem::replace(end, *end + len)));
    starts.zip(&lens).map(|(start, len)| bytes[start..start + len].to_vec()).collect()
}

/// A sender's packets, byte for byte: the rows that are due, and their content.
#[test]
fn streams() {
    let sha256 = |bytes: &[u8]| HashKind::Sha256.digest(bytes);
    for vector in list(&vectors("stream.json"), 30) {
        let name = str_of(vector, "name");
        let profile = Profile::ALL.into_iter().find(|p| p.name() == str_of(vector, "profile")).unwrap();
        let settings = StreamSettings {
            stream_id: u64::from_str_radix(str_of(vector, "stream_id"), 16).unwrap(),
            window: number(vector, "window") as u32,
            block: number(vector, "block") as u16,
            payload: number(vector, "packet") as u16,
            profile,
            ratio: Ratio::new(number(vector, "repair") as u16, number(vector, "source") as u16).unwrap(),
            limit: WINDOW_LIMIT,
        };
        let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
        let (mut repairs, mut all, mut last) = (0, Vec::new(), Vec::new());
        let expected = list(&vector["repairs"], 0);
        let mut emit = |packet: &[u8]| {
            if packet[5] == 1 {
                let start = expected.get(repairs).and_then(Value::as_str).map(hex);
                assert_eq!(start.as_deref(), Some(&sha256(packet)[..8]), "{name}, repair packet {repairs}");
                repairs += 1;
            }
            all.extend((packet.len() as u32).to_le_bytes());
            all.extend(packet);
            last = packet.to_vec();
        };
        for payload in payloads(vector) {
            encoder.push(&payload, &mut emit).unwrap();
        }
        encoder.finish(&mut emit);
        assert_eq!((repairs, last), (expected.len(), hex(str_of(vector, "end"))), "{name}");
        assert_eq!(sha256(&all).to_vec(), hex(str_of(vector, "sha256")), "{name}");
    }
}

/// A call or report that is good comes back byte for byte; each bad one breaks the rule that it is made for.
#[test]
fn calls_and_reports() {
    for vector in list(&vectors("stream-reports.json"), 40) {
        let (name, bytes) = (str_of(vector, "name"), hex(str_of(vector, "packet")));
        let parsed = report::parse(&bytes);
        assert_eq!(parsed.as_ref().err().map(kind), vector["error"].as_str(), "{name}");
        let Ok((parameters, control)) = parsed else { continue };
        let content = &vector["content"];
        let field = |name: &str| str_of(content, name).parse::<u64>().expect("a number");
        let again = match control {
            Control::Call(call) => {
                let answers =
                    list(&content["answers"], 0).iter().map(|x| x.as_str().unwrap().parse().unwrap());
                assert_eq!(call.answers, answers.collect::<Vec<u64>>(), "{name}");
                let told = (call.number, call.time, call.token);
                assert_eq!(told, (field("number"), field("time"), field("token")), "{name}");
                assert!(report::is_call(&bytes));
                call.to_bytes(&parameters)
            }
            Control::Report(of) => {
                let told = [of.receiver, of.token, of.challenge, of.number, of.time, of.held.into()];
                let names = ["receiver", "token", "challenge", "number", "time", "held"];
                assert_eq!(told, names.map(field), "{name}");
                let told = [of.lacking.into(), of.clock, of.begin, of.heard, of.received, of.rows];
                let names = ["lacking", "clock", "begin", "heard", "received", "rows"];
                assert_eq!(told, names.map(field), "{name}");
                let told = [of.oldest, of.lost, of.bursts.into(), of.longest.into(), of.delay.into()];
                assert_eq!(told, ["oldest", "lost", "bursts", "longest", "delay"].map(field), "{name}");
                assert!(!report::is_call(&bytes));
                of.to_bytes(&parameters).to_vec()
            }
        };
        assert_eq!(again, bytes, "{name}");
        // A reader of the stream takes neither for a packet of it.
        assert!(matches!(packet::parse(&bytes), Err(PacketError::Type(3 | 4))), "{name}");
    }
}

#[test]
fn heads_of_sealed_packets() {
    for vector in list(&vectors("stream-sealed.json"), 10) {
        let (plain, sealed) = (hex(str_of(vector, "packet")), hex(str_of(vector, "sealed")));
        let read = sealed_packet::parse(&sealed).expect("it is sealed");
        let says = (u64::from(read.authentication), u64::from(read.time), read.counter);
        let number = |field: &str| number(vector, field);
        assert_eq!(says, (number("authentication"), number("time"), number("counter")));
        assert_eq!(read.stream_id.to_le_bytes(), plain[8..16]);
        assert_eq!(read.nonce(), sealed[32..44]);
        assert_eq!(sealed_packet::head(&plain, read.authentication, read.time, read.counter), sealed[..44]);
        assert_eq!(
            (sealed_packet::is_sealed(&plain), sealed_packet::is_sealed(&sealed)),
            (Some(false), Some(true))
        );
        assert_eq!(sealed.len(), plain.len() + sealed_packet::OVERHEAD);
        // The body as a decryption would leave it.
        let mut bytes = sealed;
        bytes[44..][..plain.len() - packet::HEADER].copy_from_slice(&plain[packet::HEADER..]);
        assert_eq!(read.packet(&mut bytes), plain);
    }
}
