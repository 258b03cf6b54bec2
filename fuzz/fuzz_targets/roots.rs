//! Lists of roots: a list that was read and written is read as the same again.
#![no_main]

use fec_base::roots::{parse, parse_line, parse_root, put_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = (parse_root(bytes), parse_line(bytes));
    for is_cut in [false, true] {
        let Some(lines) = parse(bytes, is_cut) else { continue };
        assert!(!lines.is_empty());
        for line in lines {
            let Some(path) = &line.path else { continue };
            let mut text = Vec::new();
            put_line(&mut text, &line.root, path);
            assert_eq!(parse(&text, false), Some(vec![line.clone()]), "read as it was written");
        }
    }
});
