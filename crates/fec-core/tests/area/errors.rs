//! Refusals and their errors.

use fec_core::area::{AreaCode, AreaDecoder, AreaEncoder, AreaError, AreaRoom};
use fec_core::executor::Inline;
use fec_core::gf256::kernel::Backend;

#[test]
fn areas_have_up_to_65_536_blocks_of_which_half_are_recovery() {
    for (k, m) in
        [(0, 1), (1, 0), (1, 32_769), (65_536, 1), (32_769, 32_768), (usize::MAX, 2), (2, usize::MAX)]
    {
        assert!(AreaCode::new(k, m).is_err(), "{k} + {m}");
    }
    for (k, m, cosets) in
        [(1, 1, 1), (65_535, 1, 1024), (32_768, 32_768, 2), (64, 64, 2), (65, 64, 3), (50_000, 8192, 8)]
    {
        let code = AreaCode::new(k, m).unwrap();
        assert_eq!((code.k(), code.m(), code.cosets()), (k, m, cosets));
        assert_eq!((0..cosets + 2).map(|coset| code.positions(coset).len()).sum::<usize>(), code.n());
        assert!(code.positions(usize::MAX).is_empty());
    }
}

#[test]
fn rows_that_do_not_fit_are_refused_and_change_nothing() {
    let code = AreaCode::new(70, 3).unwrap();
    let mut room = AreaRoom::new(3, 256, 1).unwrap();
    let block = [7; 256];
    let mut rows = vec![None; 64];
    rows[3..].fill(Some(&block[..]));
    let mut encoder = AreaEncoder::new(code, 256, Backend::best(), &mut room).unwrap();
    let mut add = |coset, rows: &[Option<&[u8]>]| encoder.add(coset, rows, &Inline);
    assert_eq!(add(2, &rows), Err(AreaError::NoCoset { coset: 2, cosets: 2 }));
    assert_eq!(add(0, &rows[1..]), Err(AreaError::RowCount { coset: 0, given: 63, wanted: 64 }));
    let mut wrong = rows.clone();
    wrong[5] = Some(&block[1..]);
    assert_eq!(add(0, &wrong), Err(AreaError::RowLen { coset: 0, row: 5, len: 255, wanted: 256 }));
    wrong[5] = None;
    wrong[2] = Some(&block);
    assert_eq!(add(0, &wrong), Err(AreaError::Unwanted { position: 2 }));
    let both = [&rows[..], &[Some(&block[..]); 9]].concat();
    assert!(matches!(add(0, &both[..72]), Err(AreaError::RowCount { .. })));
    assert_eq!(add(0, &rows), Ok(()));
    assert_eq!(add(0, &rows), Err(AreaError::AddedTwice { coset: 0 }));
    assert_eq!(add(0, &both), Err(AreaError::AddedTwice { coset: 0 }));
    let mut out = [[0; 256]; 3];
    let mut out: Vec<&mut [u8]> = out.iter_mut().map(|row| &mut row[..]).collect();
    assert_eq!(encoder.finish(&mut out, &Inline), Err(AreaError::NotAdded { coset: 1 }));
}

#[test]
fn losses_that_cannot_be_are_refused() {
    let code = AreaCode::new(10, 3).unwrap();
    let mut room = AreaRoom::new(2, 128, 1).unwrap();
    let mut decoder = |block_len, lost: &[usize]| {
        AreaDecoder::new(code, block_len, lost, Backend::best(), &mut room).map(|_| ()).unwrap_err()
    };
    assert_eq!(decoder(128, &[1, 2, 3, 4]), AreaError::TooManyLost { lost: 4, m: 3 });
    assert_eq!(decoder(128, &[1, 1]), AreaError::LostPosition { position: 1, n: 13 });
    assert_eq!(decoder(128, &[2, 1]), AreaError::LostPosition { position: 1, n: 13 });
    assert_eq!(decoder(128, &[1, 13]), AreaError::LostPosition { position: 13, n: 13 });
    assert_eq!(decoder(64, &[1]), AreaError::BlockLen { len: 64 });
    assert_eq!(decoder(0, &[1]), AreaError::BlockLen { len: 0 });
    assert!(matches!(decoder(256, &[1]), AreaError::Room { .. }));
    assert_eq!(AreaRoom::new(1, 127, 1).unwrap_err(), AreaError::BlockLen { len: 127 });
}

#[test]
fn a_lost_block_cannot_be_added_nor_a_coset_left_out() {
    let code = AreaCode::new(70, 3).unwrap();
    let mut room = AreaRoom::new(3, 128, 1).unwrap();
    let block = [7; 128];
    let mut decoder = AreaDecoder::new(code, 128, &[65], Backend::best(), &mut room).unwrap();
    let rows = [Some(&block[..]); 64];
    assert_eq!(decoder.add(1, &rows[..9], &Inline), Err(AreaError::Unwanted { position: 65 }));
    assert_eq!(decoder.add(0, &rows, &Inline), Ok(()));
    assert_eq!(decoder.solve(&Inline).map(|_| ()), Err(AreaError::NotAdded { coset: 1 }));
}
