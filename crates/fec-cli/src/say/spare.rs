//! The loss that a sidecar could still mend, in words.

use fec_base::names::bytes;
use fec_sidecar::examine::Spare;

/// The object of a sentence: the bytes that could be lost, beside what is damaged already if `is_further`.
pub(crate) fn spare(spare: &Spare, is_further: bool) -> String {
    let further = if is_further { "further " } else { "" };
    let share = |lost: u64| 100.0 * lost as f64 / spare.of.max(1) as f64;
    let of_blocks = |lost: u64| format!("{:.1} % of the blocks ({})", share(lost), bytes(lost));
    match spare.scattered == spare.anywhere {
        _ if spare.of == 0 => "nothing".to_owned(),
        true if spare.anywhere == spare.of => format!("the loss of all {}", bytes(spare.of)),
        true => format!("any {further}{}, wherever they are", of_blocks(spare.anywhere)),
        false => {
            let gap = bytes(spare.one_piece);
            format!("a {further}gap of up to {gap}, or {} at random", of_blocks(spare.scattered))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_lost_is_said_as_it_is() {
        const MB: u64 = 1 << 20;
        let said = |one_piece, anywhere, scattered| {
            spare(&Spare { one_piece, anywhere, scattered, of: 200 * MB }, false)
        };
        assert_eq!(said(32 * MB, 32 * MB, 32 * MB), "any 16.0 % of the blocks (32 MiB), wherever they are");
        assert_eq!(said(200 * MB, 200 * MB, 200 * MB), "the loss of all 200 MiB");
        assert_eq!(
            said(31 * MB, 7 * MB, 30 * MB),
            "a gap of up to 31 MiB, or 15.0 % of the blocks (30 MiB) at random"
        );
        assert_eq!(spare(&Spare::default(), true), "nothing");
    }
}
