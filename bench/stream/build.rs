//! Compiles siamese from the checkout that the environment variable `FEC_SIAMESE` names, with the flags of its own
//! CMakeLists.txt. siamese takes no part without the variable.

use std::path::PathBuf;

const SOURCES: [&str; 8] = [
    "gf256.cpp",
    "Logger.cpp",
    "PacketAllocator.cpp",
    "siamese.cpp",
    "SiameseCommon.cpp",
    "SiameseDecoder.cpp",
    "SiameseEncoder.cpp",
    "SiameseTools.cpp",
];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(siamese)");
    println!("cargo::rerun-if-env-changed=FEC_SIAMESE");
    let Some(checkout) = std::env::var_os("FEC_SIAMESE").filter(|path| !path.is_empty()).map(PathBuf::from)
    else {
        return;
    };
    let sources = SOURCES.map(|name| checkout.join(name));
    sources.iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    cc::Build::new()
        .cpp(true)
        .std("c++14")
        .opt_level(3)
        .flag("-march=native")
        .warnings(false)
        .files(sources)
        .compile("siamese");
    println!("cargo::rustc-cfg=siamese");
}
