//! Reasons why a call on an area is refused.

/// A call that does not fit the area. Nothing was changed by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AreaError {
    /// The length of blocks is no positive multiple of 128 bytes.
    #[error("blocks of {len} bytes: their length has to be a multiple of 128")]
    BlockLen {
        /// The length asked for.
        len: usize,
    },
    /// The memory was made for fewer or shorter blocks.
    #[error("{need} bytes are needed for the sums of this area, and there is space for {space}")]
    Room {
        /// Bytes needed.
        need: usize,
        /// Bytes there are.
        space: usize,
    },
    /// There is no such coset.
    #[error("coset {coset} does not exist: there are {cosets}")]
    NoCoset {
        /// The number given.
        coset: usize,
        /// Cosets of the code.
        cosets: usize,
    },
    /// The coset was added before.
    #[error("coset {coset} was added before")]
    AddedTwice {
        /// The coset.
        coset: usize,
    },
    /// A coset was not added.
    #[error("coset {coset} was not added")]
    NotAdded {
        /// The first of those that miss.
        coset: usize,
    },
    /// The number of rows is not that of the positions, or of what is lost there.
    #[error("{given} rows for coset {coset}, which takes {wanted}")]
    RowCount {
        /// The coset.
        coset: usize,
        /// Rows given.
        given: usize,
        /// Rows wanted.
        wanted: usize,
    },
    /// A row has another length than the blocks.
    #[error("row {row} of coset {coset} has {len} bytes, a block {wanted}")]
    RowLen {
        /// The coset.
        coset: usize,
        /// The row, counted from the first position of the coset.
        row: usize,
        /// Its bytes.
        len: usize,
        /// Bytes of a block.
        wanted: usize,
    },
    /// A row was given for a position whose block is to be computed.
    #[error("a row was given for position {position}, whose block is to be computed")]
    Unwanted {
        /// The position.
        position: usize,
    },
    /// More positions are lost than there are recovery blocks.
    #[error("{lost} blocks are lost, more than {m} recovery blocks give back")]
    TooManyLost {
        /// Positions given.
        lost: usize,
        /// Recovery blocks.
        m: usize,
    },
    /// The lost positions are not in ascending order, or not all of the area.
    #[error("lost positions have to ascend, and to be below {n}: {position} is not so")]
    LostPosition {
        /// The first that is wrong.
        position: usize,
        /// Positions of the area.
        n: usize,
    },
}
