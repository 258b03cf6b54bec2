//! The memory accesses of a kernel, in its order: for models of caches.
//!
//! The kernels' own loops run here, with loads and stores that tell addresses and move nothing (`kernels.rs`), over the
//! caller's rows or over rows that stand in for them (`recorder.rs`). Three kinds of access come from no load or store
//! of a line, and are told by hand: entries of the lists of rows, fields of passes (`sets.rs`), and the compiler's use
//! of the stack. The stack is assumed to have as many lines, in as many places, as in the code for SSSE3. Prefetches
//! are left out.

mod access;
mod kernels;
mod recorder;
mod sets;
mod streams;

pub(crate) use access::Frame;
pub use access::{Access, AccessKind};
pub(crate) use sets::{matrix, program};
pub(crate) use streams::{add, gather, mix, spread, turn};

#[cfg(test)]
mod tests {
    use super::{Access, AccessKind};
    use crate::block::{Code, Engine, Plan, ShardBuf};
    use crate::gf256::kernel::Backend;
    use std::collections::HashSet;

    /// All lines of the rows, and the number of writes told of.
    fn told(rows: &ShardBuf, accesses: &[Access], kinds: &[AccessKind]) -> (usize, usize) {
        let own = |address: &usize| {
            rows.iter().any(|row| (0..row.len()).contains(&address.wrapping_sub(row.as_ptr().addr())))
        };
        let accesses = accesses.iter().filter(|access| kinds.contains(&access.kind));
        let bytes: Vec<usize> =
            accesses.flat_map(|access| access.address..access.address + access.len).filter(own).collect();
        (bytes.iter().collect::<HashSet<_>>().len(), bytes.len())
    }

    /// Every source is read and every destination written, at its real address; a kernel with vectors writes each
    /// destination once.
    #[test]
    fn all_rows_of_a_plan_are_told() {
        for backend in Backend::available() {
            for (k, m, row_len) in [(5, 3, 1472), (33, 20, 704), (20, 33, 704), (86, 14, 64), (3, 2, 0)] {
                let code = Code::new(k, m).expect("a code");
                let (src, mut dst) = (ShardBuf::new(k, row_len), ShardBuf::new(m, row_len));
                dst.iter_mut().for_each(|row| row.fill(7));
                let (known, wanted): (Vec<u8>, Vec<u8>) =
                    (0..code.n()).map(|i| i as u8).partition(|&i| usize::from(i) < k);
                for engine in [Engine::Matrix, Engine::Fft] {
                    let plan = Plan::with_engine(code, backend, &known, &wanted, engine).expect("a plan");
                    let (sources, wanted): (Vec<&[u8]>, Vec<&[u8]>) =
                        (src.iter().collect(), dst.iter().collect());
                    let mut accesses = Vec::new();
                    plan.trace(&sources, &wanted, &mut |access| accesses.push(access));
                    let (all, _) = told(&src, &accesses, &[AccessKind::Read]);
                    assert_eq!(all, k * row_len, "{backend:?} {k}+{m} {engine:?}");
                    let (all, times) = told(&dst, &accesses, &[AccessKind::Write, AccessKind::Stream]);
                    assert_eq!(all, m * row_len, "{backend:?} {k}+{m} {engine:?}");
                    assert!(times == all || backend.name() == "scalar", "{backend:?} {k}+{m} {engine:?}");
                }
                assert!(dst.iter().flatten().all(|&byte| byte == 7), "nothing is computed");
            }
        }
    }
}
