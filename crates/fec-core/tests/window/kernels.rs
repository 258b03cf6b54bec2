//! Every walk of every backend computes the same sums, at every length and alignment.

use fec_core::gf256::kernel::{Backend, Walk};
use fec_core::gf256::mul;
use fec_core::random::SplitMix64;

/// Rows of noise that begin at different addresses.
struct Rows {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    len: usize,
}

impl Rows {
    fn new(noise: &mut SplitMix64, count: usize, len: usize) -> Rows {
        let starts: Vec<usize> = (0..count).map(|row| row * (len + 80) + noise.index(65)).collect();
        let bytes = (0..count * (len + 80) + 80).map(|_| noise.next() as u8).collect();
        Rows { bytes, starts, len }
    }

    fn slices(&self) -> Vec<&[u8]> {
        self.starts.iter().map(|&start| &self.bytes[start..start + self.len]).collect()
    }
}

fn lengths() -> impl Iterator<Item = usize> {
    (0..300).chain([319, 511, 512, 513, 640, 767, 1024, 1356, 1408])
}

#[test]
fn sums() {
    let mut noise = SplitMix64::new(1);
    for len in lengths() {
        let rows = Rows::new(&mut noise, 9, len);
        let rows = rows.slices();
        let factor = noise.next() as u8;
        let offset = noise.index(64);
        for cuts in [[0, 0, 0], [3, 3, 3], [2, 5, 7], [0, 9, 9], [9, 9, 9], [1, 1, 8]] {
            let [a, b, c] = cuts;
            let classes = [&rows[..a], &rows[a..b], &rows[b..c], &rows[c..]];
            let expected: Vec<u8> = (0..len)
                .map(|i| {
                    let sums = classes.map(|class| class.iter().fold(0, |sum, row| sum ^ row[i]));
                    sums.iter().rev().fold(0, |sum, class| mul(sum, factor) ^ class)
                })
                .collect();
            for backend in Backend::available() {
                for walk in Walk::ALL {
                    let mut room = vec![0xEE; len + 128];
                    backend.sum(walk, &classes, factor, &mut room[offset..offset + len]);
                    assert_eq!(room[offset..offset + len], expected, "{backend:?} {walk:?} {len}");
                    assert!(room[..offset].iter().chain(&room[offset + len..]).all(|byte| *byte == 0xEE));
                }
            }
        }
    }
}

#[test]
fn additions() {
    let mut noise = SplitMix64::new(2);
    for len in lengths() {
        let rows = Rows::new(&mut noise, 2, len);
        let rows = rows.slices();
        let expected: Vec<u8> = rows[0].iter().zip(rows[1]).map(|(a, b)| a ^ b).collect();
        let offset = noise.index(64);
        for backend in Backend::available() {
            for walk in Walk::ALL {
                let mut room = vec![0xEE; len + 128];
                room[offset..offset + len].copy_from_slice(rows[0]);
                backend.add(walk, &mut room[offset..offset + len], rows[1]);
                assert_eq!(room[offset..offset + len], expected, "{backend:?} {walk:?} {len}");
                assert!(room[..offset].iter().chain(&room[offset + len..]).all(|byte| *byte == 0xEE));
            }
        }
    }
}

#[test]
fn products() {
    let mut noise = SplitMix64::new(3);
    for len in lengths() {
        let rows = Rows::new(&mut noise, 40, len);
        let rows = rows.slices();
        let factors: Vec<u8> = rows.iter().map(|_| noise.next() as u8).collect();
        for backend in Backend::available() {
            for count in [0, 1, 2, 15, 16, 17, 37] {
                let mut sum = rows[39].to_vec();
                backend.add_products(&mut sum, &rows[..count], &factors[..count]);
                let expected =
                    |i: usize| (0..count).fold(rows[39][i], |sum, row| sum ^ mul(factors[row], rows[row][i]));
                assert!((0..len).all(|i| sum[i] == expected(i)), "{backend:?} {len} {count}");
            }
            let mut spread = [rows[0].to_vec(), rows[1].to_vec(), rows[2].to_vec()];
            backend.spread(spread.each_mut().map(|row| &mut row[..]), rows[3], [factors[0], factors[1]]);
            for (row, factor) in [1, factors[0], factors[1]].into_iter().enumerate() {
                let expected = |i: usize| rows[row][i] ^ mul(factor, rows[3][i]);
                assert!((0..len).all(|i| spread[row][i] == expected(i)), "{backend:?} {len} {row}");
            }
            let mut mixed: [Vec<u8>; 4] = std::array::from_fn(|row| rows[row].to_vec());
            backend.mix(mixed.each_mut().map(|row| &mut row[..]));
            for (row, mixed) in mixed.iter().enumerate() {
                let others = || (0..4).filter(|&other| other != row);
                let expected = |i: usize| others().fold(0, |sum, other| sum ^ rows[other][i]);
                assert!((0..len).all(|i| mixed[i] == expected(i)), "{backend:?} {len} {row}");
            }
            let mut turned: [Vec<u8>; 3] = std::array::from_fn(|row| rows[row].to_vec());
            let [total, ended, begun] = turned.each_mut();
            backend.turn(total, ended, begun, rows[3]);
            let sum =
                |a: usize, b: usize| rows[a].iter().zip(rows[b]).map(|(a, b)| a ^ b).collect::<Vec<u8>>();
            assert_eq!(turned, [sum(0, 3), sum(1, 0), sum(0, 3)], "{backend:?} {len}");
        }
    }
}

/// Rows in echelon form, of one to three lines from the line of their pivot on.
#[test]
fn eliminations() {
    const WIDTH: usize = 512;
    let mut noise = SplitMix64::new(4);
    for count in [0, 1, 2, 63, 64, 200] {
        let mut rows: Vec<(usize, Vec<u8>)> = Vec::new();
        for position in 0..count {
            let end = (position / 64 * 64 + 64 * (1 + noise.index(3))).min(WIDTH);
            let row = (position / 64 * 64..end).map(|at| if at < position { 0 } else { noise.next() as u8 });
            let mut row: Vec<u8> = row.collect();
            row[position % 64] = 1;
            rows.push((position, row));
        }
        let before: Vec<u8> = (0..WIDTH).map(|at| if at % 5 == 0 { 0 } else { noise.next() as u8 }).collect();
        let (mut expected, mut factors) = (before.clone(), Vec::new());
        for (position, row) in &rows {
            let factor = expected[*position];
            factors.push(factor);
            for (sum, byte) in expected[position / 64 * 64..].iter_mut().zip(row) {
                *sum ^= mul(factor, *byte);
            }
        }
        assert!(expected[..count].iter().all(|byte| *byte == 0), "every pivot is taken out");
        let rows: Vec<(usize, &[u8])> = rows.iter().map(|(position, row)| (*position, &row[..])).collect();
        for backend in Backend::available() {
            let (mut sum, mut found) = (before.clone(), vec![0; count]);
            backend.eliminate(&mut sum, &rows, &mut found);
            assert_eq!((&sum, &found), (&expected, &factors), "{backend:?} {count}");
        }
    }
}
