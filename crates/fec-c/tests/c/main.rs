//! The library as C sees it. Programs in C are compiled with all warnings and with the address and undefined behaviour
//! sanitizers, linked with the static library, and make the calls; leaks are failures too.

mod calls;
mod campaign;
mod golden;
mod header;
mod programs;
#[path = "../../../fecfile/tests/vectors/mod.rs"]
mod vectors;
