//! Rows of bytes for the shards of one set.

use crate::gf256::kernel::{AlignedBytes, LINE};

/// Equal rows of bytes in one allocation, made once and reused.
///
/// # Guarantees
///
/// - Every row begins at an address divisible by 64.
/// - Rows stand an odd number of 64-byte lines apart, and more than one line. The distance is never a power of two or a
///   multiple of 4096, so rows do not compete for the same places of a cache.
/// - Rows never move, whatever length is set.
///
/// Bytes are zero at first, and later keep the last bytes written. Reuse clears nothing.
#[derive(Debug)]
pub struct ShardBuf {
    bytes: AlignedBytes,
    rows: usize,
    row_len: usize,
    /// Bytes from one row to the next, at least `row_len`.
    stride: usize,
    max_row_len: usize,
}

impl ShardBuf {
    /// `rows` rows of `row_len` bytes, all zero. It takes `rows` times at most `row_len` + 128 bytes (192 at least).
    ///
    /// # Panics
    ///
    /// When `row_len` is no multiple of 64, or the whole is more than an allocation can hold.
    pub fn new(rows: usize, row_len: usize) -> ShardBuf {
        assert_whole_lines(row_len);
        let lines = (row_len / LINE).max(2) | 1;
        let stride = lines * LINE;
        let len = rows.checked_mul(stride).expect("rows × row_len overflows");
        ShardBuf { bytes: AlignedBytes::zeroed(len), rows, row_len, stride, max_row_len: row_len }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of each row.
    pub fn row_len(&self) -> usize {
        self.row_len
    }

    /// Sets the length of all rows, in bytes. No row moves or is cleared: its old bytes are still there, up to the new
    /// length.
    ///
    /// # Panics
    ///
    /// When `row_len` is no multiple of 64, or more than this buffer was made for.
    pub fn set_row_len(&mut self, row_len: usize) {
        assert_whole_lines(row_len);
        assert!(
            row_len <= self.max_row_len,
            "rows of {row_len} bytes in a buffer made for {}",
            self.max_row_len
        );
        self.row_len = row_len;
    }

    /// Row `i`.
    ///
    /// # Panics
    ///
    /// When `i` is not below [`rows`](Self::rows).
    pub fn row(&self, i: usize) -> &[u8] {
        &self.bytes[i * self.stride..][..self.stride][..self.row_len]
    }

    /// Row `i`, to be written.
    ///
    /// # Panics
    ///
    /// When `i` is not below [`rows`](Self::rows).
    pub fn row_mut(&mut self, i: usize) -> &mut [u8] {
        &mut self.bytes[i * self.stride..][..self.stride][..self.row_len]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.stride).map(|row| &row[..self.row_len])
    }

    /// All rows in order, to be written.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let row_len = self.row_len;
        self.bytes.chunks_exact_mut(self.stride).map(move |row| &mut row[..row_len])
    }

    /// Divides the rows into sources, shared, and destinations, exclusive: those for which `is_dst` holds.
    /// Both are in row order, ready for [`Plan::run`](super::Plan::run).
    pub fn split_rows(&mut self, is_dst: impl Fn(usize) -> bool) -> (Vec<&[u8]>, Vec<&mut [u8]>) {
        let mut src = Vec::with_capacity(self.rows);
        let mut dst = Vec::with_capacity(self.rows);
        for (i, row) in self.iter_mut().enumerate() {
            if is_dst(i) {
                dst.push(row);
            } else {
                src.push(&*row);
            }
        }
        (src, dst)
    }
}

fn assert_whole_lines(row_len: usize) {
    assert!(row_len.is_multiple_of(LINE), "row length {row_len} is no multiple of {LINE}");
}
