//! The result of a run in a sentence that needs no knowledge of the tables below, computed from their figures.

use crate::options::Preset;
use crate::table::{Cell, FigureTable};
use crate::words::{count, per_cent, speed, threads};
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
        Preset::Kem => kem(tables),
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
fn on(cores: f64) -> String {
    if cores == 1.0 { "on one core".to_owned() } else { format!("with {}", threads(cores as usize)) }
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
    Some(format!("{backend} codes 33 + 67 shards at {} on one core, without hashing", speed(rate)))
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
    let rows = rows(tables, "sets");
    let is_disturbed = |row: &Row| matches!(row.get("time_us"), Some(Cell::Measured(time)) if time.on_core || time.is_far_from_min());
    let steady: Vec<&Row> = rows.iter().filter(|row| !is_disturbed(row)).collect();
    let rows = if steady.is_empty() { rows.iter().collect() } else { steady };
    let mut rates: Vec<(f64, &Row)> = rows.iter().filter_map(|row| Some((megabits(row)?, *row))).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let told = |(rate, row): &(f64, &Row)| {
        let [k, m, len] = ["k", "m", "shard_bytes"].map(|name| number(row, name));
        Some(format!("{:.1} Gb/s ({} + {} shards of {} B)", rate / 1e3, k?, m?, len?))
    };
    Some(format!("codes at {} to {} on one core", told(rates.first()?)?, told(rates.last()?)?))
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
    let of = |what: &str| -> Vec<(&str, f64)> {
        let here = |row: &&Row| text(row, "what") == Some(what) && number(row, "threads") == Some(1.0);
        let rates = rows.iter().filter(here);
        rates.filter_map(|row| Some((text(row, "level")?, number(row, "gigabytes_per_second")?))).collect()
    };
    // The largest working set comes last, the smaller one of hashes first.
    let ((level, read), (_, hash)) = (*of("read").last()?, *of("blake3").first()?);
    Some(format!("one core reads {level} at {read:.1} GB/s, and hashes with BLAKE3 at {hash:.1} GB/s"))
}

fn model(tables: &[FigureTable]) -> Option<String> {
    let row = rows(tables, "model").first()?;
    let of = |name: &str| number(row, name);
    let lines = match (of("k"), of("m")) {
        (Some(k), Some(m)) => format!(" (16 lines in, {:.0} out)", 16.0 * m / k),
        _ => String::new(),
    };
    Some(format!(
        "a model: encoding 1 KiB{lines} misses the first cache {:.1} times, the second {:.1}",
        of("model_l1_misses_per_kib")?,
        of("model_l2_misses_per_kib")?
    ))
}

fn tuning(tables: &[FigureTable]) -> Option<String> {
    let rows = rows(tables, "tuning");
    let shown = |row: &&Row| Some(number(row, "ratio")? - number(row, "noise")?);
    let is_again = |row: &&Row| text(row, "settings").is_some_and(|settings| settings.ends_with(", again"));
    let again = rows.iter().filter(is_again).filter(|row| shown(row).is_some_and(|ratio| ratio > 1.0));
    let best = again.filter_map(|row| number(row, "ratio")).reduce(f64::max);
    let checked = rows.iter().any(|row| is_again(&row));
    Some(match best {
        _ if rows.is_empty() => return None,
        Some(best) => {
            format!("the best other settings are {:.1} % faster than those chosen here", (best - 1.0) * 100.0)
        }
        None if checked => {
            "no other settings are shown to be faster than those chosen for this processor".to_owned()
        }
        None => {
            let measured = count(rows.len() as u64, "measurement", "measurements");
            format!("{measured} of other settings, too few to judge those chosen: --budget gives more")
        }
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

fn kem(tables: &[FigureTable]) -> Option<String> {
    let each = |operation: &str| {
        let row = rows(tables, "kem").iter().find(|row| text(row, "operation") == Some(operation))?;
        number(row, "us_each")
    };
    let (sent, opened) = (each("encapsulate")?, each("decapsulate")?);
    Some(format!(
        "encapsulates in {sent:.1} µs and decapsulates in {opened:.1} µs on one core, by ML-KEM-768"
    ))
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

    /// A disturbed figure is no end of the range, and noise makes no settings faster.
    #[test]
    fn what_other_work_did_is_in_no_headline() {
        let columns = ["k", "m", "shard_bytes"].map(|name| key(name, name));
        let columns =
            columns.into_iter().chain(["time_us", "megabits_per_second"].map(|name| figure(name, name, 1)));
        let mut sets = FigureTable::new("sets", "", columns);
        for (k, rate, times) in
            [(4, 20_000.0, [1.0; 5]), (10, 90_000.0, [1.0; 5]), (33, 500.0, [1.0, 9.0, 9.0, 9.0, 9.0])]
        {
            sets.row([
                ("k", k.into()),
                ("m", 2.into()),
                ("shard_bytes", 64.into()),
                ("time_us", Summary::of(times.to_vec(), 0).into()),
                ("megabits_per_second", rate.into()),
            ]);
        }
        let sentence = headline(Preset::Sets, &[sets]);
        assert_eq!(
            sentence,
            "codes at 20.0 Gb/s (4 + 2 shards of 64 B) to 90.0 Gb/s (10 + 2 shards of 64 B) on one core"
        );
        let columns = [key("settings", ""), figure("ratio", "", 3), figure("noise", "", 3)];
        let tuning = |rows: &[(&str, f64, f64)]| {
            let mut table = FigureTable::new("tuning", "", columns.clone());
            for (settings, ratio, noise) in rows {
                table.row([
                    ("settings", (*settings).into()),
                    ("ratio", (*ratio).into()),
                    ("noise", (*noise).into()),
                ]);
            }
            headline(Preset::Tuning, &[table])
        };
        assert!(tuning(&[("tile=1", 1.3, 0.1)]).starts_with("1 measurement of other settings, too few"));
        assert!(tuning(&[("tile=1, again", 1.3, 0.4)]).starts_with("no other settings are shown"));
        assert!(tuning(&[("tile=1, again", 1.3, 0.1)]).starts_with("the best other settings are 30.0 %"));
    }

    #[test]
    fn without_figures_there_is_nothing_to_tell() {
        for preset in Preset::ALL {
            assert_eq!(headline(preset, &[]), "nothing was measured");
        }
    }
}
