//! Repetition of a block of code for each row of a block.

/// `each!([0, 1, 2], |I| …)` repeats an expression for each number, as a constant: loops over registers must not be
/// left to the optimiser. Without numbers, it repeats for each row of a block. It looks like a call, so that rustfmt
/// reads it.
macro_rules! each {
    (|$i:ident| $body:expr) => {
        crate::gf256::kernel::loops::each::each!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], |$i| $body)
    };
    ([$($n:literal),*], |$i:ident| $body:expr) => {{ $({ const $i: usize = $n; $body; })* }};
}
pub(crate) use each;

/// The same as a loop, for the portable kernel: its lines are in memory anyway, and a loop keeps it small.
macro_rules! looped {
    (|$i:ident| $body:expr) => {
        crate::gf256::kernel::loops::each::looped!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], |$i| $body)
    };
    ([$($n:literal),*], |$i:ident| $body:expr) => {{
        #[allow(non_snake_case)]
        for $i in [$($n),*] { $body; }
    }};
}
pub(crate) use looped;
