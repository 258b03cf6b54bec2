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
        LiveError::KeyFile => "fec keygen --stream -o FILE makes one",
        LiveError::NothingAccepted(_) => "a newer fec, or --max-memory for a large window, may help",
        _ => return None,
    };
    Some(fixed.to_owned())
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
