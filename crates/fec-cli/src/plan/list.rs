//! The refusals of `fec list`.

use super::{Table, refusals};
use crate::line;

/// The refusals of a command line.
pub(crate) const REFUSALS: Table<line::List> = refusals! {
    |line| line.places.is_empty() && line.from.is_empty() => "list: no place is named",
        "name those that encodings were sent to:\n  fec list s3://BUCKET/PREFIX FOLDER";
};

/// Refuses a place, by whether it is a file. The value `{path}` is the file, for a shell in `{quoted}`.
pub(crate) const FILE: Table<bool> = refusals! {
    |is_file| *is_file => "list {path}: it is a file, and no place of encodings",
        "to look at it:\n  fec verify {quoted}";
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    #[test]
    fn every_row_refuses() {
        let (Command::List(line), _) = crate::plan::parsed("list", "") else { panic!("another command") };
        crate::plan::assert_rows(REFUSALS, &[line]);
        crate::plan::assert_rows(FILE, &[true]);
        for words in ["p1", "--from p1", "p1 p2 --from @p3"] {
            let (Command::List(line), _) = crate::plan::parsed("list", words) else {
                panic!("another command")
            };
            assert!(crate::plan::check(&line, REFUSALS, str::to_owned).is_ok(), "{words}");
        }
    }
}
