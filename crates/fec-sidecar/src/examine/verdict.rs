//! The state of a file, by what is known of it: the table of section 17.7, as a pure function.

use fec_core::format::sidecar::stat::Stat;

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The entry has its bytes, whatever its time is.
    Intact,
    /// The file has its bytes, and its owner's right to execute it is another one. That is no damage.
    Mode,
    /// The bytes differ, though nobody wrote to the file: its size and time are unchanged.
    Rotten,
    /// The bytes differ, the size and time are unchanged, and another time of change or inode tells that somebody wrote
    /// to the file, and kept its time.
    Changed,
    /// Somebody changed the entry: its time, size or kind differs, and its content too.
    Edited,
    /// Bytes were inserted or removed, so that later bytes have moved within the file.
    Shifted,
    /// The path is empty, and a whole copy of the file is elsewhere.
    Moved,
    /// The path is empty, and what seems to be the file is elsewhere, with other bytes.
    MovedDamaged,
    /// The path is empty.
    Missing,
    /// The path is empty, and the policy lets it be so.
    Gone,
    /// The entry cannot be read.
    Unreadable,
    /// Somebody wrote to the file while it was examined, twice.
    Changing,
}

impl State {
    /// Tells whether bytes are lost that nobody is known to have changed.
    pub fn is_damage(self) -> bool {
        matches!(self, State::Rotten | State::MovedDamaged | State::Missing | State::Unreadable)
    }
}

/// A file's time of modification against the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Time {
    /// The recorded time.
    Same,
    /// The recorded time as another file system keeps it: moved by whole hours, or rounded.
    Shifted,
    /// Another time.
    Other,
}

/// The traces of somebody who wrote to a file: its mark against the recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Writer {
    /// The mark is the recorded one.
    Nobody,
    /// The mark is another.
    Somebody,
    /// No mark was recorded, or the files were copied: then all marks are others.
    #[default]
    Unknown,
}

/// The proof of the record of sizes, times and marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Record {
    /// No root and no signature was asked for, so the record is believed.
    #[default]
    Believed,
    /// A root or a signature was asked for, and the record is proved.
    Proved {
        /// True if the file's status changed before the sidecar's file did.
        is_older: bool,
    },
    /// A root or a signature was asked for, and the record is not proved.
    Unproved,
}

/// The policy's word on the content of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Once {
    /// The file may change.
    #[default]
    No,
    /// The file is written once.
    Yes,
    /// The file is written once, and has grown: it was not whole when it was recorded.
    Grown,
}

/// The facts about a path at which a regular file was recorded, and at which something stands that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// True for a regular file.
    pub(crate) is_file: bool,
    pub(crate) has_size: bool,
    pub(crate) has_bytes: bool,
    /// True if the owner may execute the file as recorded.
    pub(crate) has_mode: bool,
    pub(crate) once: Once,
    pub(crate) time: Time,
    pub(crate) writer: Writer,
    pub(crate) record: Record,
}

impl Facts {
    /// The state of the file.
    pub(crate) fn state(self) -> State {
        let Facts { is_file, has_size, has_bytes, has_mode, once, time, writer, record } = self;
        if !is_file {
            return State::Edited;
        }
        match (has_bytes && has_size, has_mode) {
            (true, true) => return State::Intact,
            (true, false) => return State::Mode,
            (false, _) => {}
        }
        if once == Once::Yes && record != Record::Unproved {
            return State::Rotten;
        }
        if !has_size || time == Time::Other {
            return State::Edited;
        }
        match (writer, record) {
            (Writer::Somebody, _) => State::Changed,
            (_, Record::Believed) => State::Rotten,
            // A record that whoever writes to the sidecar may have changed may hide an edit.
            (_, Record::Unproved) => State::Edited,
            (Writer::Nobody, Record::Proved { .. })
            | (Writer::Unknown, Record::Proved { is_older: true }) => State::Rotten,
            (Writer::Unknown, Record::Proved { is_older: false }) => State::Edited,
        }
    }

    /// Tells whether the policy alone says that the file is rotten.
    pub(crate) fn is_rotten_by_policy(self) -> bool {
        self.state() == State::Rotten && Facts { once: Once::No, ..self }.state() != State::Rotten
    }
}

/// A time of modification against the recorded one. `is_lenient` lets it differ as file systems and archives change
/// times: by whole hours up to 24, where they keep the local time, and by rounding to 10 ms, 1 s or 2 s.
pub(crate) fn time_of(found: (i64, u32), recorded: (i64, u32), is_lenient: bool) -> Time {
    const HOUR: i128 = 3_600_000_000_000;
    /// Steps of exFAT, of many network mounts and archives, and of FAT.
    const STEPS: [i128; 3] = [10_000_000, 1_000_000_000, 2_000_000_000];
    if found == recorded {
        return Time::Same;
    }
    let nanos = |(seconds, nanos): (i64, u32)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let (found, recorded) = (nanos(found), nanos(recorded));
    let hours = (found - recorded + HOUR / 2).div_euclid(HOUR);
    let without_hours = found - hours * HOUR;
    let is_rounded = |step: i128| {
        let down = recorded.div_euclid(step) * step;
        // Rounding up would take a later edit at a whole second for the recorded time.
        let up = if recorded.rem_euclid(1_000_000_000) == 0 { down } else { down + step };
        without_hours == down || without_hours == up
    };
    let is_shifted = hours.abs() <= 24 && (without_hours == recorded || STEPS.into_iter().any(is_rounded));
    if is_lenient && is_shifted { Time::Shifted } else { Time::Other }
}

/// Compares a mark with the recorded one. Zero is no mark, and nothing is hashed for it.
pub(crate) fn writer_of(found: impl FnOnce() -> u64, recorded: u64) -> Writer {
    match recorded {
        0 => Writer::Unknown,
        recorded if recorded == found() => Writer::Nobody,
        _ => Writer::Somebody,
    }
}

/// The traces of writers in the files that have their bytes: what their times and marks say of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traces {
    /// False if every one of them has another mark than the recorded one, as after a copy.
    marks_speak: bool,
    /// False if the times of some are the recorded ones and of none are shifted. A shifted time is then that of an edit
    /// at the same minute of another hour.
    shifts_speak: bool,
    /// True for a copy that was made without its times: none has kept its mark, and no more than a quarter its time, as
    /// files that were restored since. Without marks it takes three files to tell.
    pub(crate) is_copy: bool,
}

impl Traces {
    /// The traces by the time and the mark of every file that has its bytes.
    pub(crate) fn of(whole_files: impl Iterator<Item = (Time, Writer)>) -> Traces {
        let (mut all, mut times, mut writers) = (0, [0; 3], [0; 3]);
        for (time, writer) in whole_files {
            all += 1;
            times[time as usize] += 1;
            writers[writer as usize] += 1;
        }
        let has_time = |time: Time| times[time as usize] > 0;
        let has_writer = |writer: Writer| writers[writer as usize] > 0;
        let has_lost_times = times[Time::Other as usize] * 4 >= all * 3;
        let keeps_nothing = has_lost_times && !has_writer(Writer::Nobody);
        Traces {
            marks_speak: has_writer(Writer::Nobody) || !has_writer(Writer::Somebody),
            shifts_speak: has_time(Time::Shifted) || !has_time(Time::Same),
            is_copy: keeps_nothing && (all >= 3 || has_writer(Writer::Somebody)),
        }
    }

    /// The facts about a file without what says nothing.
    pub(crate) fn read(&self, facts: Facts) -> Facts {
        Facts {
            writer: if self.marks_speak { facts.writer } else { Writer::Unknown },
            time: match facts.time {
                Time::Shifted if !self.shifts_speak => Time::Other,
                time => time,
            },
            ..facts
        }
    }
}

/// A file at a new path, beside an old file of its size and other bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    /// The time of the one against that of the other.
    pub(crate) time: Time,
    /// True if no third file is likely to have the time: many may share one of whole seconds.
    pub(crate) has_own_time: bool,
    pub(crate) has_name: bool,
}

impl Alike {
    /// Tells whether the file passes for the old one, moved and then damaged. `shares` tells of common blocks.
    pub(crate) fn passes(self, shares: impl FnOnce() -> bool) -> bool {
        match self.time {
            Time::Same => self.has_own_time || self.has_name || shares(),
            Time::Shifted => self.has_name || shares(),
            Time::Other => false,
        }
    }
}

/// The last part of a path.
pub(crate) fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The time of modification that was recorded.
pub(crate) fn recorded_time(stat: Stat) -> (i64, u32) {
    (stat.seconds, stat.nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All facts.
    fn all() -> impl Iterator<Item = Facts> {
        let times = [Time::Same, Time::Shifted, Time::Other];
        let writers = [Writer::Nobody, Writer::Somebody, Writer::Unknown];
        let older = |is_older| Record::Proved { is_older };
        let records = [Record::Believed, older(true), older(false), Record::Unproved];
        let onces = [Once::No, Once::Yes, Once::Grown];
        (0..16 * 3 * 3 * 4 * 3).map(move |nth: usize| {
            let is = |bit: usize| nth >> bit & 1 == 1;
            let rest = nth / 16;
            Facts {
                is_file: is(0),
                has_size: is(1),
                has_bytes: is(2),
                has_mode: is(3),
                time: times[rest % 3],
                writer: writers[rest / 3 % 3],
                record: records[rest / 9 % 4],
                once: onces[rest / 36],
            }
        })
    }

    #[test]
    fn each_case_has_one_state() {
        use Record::*;
        use State::*;
        // `None`: the fact does not count.
        type Row = (
            [Option<bool>; 4],
            &'static [Once],
            &'static [Time],
            &'static [Writer],
            &'static [Record],
            State,
        );
        const YES: Option<bool> = Some(true);
        const NO: Option<bool> = Some(false);
        const ANY_TIME: &[Time] = &[Time::Same, Time::Shifted, Time::Other];
        const AS_RECORDED: &[Time] = &[Time::Same, Time::Shifted];
        const ANY: &[Writer] = &[Writer::Nobody, Writer::Somebody, Writer::Unknown];
        const OLDER: Record = Proved { is_older: true };
        const NEWER: Record = Proved { is_older: false };
        const ALL: &[Record] = &[Believed, OLDER, NEWER, Unproved];
        const BOUND: &[Record] = &[Believed, OLDER, NEWER];
        const ANY_ONCE: &[Once] = &[Once::No, Once::Yes, Once::Grown];
        const FREE: &[Once] = &[Once::No, Once::Grown];
        const ONCE: &[Once] = &[Once::Yes];
        #[rustfmt::skip]
        const TABLE: [Row; 19] = [
            // Is a file, has its size, has its bytes, has its mode.
            ([NO,  None, None, None], ANY_ONCE, ANY_TIME,     ANY,                 ALL,               Edited),
            ([YES, YES,  YES,  YES],  ANY_ONCE, ANY_TIME,     ANY,                 ALL,               Intact),
            ([YES, YES,  YES,  NO],   ANY_ONCE, ANY_TIME,     ANY,                 ALL,               Mode),
            ([YES, NO,   None, None], ONCE,     ANY_TIME,     ANY,                 BOUND,             Rotten),
            ([YES, YES,  NO,   None], ONCE,     ANY_TIME,     ANY,                 BOUND,             Rotten),
            // A policy that is not proved makes nothing of any file.
            ([YES, NO,   None, None], ONCE,     ANY_TIME,     ANY,                 &[Unproved],       Edited),
            ([YES, YES,  NO,   None], ONCE,     &[Time::Other], ANY,               &[Unproved],       Edited),
            ([YES, YES,  NO,   None], ONCE,     AS_RECORDED,  &[Writer::Somebody], &[Unproved],       Changed),
            ([YES, YES,  NO,   None], ONCE,     AS_RECORDED,  &[Writer::Nobody],   &[Unproved],       Edited),
            ([YES, YES,  NO,   None], ONCE,     AS_RECORDED,  &[Writer::Unknown],  &[Unproved],       Edited),
            ([YES, NO,   None, None], FREE,     ANY_TIME,     ANY,                 ALL,               Edited),
            ([YES, YES,  NO,   None], FREE,     &[Time::Other], ANY,               ALL,               Edited),
            ([YES, YES,  NO,   None], FREE,     AS_RECORDED,  &[Writer::Somebody], ALL,               Changed),
            ([YES, YES,  NO,   None], FREE,     AS_RECORDED,  &[Writer::Nobody],   BOUND,             Rotten),
            ([YES, YES,  NO,   None], FREE,     AS_RECORDED,  &[Writer::Nobody],   &[Unproved],       Edited),
            ([YES, YES,  NO,   None], FREE,     AS_RECORDED,  &[Writer::Unknown],  &[Believed],       Rotten),
            ([YES, YES,  NO,   None], FREE,     AS_RECORDED,  &[Writer::Unknown],  &[OLDER],          Rotten),
            ([YES, YES,  NO,   None], FREE,     AS_RECORDED,  &[Writer::Unknown],  &[NEWER],          Edited),
            ([YES, YES,  NO,   None], FREE,     AS_RECORDED,  &[Writer::Unknown],  &[Unproved],       Edited),
        ];
        for facts in all() {
            let now = [facts.is_file, facts.has_size, facts.has_bytes, facts.has_mode];
            let applies = |(wanted, onces, times, writers, records, _): &&Row| {
                wanted.iter().zip(now).all(|(wanted, now)| wanted.is_none_or(|wanted| wanted == now))
                    && onces.contains(&facts.once)
                    && times.contains(&facts.time)
                    && writers.contains(&facts.writer)
                    && records.contains(&facts.record)
            };
            let rows: Vec<State> = TABLE.iter().filter(applies).map(|(.., state)| *state).collect();
            assert_eq!(rows, [facts.state()], "{facts:?}");
        }
    }

    #[test]
    fn times_are_those_that_file_systems_make_of_the_recorded_one() {
        let recorded = (1_700_000_001, 123_456_789);
        let shifted = [
            (recorded.0 + 3600, recorded.1),
            (recorded.0 - 24 * 3600, recorded.1),
            // Rounded to 10 ms, 1 s and 2 s, down and up; and an hour later as well.
            (recorded.0, 120_000_000),
            (recorded.0, 130_000_000),
            (recorded.0, 0),
            (recorded.0 + 1, 0),
            (1_700_000_000, 0),
            (1_700_000_002, 0),
            (1_700_000_000 + 3600, 0),
        ];
        for found in shifted {
            assert_eq!(time_of(found, recorded, true), Time::Shifted, "{found:?}");
            assert_eq!(
                time_of(found, recorded, false),
                Time::Other,
                "an old record is taken exactly: {found:?}"
            );
        }
        let others = [
            (recorded.0 + 25 * 3600, recorded.1),
            (recorded.0 + 1800, recorded.1),
            (recorded.0 + 1, recorded.1),
            (recorded.0, recorded.1 + 1),
            (recorded.0 + 3, 0),
            (recorded.0 - 2, 0),
        ];
        for found in others {
            assert_eq!(time_of(found, recorded, true), Time::Other, "{found:?}");
        }
        assert_eq!(time_of(recorded, recorded, false), Time::Same);
        // Before 1970, and a whole second, behind which the next ones are edits.
        assert_eq!(time_of((-2, 0), (-1, 500_000_000), true), Time::Shifted);
        assert_eq!(time_of((1_700_000_002, 0), (1_700_000_001, 0), true), Time::Other);
        assert_eq!(time_of((1_700_000_000, 0), (1_700_000_001, 0), true), Time::Shifted);
        // The ends of the range.
        assert_eq!(time_of((i64::MAX, 999_999_999), (i64::MIN, 0), true), Time::Other);
    }

    /// The table as the independent implementation writes it.
    #[test]
    fn the_second_implementation_has_the_same_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/verdicts.json");
        let text = std::fs::read_to_string(path).expect("it is there");
        let golden: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let rows = |name: &str| golden[name].as_array().expect("rows").iter();
        let mut named = std::collections::HashMap::new();
        for row in rows("states") {
            let is = |name: &str| row[name].as_bool().expect("a fact");
            let facts = Facts {
                is_file: is("is_file"),
                has_size: is("has_size"),
                has_bytes: is("has_bytes"),
                has_mode: is("has_mode"),
                once: match row["once"].as_str() {
                    Some("no") => Once::No,
                    Some("yes") => Once::Yes,
                    _ => Once::Grown,
                },
                time: match row["time"].as_str() {
                    Some("same") => Time::Same,
                    Some("shifted") => Time::Shifted,
                    _ => Time::Other,
                },
                writer: match row["writer"].as_str() {
                    Some("nobody") => Writer::Nobody,
                    Some("somebody") => Writer::Somebody,
                    _ => Writer::Unknown,
                },
                record: match row["record"].as_str() {
                    Some("believed") => Record::Believed,
                    Some("unproved") => Record::Unproved,
                    older => Record::Proved { is_older: older == Some("older") },
                },
            };
            let state = row["state"].as_str().expect("a state");
            assert_eq!(format!("{:?}", facts.state()).to_lowercase(), state, "{facts:?}");
            named.insert(format!("{facts:?}"), state);
        }
        assert_eq!(named.len(), all().count(), "every case has a row");
        for row in rows("times") {
            let time = |name: &str| (row[name][0].as_i64().unwrap(), row[name][1].as_u64().unwrap() as u32);
            let found = time_of(time("found"), time("recorded"), row["has_marks"] == true);
            assert_eq!(format!("{found:?}").to_lowercase(), row["time"].as_str().unwrap(), "{row}");
        }
        for row in rows("marks") {
            let changed = (row["changed"][0].as_i64().unwrap(), row["changed"][1].as_u64().unwrap() as u32);
            let mark = fec_core::format::sidecar::stat::mark(changed, row["inode"].as_u64().unwrap());
            assert_eq!(format!("{mark:016x}"), row["mark"].as_str().unwrap());
        }
    }

    #[test]
    fn the_files_that_are_whole_say_what_times_and_marks_are_worth() {
        use Writer::*;
        let facts = Facts {
            is_file: true,
            has_size: true,
            has_bytes: false,
            has_mode: true,
            once: Once::No,
            time: Time::Shifted,
            writer: Somebody,
            record: Record::Believed,
        };
        // The times and marks of whole files; a copy without times; the time and the mark that count.
        type Row<'a> = (&'a [(Time, Writer)], bool, Time, Writer);
        let (same, shifted, other) = (Time::Same, Time::Shifted, Time::Other);
        let copied = [[(other, Unknown); 6], [(other, Somebody); 6]].map(|of| of.to_vec());
        let [portable, marked] = copied.map(|copied| [&copied[..], &[(same, copied[0].1); 2]].concat());
        let few = [&portable[..5], &[(same, Unknown); 2]].concat();
        let rows: [Row<'_>; 13] = [
            (&portable, true, other, Somebody),
            (&marked, true, other, Unknown),
            (&few, false, other, Somebody),
            (&[], false, shifted, Somebody),
            (&[(same, Nobody), (same, Somebody)], false, other, Somebody),
            (&[(same, Somebody), (same, Unknown)], false, other, Unknown),
            (&[(shifted, Somebody), (same, Somebody)], false, shifted, Unknown),
            (&[(other, Somebody)], true, shifted, Unknown),
            (&[(other, Somebody), (other, Nobody)], false, shifted, Somebody),
            (&[(other, Somebody), (same, Somebody)], false, other, Unknown),
            (&[(other, Unknown), (other, Unknown)], false, shifted, Somebody),
            (&[(other, Unknown), (other, Unknown), (other, Unknown)], true, shifted, Somebody),
            (&[(other, Unknown), (other, Unknown), (shifted, Unknown)], false, shifted, Somebody),
        ];
        for (whole, is_copy, time, writer) in rows {
            let traces = Traces::of(whole.iter().copied());
            assert_eq!(traces.is_copy, is_copy, "{whole:?}");
            assert_eq!(traces.read(facts), Facts { time, writer, ..facts }, "{whole:?}");
        }
        assert_eq!([writer_of(|| 5, 5), writer_of(|| 6, 5), writer_of(|| 6, 0)], [Nobody, Somebody, Unknown]);
    }
}
