//! Lengths, addresses, pieces and batches: every backend writes what the scalar one writes, and nothing else.

use fec_core::block::{Code, Plan, Rows, ShardBuf};
use fec_core::gf256::kernel::Backend;

use super::{Noise, assert_restores, computed, encoded, originals_and_recovery, plans, scalar};

fn assert_same_rows(a: &ShardBuf, b: &ShardBuf, what: impl Fn() -> String) {
    assert_eq!(a.rows(), b.rows());
    for (i, (a, b)) in a.iter().zip(b.iter()).enumerate() {
        assert!(a == b, "row {i}: {}", what());
    }
}

/// Lengths around every size of tile, odd ones too, and long enough to be stored past the caches.
#[test]
fn every_length_equals_scalar() {
    for (k, m, lines) in
        [(1, 3, 0..140), (5, 3, 0..140), (33, 67, 0..40), (255, 1, 0..12), (33, 67, 1000..1002)]
    {
        let code = Code::new(k, m).unwrap();
        for lines in lines {
            let expected = encoded(code, lines * 64, scalar());
            for backend in Backend::available() {
                let set = encoded(code, lines * 64, backend);
                assert_same_rows(&set, &expected, || format!("{k}+{m}, {lines} lines by {backend:?}"));
            }
        }
    }
}

/// Kernels are compiled for each size of a group of outputs: this covers all sizes, and their remainders.
#[test]
fn every_number_of_outputs_equals_scalar() {
    for k in [1, 2, 7, 8] {
        let code = Code::new(k, 60).unwrap();
        let set = encoded(code, 192, scalar());
        let known: Vec<u8> = (0..k as u8).collect();
        let others: Vec<u8> = (k as u8..code.n() as u8).collect();
        for wanted in 0..=others.len() {
            for backend in Backend::available() {
                for plan in plans(code, backend, &known, &others[..wanted]) {
                    assert_restores(&plan, &set);
                }
            }
        }
    }
}

/// Rows at all 64 offsets of a line, with guards between them, both short and long enough to be stored past
/// the caches.
#[test]
fn rows_at_any_address_and_nothing_outside_them() {
    for (k, m, row_len) in [(9, 64, 192), (9, 64, 320), (4, 68, 65_600)] {
        let code = Code::new(k, m).unwrap();
        let expected = encoded(code, row_len, scalar());
        let (known, wanted) = originals_and_recovery(code);
        for plan in Backend::available().flat_map(|backend| plans(code, backend, &known, &wanted)) {
            let stride = row_len.next_multiple_of(64) + 65;
            let mut bytes = vec![0xA5; code.n() * stride + 64];
            let mut rows: Vec<&mut [u8]> =
                bytes.chunks_exact_mut(stride).take(code.n()).map(|chunk| &mut chunk[..row_len]).collect();
            let (originals, recovery) = rows.split_at_mut(k);
            originals
                .iter_mut()
                .zip(expected.iter())
                .for_each(|(row, original)| row.copy_from_slice(original));
            let originals: Vec<&[u8]> = originals.iter().map(|row| &**row).collect();
            plan.run(&originals, recovery);
            for (chunk, expected) in bytes.chunks_exact(stride).zip(expected.iter()) {
                let (row, guard) = chunk.split_at(row_len);
                assert!(row == expected, "{k}+{m}, {row_len} bytes by {plan:?}");
                assert!(guard.iter().all(|&byte| byte == 0xA5), "bytes after a row, by {plan:?}");
            }
        }
    }
}

/// Threads that each take a piece of all rows make the same set.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "it has no threads")]
fn pieces_of_columns_make_the_whole() {
    let code = Code::new(33, 67).unwrap();
    let row_len = 41 * 64 * 9;
    let expected = encoded(code, row_len, scalar());
    let (known, wanted) = originals_and_recovery(code);
    for plan in Backend::available().flat_map(|backend| plans(code, backend, &known, &wanted)) {
        for pieces in [1, 2, 4] {
            let mut set = ShardBuf::new(code.n(), row_len);
            set.iter_mut()
                .zip(expected.iter())
                .take(33)
                .for_each(|(row, original)| row.copy_from_slice(original));
            let piece_len = (row_len / 64).div_ceil(pieces) * 64;
            let (originals, recovery) = set.split_rows(|i| i >= 33);
            let mut columns: Vec<Vec<&mut [u8]>> = (0..pieces).map(|_| Vec::new()).collect();
            for row in recovery {
                columns.iter_mut().zip(row.chunks_mut(piece_len)).for_each(|(rows, piece)| rows.push(piece));
            }
            std::thread::scope(|scope| {
                for (i, mut dst) in columns.into_iter().enumerate() {
                    let src: Vec<&[u8]> =
                        originals.iter().map(|row| row.chunks(piece_len).nth(i).unwrap()).collect();
                    let plan = &plan;
                    scope.spawn(move || plan.run(&src, &mut dst));
                }
            });
            assert_same_rows(&set, &expected, || format!("{pieces} pieces by {plan:?}"));
        }
    }
}

/// Sets of one length and of many, few and many to a tile.
#[test]
fn a_batch_equals_single_runs() {
    let code = Code::new(17, 9).unwrap();
    // Known points from which no transform starts, and points from which one does, in another order.
    let lost: (Vec<u8>, Vec<u8>) = ((5..22).collect(), (0..5).chain(22..26).collect());
    let kept: (Vec<u8>, Vec<u8>) = ((0..17).rev().collect(), (17..26).collect());
    let mut noise = Noise::new(17);
    let lengths: [Vec<usize>; 6] = [
        vec![],
        vec![64; 100],
        vec![448; 9],
        vec![4096; 5],
        vec![131_072; 4],
        (0..50).map(|_| noise.below(40) * 64).collect(),
    ];
    for lengths in lengths {
        let sets: Vec<ShardBuf> = lengths.iter().map(|&row_len| encoded(code, row_len, scalar())).collect();
        let made = |(known, wanted): &(Vec<u8>, Vec<u8>)| -> Vec<Plan> {
            Backend::available().flat_map(|backend| plans(code, backend, known, wanted)).collect()
        };
        for plan in [&lost, &kept].into_iter().flat_map(made) {
            let (known, wanted) = (plan.known(), plan.wanted());
            let mut outs: Vec<ShardBuf> =
                lengths.iter().map(|&row_len| ShardBuf::new(wanted.len(), row_len)).collect();
            let src: Vec<Vec<&[u8]>> =
                sets.iter().map(|set| known.iter().map(|&i| set.row(usize::from(i))).collect()).collect();
            let mut dst: Vec<Vec<&mut [u8]>> = outs.iter_mut().map(|out| out.iter_mut().collect()).collect();
            let mut batch: Vec<Rows<'_, '_, '_, '_>> =
                src.iter().zip(&mut dst).map(|(src, dst)| (&src[..], &mut dst[..])).collect();
            plan.run_batch(&mut batch);
            for (out, set) in outs.iter().zip(&sets) {
                assert_same_rows(out, &computed(&plan, set), || format!("{lengths:?} by {plan:?}"));
            }
        }
    }
}

#[test]
fn nothing_wanted_is_nothing_done() {
    for backend in Backend::available() {
        let plan = Plan::encode(Code::new(3, 0).unwrap(), backend);
        assert_eq!((plan.wanted(), plan.multiplications()), (&[][..], 0));
        plan.run(&[&[1; 64], &[2; 64], &[3; 64]], &mut []);
        plan.run_batch(&mut []);
    }
}

#[test]
fn a_buffer_keeps_its_promises() {
    for row_len in (0..200).map(|lines| lines * 64).chain([4096, 1 << 16, 127_104, 1 << 17]) {
        let mut buf = ShardBuf::new(3, row_len);
        assert_eq!((buf.rows(), buf.row_len()), (3, row_len));
        let starts: Vec<usize> = buf.iter().map(|row| row.as_ptr().addr()).collect();
        let stride = starts[1] - starts[0];
        assert!(starts.iter().all(|start| start % 64 == 0), "{row_len}");
        assert!(
            stride >= row_len && !stride.is_power_of_two() && !stride.is_multiple_of(4096),
            "{row_len}: {stride}"
        );
        assert!(buf.iter().flatten().all(|&byte| byte == 0));
        buf.row_mut(1).fill(7);
        buf.set_row_len(0);
        assert_eq!(buf.row(1), &[]);
        buf.set_row_len(row_len);
        assert!(buf.row(1).iter().all(|&byte| byte == 7));
        assert_eq!(buf.iter().map(|row| row.as_ptr().addr()).collect::<Vec<_>>(), starts);
        let (src, dst) = buf.split_rows(|i| i != 1);
        assert_eq!((src.len(), dst.len()), (1, 2));
        assert!(src[0].iter().all(|&byte| byte == 7));
    }
    assert_eq!(ShardBuf::new(0, 64).iter().len(), 0);
}

#[test]
#[should_panic(expected = "rows of 192 bytes in a buffer made for 128")]
fn a_buffer_does_not_grow() {
    ShardBuf::new(2, 128).set_row_len(192);
}

#[test]
#[should_panic(expected = "row length 100 is no multiple of 64")]
fn a_buffer_has_whole_lines() {
    ShardBuf::new(2, 100);
}
