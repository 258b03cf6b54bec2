//! Advice for errors of live streams, in terms of the command's options.

use fec_base::names::show;
use fec_core::format::packet::PacketError;
use fec_core::window::SettingsError;
use fec_live::{LiveError, Refusal};

/// The advice for an error.
pub(crate) fn help(error: &LiveError) -> Option<String> {
    let fixed = match error {
        LiveError::Settings(cause) => of_settings(cause),
        LiveError::NotAnAddress(_) => {
            "write udp://HOST:PORT, udp://[::1]:PORT or, to receive on all interfaces, udp://:PORT"
        }
        LiveError::OtherScheme(_) => {
            "send to udp://HOST:PORT; through anything else, pipe it:\n  fec encode --stream -o - | ..."
        }
        LiveError::OptionsInAddress { names, .. } => {
            return Some(names.iter().map(|name| of_option(name)).collect::<Vec<_>>().join("\n"));
        }
        LiveError::PlaceToReceive => "to send, name who receives: -o udp://HOST:PORT, or a multicast group",
        LiveError::InterfaceMissing => "name the interface: --interface eth0, or udp://[fe80::1%eth0]:PORT",
        LiveError::TwoInterfaces(_) => "leave --interface out, or give the same name twice",
        LiveError::IncompleteAddress => "name both: -o udp://HOST:PORT",
        LiveError::Unresolved(_) | LiveError::NoAddress => "give a name that resolves, or an IP address",
        LiveError::Interface { name, .. } => return Some(format!("is there an interface {}?", show(name))),
        LiveError::AddressInUse(_) => "another program receives there: choose another port",
        LiveError::NotLocal(_) => "it is no address of this machine; udp://:PORT receives on all of them",
        LiveError::PacketsTooLong { most } => {
            return Some(format!("choose a --packet of at most {most} bytes; 1174 pass nearly everywhere"));
        }
        LiveError::DatagramTooLong { most: Some(most), .. } => {
            return Some(format!("the way there takes smaller packets only: choose --packet {most}"));
        }
        LiveError::DatagramTooLong { .. } => {
            "the way there takes smaller packets only: choose a smaller --packet"
        }
        LiveError::Unreachable(_) => {
            "there is no way to that address; for multicast name the network with --interface"
        }
        LiveError::LongGap { .. } => "go on behind gaps with --gap skip",
        LiveError::LostForGood(_) => "--gap skip and --gap zero go on behind a gap",
        LiveError::NothingCame { foreign: 0, damaged: 0 } => {
            "is it what fec encode --stream writes, or where it sends to?"
        }
        LiveError::NothingCame { foreign: 0, damaged } => {
            return Some(format!("{damaged} packets or frames came that are damaged or none"));
        }
        LiveError::NothingCame { foreign, .. } => {
            return Some(format!("{foreign} packets of other streams came: see --stream-id"));
        }
        LiveError::NothingAccepted(Refusal::Packet(PacketError::Authentication(1 | 2))) => {
            "it is a sealed live stream: give its key with --key-file, or --passphrase"
        }
        LiveError::NothingOpened { forged: 0, .. } => {
            "they are not sealed: leave out --key-file to take what anybody can have sent"
        }
        LiveError::NothingOpened { .. } => {
            "does the sender have the same key? somebody else may send here too"
        }
        LiveError::Stale(_) => {
            "somebody may repeat a recording; if a clock is wrong, set it, or give --max-age more seconds, or any"
        }
        LiveError::ShortPassphrase { .. } => {
            "a key cannot be guessed: fec keygen --stream -o FILE makes one, for --key-file FILE at both ends;\nor take \
             five words or more that dice chose"
        }
        LiveError::KeyFile => "fec keygen --stream -o FILE makes one",
        LiveError::NothingAccepted(_) => "a newer fec, or --max-memory for a large window, may help",
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// The advice for an option that other programs take in an address.
fn of_option(name: &str) -> String {
    let advice = match name {
        "pkt_size" => "--packet BYTES of the sender; receivers take packets of any length",
        "ttl" => "--ttl HOPS of the sender",
        "localaddr" => "--interface NAME; a receiver also by its address: udp://ADDRESS:PORT",
        "fifo_size" | "buffer_size" | "recv_buffer_size" | "rcvbuf" | "sndbuf" => {
            "leave it out: fec asks for all that the system gives"
        }
        "overrun_nonfatal" => "leave it out: what finds no room is lost, is mended, and ends nothing",
        "reuse" | "reuse_socket" => "leave it out: receivers of a multicast group share its port",
        "timeout" => "--idle-ms MS for a stream that falls silent, --wait-ms MS for one that does not begin",
        "latency" => "--latency MS",
        "bitrate" => "--mbps N",
        "passphrase" => "--passphrase, which asks for it, or --key-file FILE",
        _ => "fec has no such option in an address; its own: fec encode --help, fec decode --help",
    };
    format!("{}: {advice}", show(name))
}

/// The advice for settings that no stream can have.
pub(crate) fn of_settings(cause: &SettingsError) -> &'static str {
    match cause {
        SettingsError::Memory { .. } => {
            "choose a smaller --window or --packet, or allow more with --max-memory"
        }
        SettingsError::Window(_) => "choose another --window",
        SettingsError::Payload(_) => "choose another --packet",
        SettingsError::Block(_) => "choose another --block",
        _ => "choose fewer repair packets with --rate, or another --profile",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_live::address::Address;
    use std::path::Path;

    /// Each option that ffmpeg takes in an address has its own advice, and so has one that nobody knows.
    #[test]
    fn options_in_an_address_are_answered_one_by_one() {
        let names = "pkt_size=1316&ttl=4&localaddr=10.0.0.1&fifo_size=9&overrun_nonfatal=1&buffer_size=9&reuse=1&\
                     timeout=5&other=1";
        let refused = Address::parse(Path::new(&format!("udp://@:5000?{names}"))).expect_err("options");
        let advice = help(&refused).expect("advice");
        let lines: Vec<&str> = advice.lines().collect();
        assert_eq!(lines.len(), 9, "{advice}");
        for (line, (name, words)) in lines.iter().zip([
            ("pkt_size", "--packet"),
            ("ttl", "--ttl"),
            ("localaddr", "--interface"),
            ("fifo_size", "leave it out"),
            ("overrun_nonfatal", "leave it out"),
            ("buffer_size", "leave it out"),
            ("reuse", "leave it out"),
            ("timeout", "--idle-ms"),
            ("other", "no such option"),
        ]) {
            assert!(line.starts_with(&format!("{name}: ")) && line.contains(words), "{line}");
        }
    }
}
