//! What repeats a block of code for each row of a block.

/// Repeats a block for each number, as a constant: loops over registers must not be left to the optimiser.
/// Without numbers: for each row of a block.
macro_rules! each {
    ($i:ident => $body:block) => {
        super::each::each!($i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => $body)
    };
    ($i:ident in $($n:literal)* => $body:block) => {{ $({ const $i: usize = $n; $body })* }};
}
pub(super) use each;

/// The same as a loop, for the portable kernel, whose lines are in memory anyway: it keeps that small.
macro_rules! looped {
    ($i:ident => $body:block) => {
        super::each::looped!($i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => $body)
    };
    ($i:ident in $($n:literal)* => $body:block) => {{
        #[allow(non_snake_case)]
        for $i in [$($n),*] $body
    }};
}
pub(super) use looped;
