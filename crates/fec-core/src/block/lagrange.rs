//! Interpolation coefficients in closed form.
//!
//! The value at y of the polynomial through the points x_j is Σ_j f(x_j) · ℓ(y) · w_j / (y - x_j), with ℓ(y)
//! = Π_i (y - x_i) and w_j = 1 / Π_{i≠j} (x_j - x_i): the barycentric form of Lagrange's formula (Berrut and
//! Trefethen, Barycentric Lagrange Interpolation, SIAM Review 46, 2004). There is no system to solve, and
//! nothing that can turn out singular: distinct points suffice. Differences in this field are exclusive or.

use crate::gf256::LogProduct;

/// The coefficients that give the values at `wanted` from those at `known`, row-major: a row of `known.len()`
/// for each point wanted. The row of a point that is known is 1 at that point and 0 elsewhere.
///
/// The points in `known` must be distinct. O(known · (known + wanted)).
pub(super) fn coefficients(known: &[u8], wanted: &[u8]) -> Vec<u8> {
    let weights: Vec<LogProduct> =
        known.iter().map(|&x| product_of_differences(x, known).inverse()).collect();
    let mut coefficients = Vec::with_capacity(known.len() * wanted.len());
    for &y in wanted {
        if known.contains(&y) {
            coefficients.extend(known.iter().map(|&x| u8::from(x == y)));
        } else {
            let all = product_of_differences(y, known);
            coefficients.extend(known.iter().zip(&weights).map(|(&x, &w)| all.and(w).over(y ^ x).value()));
        }
    }
    coefficients
}

/// Π (y - x) over all x in `points` other than y.
fn product_of_differences(y: u8, points: &[u8]) -> LogProduct {
    points.iter().filter(|&&x| x != y).fold(LogProduct::default(), |product, &x| product.times(y ^ x))
}
