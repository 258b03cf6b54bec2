//! Parts of encodings for the crates of `fec` that stand on this one. They may change with every version.

pub use crate::encode::file as encode_file;
pub use crate::forms::encode_job::SpareRooms;
pub use crate::forms::shards::writer::{Label, file_name, write_in};
pub use crate::range::{PayloadPart, part};
pub use crate::seal::open::{End, Extent, Opening, Unsealed, opener};
pub use crate::seal::sealed::Coded;
pub use crate::seal::spool::SecretSpool;
pub use crate::sets::untrue;
