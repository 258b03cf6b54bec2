//! Lists of digests.
