//! Work that is done, and bytes that are not touched.

use super::{AreaCode, AreaDecoder, AreaEncoder, AreaRoom};
use crate::executor::Inline;
use crate::gf256::kernel::{Backend, work};
use crate::random::SplitMix64;

/// Blocks by position, of which those of recovery mean nothing.
fn blocks(code: AreaCode, len: usize) -> Vec<Vec<u8>> {
    let mut random = SplitMix64::new(1);
    (0..code.n()).map(|_| (0..len).map(|_| random.next() as u8).collect()).collect()
}

fn encode(code: AreaCode, all: &[&[u8]], backend: Backend, out: &mut [&mut [u8]]) {
    let mut room = AreaRoom::new(code.m(), all[0].len(), 1).unwrap();
    let mut encoder = AreaEncoder::new(code, all[0].len(), backend, &mut room).unwrap();
    for coset in 0..code.cosets() {
        let rows: Vec<_> = code.positions(coset).map(|p| (p >= code.m()).then(|| all[p])).collect();
        encoder.add(coset, &rows, &Inline).unwrap();
    }
    encoder.finish(out, &Inline).unwrap();
}

fn decode(code: AreaCode, all: &[&[u8]], lost: &[usize], backend: Backend, out: &mut [&mut [u8]]) {
    let mut room = AreaRoom::new(lost.len(), all[0].len(), 1).unwrap();
    let mut decoder = AreaDecoder::new(code, all[0].len(), lost, backend, &mut room).unwrap();
    for coset in 0..code.cosets() {
        let rows: Vec<_> = code.positions(coset).map(|p| (!lost.contains(&p)).then(|| all[p])).collect();
        decoder.add(coset, &rows, &Inline).unwrap();
    }
    let mut solution = decoder.solve(&Inline).unwrap();
    let mut out = out.iter_mut();
    for coset in 0..code.cosets() {
        let count = solution.lost(coset).len();
        let mut out: Vec<&mut [u8]> = out.by_ref().take(count).map(|row| &mut **row).collect();
        solution.restore(coset, &mut out, &Inline).unwrap();
    }
}

/// Units times layers: twice the joins of units, and two for each product. The cost of a decode follows what was lost.
///
/// Encoding takes 8 layers of 1024 originals and of 256 sums. A single lost block takes sums alone; 20 take 5 layers of
/// 20 groups, and of the 15 groups in which they are.
#[test]
#[cfg_attr(miri, ignore = "it takes too long")]
fn the_work_of_an_area_is_pinned() {
    for (k, m, encoding, decoding) in
        [(1000, 256, 10_240, [(1, 130), (20, 12_008), (200, 28_048), (256, 28_160)])]
    {
        let code = AreaCode::new(k, m).unwrap();
        let all = blocks(code, 128);
        let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        let mut out = vec![vec![0; 128]; m];
        let mut out: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        work::take();
        encode(code, &all, Backend::best(), &mut out);
        assert_eq!(work::take(), encoding, "{k} + {m}");
        for (count, work) in decoding {
            // At equal distances.
            let lost: Vec<usize> = (0..count).map(|i| m + i * k / count).collect();
            decode(code, &all, &lost, Backend::best(), &mut out[..count]);
            assert_eq!(work::take(), work, "{count} of {k} + {m} are lost");
        }
    }
}

/// Blocks end at a page that cannot be read, and begin behind one.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn nothing_beside_blocks_is_touched() {
    use crate::guarded::Guarded;
    const LEN: usize = 64 << 10;
    for (k, m) in [(3, 2), (70, 66)] {
        let code = AreaCode::new(k, m).unwrap();
        let all: Vec<Guarded> = blocks(code, LEN).iter().map(|block| Guarded::new(block)).collect();
        for len in [128, 384, 2048 + 128, LEN] {
            let ends: Vec<&[u8]> = all.iter().map(|block| block.end(len)).collect();
            let starts: Vec<&[u8]> = all.iter().map(|block| block.start(len)).collect();
            for rows in [ends, starts] {
                let mut expected = vec![vec![0; len]; m];
                encode(
                    code,
                    &rows,
                    scalar(),
                    &mut expected.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
                );
                let mut word: Vec<&[u8]> = expected.iter().map(Vec::as_slice).collect();
                word.extend_from_slice(&rows[m..]);
                for backend in Backend::available() {
                    let mut out: Vec<Guarded> = (0..m).map(|_| Guarded::new(&[0; LEN])).collect();
                    let mut out: Vec<&mut [u8]> = out.iter_mut().map(|row| row.end_mut(len)).collect();
                    encode(code, &rows, backend, &mut out);
                    assert!(
                        out.iter().zip(&expected).all(|(row, right)| **row == **right),
                        "{}",
                        backend.name()
                    );
                    let lost: Vec<usize> = (m..m + k.min(m)).collect();
                    decode(code, &word, &lost, backend, &mut out[..lost.len()]);
                    assert!(lost.iter().zip(&out).all(|(&p, row)| **row == *rows[p]), "{}", backend.name());
                }
            }
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn scalar() -> Backend {
    Backend::by_name("scalar").unwrap()
}
