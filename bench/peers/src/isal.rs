//! ISA-L through its C interface, with this project's code as the matrix.

use erasure_isa_l_sys as sys;
use fec_core::block::ShardBuf;
use std::ffi::c_int;

/// The kernels that run.
#[derive(Clone, Copy)]
pub enum Kernels {
    /// ISA-L's own choice on this machine.
    Best,
    /// The kernels for AVX2, also where the processor has more.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    // These functions are not in its header, but behind the ones that are: tables for shuffles, and AVX2.
    fn ec_init_tables_base(k: c_int, rows: c_int, matrix: *mut u8, tables: *mut u8);
    fn ec_encode_data_avx2(
        len: c_int,
        k: c_int,
        rows: c_int,
        tables: *mut u8,
        data: *mut *mut u8,
        coding: *mut *mut u8,
    );
}

/// Expanded coefficients.
pub struct Tables {
    k: usize,
    rows: usize,
    bytes: Vec<u8>,
    kernels: Kernels,
}

impl Tables {
    /// `matrix` is row-major, `rows` by `k`.
    pub fn new(k: usize, rows: usize, matrix: &[u8], kernels: Kernels) -> Tables {
        assert_eq!(matrix.len(), k * rows);
        let mut bytes = vec![0u8; 32 * k * rows];
        let mut matrix = matrix.to_vec();
        let (matrix, tables, k_, rows_) =
            (matrix.as_mut_ptr(), bytes.as_mut_ptr(), k as c_int, rows as c_int);
        match kernels {
            // SAFETY: the tables have the 32·k·rows bytes, and the matrix the k·rows, that the call documents.
            Kernels::Best => unsafe { sys::ec_init_tables(k_, rows_, matrix, tables) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kernels::Avx2 => unsafe { ec_init_tables_base(k_, rows_, matrix, tables) },
        }
        Tables { k, rows, bytes, kernels }
    }

    /// Applies the matrix, `tile` columns at a time.
    pub fn run(&self, src: &ShardBuf, dst: &mut ShardBuf, tile: usize) {
        assert!(src.rows() == self.k && dst.rows() == self.rows && src.row_len() == dst.row_len());
        let len = src.row_len();
        let tile = tile.min(len);
        let tables = self.bytes.as_ptr().cast_mut();
        let rows_in: Vec<*const u8> = src.iter().map(<[u8]>::as_ptr).collect();
        let rows_out: Vec<*mut u8> = dst.iter_mut().map(<[u8]>::as_mut_ptr).collect();
        let mut data = vec![std::ptr::null_mut(); self.k];
        let mut coding = vec![std::ptr::null_mut(); self.rows];
        for at in (0..len).step_by(tile) {
            let part = tile.min(len - at);
            data.iter_mut().zip(&rows_in).for_each(|(to, from)| *to = from.wrapping_add(at).cast_mut());
            coding.iter_mut().zip(&rows_out).for_each(|(to, from)| *to = from.wrapping_add(at));
            let (len, k, rows) = (part as c_int, self.k as c_int, self.rows as c_int);
            let (data, coding) = (data.as_mut_ptr(), coding.as_mut_ptr());
            match self.kernels {
                // SAFETY: every pointer has `part` bytes of its row behind it; sources are only read.
                Kernels::Best => unsafe { sys::ec_encode_data(len, k, rows, tables, data, coding) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above; these kernels are chosen only if the processor has AVX2.
                Kernels::Avx2 => unsafe { ec_encode_data_avx2(len, k, rows, tables, data, coding) },
            }
        }
    }
}

/// All of decoding as ISA-L's users write it: invert the surviving rows, expand, apply.
pub fn restore(
    k: usize,
    generator: &[u8],
    known: &[u8],
    wanted: &[u8],
    have: &ShardBuf,
    out: &mut ShardBuf,
    tile: usize,
) {
    let mut survivors = vec![0u8; k * k];
    for (row, index) in survivors.chunks_exact_mut(k).zip(known) {
        match usize::from(*index).checked_sub(k) {
            None => row[usize::from(*index)] = 1,
            Some(recovery) => row.copy_from_slice(&generator[recovery * k..][..k]),
        }
    }
    let mut inverse = vec![0u8; k * k];
    // SAFETY: both matrices are k by k.
    let status = unsafe { sys::gf_invert_matrix(survivors.as_mut_ptr(), inverse.as_mut_ptr(), k as i32) };
    assert_eq!(status, 0, "the matrix is regular");
    let rows: Vec<u8> = wanted.iter().flat_map(|w| inverse[usize::from(*w) * k..][..k].to_vec()).collect();
    Tables::new(k, wanted.len(), &rows, Kernels::Best).run(have, out, tile);
}
