//! The accesses that are told.

/// A stretch of memory that a kernel touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Its first address.
    pub address: usize,
    /// Its length in bytes, at least 1.
    pub len: usize,
    /// The kind of access.
    pub kind: AccessKind,
}

/// Kinds of access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store, by way of the caches.
    Write,
    /// A store past the caches.
    Stream,
    /// Lines of the stack: spilled registers, bounds, pointers. The number of loads and stores is left open.
    Stack,
}

impl Access {
    /// An access to all of a value.
    pub(super) fn of<T: ?Sized>(value: &T, kind: AccessKind) -> Access {
        Access { address: std::ptr::from_ref(value).addr(), len: size_of_val(value), kind }
    }
}

/// Receives each access.
pub(crate) type Visitor<'a> = dyn FnMut(Access) + 'a;

/// `N` bytes of the stack that a call of an inner function uses: spilled registers, bounds, pointers.
#[repr(align(64))]
pub(crate) struct Frame<const N: usize>([u8; N]);

impl<const N: usize> Frame<N> {
    pub(crate) const fn new() -> Self {
        Frame([0; N])
    }

    pub(crate) fn enter(&self, visit: &mut Visitor<'_>) {
        visit(Access::of(&self.0, AccessKind::Stack));
    }
}
