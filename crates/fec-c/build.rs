//! Names the version of the interface in the shared library, so that programs do not start with another one.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let (system, major) = (std::env::var("CARGO_CFG_TARGET_OS"), env!("CARGO_PKG_VERSION_MAJOR"));
    if matches!(system.as_deref(), Ok("linux" | "android" | "freebsd")) {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfec.so.{major}");
    }
}
