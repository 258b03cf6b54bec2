//! Keys and signatures of minisign itself, and attacks on them.
