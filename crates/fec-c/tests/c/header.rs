//! The header is what cbindgen makes of the code. `SNAPSHOTS=overwrite` writes it anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn the_header_is_that_of_the_code() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(place.join("cbindgen.toml")).expect("a configuration");
    let made_of = cbindgen::Builder::new().with_config(config).with_src(place.join("src/lib.rs"));
    let mut made = Vec::new();
    made_of.generate().expect("the code can be read").write(&mut made);
    let header = place.join("include/fec.h");
    if std::env::var_os("SNAPSHOTS").is_some_and(|how| how == "overwrite") {
        fs::write(&header, &made).expect("the header is written");
    }
    let (made, header) =
        (String::from_utf8(made).expect("text"), fs::read_to_string(header).expect("a header"));
    assert!(made == header, "include/fec.h is of other code: run this test with SNAPSHOTS=overwrite");
    // Each function that is exported is in it, once.
    let files = fs::read_dir(place.join("src")).expect("a folder").map(|file| file.expect("a file").path());
    let code: String = files.map(|file| fs::read_to_string(file).expect("code")).collect();
    let names = code.split("pub unsafe extern \"C\" fn ").chain(code.split("pub extern \"C\" fn "));
    let names: BTreeSet<&str> = names.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| name.starts_with("fec_")).collect();
    assert_eq!(names.len(), code.matches("\n#[unsafe(no_mangle)]\n").count());
    for name in names {
        assert_eq!(header.matches(&format!("{name}(")).count(), 1, "{name}");
    }
}
