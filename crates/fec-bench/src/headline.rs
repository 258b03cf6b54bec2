//! The result of a run in a sentence that needs no knowledge of the tables below, computed from their figures.

use crate::options::Preset;
use crate::table::{Cell, FigureTable};
use crate::words::{per_cent, speed, threads};
use std::collections::BTreeMap;

type Row = BTreeMap<String, Cell>;

/// The sentence of a preset, from its tables.
pub(crate) fn headline(preset: Preset, tables: &[FigureTable]) -> String {
    let sentence = match preset {
        Preset::Reference => reference(tables),
        Preset::Kernels => kernels(tables),
        Preset::Batch => batch(tables),
        Preset::Sets => sets(tables),
        Preset::Tree => tree(tables),
        Preset::Files => files(tables),
        Preset::Roof => roof(tables),
        Preset::Model => model(tables),
        Preset::Tuning => tuning(tables),
        Preset::Window => window(tables),
        Preset::Stream => stream(tables),
        Preset::Seal => seal(tables),
    };
    sentence.unwrap_or_else(|| "nothing was measured".to_owned())
}

fn rows<'a>(tables: &'a [FigureTable], name: &str) -> &'a [Row] {
    tables.iter().find(|table| table.name == name).map_or(&[], |table| &table.rows)
}

fn number(row: &Row, name: &str) -> Option<f64> {
    match row.get(name)? {
        Cell::Whole(number) => Some(*number as f64),
        Cell::Real(number) => Some(*number),
        Cell::Measured(summary) => Some(summary.median),
        Cell::Missing | Cell::Text(_) => None,
    }
}

fn text<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    match row.get(name)? {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

fn megabits(row: &Row) -> Option<f64> {
    number(row, "megabits_per_second")
}

/// `on one core`, `with 2 threads`.
fn on(count: f64) -> String {
    if count == 1.0 { "on one core".to_owned() } else { format!("with {}", threads(count as usize)) }
}

/// The phase that takes most of the time of a set, in words.
fn doing(phase: &str) -> &str {
    match phase {
        "encode" => "coding",
        "digests" => "hashing",
        "tree" => "the Merkle tree",
        _ => "what is neither coding nor hashing",
    }
}

fn reference(tables: &[FigureTable]) -> Option<String> {
    let rows = rows(tables, "encode");
    // The first hash with the fewest threads is the one to report.
    let total = rows.iter().find(|row| text(row, "phase") == Some("total"))?;
    let same = |row: &&Row| ["hash", "threads"].iter().all(|name| row.get(*name) == total.get(*name));
    let phases =
        rows.iter().filter(same).filter_map(|row| Some((text(row, "phase")?, number(row, "share")?)));
    let phases: Vec<(&str, f64)> = phases.filter(|(phase, _)| *phase != "total").collect();
    let (phase, share) = *phases.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    // Digests may be a part of the kernel's phase on several threads.
    let what = match phases.iter().any(|(phase, _)| *phase == "digests") {
        false if phase == "encode" => "coding with hashing",
        _ => doing(phase),
    };
    Some(format!(
        "encodes {} {}; {what} takes {} of the time",
        speed(megabits(total)?),
        on(number(total, "threads")?),
        per_cent(share)
    ))
}

fn kernels(tables: &[FigureTable]) -> Option<String> {
    let rows = rows(tables, "kernels");
    let backend = text(rows.first()?, "backend")?;
    let is_shape = |row: &&Row| text(row, "operation").is_some_and(|operation| operation.ends_with(" 33+67"));
    let mine =
        rows.iter().filter(|row| text(row, "backend") == Some(backend) && text(row, "level") == Some("L2"));
    let rate = mine.filter(is_shape).filter_map(megabits).reduce(f64::max)?;
    Some(format!("{backend} codes 33 + 67 shards at {} on one core", speed(rate)))
}

fn batch(tables: &[FigureTable]) -> Option<String> {
    let batched =
        |row: &&Row| text(row, "operation") == Some("encode") && text(row, "way") == Some("batched");
    let rows = rows(tables, "batch").iter().filter(batched);
    let best =
        rows.max_by(|a, b| number(a, "sets").unwrap_or(0.0).total_cmp(&number(b, "sets").unwrap_or(0.0)));
    let row = best?;
    Some(format!(
        "{} sets of {}-byte shards: {:.2} times as fast in a batch as one by one",
        number(row, "sets")?,
        number(row, "shard_bytes")?,
        number(row, "speedup")?
    ))
}

fn sets(tables: &[FigureTable]) -> Option<String> {
    let rates = || rows(tables, "sets").iter().filter_map(megabits);
    let (low, high) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
    Some(format!(
        "codes at {:.1} to {:.1} Gb/s on one core, by k, m and the length of shards",
        low / 1e3,
        high / 1e3
    ))
}

fn tree(tables: &[FigureTable]) -> Option<String> {
    let largest = rows(tables, "trees").iter().max_by(|a, b| {
        let nodes = |row: &Row| number(row, "leaves").unwrap_or(0.0) + number(row, "speedup").unwrap_or(0.0);
        nodes(a).total_cmp(&nodes(b))
    })?;
    Some(format!(
        "a tree of {} leaves takes {:.2} ms on one core, {:.1} times as fast as node by node",
        number(largest, "leaves")?,
        number(largest, "time_us")? / 1e3,
        number(largest, "speedup")?
    ))
}

fn files(tables: &[FigureTable]) -> Option<String> {
    let row = rows(tables, "files").first()?;
    let name = text(row, "command")?;
    let stages = rows(tables, "stages").iter().filter(|stage| text(stage, "command") == Some(name));
    let shares = stages.filter_map(|stage| Some((text(stage, "stage")?, number(stage, "share")?)));
    let (stage, share) = shares.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let stage = match stage {
        "read" => "reading",
        "code" => "coding",
        "hash" => "hashing",
        "tree" => "the Merkle tree",
        "write" => "writing",
        "sync" => "the disk (sync)",
        _ => "everything else",
    };
    let (rate, share) = (speed(megabits(row)?), per_cent(share / 100.0));
    Some(format!("encodes a file to shards at {rate}; {stage} takes {share} of it"))
}

fn roof(tables: &[FigureTable]) -> Option<String> {
    let rows = rows(tables, "roof");
    let of = |what: &str, level: &str| {
        let here = |row: &&Row| text(row, "what") == Some(what) && text(row, "level") == Some(level);
        let row = rows.iter().filter(here).find(|row| number(row, "threads") == Some(1.0))?;
        number(row, "gigabytes_per_second")
    };
    let (read, hash) = (of("read", "memory")?, of("blake3", "L2")?);
    Some(format!("one core reads memory at {read:.1} GB/s, and hashes with BLAKE3 at {hash:.1} GB/s"))
}

fn model(tables: &[FigureTable]) -> Option<String> {
    let row = rows(tables, "model").first()?;
    let of = |name: &str| number(row, name);
    Some(format!(
        "a model: each KiB misses {:.1} lines of the first cache, {:.1} of the second",
        of("model_l1_misses_per_kib")?,
        of("model_l2_misses_per_kib")?
    ))
}

fn tuning(tables: &[FigureTable]) -> Option<String> {
    let again = rows(tables, "tuning")
        .iter()
        .filter(|row| text(row, "settings").is_some_and(|s| s.ends_with(", again")));
    let best = again.filter_map(|row| number(row, "ratio")).reduce(f64::max)?;
    Some(match best {
        1.0.. => {
            format!("the best other settings are {:.1} % faster than those chosen here", (best - 1.0) * 100.0)
        }
        _ => "no other settings are faster than those chosen for this processor".to_owned(),
    })
}

fn window(tables: &[FigureTable]) -> Option<String> {
    let row = rows(tables, "window").iter().find(|row| text(row, "profile") == Some("bounded"))?;
    let rate = speed(megabits(row)?);
    Some(format!("encodes a live stream at {rate} on one core, over {} packets", number(row, "window")?))
}

fn stream(tables: &[FigureTable]) -> Option<String> {
    let row = rows(tables, "stream").first()?;
    let rate = speed(number(row, "decode_megabits_per_second")?);
    let [rebuilt, lost] = ["rebuilt", "lost"].map(|name| number(row, name));
    Some(format!("receives a live stream at {rate} on one core; rebuilds {} of {} losses", rebuilt?, lost?))
}

fn seal(tables: &[FigureTable]) -> Option<String> {
    let row = rows(tables, "ciphers").first()?;
    let rate = speed(number(row, "megabytes_per_second")? * 8.0);
    Some(format!("seals {rate} on one core with {}", text(row, "cipher")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Summary;
    use crate::table::{figure, key};

    fn encode(rows: &[(&str, usize, &str, f64, f64)]) -> FigureTable {
        let columns = [
            key("hash", "hash"),
            key("threads", "threads"),
            key("phase", "phase"),
            figure("time_ms", "median ms", 3),
            figure("share", "share", 3),
            figure("megabits_per_second", "Mb/s", 0),
        ];
        let mut table = FigureTable::new("encode", "", columns);
        for (hash, threads, phase, share, megabits) in rows {
            table.row([
                ("hash", (*hash).into()),
                ("threads", (*threads).into()),
                ("phase", (*phase).into()),
                ("time_ms", Summary::of(vec![*share], 0).into()),
                ("share", (*share).into()),
                ("megabits_per_second", (*megabits).into()),
            ]);
        }
        table
    }

    #[test]
    fn the_reference_names_the_speed_of_one_core_and_what_takes_most_of_it() {
        let rows = [
            ("blake3", 1, "encode", 0.268, 28333.0),
            ("blake3", 1, "digests", 0.722, 10540.0),
            ("blake3", 1, "total", 1.0, 7606.0),
            ("blake3", 2, "encode", 0.9, 9000.0),
            ("blake3", 2, "total", 1.0, 14000.0),
            ("sha256", 1, "total", 1.0, 1000.0),
        ];
        let sentence = headline(Preset::Reference, &[encode(&rows)]);
        assert_eq!(sentence, "encodes 7.6 Gb/s (951 MB/s) on one core; hashing takes 72 % of the time");
        let sentence = headline(Preset::Reference, &[encode(&rows[3..])]);
        assert_eq!(
            sentence,
            "encodes 14.0 Gb/s (1.8 GB/s) with 2 threads; coding with hashing takes 90 % of the time"
        );
    }

    #[test]
    fn without_figures_there_is_nothing_to_tell() {
        for preset in Preset::ALL {
            assert_eq!(headline(preset, &[]), "nothing was measured");
        }
    }
}
