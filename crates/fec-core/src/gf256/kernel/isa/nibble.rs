//! Multiplication by two shuffles, for instruction sets that can look up sixteen bytes at once.
//!
//! c·(16h + l) = c·16h + c·l, and each half has sixteen values: two tables of sixteen bytes for each
//! coefficient (Plank, Greenan, Miller: Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions,
//! FAST 2013).

use crate::gf256::kernel::loops::area::EVEN_POINTS;
use crate::gf256::mul;

/// Bytes of the two tables of one coefficient.
pub(crate) const TABLE_LEN: usize = 32;

/// For each coefficient the products with 0..16, then those with 0, 16, 32, …, 240.
static TABLES: [[u8; TABLE_LEN]; 256] = {
    let mut tables = [[0; TABLE_LEN]; 256];
    let mut c = 0;
    while c < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            tables[c][nibble] = mul(c as u8, nibble as u8);
            tables[c][16 + nibble] = mul(c as u8, (nibble << 4) as u8);
            nibble += 1;
        }
        c += 1;
    }
    tables
};

/// The tables of [`EVEN_POINTS`].
pub(crate) static EVEN_TABLES: [[u8; TABLE_LEN]; EVEN_POINTS.len()] = {
    let mut tables = [[0; TABLE_LEN]; EVEN_POINTS.len()];
    let mut i = 0;
    while i < tables.len() {
        tables[i] = TABLES[EVEN_POINTS[i] as usize];
        i += 1;
    }
    tables
};

/// The two tables of `coefficient`.
pub(crate) fn pack_table(coefficient: u8) -> [u8; TABLE_LEN] {
    TABLES[usize::from(coefficient)]
}

/// Writes the two tables of `coefficient`.
pub(crate) fn pack(coefficient: u8, table: &mut [u8]) {
    table.copy_from_slice(self::table(coefficient));
}

/// The two tables of `coefficient`.
pub(crate) fn table(coefficient: u8) -> &'static [u8; TABLE_LEN] {
    &TABLES[usize::from(coefficient)]
}

/// Defines lines and steps of several vectors, and products. `width` is the bytes of a vector, `vectors` lists those of
/// a line from 0. `kernel/mod.rs` says what it needs.
macro_rules! nibble {
    (#[$features:meta] width: $width:literal, vectors: $vectors:tt) => {
        /// A line.
        type Line = [Vector; $vectors.len()];

        /// The tables of a coefficient: the products of low and of high halves of bytes.
        type Loaded = [Vector; 2];

        #[inline]
        #[$features]
        fn load_tables(table: &[u8; TABLE_LEN]) -> Loaded {
            let (halves, _) = table.as_chunks::<16>();
            [load_table(&halves[0]), load_table(&halves[1])]
        }

        #[inline]
        #[$features]
        fn product_of_vector(vector: Vector, [of_low, of_high]: Loaded) -> Vector {
            xor(look_up(of_low, low(vector)), look_up(of_high, high(vector)))
        }

        #[inline]
        #[$features]
        fn product(vector: Vector, table: &[u8; TABLE_LEN]) -> Vector {
            product_of_vector(vector, load_tables(table))
        }

        /// x + w·y for vectors of both planes. Halves are split once for all three products.
        #[inline]
        #[$features]
        fn add_symbol(x: [Vector; 2], y: [Vector; 2], tables: [&[u8; TABLE_LEN]; 3]) -> [Vector; 2] {
            let (a, b) = ([low(y[0]), high(y[0])], [low(y[1]), high(y[1])]);
            let product = |[of_low, of_high]: Loaded, y: [Vector; 2]| {
                xor(look_up(of_low, y[0]), look_up(of_high, y[1]))
            };
            let of_a = product(load_tables(tables[0]), a);
            let of_b = product(load_tables(tables[2]), b);
            let of_sum = product(load_tables(tables[1]), [xor(a[0], b[0]), xor(a[1], b[1])]);
            [xor(x[0], xor(of_a, of_b)), xor(x[1], xor(of_a, of_sum))]
        }

        #[inline]
        #[$features]
        fn zero_line() -> Line {
            [zero_vector(); $vectors.len()]
        }

        #[inline]
        #[$features]
        fn xor_lines(a: Line, b: Line) -> Line {
            let mut sum = a;
            each!($vectors, |V| sum[V] = xor(a[V], b[V]));
            sum
        }

        #[inline]
        #[$features]
        fn product_of_line(line: Line, tables: Loaded) -> Line {
            line.map(|vector| product_of_vector(vector, tables))
        }

        #[inline]
        #[$features]
        fn multiply(line: Line, table: &[u8; TABLE_LEN]) -> Line {
            product_of_line(line, load_tables(table))
        }

        #[inline]
        #[$features]
        fn load_line(bytes: &[u8; 64]) -> Line {
            let (parts, _) = bytes.as_chunks::<$width>();
            let mut line = zero_line();
            each!($vectors, |V| line[V] = load_vector(&parts[V]));
            line
        }

        #[inline]
        #[$features]
        fn store_line(bytes: &mut [u8; 64], line: Line, stream: bool) {
            // All parts of a line are written together: the processor gathers them into one write.
            let (parts, _) = bytes.as_chunks_mut::<$width>();
            for (part, vector) in parts.iter_mut().zip(line) {
                store_vector(part, vector, stream);
            }
        }

        /// Two vectors of bytes, split into halves. A matrix takes two at once, so each table is loaded once for both.
        #[derive(Clone, Copy)]
        struct Source {
            low: [Vector; 2],
            high: [Vector; 2],
        }

        #[inline]
        #[$features]
        fn load(bytes: &[u8; 2 * $width]) -> Source {
            let (parts, _) = bytes.as_chunks::<$width>();
            let (first, second) = (load_vector(&parts[0]), load_vector(&parts[1]));
            Source { low: [low(first), low(second)], high: [high(first), high(second)] }
        }

        #[inline]
        #[$features]
        fn zero() -> [Vector; 2] {
            [zero_vector(); 2]
        }

        #[inline]
        #[$features]
        fn add(sum: [Vector; 2], source: Source, table: &[u8; TABLE_LEN]) -> [Vector; 2] {
            let [of_low, of_high] = load_tables(table);
            let product = |v: usize| xor(look_up(of_low, source.low[v]), look_up(of_high, source.high[v]));
            [xor(sum[0], product(0)), xor(sum[1], product(1))]
        }

        #[inline]
        #[$features]
        fn store(bytes: &mut [u8; 2 * $width], sum: [Vector; 2], stream: bool) {
            // The next step completes the line, if this is half of one.
            let (parts, _) = bytes.as_chunks_mut::<$width>();
            store_vector(&mut parts[0], sum[0], stream);
            store_vector(&mut parts[1], sum[1], stream);
        }
    };
}
pub(crate) use nibble;
