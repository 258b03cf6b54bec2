//! Services for programs, not for libraries: each is of the whole process, and none happens by itself. A program
//! handles signals ([`interrupt`]), fences mapped files against SIGBUS ([`sigbus`]), tells where the time went
//! ([`stages`]), names files that were open for writing elsewhere ([`lease`]) and errors at closing ([`closing`]), and
//! runs code of others whose panics it catches ([`guarded`]).

#[cfg(unix)]
pub mod closing;
pub mod guarded;
pub mod interrupt;
pub mod lease;
#[cfg(unix)]
pub mod sigbus;
pub mod stages;
