//! Lost packets come back.

use super::common::{packets, payload, receive, settings};
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use fec_core::window::{Order, Profile};

#[test]
fn everything_arrives_without_loss() {
    for profile in Profile::ALL {
        for count in [0, 1, 5, 6, 7, 239, 240, 241, 1000, 3000] {
            let packets = packets(&settings(profile, 960, 100), Backend::best(), count);
            let (output, decoder) =
                receive(packets.iter().map(|p| &p[..]), Backend::best(), Order::InOrder, 100);
            output.assert_complete(count, Order::InOrder);
            assert_eq!((output.lost(), output.rebuilt), (0, 0), "{profile:?}");
            assert_eq!(decoder.statistics().useful_repairs, 0);
        }
    }
}

#[test]
fn light_random_loss_is_repaired_by_every_profile_and_backend() {
    for profile in Profile::ALL {
        for backend in Backend::available() {
            let packets = packets(&settings(profile, 960, 100), backend, 4000);
            for order in [Order::InOrder, Order::Immediate] {
                let mut noise = SplitMix64::new(1);
                let arrived = packets.iter().filter(|_| !noise.chance(0.03)).map(|p| &p[..]);
                let (output, _) = receive(arrived, backend, order, 100);
                output.assert_complete(4000, order);
                assert_eq!(output.lost(), 0, "{profile:?} {backend:?} {order:?}");
                assert!(output.rebuilt > 80);
            }
        }
    }
}

#[test]
fn bursts_up_to_850_of_a_window_of_6000() {
    let packets = packets(&settings(Profile::Bounded, 6000, 400), Backend::best(), 24_000);
    for burst in [41, 257, 500, 850] {
        let arrived = packets.iter().enumerate().filter(|(i, _)| !(9000..9000 + burst).contains(i));
        let (output, _) = receive(arrived.map(|(_, p)| &p[..]), Backend::best(), Order::InOrder, 400);
        output.assert_complete(24_000, Order::InOrder);
        assert_eq!(output.lost(), 0, "burst of {burst}");
    }
}

#[test]
fn payload_lengths_are_kept() {
    assert!(payload(3, 100).len() <= 100);
}
