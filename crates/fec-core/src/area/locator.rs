//! The polynomial Λ whose roots are the lost positions: its values at positions that are there, and those of its
//! derivative at the lost ones.

use crate::gf65536::{ORDER, exp, log, point};

/// Products of logarithms up to which they are added up one by one.
const FEW: usize = 1 << 20;

/// The values of Λ at positions 0 … `count` − 1, and 1 / Λ' at the lost ones.
///
/// The point of p XOR q is the sum of those of p and q. The logarithms of the differences of all points from the lost
/// ones are therefore a convolution over XOR: a product of transforms of Walsh and Hadamard modulo 65,535, in which
/// 2^16 is 1.
pub(super) fn locator(lost: &[usize], count: usize) -> (Vec<u16>, Vec<u16>) {
    let logs: Box<dyn Fn(usize) -> u32> = if lost.len() * (count + lost.len()) <= FEW {
        Box::new(|position| {
            let others = lost.iter().filter(|&&other| other != position);
            (others.map(|other| u64::from(log_of(position ^ other))).sum::<u64>() % u64::from(ORDER)) as u32
        })
    } else {
        let end = count.max(lost[lost.len() - 1] + 1);
        let logs = convolved(lost, end.next_power_of_two());
        Box::new(move |position| logs[position])
    };
    let mut values: Vec<u16> = (0..count).map(|position| exp(logs(position))).collect();
    lost.iter().filter(|&&position| position < count).for_each(|&position| values[position] = 0);
    (values, lost.iter().map(|&position| exp(ORDER - logs(position))).collect())
}

/// The logarithm of the point of a position that is not 0.
fn log_of(position: usize) -> u16 {
    log(point(position as u16))
}

/// Sums of logarithms of the differences of the first `len` points from the lost ones, but for those of a point from
/// itself.
fn convolved(lost: &[usize], len: usize) -> Vec<u32> {
    let mut logs: Vec<u32> = (0..len).map(|p| if p == 0 { 0 } else { log_of(p).into() }).collect();
    let mut marks = vec![0; len];
    lost.iter().for_each(|&position| marks[position] = 1);
    walsh(&mut logs);
    walsh(&mut marks);
    // 1 / 2^a is 2^(16 − a).
    let shift = (16 - len.trailing_zeros()) % 16;
    for (mark, log) in marks.iter_mut().zip(logs) {
        let product = u64::from(*mark) * u64::from(log) % u64::from(ORDER);
        *mark = ((product << shift) % u64::from(ORDER)) as u32;
    }
    walsh(&mut marks);
    marks.iter().map(|sum| sum % ORDER).collect()
}

/// The transform, of numbers of at most 65,535 into such.
fn walsh(values: &mut [u32]) {
    let fold = |sum: u32| (sum & ORDER) + (sum >> 16);
    let mut width = 1;
    while width < values.len() {
        for pair in values.chunks_exact_mut(2 * width) {
            let (low, high) = pair.split_at_mut(width);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (fold(*a + *b), fold(*a + ORDER - *b));
            }
        }
        width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf65536::{inv, mul};

    #[test]
    #[cfg_attr(miri, ignore = "the logarithms take too long")]
    fn values_are_products_of_differences() {
        let lost: Vec<usize> = (0..700).map(|i| 3 * i + i % 2).collect();
        let of = |position: usize| {
            let others = lost.iter().filter(|&&other| other != position);
            others.fold(1, |product, other| mul(product, point((position ^ other) as u16)))
        };
        let sums = convolved(&lost, 4096);
        for (few, many) in [(&lost[..3], 64), (&lost[..], 2048)] {
            let (values, inverses) = locator(few, many);
            for (p, &value) in values.iter().enumerate().step_by(5) {
                let right = few.iter().fold(1, |product, q| mul(product, point((p ^ q) as u16)));
                assert_eq!(value, right, "position {p}, {} lost", few.len());
            }
            assert_eq!(inverses.len(), few.len());
        }
        let (_, inverses) = locator(&lost, 2048);
        for (i, &position) in lost.iter().enumerate().step_by(7) {
            assert_eq!(inverses[i], inv(of(position)));
            assert_eq!(exp(sums[position]), of(position));
        }
    }
}
